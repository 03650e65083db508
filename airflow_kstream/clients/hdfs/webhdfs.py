"""WebHDFS: checkpoints, claims, markers and delegation tokens, behind the active NameNode."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import requests

from airflow_kstream.clients.hdfs.answers import LONGEST_TEXT, Listing, NextNameNode, kept
from airflow_kstream.clients.http import http_errors, hushed, kerberos_session, server_date
from airflow_kstream.clients.lazy import hdfs
from airflow_kstream.clients.rpc.java_exceptions import error_of
from airflow_kstream.clients.waiting import CONNECT_AND_READ_SECONDS, limit_all_answers
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.clusters.hdfs_path import file_time, plain_path
from airflow_kstream.model.errors import Conflict, InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.checkpoint import Checkpoint

if TYPE_CHECKING:
    from airflow_kstream.clients.hdfs.operations import RenameAnswer, WebHdfs

# org.apache.spark.streaming.Checkpoint.checkpointFile; the one before stands beside it, with .bk.
_DSTREAMS = re.compile(r"checkpoint-\d+")
# Whatever else lies in a checkpoint, and however much of it.
_INSIDE = re.compile(rf"offsets|commits|metadata|{_DSTREAMS.pattern}")
_BATCH = re.compile(r"[0-9]{1,19}")
# Spark's is a UUID. The job's user writes it, and each deferral carries it through Airflow's database.
_QUERY = re.compile(r"[!-~]{1,100}")
T = TypeVar("T")
log = logging.getLogger(__name__)
# The words of a server whose rename decides between no two callers.
_NOT_EXCLUSIVE = (
    "it ignores renameoptions, as HttpFS does, so it could grant one claim to two supervisors: name the NameNodes "
    "(dfs.namenode.http-address or https-address) in the connection's namenodes; no exclusive claim is possible "
    "through this server"
)


@dataclass(frozen=True)
class FileStatus:
    """An entry of a folder. `modified` is the NameNode's time of the last close; a rename keeps it.

    `permission` is octal, with the sticky bit. `owner` is the short name of the principal that created it, by the
    NameNode's rules (hadoop.security.auth_to_local). `acl` is whether it has an ACL beside its mode.
    """

    name: str
    length: int
    modified: datetime
    is_folder: bool
    permission: str = "755"
    owner: str = ""
    acl: bool = False
    group: str = ""


@dataclass(frozen=True)
class Contents:
    """The number of files and folders below a path, itself included, and the length of all files in bytes."""

    files: int
    folders: int
    length: int


_Pages = Iterator[Sequence[FileStatus]]


class Hdfs:
    """The filesystem of one cluster as one identity, regardless of which NameNode is active.

    Paths are absolute or hdfs:// URIs of this filesystem. Raises Unavailable: when no NameNode answers as active. A
    refusal without a Java exception, a page or broken JSON is not a NameNode's answer: the next one is asked, and only
    what all of them answer is raised, with each one's words.
    Raises Denied: when permission is missing. Raises NotFound: when there is no such path. Raises Conflict: when the
    target exists. `within` are the seconds that all its requests together may take from now on; by default each one
    has its own minute.
    """

    def __init__(
        self, addresses: tuple[str, ...], identity: Identity, tls: Tls, *, within: float | None = None
    ) -> None:
        self._clock = _ServerClock()
        self._queries: dict[str, tuple[FileStatus, str | None]] = {}
        self._told: set[str] = set()
        self._session = kerberos_session(identity, tls)
        if within is not None:
            limit_all_answers(self._session, within)
        self._identity = identity
        self._servers = ", ".join(addresses)
        self._client = self._client_class()(
            addresses, self._session, CONNECT_AND_READ_SECONDS, identity, self._clock.listen
        )

    @property
    def servers(self) -> str:
        """Return the addresses, for an error that names them."""
        return self._servers

    @staticmethod
    def _client_class() -> type[WebHdfs]:
        from airflow_kstream.clients.hdfs.operations import WebHdfs

        return WebHdfs

    def now(self) -> datetime:
        """Return the NameNode's time, by the Date header of its newest answer; send a request if there was none yet."""
        if self._clock.never:
            self.status("/")
        if self._clock.never:
            message, server = "none of its answers tells the time", self._servers
            raise Unavailable(message, tried="read its clock", server=server, principal=str(self._identity))
        return self._clock.now()

    def user(self) -> str:
        """Return this identity's short name by the NameNode's rules: the end of its home's path, existing or not."""
        return str(self._ask("ask for our short name", lambda: self._client.home().rpartition("/")[2]))

    def status(self, path: str) -> FileStatus:
        status: FileStatus = self._ask(
            f"look at {path}", lambda: _file_status(self._client.status(plain_path(path)), path)
        )
        return status

    def contents(self, path: str) -> Contents:
        """Return how much lies below a path.

        It is one request, and the NameNode walks the tree in its memory, by default with its lock free after each 5,000
        files (dfs.content-summary.limit). Needs the right to list all of it. An open file
        counts with its whole blocks alone, unless its writer says otherwise (hsync with UPDATE_LENGTH).
        """

        def summed() -> Contents:
            found = self._client.content(plain_path(path))
            return Contents(*(int(found[key]) for key in ("fileCount", "directoryCount", "length")))

        found: Contents = self._ask(f"sum up {path}", summed)
        return found

    def listing(self, path: str, prefix: str = "") -> Listing:
        """Return the folder's children, or those whose names begin so; none when it does not exist.

        Costs one request for each page of the NameNode's (dfs.ls.limit, a thousand by default). Where there are too
        many entries, that is logged once, and those who have the most of them are cut.
        """
        found = self._listed(path, lambda pages: Listing(*kept(pages)), Listing(), prefix=prefix)
        if found.cut and path not in self._told:
            self._told.add(path)
            log.warning("%s: %s", path, found.words)
        return found

    def list(self, path: str) -> tuple[FileStatus, ...]:
        """Return the folder's children; empty when it does not exist. Raises InvalidInput: when there are too many."""
        found = self.listing(path)
        if found.cut:
            raise InvalidInput(found.words, tried=f"list {path}", server=self._servers, principal=str(self._identity))
        return found.entries

    def matching(
        self, path: str, wanted: Callable[[FileStatus], bool], *, prefix: str = "", after: str = ""
    ) -> tuple[FileStatus, ...]:
        """Return the folder's children that are wanted, however many others there are; none when it does not exist.

        Only they are held in memory. Of names that begin otherwise, or that come up to `after`, no page is fetched
        where the server has pages.
        """

        def chosen(pages: _Pages) -> tuple[FileStatus, ...]:
            return tuple(row for page in pages for row in page if wanted(row))

        return self._listed(path, chosen, (), prefix=prefix, after=after)

    def names(self, path: str) -> frozenset[str]:
        """Return the names in a folder, as `list` does."""
        return frozenset(entry.name for entry in self.list(path))

    def _listed(self, path: str, gathered: Callable[[_Pages], T], nothing: T, prefix: str = "", after: str = "") -> T:
        """Return what is gathered from a folder's pages; nothing when it does not exist."""

        def listed() -> T:
            pages = self._client.pages(plain_path(path), prefix, after)
            return gathered([_file_status(status, str(status["pathSuffix"])) for status in page] for page in pages)

        try:
            found: T = self._ask(f"list {path}", listed)
        except NotFound:
            return nothing
        return found

    def check_access(self, path: str, action: str) -> None:
        """Check a right without using it: `action` is like `rwx`. Raises Denied: when it is missing."""
        tried = f"check the right to {action} {path}"
        self._ask(tried, lambda: self._client.check_access(plain_path(path), action))

    def read(self, path: str, at_most: int = LONGEST_TEXT) -> str:
        """Return a file's text. Raises InvalidInput: when it is not text, a folder, or longer than `at_most` bytes: the
        server's answer is right."""

        def read() -> bytes:
            with self._client.read(plain_path(path), length=at_most + 1) as reader:
                content: bytes = reader.read(at_most + 1)
            return content

        try:
            content: bytes = self._ask(f"read {path}", read)
            if len(content) > at_most:
                raise self._no_text(path, f"it is longer than {at_most} bytes")
            return content.decode()
        except UnicodeDecodeError:
            raise self._no_text(path, "it is not text") from None
        except NotFound:
            # HDFS says of a folder that there is no such file.
            if not self._is_folder(path):
                raise
            raise self._no_text(path, "it is a folder") from None

    def _is_folder(self, path: str) -> bool:
        try:
            return self.status(path).is_folder
        except NotFound:
            return False

    def _no_text(self, path: str, why: str) -> InvalidInput:
        return InvalidInput(why, tried=f"read {path}", server=self._servers, principal=str(self._identity))

    def read_part(self, path: str, offset: int, length: int) -> bytes:
        """Return at most `length` bytes; fewer at the end of the file."""

        def read() -> bytes:
            with self._client.read(plain_path(path), offset=offset, length=length) as reader:
                content: bytes = reader.read(length)
            return content

        part: bytes = self._ask(f"read {length} bytes of {path}", read)
        return part

    def write(self, path: str, content: str | bytes, *, overwrite: bool = False, permission: str = "640") -> None:
        """Create a file with this content. Raises Conflict: when it exists and `overwrite` is off."""
        data = content.encode() if isinstance(content, str) else content

        def write() -> None:
            self._client.write(plain_path(path), data=data, overwrite=overwrite, permission=permission)

        self._ask(f"write {path}", write)

    def write_secret(self, path: str, content: SecretBytes) -> None:
        """Create a file that only its owner may read. It crosses the network in clear unless the addresses are https.

        An error has none of the frames below, whose variables hold the content.
        """

        def write() -> None:
            self._client.write(plain_path(path), data=content.reveal(), permission="600")

        try:
            self._ask(f"write {path}", write)
        except KstreamError as error:
            told = type(error)(error.message, tried=error.tried, server=error.server, principal=error.principal)
        else:
            return
        raise told

    def make_folder(self, path: str, permission: str = "750") -> None:
        self._ask(f"make {path}", lambda: self._client.makedirs(plain_path(path), permission=permission))

    def acl(self, path: str) -> tuple[str, ...] | None:
        """Return the entries of a path's ACL, such as `user:etl:rwx`; none without an ACL.

        None: this NameNode keeps no ACLs (dfs.namenode.acls.enabled).
        """
        try:
            return tuple(self._ask(f"read the ACL of {path}", lambda: self._client.acl_entries(plain_path(path))))
        except InvalidInput as refused:
            if "AclException" in refused.message:
                return None
            raise

    def change_acl(self, path: str, entries: str) -> None:
        """Set these entries of a path's ACL in one request; others stay. HDFS makes a new mask of all of them."""
        self._ask(f"change the ACL of {path}", lambda: self._client.set_acl(plain_path(path), entries, clear=False))

    def change_mode(self, path: str, permission: str) -> None:
        self._ask(
            f"give {path} the mode {permission}",
            lambda: self._client.set_permission(plain_path(path), permission=permission),
        )

    def close_folder(self, path: str, permission: str = "755") -> None:
        """Give a folder of ours this mode, and take its ACL away if it has one."""
        # A NameNode without ACLs refuses to remove one.
        if self.status(path).acl:
            self._ask(f"remove the ACL of {path}", lambda: self._client.remove_acl(plain_path(path)))
        # Not before: under an ACL, the mode's second digit is its mask, and the group keeps what it had.
        self.change_mode(path, permission)

    def rename_onto_nothing(self, source: str, target: str) -> None:
        """Move into place without overwriting. Raises Conflict: when `target` exists.

        If a reply is lost, the request goes to the next NameNode as well, so that our own success can come back as
        Conflict or NotFound: read the target before believing either.

        Raises InvalidInput: when the server ignored that nothing may be overwritten, as HttpFS does, so that its word
        grants nothing. The target may be there all the same.
        """
        tried = f"rename {source} to {target}"
        answer: RenameAnswer = self._ask(
            tried, lambda: self._client.rename_onto_nothing(plain_path(source), plain_path(target))
        )
        if answer.said is not None:
            raise InvalidInput(_NOT_EXCLUSIVE, tried=tried, server=answer.server, principal=str(self._identity))

    def rename_over(self, source: str, target: str) -> None:
        """Move into place, over an older file. Raises Conflict: when the server can't replace it, as HttpFS."""
        tried = f"rename {source} over {target}"
        answer: RenameAnswer = self._ask(
            tried, lambda: self._client.rename_over(plain_path(source), plain_path(target))
        )
        if answer.said is False:
            message = "it answered 200 and false: nothing was renamed"
            raise Conflict(message, tried=tried, server=answer.server, principal=str(self._identity))

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Delete it, and return True if there was something to delete."""
        return bool(
            self._ask(
                f"delete {path}", lambda: self._client.delete(plain_path(path), recursive=recursive, skip_trash=True)
            )
        )

    def checkpoint(self, path: str) -> Checkpoint:
        """Read a Structured Streaming checkpoint, without the `.N.<uuid>.tmp` files of dead writers."""
        inside = {file.name: file for file in self.matching(path, lambda file: bool(_INSIDE.fullmatch(file.name)))}
        offsets, commits = (self._batches(f"{path}/{log}") if log in inside else () for log in ("offsets", "commits"))
        dstreams = max((file.modified for name, file in inside.items() if _DSTREAMS.fullmatch(name)), default=None)
        return Checkpoint(
            path,
            self._query_id(path, inside.get("metadata")),
            _times(offsets),
            _times(commits),
            dstreams,
            writers=frozenset(file.owner for file in (*offsets, *commits) if file.owner),
        )

    def new_token(self, renewer: str) -> str:
        """Get a delegation token in its URL form: a secret."""
        return str(self._ask("get a delegation token", lambda: self._client.new_token(renewer)))

    def renew_token(self, token: str) -> datetime:
        """Renew the token, and return its new expiry by the NameNode's clock."""
        millis = self._ask("renew a delegation token", lambda: self._client.renew_token(token))
        return datetime.fromtimestamp(millis / 1000, UTC)

    def cancel_token(self, token: str) -> None:
        self._ask("cancel a delegation token", lambda: self._client.cancel_token(token))

    def close(self) -> None:
        self._session.close()

    def _batches(self, folder: str) -> tuple[FileStatus, ...]:
        """Return the files of a query's batches. They are the job's own, which may keep as many as it likes."""
        return self.matching(folder, lambda file: bool(_BATCH.fullmatch(file.name)))

    def _query_id(self, path: str, metadata: FileStatus | None) -> str | None:
        """Return the query's id. Spark writes the file once; as long as it is the same file, it is read once."""
        if metadata is None:
            return None
        known, query = self._queries.get(path, (None, None))
        if known != metadata:
            query = self._read_query_id(path)
            self._queries[path] = metadata, query
        return query

    def _read_query_id(self, path: str) -> str | None:
        try:
            metadata = json.loads(self.read(f"{path}/metadata"))
        except (NotFound, InvalidInput, ValueError, RecursionError):
            return None
        # A number or a list is JSON, too, but not Spark's metadata.
        query = metadata.get("id") if isinstance(metadata, dict) else None
        return query if isinstance(query, str) and _QUERY.fullmatch(query) else None

    def _ask(self, tried: str, call: Callable[[], Any]) -> Any:
        with hushed(), http_errors(tried, self._servers, self._identity), self._hdfs_errors(tried):
            return call()

    @contextmanager
    def _hdfs_errors(self, tried: str) -> Iterator[None]:
        try:
            yield
        except NextNameNode:
            raise self._client.refusal(tried) from None
        except hdfs.HdfsError as error:
            # Without a Java exception it is a DataNode's page, or the library's own word about a path.
            kind = error_of(error.exception) if error.exception else Unavailable
            message = f"{error.exception}: {_in_one_line(error)}" if error.exception else _in_one_line(error)
            raise kind(message, tried=tried, server=self._servers, principal=str(self._identity)) from error
        except UnicodeEncodeError:
            # The name can't be sent: that is not the answer's fault.
            raise
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            # JSON of another shape than WebHDFS's, a date out of range, or JSON as deep as the stack.
            message = f"its answer makes no sense ({type(error).__name__})"
            raise Unavailable(message, tried=tried, server=self._servers, principal=str(self._identity)) from error


class _ServerClock:
    """The server's Date header plus the time since it came. Whole seconds are enough for every policy here."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._offset: float | None = None

    @property
    def never(self) -> bool:
        return self._offset is None

    def listen(self, answer: requests.Response) -> None:
        try:
            offset = server_date(answer).timestamp() - datetime.now(UTC).timestamp()
        except (ValueError, OverflowError):
            # The answer may still be good; the next one may bring the time.
            return
        with self._lock:
            self._offset = offset

    def now(self) -> datetime:
        return datetime.fromtimestamp(datetime.now(UTC).timestamp() + (self._offset or 0.0), UTC)


def _times(batches: Iterable[FileStatus]) -> dict[int, datetime]:
    return {int(file.name): file.modified for file in batches}


def _in_one_line(error: hdfs.HdfsError) -> str:
    """Return Hadoop's words without the stack trace that some carry; a path in them may have several lines."""
    return " ".join(str(error).partition("\n\tat ")[0].splitlines())


def _file_status(status: dict[str, Any], name: str) -> FileStatus:
    modified = file_time(status["modificationTime"])
    is_folder, permission = status["type"] == "DIRECTORY", str(status.get("permission", "755"))
    owner, group = str(status.get("owner", "")), str(status.get("group", ""))
    acl = bool(status.get("aclBit"))
    return FileStatus(name, int(status["length"]), modified, is_folder, permission, owner, acl, group)
