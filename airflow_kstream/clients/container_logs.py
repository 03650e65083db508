"""The ends of what a YARN container wrote: from its NodeManager, or from HDFS once they were aggregated there.

A NodeManager has the files until it has aggregated them, seconds after the application's end. Then it redirects to the
log server (yarn.log.server.web-service.url), if there is one, or says that it has none. What is aggregated lies in
yarn.nodemanager.remote-app-log-dir, one file for each node, as LogAggregationUtils names it. Only TFiles are read, the
default; IndexedFiles (yarn.log-aggregation.file-formats) are Java's serialized objects and come from a log server
alone.

`LogPages` reads one server's pages, a NodeManager's or the log server's.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from urllib.parse import urlsplit

import requests

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.hdfs.webhdfs import FileStatus, Hdfs
from airflow_kstream.clients.http import REFUSALS, http_errors, kerberos_session
from airflow_kstream.clients.waiting import limit_all_answers, until
from airflow_kstream.model.clusters.cluster import Cluster, Tls
from airflow_kstream.model.errors import Denied, InvalidInput, KstreamError, LogsClosed, NotFound, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.logs.container_log import FRAME, LoggedContainer, LogTail, aggregated_tails, tail_on_page
from airflow_kstream.model.secrets import without_secrets

# ContainerLogsUtils.checkAccess answers 500 with these words.
_NOT_ALLOWED = b"not authorized to view the logs"


class LogPages:
    """One server's pages, read as one identity. All requests together take at most `within` seconds.

    A NodeManager doesn't know `doAs`: it judges a proxy user's right by the gateway's own principal.
    """

    def __init__(self, address: str, identity: Identity, tls: Tls, within: float) -> None:
        self._address, self._identity = address, identity
        self._session = kerberos_session(identity, tls, limited=False)
        limit_all_answers(self._session, within)

    def tail(self, container: LoggedContainer, name: str, size: int) -> LogTail | str:
        """Return the last `size` bytes of the file; or the address of the log server that has it now.

        Raises NotFound: when the NodeManager doesn't have it, because it has aggregated it, or because the container
        never wrote it. Raises Denied: when this identity may not view it.
        """
        return self.at(f"/ws/v1/node/containers/{container.id}/logs/{name}?size=-{size}", container, name, size)

    def at(self, path: str, container: LoggedContainer, name: str, size: int) -> LogTail | str:
        """Return what the page at this path shows, as `tail` does."""
        tried = f"read the end of {name} of {container.id}"
        # A page may show as much again of what was aggregated earlier.
        most = 2 * (size + FRAME)
        with (
            http_errors(tried, self._address, self._identity),
            self._session.get(self._address + path, allow_redirects=False, stream=True) as answer,
        ):
            page: bytes = answer.raw.read(most, decode_content=True)
        if answer.status_code in {302, 307} and (location := answer.headers.get("Location")):
            return location
        return self._shown(tried, answer, page, name)

    def close(self) -> None:
        self._session.close()

    def _shown(self, tried: str, answer: requests.Response, page: bytes, name: str) -> LogTail:
        context = {"tried": tried, "server": self._address, "principal": str(self._identity)}
        if answer.status_code != 200:
            if _NOT_ALLOWED in page:
                raise LogsClosed("the application's own view ACL doesn't name the user who logs in", **context)
            kind = REFUSALS.get(answer.status_code, Unavailable)
            raise kind(f"it answered {answer.status_code}", **context)
        try:
            tail = tail_on_page(page, name)
        except InvalidInput as error:
            raise Unavailable(error.message, **context) from None
        if tail is None:
            raise Unavailable("it sends more than the bytes that it should", **context)
        return tail


def log_server(location: str) -> tuple[str, str]:
    """Return the base URL of the server and the path that a redirect names."""
    parts = urlsplit(location)
    return f"{parts.scheme}://{parts.netloc}", f"{parts.path}?{parts.query}"


# Bytes of one file, and seconds for all of a container's: a caller that wants more gets these.
MOST_BYTES, MOST_SECONDS = 10 << 20, 30.0
_DEFAULT_FOLDER = "/tmp/logs"
# LogAggregationUtils.getRemoteBucketDir.
_BUCKETS = 10_000
_LOOK_AGAIN = timedelta(seconds=0.5)


@dataclass(frozen=True)
class ContainerLogs:
    """The logs of one cluster's containers as one identity, masked by `without_secrets`."""

    cluster: Cluster
    identity: Identity

    def tails(
        self, container: LoggedContainer, names: Collection[str], size: int, seconds: float
    ) -> Mapping[str, LogTail]:
        """Return the last `size` bytes of the container's files of these names; it lacks those that are not there.

        It takes at most `seconds`, but for what a KDC takes to answer. The NodeManager has half of that.

        Raises Denied, NotFound, Unavailable: when neither place has them, with the words of both.
        """
        size, seconds = min(size, MOST_BYTES), min(seconds, MOST_SECONDS)
        ends = time.monotonic() + seconds
        tails = self._live_or_why_not(container, names, size, seconds / 2)
        if isinstance(tails, KstreamError):
            tails = self._aggregated_after(tails, container, names, size, ends)
        return _masked(tails)

    def live_tails(
        self, container: LoggedContainer, names: Collection[str], size: int, seconds: float
    ) -> Mapping[str, LogTail]:
        """Return the same of a container that runs, from its NodeManager alone.

        Raises Denied, NotFound, Unavailable: when it doesn't show them.
        """
        return _masked(self._live(container, names, min(size, MOST_BYTES), min(seconds, MOST_SECONDS)))

    def _live_or_why_not(
        self, container: LoggedContainer, names: Collection[str], size: int, seconds: float
    ) -> Mapping[str, LogTail] | KstreamError:
        """Return the error instead of raising it: an error of HDFS would be taken for a consequence of it."""
        try:
            return self._live(container, names, size, seconds)
        except KstreamError as error:
            return error

    def _live(
        self, container: LoggedContainer, names: Collection[str], size: int, seconds: float
    ) -> Mapping[str, LogTail]:
        """Read the files from the NodeManager or its log server. Raises NotFound: when they have none of them."""
        tails: dict[str, LogTail] = {}
        missing: NotFound | None = None
        ends = time.monotonic() + seconds
        with closing(LogPages(container.web, self.identity, self.cluster.tls, seconds)) as pages:
            for name in names:
                try:
                    tail = pages.tail(container, name, size)
                    tails[name] = tail if isinstance(tail, LogTail) else self._moved(tail, container, name, size, ends)
                except NotFound as error:
                    missing = error
        if missing and not tails:
            raise missing
        return tails

    def _moved(self, location: str, container: LoggedContainer, name: str, size: int, ends: float) -> LogTail:
        address, path = log_server(location)
        with closing(LogPages(address, self.identity, self.cluster.tls, ends - time.monotonic())) as pages:
            tail = pages.at(path, container, name, size)
        if isinstance(tail, LogTail):
            return tail
        raise Unavailable("it redirects once more", tried=f"read the end of {name} of {container.id}", server=address)

    def _aggregated_after(
        self, live: KstreamError, container: LoggedContainer, names: Collection[str], size: int, ends: float
    ) -> Mapping[str, LogTail]:
        """Read the files from HDFS. Where the NodeManager refuses us, wait for them: nothing else shows them."""
        waits = isinstance(live, Denied)
        # The last look needs some of the time itself.
        patience = max(ends - time.monotonic() - 2 * _LOOK_AGAIN.total_seconds(), 0.0) if waits else 0.0
        try:
            with closing(self._hdfs(ends)) as hdfs:
                find = partial(self._aggregated, hdfs, container, names, size)
                tails = until(find, _LOOK_AGAIN, timedelta(seconds=patience))
        except KstreamError as error:
            raise type(error)(f"{error.without_advice}; {live.without_advice}") from None
        if tails is None:
            raise type(live)(f"{live.without_advice}; no aggregated log of it is below {self._folder()}")
        return tails

    def _aggregated(
        self, hdfs: Hdfs, container: LoggedContainer, names: Collection[str], size: int
    ) -> Mapping[str, LogTail] | None:
        for path, file in self._files(hdfs, container):
            read_at = partial(hdfs.read_part, path)
            try:
                tails = aggregated_tails(read_at, file.length, container.id, names, size)
            except InvalidInput as error:
                raise InvalidInput(
                    error.message, tried=f"read the aggregated log {path}", server=hdfs.servers
                ) from None
            if tails:
                return tails
        return None

    def aggregated_nodes(self, hdfs: Hdfs, application: str, user: str) -> Iterator[tuple[str, FileStatus]]:
        """Yield the paths of an application's aggregated logs on HDFS: a file for each node, or several.

        Files of old folder layouts come as well. One whose name ends with .tmp is being written.
        """
        root = f"{self._folder()}/{user}"
        for suffix in hdfs.matching(root, lambda file: file.is_folder and _may_hold(file.name, application)):
            logs = f"{root}/{_below(suffix.name, application)}"
            for file in hdfs.matching(logs, lambda file: not file.is_folder and not file.name.endswith(".tmp")):
                yield f"{logs}/{file.name}", file

    def _files(self, hdfs: Hdfs, container: LoggedContainer) -> list[tuple[str, FileStatus]]:
        """Return the files of the container's node, the newest first: a log that is rolled has several."""
        all_nodes = self.aggregated_nodes(hdfs, container.application, container.user)
        of_node = [(path, file) for path, file in all_nodes if file.name.startswith(f"{container.host}_")]
        return sorted(of_node, key=lambda found: _age(found[1]))

    def _folder(self) -> str:
        conf = HadoopConf(self.cluster.hadoop_conf_dir) if self.cluster.hadoop_conf_dir else None
        named = conf.get("yarn.nodemanager.remote-app-log-dir") if conf else ""
        return (named or _DEFAULT_FOLDER).rstrip("/")

    def _hdfs(self, ends: float) -> Hdfs:
        left = max(ends - time.monotonic(), 0.0)
        return Hdfs(self.cluster.namenodes, self.identity, self.cluster.tls, within=left)


def _may_hold(folder: str, application: str) -> bool:
    # Where yarn.nodemanager.remote-app-log-dir-suffix is empty, all of a user's applications lie beside it.
    return folder == application or not folder.startswith("application_")


def _below(folder: str, application: str) -> str:
    if folder == application:
        return folder
    bucket = f"/{int(application.rpartition('_')[2]) % _BUCKETS:04d}" if folder.startswith("bucket-") else ""
    return f"{folder}{bucket}/{application}"


def _masked(tails: Mapping[str, LogTail]) -> Mapping[str, LogTail]:
    return {name: LogTail(without_secrets(tail.text), tail.length) for name, tail in tails.items()}


def _age(file: FileStatus) -> float:
    return -file.modified.timestamp()
