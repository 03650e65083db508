"""Requests and conditions about open files that nobody can mean, as YAML, and the words that the refusal must have."""

from __future__ import annotations

_PATH = "path: /data\n"

REQUESTS: dict[str, list[tuple[str, str]]] = {
    "fields": [
        ("min_age: 1h", "path is missing"),
        (_PATH + "pattern: '*.tmp'", "pattern: there is no such field; the fields are path, patterns, owner"),
        (_PATH + "force: true\nyes: please", "force, yes: there are no such fields"),
    ],
    "paths": [
        ("path: data", "path is 'data'; allowed is an absolute HDFS path"),
        ("path: ''", "path is empty"),
        ("path: /data/..", r"path is '/data/..'; allowed is an absolute HDFS path with no '..'"),
        ("path: /data/./a", "path is '/data/./a'"),
        ('path: "/data\\0"', r"path is '/data\\x00'"),
        ("path: hdfs://ns/data", "path is 'hdfs://ns/data'"),
        ("path: [/a, /b]", "path is a list; allowed is text"),
        ("path: 7", "path is 7; allowed is text"),
        (_PATH + "patterns: ['']", r"patterns\.0 is empty; allowed is a shell pattern"),
        (_PATH + "patterns: [' ']", r"patterns\.0 is ' '"),
        (_PATH + "patterns: {a: b}", "patterns is a mapping; allowed is a list"),
        (_PATH + "patterns: [[a]]", r"patterns\.0 is a list; allowed is text"),
        (_PATH + "patterns: 8", "patterns is 8; allowed is a list"),
        (_PATH + f"patterns: [{'a,' * 1000}a]", "patterns is a list; allowed is 1000 entries or fewer"),
        (_PATH + "approve: [data/a]\napproved_by: ann", r"approve\.0 is 'data/a'; allowed is an absolute HDFS path"),
        (_PATH + "approve: [/data/../a]\napproved_by: ann", r"approve\.0 is '/data/../a'"),
        (_PATH + "approve: ['']\napproved_by: ann", r"approve\.0 is empty"),
        (_PATH + "allowed: ['=orders']", r"allowed\.0 is '=orders'; allowed is PATTERN or PATTERN=APPLICATION"),
        (_PATH + "allowed: ['/data/*=']", r"allowed\.0 is '/data/\*='"),
        (_PATH + "allowed: [/a, '']", r"allowed\.1 is empty"),
        (_PATH + "allowed: {/a: orders}", "allowed is a mapping; allowed is a list"),
    ],
    "people": [
        (_PATH + 'owner: "a\\e[0m"', r"owner is 'a\\x1b\[0m'; allowed is text of printable characters"),
        (_PATH + "holder: ' x '", "holder is ' x '"),
        (_PATH + 'host: "w\\n7"', r"host is 'w\\n7'"),
        (_PATH + "approved_by: [ann]", "approved_by is a list; allowed is text"),
        (_PATH + "approve: [/data/a]", "say who approves them"),
        (_PATH + "approve: [/data/a]\napproved_by: ''", "say who approves them"),
    ],
    "durations": [
        (_PATH + "min_age: soon", "min_age: 'soon' is not a duration"),
        (_PATH + "min_age: -1s", "min_age: '-1s' is not a duration"),
        (_PATH + "min_age: -1", "min_age: -1s is negative; allowed is 0s or longer"),
        (_PATH + "settle: ''", "settle: '' is not a duration"),
        (_PATH + "settle: nan", "settle: 'nan' is not a duration"),
        (_PATH + "settle: -0.001", "settle: '-0.001' is not a duration"),
        (_PATH + "leak_after: 99999w", "leak_after is '99999w'; allowed is 0s to 3660d"),
        (_PATH + "leak_after: [1h]", "leak_after is a list; allowed is a duration like 90s"),
        (_PATH + "leak_after: true", "leak_after: true and false are not durations"),
    ],
    "choices": [
        (_PATH + "limits: wild", "limits is 'wild'; allowed is 'default' or 'unlimited'"),
        (_PATH + "limits: ~", "limits is empty; allowed is 'default' or 'unlimited'"),
        (_PATH + "backend: magic", "backend is 'magic'; allowed is 'native' or 'hdfs-debug'"),
        (_PATH + "dry_run: perhaps", "dry_run is 'perhaps'; allowed is true or false"),
        (_PATH + "dry_run: 7", "dry_run is 7; allowed is true or false"),
        (_PATH + "dry_run: [true]", "dry_run is a list; allowed is true or false"),
    ],
    "limits": [
        (_PATH + "per_datanode: 0", "per_datanode is 0; allowed is a whole number from 1 to 1000000"),
        (_PATH + "per_datanode: -5", "per_datanode is -5; allowed is a whole number"),
        (_PATH + "per_datanode: many", "per_datanode is 'many'; allowed is a whole number"),
        (_PATH + "per_datanode: 1.5", "per_datanode is '?1.5'?; allowed is a whole number"),
        (_PATH + "per_datanode: [8]", "per_datanode is a list; allowed is a whole number"),
        (_PATH + "per_datanode: 2000", "per_datanode is 2000; allowed is at most in_all, 1000"),
        (_PATH + "per_datanode: 9\nin_all: 8", "per_datanode is 9; allowed is at most in_all, 8"),
        (_PATH + "in_all: 0", "in_all is 0; allowed is a whole number from 1 to 1000000"),
        (_PATH + "in_all: 1000001", "in_all is 1000001; allowed is a whole number from 1 to 1000000"),
        (_PATH + "in_all: true", "in_all is 'true'; allowed is a whole number"),
        (_PATH + "limits: unlimited\nin_all: 5000", "limits is unlimited, so in_all can't be given"),
        (_PATH + "limits: unlimited\nin_all: 9\nper_datanode: 9", "so per_datanode and in_all can't be given"),
        (_PATH + "deadline: 0s", "deadline is '0s'; allowed is 1s to 3660d"),
        (_PATH + "deadline: never", "deadline: 'never' is not a duration"),
        (_PATH + "deadline: ''", "deadline: '' is not a duration"),
    ],
    "several": [
        (_PATH + "limits: wild\nmin_age: soon", "min_age: 'soon' is not a duration.*limits is 'wild'"),
        (_PATH + "path: /other", "line 2: 'path' is given twice"),
    ],
}

CONDITIONS: list[tuple[str, str]] = [
    ("at_least: 3", "path is missing"),
    (_PATH + "at_least: 0", "at_least is 0; allowed is a whole number from 1"),
    (_PATH + "at_least: -1", "at_least is -1"),
    (_PATH + "at_least: many", "at_least is 'many'; allowed is a whole number"),
    (_PATH + "at_least: 1.5", "at_least is '1.5'; allowed is a whole number"),
    (_PATH + "until: never", "until is 'never'; allowed is 'stuck' or 'none'"),
    (_PATH + "quiet: -1s", "quiet: '-1s' is not a duration"),
    (_PATH + "dry_run: true", "dry_run: there is no such field; the fields are path, patterns"),
]

ACCEPTED: dict[str, str] = {
    "a path": _PATH,
    "the root": "path: /",
    "a name that breaks lines": 'path: "/data/a\\nb\\tc"',
    "a partition": "path: /data/day=2026-01-01",
    "one pattern alone": _PATH + "patterns: '*.tmp'",
    "fields that a template left empty": _PATH
    + "owner: ''\nholder: ''\nhost: ~\napproved_by: ''\npatterns: ''\nper_datanode: ''\nin_all: ~",
    "limits of a large cluster": _PATH + "per_datanode: 1000\nin_all: 20000\ndeadline: 2h",
    "a low limit of all": _PATH + "in_all: 1",
    "a deadline without limits": _PATH + "limits: unlimited\ndeadline: 1s",
    "everything": _PATH
    + "patterns: ['*.tmp']\nmin_age: 0s\nsettle: 1s\nleak_after: 2h\nallowed: ['/data/*=orders']\n"
    + "approve: [/data/a]\napproved_by: Ann Other\nlimits: unlimited\nbackend: hdfs-debug\ndry_run: yes",
}
