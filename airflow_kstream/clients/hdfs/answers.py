"""What a NameNode can answer over WebHDFS. Anything else comes from a proxy or a broken server: the next one is asked.

HttpFS answers in the same forms (HttpFSServer), with the content of a file in place of a redirect to it.

A listing is read up to a bound: a stranger's million files end no worker, and hide nobody else's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import requests

from airflow_kstream.clients.http import Context, senseless
from airflow_kstream.clients.rpc.java_exceptions import NOT_ACTIVE
from airflow_kstream.model.errors import Denied, KstreamError, Unavailable

if TYPE_CHECKING:
    from airflow_kstream.clients.hdfs.webhdfs import FileStatus

# Of one listing: what lies beyond is somebody's mischief, or a case for housekeeping.
MOST_ROWS = 20_000
# Of what this package writes and reads as one text; a stranger's file of gigabytes must end no worker.
LONGEST_TEXT = 1 << 20

# The NameNode's words for "ask the other one" and "ask again": it starts, or it is not the active one.
_NOT_ACTIVE = NOT_ACTIVE | {"RetriableException"}
# Operation -> the only key of the object that answers it (JsonUtil, NamenodeWebHdfsMethods).
_OBJECTS: Mapping[str, str] = {
    "GETFILESTATUS": "FileStatus",
    "LISTSTATUS": "FileStatuses",
    "LISTSTATUS_BATCH": "DirectoryListing",
    "GETCONTENTSUMMARY": "ContentSummary",
    "GETHOMEDIRECTORY": "Path",
    "GETACLSTATUS": "AclStatus",
    "GET_BLOCK_LOCATIONS": "LocatedBlocks",
    "GETDELEGATIONTOKEN": "Token",
    "RENEWDELEGATIONTOKEN": "long",
    "MKDIRS": "boolean",
    "DELETE": "boolean",
}
# Found in the page of a web server or proxy that refuses without a Java exception.
_REFUSALS = ("Authentication required", "Authentication failure", "Error 401", "Error 403", "GSSException")


class NextNameNode(requests.exceptions.ConnectionError):
    """The lack of a NameNode's answer. The library of `hdfs.Client` asks the next one, as after a lost connection."""


def require_webhdfs(operation: str, answer: requests.Response, context: Context) -> None:
    """Check that a NameNode, or the DataNode that it named, gave this answer. A refusal of theirs is one.

    Raises Denied, Unavailable: when it is somebody else's, or of a NameNode that is not the active one.
    """
    if not answer.ok:
        _require_java_exception(answer, context)
    elif operation in {"CREATE", "APPEND"}:
        if "location" not in answer.headers:
            raise Unavailable(f"it answered {answer.status_code} without naming a DataNode", **context)
    elif answer.status_code >= 300:
        raise Unavailable(f"it answered {answer.status_code}: a redirect to nowhere", **context)
    elif operation == "OPEN":
        _require_content(answer, context)
    elif operation in _OBJECTS or answer.content:
        # The rest is answered by nothing or, by HttpFS, with a boolean.
        _require_object(_OBJECTS.get(operation, "boolean"), answer, context)


def _require_java_exception(answer: requests.Response, context: Context) -> None:
    exception = _java_exception(answer)
    if exception is None:
        raise _of_a_page(answer)(f"it answered {answer.status_code}: {_title(answer)}", **context)
    if exception["exception"] in _NOT_ACTIVE:
        words = str(exception.get("message", "")).partition("\n")[0]
        raise Unavailable(f"{exception['exception']}: {words}", **context)


def _require_content(answer: requests.Response, context: Context) -> None:
    kind = answer.headers.get("Content-Type", "")
    if not answer.history and "octet-stream" not in kind:
        raise Unavailable(f"it answered {kind}, not the content of a file", **context)


def _require_object(key: str, answer: requests.Response, context: Context) -> None:
    body = _json(answer)
    if not isinstance(body, Mapping) or key not in body:
        kind = answer.headers.get("Content-Type", "nothing")
        raise Unavailable(senseless(answer, f"{kind} without {key}"), **context)


def _java_exception(answer: requests.Response) -> Mapping[str, Any] | None:
    body = _json(answer)
    exception = body.get("RemoteException") if isinstance(body, Mapping) else None
    return exception if isinstance(exception, Mapping) and exception.get("exception") else None


def _json(answer: requests.Response) -> Any:
    try:
        return answer.json()
    except (ValueError, RecursionError):
        return None


def _of_a_page(answer: requests.Response) -> type[KstreamError]:
    """Return our error for an answer without a Java exception: the web server's own refusal, or a proxy's page."""
    refused = answer.status_code in {401, 403} or any(words in answer.text for words in _REFUSALS)
    return Denied if refused else Unavailable


def _title(answer: requests.Response) -> str:
    title = re.search(r"<title>(.*?)</title>", answer.text, re.DOTALL)
    return " ".join((title[1] if title else answer.text).split())[:200] or answer.reason or "no reason given"


class _Owned(Protocol):
    @property
    def owner(self) -> str: ...


Row = TypeVar("Row", bound=_Owned)


@dataclass(frozen=True)
class Listing:
    """The entries of a folder, sorted as the server sorts them.

    `cut` is how many more each of these owners has in it: they are left out where there are more than MOST_ROWS, and
    always of the owner who has the most. So an owner who is not named there is listed completely.
    """

    entries: tuple[FileStatus, ...] = ()
    cut: Mapping[str, int] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """Return what was left out, in words; empty if nothing was."""
        most = sorted(self.cut.items(), key=lambda item: -item[1])
        named = ", ".join(f"{count} of {owner or 'an owner without a name'}" for owner, count in most[:5])
        return f"it has more than {MOST_ROWS} entries, of which these are not looked at: {named}" if named else ""


def kept(pages: Iterable[Iterable[Row]], most: int = MOST_ROWS) -> tuple[tuple[Row, ...], dict[str, int]]:
    """Return so many of all rows, and how many more each of the owners has who have the most. The rest is complete.

    No more than a page beyond what is kept is held in memory.
    """
    rows: list[Row] = []
    cut: Counter[str] = Counter()
    for page in pages:
        rows.extend(page)
        if len(rows) > most:
            rows = _levelled(rows, most, cut)
    return tuple(rows), dict(cut)


def _levelled(rows: list[Row], most: int, cut: Counter[str]) -> list[Row]:
    """Return the first rows of each owner, as many as all of them together may have."""
    counts = Counter(row.owner for row in rows)
    share, seen = _fair_share(counts.values(), most), Counter[str]()
    result: list[Row] = []
    for row in rows:
        seen[row.owner] += 1
        if seen[row.owner] <= share:
            result.append(row)
    cut.update({owner: count - share for owner, count in counts.items() if count > share})
    return result


def _fair_share(counts: Iterable[int], most: int) -> int:
    """Return the largest number with which all owners together, each cut to it, have no more than `most`."""
    left, ordered = most, sorted(counts)
    for position, count in enumerate(ordered):
        share = left // (len(ordered) - position)
        if count > share:
            return share
        left -= count
    return most
