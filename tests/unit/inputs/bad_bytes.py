"""Files that are not a declaration of any kind: the bytes, and the words that the refusal must have."""

from __future__ import annotations

_BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{chr(ord(name) - 1)}'] * 10)}]\n" for name in "bcdefghi"
)
_MERGE_BOMB = "a: &a {k: v}\n" + "".join(
    f"{name}: &{name} {{<<: [{', '.join([f'*{chr(ord(name) - 1)}'] * 10)}], {name}1: x}}\n" for name in "bcdefghi"
)
_CHAIN = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 2000))

BAD: dict[str, list[tuple[bytes, str]]] = {
    "encodings": [
        ("name: gr\u00fcn\n".encode("latin-1"), "line 1 has the byte 0xfc; allowed is UTF-8"),
        ("# f\u00fcr alle\nname: a\n".encode("cp1252"), "line 1 has the byte 0xfc"),
        ("name: a\n# caf\u00e9".encode("latin-1"), "line 2 has the byte 0xe9"),
        ("name: a\n".encode("utf-16"), "it is UTF-16; allowed is UTF-8"),
        (b"\xfe\xff" + "name: a\n".encode("utf-16-be"), "it is UTF-16"),
        ("name: a\n".encode("utf-32"), "it is UTF-32"),
        ("name: a\n".encode("utf-16-le"), "line 1 has a NUL"),
        (b"name: a\nb: \0\n", "line 2 has a NUL"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "line 1 has a NUL"),
        (b"\x89PNG\r\n\x1a\n", "line 1 has the byte 0x89"),
        (b"PK\x03\x04\x14\0", "line 1 has a NUL"),
        (b"\x1f\x8b\x08\0\0\0", "line 1 has the byte 0x8b"),
        (b"\x05\x02\0\0\0\x3b", "line 1 has a NUL"),  # a keytab
        (b"name: \xed\xa0\x80", "line 1 has the byte 0xed"),  # half a surrogate pair
        (b"name: \xc0\xaf", "line 1 has the byte 0xc0"),  # an overlong slash
        (b"name: \xf0\x9f\x98", "line 1 has the byte 0xf0"),  # half a character
    ],
    "characters": [
        (b"name: a\x1b[2J", "this is not YAML: control characters are not allowed"),
        (b"name: a\x07", "control characters are not allowed"),
        (b"name: a\x7f", "control characters are not allowed"),
        (b"\tname: a", r"line 1: found character '\\t' that cannot start any token"),
        (b"name: @a", "line 1: found character that cannot start any token"),
        (b"name: `a`", "line 1: found character that cannot start any token"),
    ],
    "syntax": [
        (b"{principals: [", "this is not YAML"),
        (b"name: 'a", "line 1: found unexpected end of stream"),
        (b'name: "a\\q"', "line 1: found unknown escape character"),
        (b"name: a: b", "line 1: mapping values are not allowed in this context"),
        (b"name: a\n  b: c", "line 2: mapping values are not allowed"),
        (b"name: a\n- b", "line 2"),
        (b"]", "this is not YAML"),
        (b"%YAML 9.9\n---\nname: a", "incompatible YAML document"),
        (b"%TAG ! x\n%TAG ! y\n---\nname: a", "this is not YAML"),
        (b"name: a\n...\nb", "line 3: did not find expected <document start>"),
        (b"name: a\n---\nname: b", "line 2: a second document begins; allowed is one"),
    ],
    "no mapping": [
        (b"- a", "it is a list; allowed is a mapping of fields to values"),
        (b"just words", "it is one value; allowed is a mapping"),
        (b"12", "it is one value"),
        (b"[]", "it is a list"),
        (b"'null'", "it is one value"),
    ],
    "keys": [
        (b"name: a\nname: b", "line 2: 'name' is given twice; the first is in line 1"),
        (b"{name: a, 'name': b}", "'name' is given twice"),
        (b"conf:\n  a: x\n  b: y\n  a: x", "line 4: 'a' is given twice; the first is in line 2"),
        (b"name: a\ncredentials:\n  {mode: keytab, mode: ticket}", "line 3: 'mode' is given twice"),
        (b"1: a\n'1': b", "line 2: '1' is given twice"),
        (b"? [a, b]\n: c", "line 1: a list, a mapping or an alias stands where a key is expected"),
        (b"? {a: b}\n: c", "stands where a key is expected"),
        (b"a: &a x\n*a : y", "line 2: a list, a mapping or an alias stands where a key is expected"),
        (b"<<: 1", "<< takes a mapping or a list of mappings"),
        (b"a: &a [x]\nb: {<<: *a}", "line 2: << takes a mapping"),
    ],
    "tags": [
        (b"a: !!python/object/apply:os.system [x]", "the tag 'tag:yaml.org,2002:python/object/apply:os.system'"),
        (b"a: !!binary aGVsbG8=", "the tag 'tag:yaml.org,2002:binary' is not allowed"),
        (b"a: !secret x", "the tag of a program's own, after !, is not allowed; quote a text that begins with !"),
        (b"a: !!set {x, y}", "the tag 'tag:yaml.org,2002:set' is not allowed"),
        (b"!!omap [a: b]", "the tag 'tag:yaml.org,2002:omap' is not allowed"),
        (b"a: !!int x", "the tag 'tag:yaml.org,2002:int' is not allowed"),
    ],
    "size and depth": [
        (b"a: *b", r"line 1: what follows \* is the name of no anchor that ends before it; quote"),
        (b"a: &a [*a]", r"what follows \* is the name of no anchor that ends before it"),
        (b"a: &a {b: *a}", r"what follows \* is the name of no anchor that ends before it"),
        (b"[" * 3_000, "more than 20 levels deep"),
        (b"a: " + b"[" * 100_000, "more than 20 levels deep"),
        (b"a: " + b"{a: " * 10_000, "more than 20 levels deep"),
        ("\n".join("  " * n + f"k{n}:" for n in range(300)).encode(), "more than 20 levels deep"),
        (_BOMB.encode(), "with its aliases this is more than 100000 values or 20 levels"),
        (_MERGE_BOMB.encode(), "with its aliases this is more than"),
        (_CHAIN.encode(), "more than 100000 values or 20 levels"),
        (b"a: [" + b"x," * 110_000 + b"x]", "more than 100000 values"),
        (b"#" * (1024 * 1024 + 1), "it has 1048577 bytes; allowed are 1048576"),
    ],
}

GOOD: dict[str, tuple[bytes, dict[str, object]]] = {
    "nothing": (b"", {}),
    "comments": (b"# nothing yet\n", {}),
    "an empty document": (b"---\n...\n", {}),
    "null": (b"null", {}),
    "a byte order mark": (b"\xef\xbb\xbfname: a", {"name": "a"}),
    "line ends of Windows": (b"name: a\r\nb: c\r\n", {"name": "a", "b": "c"}),
    "JSON": (b'{"name": "a", "n": [1, true, null]}', {"name": "a", "n": [1, True, None]}),
    "letters of all countries": ("name: gr\u00fcn \U0001f600".encode(), {"name": "gr\u00fcn \U0001f600"}),
    "versions": (b"v: 3.10", {"v": "3.10"}),
    "times, modes, dates and Norway": (
        b"a: 12:30\nb: 0600\nc: 2026-01-01\nd: no\ne: 1_000\nf: 0x10",
        {"a": "12:30", "b": "0600", "c": "2026-01-01", "d": "no", "e": "1_000", "f": "0x10"},
    ),
    "numbers and truth": (b"a: 8\nb: -1\nc: true\nd: False\ne: ~", {"a": 8, "b": -1, "c": True, "d": False, "e": None}),
    "what is quoted": (b"a: '8'\nb: \"true\"\nc: !!str 8", {"a": "8", "b": "true", "c": "8"}),
    "a number longer than any": (b"a: " + b"9" * 5000, {"a": "9" * 5000}),
    "an alias": (b"a: &x [1]\nb: *x", {"a": [1], "b": [1]}),
    "a merge": (
        b"a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}",
        {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}},
    ),
    "several merges, the first wins": (
        b"a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b]}",
        {"a": {"x": 1}, "b": {"x": 2, "y": 2}, "c": {"x": 1, "y": 2}},
    ),
    "a quoted <<": (b"'<<': 3", {"<<": 3}),
    "many paths": (b"paths: [" + b"/a," * 5000 + b"/a]", {"paths": ["/a"] * 5001}),
}
