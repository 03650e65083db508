"""One HTTP session per server and identity, authenticated by SPNEGO without any ambient ticket cache; what all servers'
answers have in common: their errors and their clock; and what keeps tokens out of other packages' logs.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypedDict

import requests
import urllib3
import urllib3.connection
import urllib3.connectionpool

from airflow_kstream.clients.kerberos.krb5_errors import kerberos_error
from airflow_kstream.clients.lazy import gssapi, krb5, requests_kerberos, spnego
from airflow_kstream.clients.waiting import USUAL, limit_whole_answers
from airflow_kstream.model.errors import CredentialError, Denied, InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.kerberos.identity import Identity

if TYPE_CHECKING:
    from airflow_kstream.model.clusters.cluster import Tls


# What a server's refusal means, by its status.
REFUSALS: Mapping[int, type[KstreamError]] = {401: Denied, 403: Denied, 404: NotFound}
_HTTP = "urllib3.connectionpool"
_CHATTY = "hdfs.client"
_TOKEN = re.compile(r"(?P<name>\b(?:delegation|token)=)[^&\s\"']+")
_hushed: ContextVar[bool] = ContextVar("kstream_hushed", default=False)

# requests.adapters raises it as a plain OSError without a number.
_NO_CA_FILE = "Could not find a suitable TLS CA certificate bundle"
# How the bytes of a page begin.
_PAGES = {b"<html", b"<!doc"}


def kerberos_session(identity: Identity, tls: Tls, *, limited: bool = True) -> requests.Session:
    """Return a session that proves `identity` from its own keytab or ticket cache.

    A whole answer may take a minute (`limit_whole_answers`), unless the caller turns `limited` off for long ones.

    Give each server a session of its own: Hadoop's `hadoop.auth` cookie is signed per server, but cookies ignore
    ports, so two servers on one host would overwrite each other's.
    """
    # Its class derives from the library's, so this import loads the library.
    from airflow_kstream.clients.spnego_auth import spnego_auth

    keep_tokens_out_of_logs()
    session = requests.Session()
    # A proxy or .netrc of the environment must not see or replace what goes to the cluster.
    session.trust_env = False
    session.verify = tls.verify
    session.auth = spnego_auth(identity)
    if limited:
        limit_whole_answers(session, USUAL.whole)
    return session


@contextmanager
def http_errors(tried: str, server: str, identity: Identity) -> Iterator[None]:
    """Map the exceptions of requests, SPNEGO and the socket to our errors."""
    context = {"tried": tried, "server": server, "principal": str(identity)}
    try:
        yield
    except (
        requests_kerberos.exceptions.KerberosExchangeError,
        requests_kerberos.exceptions.MutualAuthenticationError,
        spnego.exceptions.SpnegoError,
    ) as error:
        raise CredentialError(f"SPNEGO failed: {_first_line(error)}", **context) from error
    except (krb5.Krb5Error, gssapi.raw.misc.GSSError) as error:
        raise kerberos_error(error, **context) from error
    except requests.exceptions.SSLError as error:
        raise Denied(f"TLS verification failed: {_first_line(error)}", **context) from error
    except (
        requests.exceptions.InvalidURL,
        requests.exceptions.InvalidSchema,
        requests.exceptions.MissingSchema,
    ) as error:
        raise InvalidInput(f"not a usable address: {_first_line(error)}", **context) from error
    except (
        requests.exceptions.RequestException,
        urllib3.exceptions.TimeoutError,
        ConnectionError,
        TimeoutError,
    ) as error:
        # Not chained: the message of requests contains the redirect's address, with a delegation token in it.
        raise Unavailable(_reason(error), **context) from None
    except (urllib3.exceptions.HTTPError, UnicodeDecodeError) as error:
        raise Unavailable(f"its answer broke off or makes no sense ({type(error).__name__})", **context) from None
    except OSError as error:
        if str(error).startswith(_NO_CA_FILE):
            raise InvalidInput(f"the CA file: {error}", **context) from error
        # Too many open files, a full disk: it passes.
        raise Unavailable(f"this host: {error.strerror or error}", **context) from error


def senseless(answer: requests.Response, why: str) -> str:
    """Return words for an answer that can't be read, for which `why` is the reason: a page is nobody's broken JSON."""
    if "html" in answer.headers.get("Content-Type", "") or answer.content.lstrip()[:5].lower() in _PAGES:
        return "it answered an HTML page, not JSON, as a login page or a proxy in between does"
    return f"its answer makes no sense ({why})"


def _reason(error: BaseException) -> str:
    """Return the innermost cause: `[Errno 111] Connection refused` says more than urllib3's wrapping."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return _first_line(error)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


class Context(TypedDict):
    """The arguments that every error has: the attempt, its server and its principal."""

    tried: str
    server: str
    principal: str


def kind_of_all(errors: Collection[KstreamError]) -> type[KstreamError]:
    """Return the kind of error that several servers' errors are together.

    It is the lasting refusal that all of them answer, else Unavailable: another answer of one of them may pass. A
    NotFound here is about the server's address; callers would take it for the lack of an application or a file.
    """
    kinds = {type(error) for error in errors}
    lasting = len(kinds) == 1 and NotFound not in kinds and not any(error.retryable for error in errors)
    return kinds.pop() if lasting else Unavailable


def words_of_all(errors: Collection[KstreamError]) -> str:
    """Name each server with its words, and servers that say the same with these words once."""
    said: dict[str, list[str]] = {}
    for error in errors:
        said.setdefault(error.message.rstrip("."), []).append(error.server)
    return "; ".join(f"{' and '.join(servers)}: {words}" for words, servers in said.items())


def server_date(answer: requests.Response) -> datetime:
    """Return the moment of its Date header, which is in GMT on every server (RFC 9110, 5.6.7).

    Hadoop sends the header twice, once by its own filter (HttpServer2.NoCacheFilter) and once by Jetty. `requests`
    joins the two with a comma, and what the standard library makes of both together has no time zone.

    Raises ValueError, OverflowError: when there is none, or it is not a date.
    """
    first = ",".join(answer.headers.get("Date", "").split(",")[:2])
    return parsedate_to_datetime(first).replace(tzinfo=UTC)


def keep_tokens_out_of_logs() -> None:
    """Hide the delegation tokens in the addresses that urllib3 logs at DEBUG, for the whole process."""
    logging.getLogger(_HTTP).addFilter(_without_tokens)


@contextmanager
def hushed() -> Iterator[None]:
    """Drop the HDFS client's log lines about each call of this thread meanwhile, except its warnings.

    A task's log is for decisions and actions.
    """
    logging.getLogger(_CHATTY).addFilter(_unless_hushed)
    before = _hushed.set(True)
    try:
        yield
    finally:
        _hushed.reset(before)


def _without_tokens(record: logging.LogRecord) -> bool:
    message = record.getMessage()
    if _TOKEN.search(message):
        record.msg, record.args = _TOKEN.sub(r"\g<name>***", message), ()
    return True


def _unless_hushed(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING or not _hushed.get()


def requested_host(host: str) -> str:
    """Return the host whose ticket libkrb5 requests for a web server on `host`: DNS may have made another of it.

    Raises Unavailable or CredentialError: when the library can't make a name of it.
    """
    try:
        name = gssapi.Name(f"HTTP@{host}", gssapi.NameType.hostbased_service).canonicalize(gssapi.MechType.kerberos)
    except gssapi.raw.misc.GSSError as error:
        raise kerberos_error(error, tried=f"make a Kerberos name of HTTP@{host}") from error
    return str(name).partition("/")[2].partition("@")[0] or host
