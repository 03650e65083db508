"""Operations of WebHDFS beyond `hdfs.Client`. It imports its library at once: import this module inside functions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from http import HTTPStatus
from threading import local
from typing import Any
from unicodedata import normalize
from urllib.parse import unquote, urlsplit, urlunsplit

import requests
from hdfs.client import Client, _Request
from hdfs.util import HdfsError

from airflow_kstream.clients.hdfs.answers import NextNameNode, require_webhdfs
from airflow_kstream.clients.http import Context, http_errors, kind_of_all, words_of_all
from airflow_kstream.model.errors import InvalidInput, KstreamError, Unavailable
from airflow_kstream.model.kerberos.identity import Identity

# Long.MAX_VALUE: longer than any file, so that the NameNode checks the lease, finds nothing to cut and refuses.
# Any smaller number could destroy data.
_LONGER_THAN_ANY_FILE = 9_223_372_036_854_775_807
# Seconds for which a NameNode is believed to be no observer. A pair has none, but a standby.
_KNOWN_FOR, _A_PAIR = 60.0, 2
# The exceptions with which NameNodes of Hadoop 2 (ParamException) and HttpFS refuse an operation that they don't know.
_UNKNOWN_OPERATION = frozenset({"IllegalArgumentException", "QueryParamException", "UnsupportedOperationException"})


@dataclass(frozen=True)
class RenameAnswer:
    """The answer to a rename with options. A NameNode's has no body (NamenodeWebHdfsMethods), so `said` is None.

    HttpFS ignores the options and answers 200 with a boolean (HttpFSServer, FSOperations.FSRename).
    """

    server: str
    said: bool | None


class WebHdfs(Client):  # type: ignore[misc]  # hdfs ships no types
    """The operations that `hdfs.Client` lacks; its metaclass turns these declarations into methods.

    Each request goes to the NameNode that answered last, and to the next one after whatever is not a NameNode's answer.
    `heard` gets each answer of an active NameNode: the clocks of proxies, standbys and DataNodes don't count.

    Of three or more, each tells its state once a minute: an observer serves reads over HTTP, however old they
    are (StandbyState.checkOperation), and would show a stream that commits as one that hangs.
    """

    _get_delegation_token = _Request("GET")
    _renew_delegation_token = _Request("PUT")
    _cancel_delegation_token = _Request("PUT")
    _check_access = _Request("GET")
    # Made by hand: the metaclass would derive a name without underscores.
    _list_status_batch = _Request("GET").to_method("LISTSTATUS_BATCH")

    def __init__(
        self,
        addresses: Sequence[str],
        session: requests.Session,
        timeout: tuple[float, float],
        identity: Identity,
        heard: Callable[[requests.Response], None],
    ) -> None:
        # The library looks for ever for an address that it has not tried, if one is there twice.
        urls = ";".join(dict.fromkeys(addresses))
        super().__init__(urls, session=session, timeout=timeout, proxy=identity.do_as)
        self._identity = identity
        self._heard = heard
        self._refusals = local()
        self._may_observe = len(addresses) > _A_PAIR
        self._no_observers: dict[str, float] = {}
        self._has_pages = True

    def refusal(self, tried: str) -> KstreamError:
        """Return the error for a request to which no NameNode gave an answer: each one's words."""
        errors: list[KstreamError] = list(self._refusals.by_server.values())
        servers = ", ".join(error.server for error in errors)
        message = words_of_all(errors) if len(errors) > 1 else errors[0].message
        return kind_of_all(errors)(message, tried=tried, server=servers, principal=str(self._identity))

    def _request(self, method: str, url: str, **options: Any) -> requests.Response:
        operation = options.get("params", {}).get("op")
        if operation is None:
            # The content of a file, for the DataNode that was named: there is no second one to ask.
            answer: requests.Response = super()._request(method, url, **options)
            return answer
        return self._asked(str(operation), method, url, options)

    def _asked(self, operation: str, method: str, url: str, options: dict[str, Any]) -> requests.Response:
        parts = urlsplit(url)
        context = Context(tried=operation, server=f"{parts.scheme}://{parts.netloc}", principal=str(self._identity))
        if not hasattr(self._refusals, "by_server"):
            self._refusals.by_server = {}
        try:
            with http_errors(operation, context["server"], self._identity):
                if self._may_observe:
                    self._require_no_observer(context)
                answer: requests.Response = super()._request(method, url, **options)
                require_webhdfs(operation, answer, context)
        except InvalidInput:
            raise
        except KstreamError as error:
            # Without the error's frames, whose variables may hold a token.
            self._refusals.by_server[context["server"]] = type(error)(error.message, **context)
            raise NextNameNode from None
        # Not a DataNode to which it redirected, and not its demand to log in, which tells no time.
        own = [each for each in (*answer.history, answer) if urlsplit(each.url).netloc == parts.netloc]
        for each in [each for each in own if each.status_code != HTTPStatus.UNAUTHORIZED][-1:]:
            self._heard(each)
        return answer

    def _require_no_observer(self, context: Context) -> None:
        """Raises Unavailable: when it says that it is one. What tells no state, such as a proxy, is none."""
        server, now = context["server"], time.monotonic()
        if now - self._no_observers.get(server, -_KNOWN_FOR) < _KNOWN_FOR:
            return
        bean = {"qry": "Hadoop:service=NameNode,name=NameNodeStatus"}
        answer = self._session.get(f"{server}/jmx", params=bean, timeout=self._timeout)
        if answer.ok and b'"observer"' in answer.content:
            raise Unavailable("it is an observer, whose answers may be old", **context)
        self._no_observers[server] = now

    def home(self) -> str:
        return str(self._get_home_directory("/").json()["Path"])

    def check_access(self, path: str, action: str) -> None:
        self._check_access(path, fsaction=action)

    def acl_entries(self, path: str) -> list[str]:
        return [str(entry) for entry in self.acl_status(path)["entries"]]

    def remove_acl(self, path: str) -> None:
        self._remove_acl(path)

    def pages(self, path: str, prefix: str = "", after: str = "") -> Iterator[list[dict[str, Any]]]:
        """Yield the statuses in a folder, or those whose names begin so, in pages of the NameNode's (dfs.ls.limit).

        Without a prefix, `after` is the name after which they begin, where the server has pages.

        The NameNode sorts them by the bytes of their names: of the others, none but the last page's are fetched. A
        server before Hadoop 3.0 knows no pages (HDFS-10784) and sends all at once.
        """
        if not self._has_pages:
            yield [each for each in self._whole(path) if str(each["pathSuffix"]).startswith(prefix)]
            return
        after = prefix[:-1] + chr(ord(prefix[-1]) - 1) if prefix else after
        while True:
            listing = self._page(path, after)
            if listing is None:
                self._has_pages = False
                yield from self.pages(path, prefix)
                return
            page = self._children(path, listing["partialListing"]["FileStatuses"]["FileStatus"])
            yield [each for each in page if str(each["pathSuffix"]).startswith(prefix)]
            last = str(page[-1]["pathSuffix"]) if page and listing["remainingEntries"] else ""
            # A server that does not begin where it was asked to would give the same page for ever.
            if last in ("", after) or last[: len(prefix)].encode() > prefix.encode():
                return
            after = last

    def _page(self, path: str, after: str) -> dict[str, Any] | None:
        """Return a page; None from a server that has none."""
        try:
            start = {"startAfter": after} if after else {}
            listing: dict[str, Any] = self._list_status_batch(path, **start).json()["DirectoryListing"]
        except HdfsError as error:
            if error.exception in _UNKNOWN_OPERATION and "LISTSTATUS_BATCH" in str(error):
                return None
            raise
        return listing

    def _whole(self, path: str) -> list[dict[str, Any]]:
        return self._children(path, self._list_status(path).json()["FileStatuses"]["FileStatus"])

    def _children(self, path: str, statuses: list[dict[str, Any]]) -> list[dict[str, Any]]:
        # A file is listed as its own child without a name.
        if statuses and not statuses[0]["pathSuffix"]:
            raise HdfsError("%r is not a directory.", path)
        return statuses

    def rename_onto_nothing(self, source: str, target: str) -> RenameAnswer:
        """Rename unless `target` exists (Options.Rename.NONE): the NameNode decides between two callers."""
        return _renamed(self._rename(source, destination=target, renameoptions="NONE"))

    def rename_over(self, source: str, target: str) -> RenameAnswer:
        return _renamed(self._rename(source, destination=target, renameoptions="OVERWRITE"))

    def new_token(self, renewer: str) -> str:
        return str(self._get_delegation_token("/", renewer=renewer).json()["Token"]["urlString"])

    def renew_token(self, token: str) -> int:
        return int(self._renew_delegation_token("/", token=token).json()["long"])

    def cancel_token(self, token: str) -> None:
        self._cancel_delegation_token("/", token=token)


class LeaseWebHdfs(WebHdfs):
    """Operations of the NameNode that public clients leave out, and reading that bears any name."""

    # Made by hand: the metaclass would derive a name without underscores.
    _get_block_locations = _Request("GET").to_method("GET_BLOCK_LOCATIONS")
    _truncate = _Request("POST")
    _open = _Request("GET", hooks={"response": lambda answer, **_: _keep_the_name(answer)})

    def located_blocks(self, path: str) -> dict[str, Any]:
        answer: dict[str, Any] = self._get_block_locations(path, offset=0, length=1).json()["LocatedBlocks"]
        return answer

    def ask_for_more_than_there_is(self, path: str) -> None:
        self._truncate(path, newlength=_LONGER_THAN_ANY_FILE)

    def check_right_to_write(self, path: str) -> None:
        self.check_access(path, "-w-")

    def readable_length(self, path: str, token: str) -> int:
        """Return the length in bytes that a DataNode announces to a reader, without reading anything.

        Without a token the NameNode would make one for each redirect and keep it for a week
        (NamenodeWebHdfsMethods.redirectURI).
        """
        with closing(self._open(path, offset=0, stream=True, delegation=token)) as answer:
            return int(answer.headers["Content-Length"])


def _keep_the_name(answer: requests.Response) -> None:
    """Correct a redirect that names another file: Java's URI, with which it is made, composes characters (NFC)."""
    wanted, target = (urlsplit(url or "") for url in (answer.request.url, answer.headers.get("Location")))
    if wanted.path != target.path and normalize("NFC", unquote(wanted.path)) == unquote(target.path):
        answer.headers["Location"] = urlunsplit(target._replace(path=wanted.path))


def _renamed(answer: requests.Response) -> RenameAnswer:
    address = urlsplit(answer.url)
    said: bool | None = answer.json()["boolean"] if answer.content else None
    if answer.content and not isinstance(said, bool):
        raise TypeError(said)
    return RenameAnswer(f"{address.scheme}://{address.netloc}", said)
