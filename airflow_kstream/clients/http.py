"""One HTTP session per server and identity, authenticated by SPNEGO without any ambient ticket cache."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests
import spnego
import urllib3
from gssapi.raw.misc import GSSError
from krb5 import Krb5Error
from requests_kerberos import OPTIONAL, HTTPKerberosAuth
from requests_kerberos.exceptions import KerberosExchangeError, MutualAuthenticationError
from spnego.exceptions import SpnegoError

from airflow_kstream.clients.kerberos.tickets import kerberos_error
from airflow_kstream.clients.local.regular_files import is_special
from airflow_kstream.model.cluster import Tls
from airflow_kstream.model.errors import CredentialError, Denied, InvalidInput, Unavailable
from airflow_kstream.model.identity import Identity

# At DEBUG it logs addresses, and those of WebHDFS carry delegation tokens.
logging.getLogger("urllib3.connectionpool").setLevel(logging.INFO)

CONNECT_AND_READ_SECONDS = (5.0, 30.0)


def kerberos_session(identity: Identity, tls: Tls) -> requests.Session:
    """A session that proves `identity` from its own keytab or ticket cache.

    Give each server a session of its own: Hadoop's `hadoop.auth` cookie is signed per server, but cookies ignore
    ports, so two servers on one host would overwrite each other's.
    """
    session = requests.Session()
    # A proxy or .netrc of the environment must not see or replace what is sent to the cluster.
    session.trust_env = False
    session.verify = tls.verify
    session.auth = _Spnego(principal=_credential(identity), mutual_authentication=OPTIONAL)
    return session


class _Spnego(HTTPKerberosAuth):  # type: ignore[misc]  # requests_kerberos ships no types
    """Tells why there is no ticket for the server, where the library would pass a bare 401 on."""

    def generate_request_header(self, response: requests.Response, host: str, is_preemptive: bool = False) -> str:
        try:
            return str(super().generate_request_header(response, host, is_preemptive))
        except KerberosExchangeError as error:
            # Nobody reads this 401 any more: its connection would stay open.
            response.close()
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, Krb5Error | GSSError):
                cause = cause.__cause__ or cause.__context__
            raise cause or SpnegoError(context_msg=str(error)) from error


def _credential(identity: Identity) -> spnego.KerberosKeytab | spnego.KerberosCCache:
    if identity.keytab:
        if is_special(Path(identity.keytab)):
            raise CredentialError(
                f"{identity.keytab} is no regular file", tried="open the keytab", principal=identity.principal
            )
        return spnego.KerberosKeytab(keytab=identity.keytab, principal=identity.principal)
    if identity.ticket_cache:
        return spnego.KerberosCCache(ccache=identity.ticket_cache, principal=identity.principal)
    raise InvalidInput(f"{identity.principal} has neither a keytab nor a ticket cache")


@contextmanager
def http_errors(tried: str, server: str, identity: Identity) -> Iterator[None]:
    """Map what requests, SPNEGO and the socket raise to our errors."""
    context = {"tried": tried, "server": server, "principal": str(identity)}
    try:
        yield
    except (KerberosExchangeError, MutualAuthenticationError, SpnegoError) as error:
        raise CredentialError(f"SPNEGO failed: {_first_line(error)}", **context) from error
    except (Krb5Error, GSSError) as error:
        raise kerberos_error(error, **context) from error
    except requests.exceptions.SSLError as error:
        raise Denied(f"TLS verification failed: {_first_line(error)}", **context) from error
    except (
        requests.exceptions.InvalidURL,
        requests.exceptions.InvalidSchema,
        requests.exceptions.MissingSchema,
    ) as error:
        raise InvalidInput(f"not a usable address: {_first_line(error)}", **context) from error
    except (requests.exceptions.RequestException, ConnectionError, TimeoutError) as error:
        # Not chained: a redirect's address, with a delegation token in it, is part of what requests says.
        raise Unavailable(_reason(error), **context) from None
    except (urllib3.exceptions.HTTPError, UnicodeDecodeError, KeyError) as error:
        raise Unavailable(f"its answer broke off or makes no sense ({type(error).__name__})", **context) from None
    except OSError as error:
        raise InvalidInput(f"the CA file {error.strerror or error}", **context) from error


def _reason(error: BaseException) -> str:
    """The innermost cause: `[Errno 111] Connection refused` says more than urllib3's wrapping."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return _first_line(error)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
