"""One HTTP session per server and identity, authenticated by SPNEGO without any ambient ticket cache."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import requests
import urllib3

from airflow_kstream.clients.kerberos.krb5_errors import kerberos_error
from airflow_kstream.clients.lazy import gssapi, krb5, requests_kerberos, spnego
from airflow_kstream.clients.local.log_files import keep_tokens_out_of_logs
from airflow_kstream.clients.waiting import USUAL
from airflow_kstream.clients.whole_answer import limit_whole_answers
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import CredentialError, Denied, InvalidInput, Unavailable
from airflow_kstream.model.kerberos.identity import Identity

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
