"""SPNEGO for requests. It imports its libraries at once: import this module inside functions."""

from __future__ import annotations

from pathlib import Path

import requests
import spnego
from gssapi.raw.misc import GSSError
from krb5 import Krb5Error
from requests_kerberos import OPTIONAL, HTTPKerberosAuth
from requests_kerberos.exceptions import KerberosExchangeError
from spnego.exceptions import SpnegoError

from airflow_kstream.clients.local.regular_files import is_special
from airflow_kstream.model.errors import CredentialError, InvalidInput
from airflow_kstream.model.kerberos.identity import Identity


def spnego_auth(identity: Identity) -> HTTPKerberosAuth:
    """Return the authentication that proves `identity` to a server.

    Raises InvalidInput: when it has neither keytab nor ticket cache. Raises CredentialError: when the keytab is a pipe
    or a device.
    """
    return _Spnego(principal=_credential(identity), mutual_authentication=OPTIONAL)


class _Spnego(HTTPKerberosAuth):  # type: ignore[misc]  # requests_kerberos ships no types
    """SPNEGO that reports why there is no ticket for the server; the library would pass on a bare 401."""

    def generate_request_header(self, response: requests.Response, host: str, is_preemptive: bool = False) -> str:
        try:
            return str(super().generate_request_header(response, host, is_preemptive))
        except KerberosExchangeError as error:
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, Krb5Error | GSSError):
                cause = cause.__cause__ or cause.__context__
            response.close()
            raise cause or SpnegoError(context_msg=str(error)) from error
        except Exception:
            # Nobody reads this 401 any longer: its connection would stay open. Keytabs fail with errors of their own.
            response.close()
            raise


def _credential(identity: Identity) -> spnego.KerberosKeytab | spnego.KerberosCCache:
    if identity.keytab:
        if is_special(Path(identity.keytab)):
            tried = f"open the keytab {identity.keytab}"
            raise CredentialError("it is not a regular file", tried=tried, principal=identity.principal)
        return spnego.KerberosKeytab(keytab=identity.keytab, principal=identity.principal)
    if identity.ticket_cache:
        return spnego.KerberosCCache(ccache=identity.ticket_cache, principal=identity.principal)
    raise InvalidInput(f"{identity.principal} has neither a keytab nor a ticket cache")
