"""What a running application serves of itself behind the ResourceManager's proxy, which proves who asks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

import requests

from airflow_kstream.clients.http import REFUSALS, http_errors, kerberos_session
from airflow_kstream.clients.waiting import limit_all_answers
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import KstreamError, Unavailable
from airflow_kstream.model.kerberos.identity import Identity

T = TypeVar("T")
# Bytes of one answer: a driver with a thousand threads sends 2 MB.
_MOST = 16 << 20


class ApplicationPages:
    """One running application's pages, read as one identity. All requests together take at most `within` seconds.

    A subclass says where its pages begin (`api`), and what the application lacks that serves none (`wanting`).
    Raises Denied: when this identity may not view the application. Raises NotFound: when it has no such page.
    Raises Unavailable: when the proxy or the application doesn't answer, or answers with something else.
    """

    api: ClassVar[str]
    wanting: ClassVar[str]

    def __init__(self, resourcemanager: str, application: str, identity: Identity, tls: Tls, within: float) -> None:
        self._server, self._identity = resourcemanager, identity
        self._path = f"/proxy/{application}{self.api.format(application=application)}"
        self._session = kerberos_session(identity, tls, limited=False)
        limit_all_answers(self._session, within)

    def close(self) -> None:
        self._session.close()

    def ask(self, tried: str, path: str, understand: Callable[[Any], T]) -> T:
        """Return what `understand` makes of the page's JSON; any mistake of its own means that it makes no sense."""
        context = {"tried": tried, "server": self._server, "principal": str(self._identity)}
        with (
            http_errors(tried, self._server, self._identity),
            self._session.get(self._server + self._path + path, allow_redirects=False, stream=True) as answer,
        ):
            body: bytes = answer.raw.read(_MOST, decode_content=True)
        if answer.status_code != 200 or "json" not in answer.headers.get("Content-Type", ""):
            raise self._refusal(answer, context)
        try:
            return understand(json.loads(body))
        except (KeyError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise Unavailable(f"its answer makes no sense ({type(error).__name__})", **context) from None

    def _refusal(self, answer: requests.Response, context: Mapping[str, str]) -> KstreamError:
        """Return the error for an answer without JSON: the proxy redirects to its own page where no web UI is."""
        said = f"it answered {answer.status_code}"
        if answer.status_code in {200, 302, 303, 307}:
            return Unavailable(f"{said}, and {self.wanting}", **context)
        return REFUSALS.get(answer.status_code, Unavailable)(said, **context)
