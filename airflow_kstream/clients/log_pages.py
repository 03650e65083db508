"""Pages of NodeManagers, and of the log server to which they redirect, that show the end of one container's file."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

import requests

from airflow_kstream.clients.http import http_errors, kerberos_session
from airflow_kstream.clients.whole_answer import limit_all_answers
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import Denied, InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.logs.container_log import FRAME, LoggedContainer, LogTail, tail_on_page

_REFUSALS: Mapping[int, type[KstreamError]] = {401: Denied, 403: Denied, 404: NotFound}
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
            usual = Denied if _NOT_ALLOWED in page else Unavailable
            kind = _REFUSALS.get(answer.status_code, usual)
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
