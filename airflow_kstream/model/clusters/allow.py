"""What a connection allows its declarations to use: the bound of what their authors can reach through a worker."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Annotated, Any

from pydantic import ConfigDict

from airflow_kstream.model.fields import Word, must

_SECRET = re.compile(r"(conn|var|env|file):\S.*")
_COORDINATES = re.compile(r"[A-Za-z][\w.+-]*:\S+", re.ASCII)
# What Spark or Hadoop would make another path of: a glob, or a character that is written as a number.
_ANOTHER_PATH = re.compile(r"[%*?\[\]{}\\]")
# What a secrets backend would make another place of, such as the path of a request. A file has a rule of its own.
_PLAIN_SECRET = re.compile(r"[\w.:@+=~ -]+", re.ASCII)
# What a template, or a client that reads addresses in another way, would make another server of.
_PLAIN_SERVER = re.compile(r"([\w+.-]+://)?[\w.:\[\]-]+", re.ASCII)
# Of a thousand streams nobody reads it in a table.
_LONGEST_LINE = 4000


def _names_files(text: str) -> bool:
    if text.startswith("/"):
        return text.isprintable() and text == text.strip() and not {".", ".."} & set(text.split("/"))
    return text.isprintable() and _COORDINATES.fullmatch(text) is not None


PrincipalPattern = Annotated[
    Word, must(lambda text: "@" in text or "*" in text, "primary[/instance]@REALM, in which * is any text")
]
SecretPattern = Annotated[
    str,
    must(
        lambda text: _SECRET.fullmatch(text) is not None and text.isprintable(),
        "conn:, var:, env: or file: with the place, in which * is any text",
    ),
]
FilePattern = Annotated[
    str,
    must(
        _names_files,
        "an absolute path without '..', with a / at its end for all below it, in which * is any text; or a URI, or a "
        "package's coordinates",
    ),
]


@dataclass(frozen=True)
class Allow:
    """Patterns of what the declarations of a connection may use beside what the connection itself has.

        principals: [etl@EXAMPLE.COM, "streams-*@EXAMPLE.COM"]
        proxy_users: [alice]
        secrets: ["conn:streams_*", "file:/run/secrets/streams/"]
        local_files: [/opt/jobs/, /etc/security/keytabs/etl.keytab]
        notifiers: [airflow.providers.slack.notifications.slack.SlackNotifier]
        servers: ["https://chat.example.com"]
        brokers: ["kafka*.example.com:9092"]

    `*` is any text, also an empty one or one with slashes. A path that ends in / is all that lies below it; a path is
    compared with where the worker's file really is, once symlinks are followed. `local_files` are all that the client
    takes from the worker, keytabs and ticket caches included, or loads there from elsewhere than HDFS and object
    stores, such as packages. `servers` are those that arguments of notifiers name, by scheme, host and port.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    principals: tuple[PrincipalPattern, ...] = ()
    proxy_users: tuple[Word, ...] = ()
    secrets: tuple[SecretPattern, ...] = ()
    local_files: tuple[FilePattern, ...] = ()
    notifiers: tuple[Word, ...] = ()
    servers: tuple[Word, ...] = ()
    brokers: tuple[Word, ...] = ()

    def __bool__(self) -> bool:
        return any(names for _, names in self.items())

    def items(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the name of each field with what it holds."""
        yield from ((each.name, getattr(self, each.name)) for each in fields(self))

    def with_all(self, other: Allow) -> Allow:
        """Return what either holds, in order."""
        return Allow(**{name: tuple(sorted({*names, *getattr(other, name)})) for name, names in self.items()})

    def to_json(self) -> dict[str, Any]:
        """Return plain data as a connection has it, without what is empty."""
        return {name: list(names) for name, names in self.items() if names}

    def advice(self) -> str:
        """Return how a connection without `allow` gets this one. An empty one would refuse most first streams."""
        if not self:
            return (
                "`kstream connection allow SPEC.yaml` prints what a declaration needs; an empty allow refuses a stream "
                "with a principal, a keytab or a job on this host that the connection doesn't have itself"
            )
        line = self.line()
        return f"`kstream connection allow` prints what the present streams need{': ' * bool(line)}{line}"

    def line(self) -> str:
        """Return what a connection's extra would have, for a table of findings; empty if it is too long for one."""
        line = json.dumps({"allow": self.to_json()})
        return line if len(line) <= _LONGEST_LINE else ""


def covers(patterns: tuple[str, ...], name: str) -> bool:
    """Return whether one of the patterns is of this name."""
    return any(_covers(pattern, name) for pattern in patterns)


def covers_file(patterns: tuple[str, ...], path: str) -> bool:
    """Return whether one of the patterns is of this path, which has no symlinks and no '..' any longer.

    One that a program would make other paths of is covered by the same text alone.
    """
    if _ANOTHER_PATH.search(path):
        return path in patterns
    return any(_covers(f"{pattern}*" if pattern.endswith("/") else pattern, path) for pattern in patterns)


def covers_secret(patterns: tuple[str, ...], name: str) -> bool:
    """Return whether one of the patterns is of this reference to a secret: `covers`, or `covers_file` for a file.

    A name that a secrets backend might take for another place, with a slash or a percent sign, is covered by the same
    text alone.
    """
    if name.startswith("file:"):
        return covers_file(patterns, name)
    return covers(patterns, name) if _PLAIN_SECRET.fullmatch(name) else name in patterns


def covers_server(patterns: tuple[str, ...], name: str) -> bool:
    """Return whether one of the patterns is of this scheme, host and port; what is more than that, by the same text."""
    return covers(patterns, name) if _PLAIN_SERVER.fullmatch(name) else name in patterns


def _covers(pattern: str, name: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None
