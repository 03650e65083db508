"""Properties with references in them, and what Hadoop 3.5's Configuration makes of each."""

from __future__ import annotations

from pathlib import Path

TOO_DEEP = "too deep"
ENVIRONMENT = {"KSTREAM_SET": "set", "KSTREAM_EMPTY": ""}

# By name: what is written, and what is read.
CASES: dict[str, tuple[str, str]] = {
    "plain": ("nn.test:8020", "nn.test:8020"),
    "reference": ("x${exclamation}", "x!"),
    "exclamation": ("!", "!"),
    "two": ("${exclamation}${exclamation}", "!!"),
    "chain": ("${reference}y", "x!y"),
    "nested": ("${${which}}", "!"),
    "which": ("exclamation", "exclamation"),
    "unbound": ("${exclamation}${nope}${exclamation}", "!${nope}${exclamation}"),
    "itself": ("1${itself}", "1${itself}"),
    "here": ("${there}", TOO_DEEP),
    "there": ("${here}", TOO_DEEP),
    "a name with a space": ("${b c} ${exclamation}", "${b c} !"),
    "not closed": ("${exclamation", "${exclamation"),
    "without a name": ("${}${exclamation}", "${}!"),
    "set": ("${env.KSTREAM_SET}", "set"),
    "set with a default": ("${env.KSTREAM_SET:-d}${env.KSTREAM_SET-d}", "setset"),
    "empty with a default": ("${env.KSTREAM_EMPTY:-d}|${env.KSTREAM_EMPTY-d}", "d|"),
    "not set": ("${env.KSTREAM_NOT_SET}", "${env.KSTREAM_NOT_SET}"),
    "not set with a default": ("${env.KSTREAM_NOT_SET:-d-e}|${env.KSTREAM_NOT_SET-d:-e}", "d-e|d:-e"),
    "a default with a reference": ("${env.KSTREAM_NOT_SET:-${exclamation}}", "!"),
    "refers to one without a value": ("a${no value}b", "a${no value}b"),
    "temporary": ("${java.io.tmpdir}", "/tmp"),
    **{f"link-{number}": (f"${{link-{number + 1}}}", TOO_DEEP if number < 11 else "end") for number in range(8, 30)},
    "link-30": ("end", "end"),
}
FILES = {
    "core-site.xml": """<configuration xmlns:xi="http://www.w3.org/2001/XInclude">
        {properties}
        <property><name>no value</name><value></value></property>
        <property name="as attributes" value="${{exclamation}}"/>
        <property><name>final</name><value>first</value><final>true</final></property>
        <xi:include href="included.xml"/>
        <xi:include href="missing.xml">
          <xi:fallback><property><name>fallback</name><value>yes</value></property></xi:fallback>
        </xi:include>
    </configuration>""",
    "included.xml": """<configuration>
        <property><name>included</name><value>in${{exclamation}}</value></property>
        <property><name>final</name><value>second</value></property>
    </configuration>""",
}
OF_FILES = {"as attributes": "!", "final": "first", "included": "in!", "fallback": "yes"}
READ = {name: read for name, (_, read) in CASES.items()} | OF_FILES


def files() -> dict[str, str]:
    """By name in the conf folder, their content."""
    properties = "".join(
        f"<property><name>{name}</name><value>{written}</value></property>" for name, (written, _) in CASES.items()
    )
    return {name: text.format(properties=properties) for name, text in FILES.items()}


def write_core_site(folder: Path, properties: dict[str, str]) -> None:
    rows = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in properties.items()
    )
    (folder / "core-site.xml").write_text(f"<configuration>{rows}</configuration>")
