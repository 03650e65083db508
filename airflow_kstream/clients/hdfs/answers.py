"""What a NameNode can answer over WebHDFS. Anything else comes from a proxy or a broken server: the next one is asked.

HttpFS answers in the same forms (HttpFSServer), with the content of a file in place of a redirect to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import requests

from airflow_kstream.clients.http import Context, senseless
from airflow_kstream.clients.rpc.java_exceptions import NOT_ACTIVE
from airflow_kstream.model.errors import Denied, KstreamError, Unavailable

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
