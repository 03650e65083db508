"""Errors of the Kerberos libraries: their numbers, their words, and which of our errors each is."""

from __future__ import annotations

from airflow_kstream.clients.lazy import gssapi, krb5
from airflow_kstream.model.errors import CredentialError, KstreamError, Unavailable
from airflow_kstream.model.kerberos.keytab import LoginResult

# krb5.h; the numbers are the protocol's own (RFC 4120, 7.5.9) beyond KRB5KDC_ERR_NONE.
TICKET_EXPIRED = -1765328352  # KRB5KRB_AP_ERR_TKT_EXPIRED
_REALM_UNKNOWN = -1765328230  # KRB5_REALM_UNKNOWN
_LOGINS = {
    -1765328383: LoginResult.EXPIRED,  # KRB5KDC_ERR_NAME_EXP
    -1765328378: LoginResult.UNKNOWN,  # KRB5KDC_ERR_C_PRINCIPAL_UNKNOWN
    -1765328370: LoginResult.ENCTYPES_REFUSED,  # KRB5KDC_ERR_ETYPE_NOSUPP
    -1765328366: LoginResult.LOCKED,  # KRB5KDC_ERR_CLIENT_REVOKED
    -1765328361: LoginResult.PASSWORD_EXPIRED,  # KRB5KDC_ERR_KEY_EXP
    -1765328360: LoginResult.KEY_REFUSED,  # KRB5KDC_ERR_PREAUTH_FAILED
    -1765328353: LoginResult.KEY_REFUSED,  # KRB5KRB_AP_ERR_BAD_INTEGRITY: no preauthentication, not our key
    -1765328347: LoginResult.SKEWED,  # KRB5KRB_AP_ERR_SKEW
    -1765328236: LoginResult.SKEWED,  # KRB5_KDCREP_SKEW
    _REALM_UNKNOWN: LoginResult.UNREACHABLE,
    -1765328228: LoginResult.UNREACHABLE,  # KRB5_KDC_UNREACH
    -1765328203: LoginResult.NO_KEY,  # KRB5_KT_NOTFOUND
    -1765328164: LoginResult.UNREACHABLE,  # KRB5_REALM_CANT_RESOLVE
}
_OF_A_ROTATED_KEY = ": most likely the KDC has a newer key than the keytab (`kstream tickets check` says more)"


def kerberos_error(error: gssapi.raw.misc.GSSError | krb5.Krb5Error, **context: str) -> KstreamError:
    """Return our error: an absent KDC can come back, and NTP mends a clock within minutes; another refusal stays one.

    A realm for which no KDC is known stays so until somebody configures one.
    """
    login, words = login_result(error), words_of(error)
    away = login is LoginResult.UNREACHABLE and error_number(error) != _REALM_UNKNOWN
    words += _OF_A_ROTATED_KEY if login is LoginResult.KEY_REFUSED else ""
    told = (Unavailable if away else CredentialError)(words, **context)
    return told.passing() if login is LoginResult.SKEWED else told


def login_result(error: gssapi.raw.misc.GSSError | krb5.Krb5Error) -> LoginResult:
    """Return what the error means for a login."""
    return _LOGINS.get(error_number(error), LoginResult.REFUSED)


def error_number(error: gssapi.raw.misc.GSSError | krb5.Krb5Error) -> int:
    """Return libkrb5's number; GSSAPI has it without its sign."""
    number = error.err_code if isinstance(error, krb5.Krb5Error) else error.min_code
    return int.from_bytes((number & 0xFFFFFFFF).to_bytes(4), signed=True)


def words_of(error: gssapi.raw.misc.GSSError | krb5.Krb5Error) -> str:
    """Return the reason in the library's words: GSSAPI's major status only says that something failed."""
    if isinstance(error, krb5.Krb5Error):
        return str(error).rpartition(" ")[0] or str(error)
    return "; ".join(error.get_all_statuses(error.min_code, False)) or str(error)
