"""The names of services for which libkrb5 requests tickets."""

from __future__ import annotations

from airflow_kstream.clients.kerberos.tickets import kerberos_error
from airflow_kstream.clients.lazy import gssapi


def requested_host(host: str) -> str:
    """Return the host whose ticket libkrb5 requests for a web server on `host`: DNS may have made another of it.

    Raises Unavailable or CredentialError: when the library can't make a name of it.
    """
    try:
        name = gssapi.Name(f"HTTP@{host}", gssapi.NameType.hostbased_service).canonicalize(gssapi.MechType.kerberos)
    except gssapi.raw.misc.GSSError as error:
        raise kerberos_error(error, tried=f"make a Kerberos name of HTTP@{host}") from error
    return str(name).partition("/")[2].partition("@")[0] or host
