"""The end of a file that a container wrote, where it is, and the pages on which YARN's servers show it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from airflow_kstream.model.errors import InvalidInput

# In bytes: at most what such a page has beside a file's own content.
FRAME = 4096
# RMAppAttempt's link to the master container's logs, WebAppUtils.getRunningLogURL.
_LINK = re.compile(r"(?P<web>https?://[^/]+)/node/containerlogs/(?P<container>container_[\w]+)/(?P<user>[^/?#]+)/?")
_CONTAINER = re.compile(r"container_(?:e\d+_)?(?P<cluster>\d+)_(?P<number>\d+)_\d+_\d+")
_LENGTH = re.compile(rb"^LogLength:(\d{1,19})$", re.MULTILINE)
_CONTENTS = b"LogContents:\n"
_NO_CONTENTS = b"End of LogType:"


@dataclass(frozen=True)
class LoggedContainer:
    """A container, the base URL of its NodeManager's web server, and YARN's short name of its user."""

    id: str
    web: str
    user: str

    @classmethod
    def of_link(cls, link: str) -> LoggedContainer | None:
        """Return the container to whose logs a NodeManager's page links; None if it is no such link."""
        found = _LINK.fullmatch(link)
        named = found and _CONTAINER.fullmatch(found["container"])
        return cls(found["container"], found["web"], found["user"]) if found and named else None

    @property
    def application(self) -> str:
        found = _CONTAINER.fullmatch(self.id)
        if found is None:
            raise InvalidInput(f"{self.id} is not a container's id")
        return f"application_{found['cluster']}_{found['number']}"

    @property
    def host(self) -> str:
        """Return its node's name, without a port."""
        return self.web.partition("://")[2].rpartition(":")[0] or self.web.partition("://")[2]


@dataclass(frozen=True)
class LogTail:
    """The end of a container's file. `length` is that of the whole file in bytes."""

    text: str
    length: int


def tail_of(content: bytes, length: int) -> LogTail:
    """Return the content as text. The first line of a part is left out: half a setting looks like no secret."""
    whole = len(content) >= length
    return LogTail((content if whole else content.partition(b"\n")[2]).decode(errors="replace"), length)


def tail_on_page(page: bytes, name: str) -> LogTail | None:
    """Return what a page of `/containers/ID/logs/NAME` shows (NMWebServices.getLogs, LogToolUtils).

    Parts that were aggregated earlier come after the newest one, and are left out. None if the page has no end: it
    shows more than it should.

    Raises InvalidInput: when it is no such page.
    """
    if page.startswith(_NO_CONTENTS):
        return LogTail("", 0)
    head, found, content = page.partition(_CONTENTS)
    length = _LENGTH.search(head)
    if not found or length is None:
        raise InvalidInput("it is not a page of a container's log")
    # The job may write the same words; those of the page have a row of stars below them.
    end = re.search(rb"End of LogType:%b\b[^\n]*\n\*{20}" % re.escape(name.encode()), content)
    return tail_of(content[: end.start()], int(length[1])) if end else None
