"""An error of Kerberos means the same, whichever library tells it."""

from __future__ import annotations

import gssapi
import krb5
import pytest

from airflow_kstream.clients.kerberos.krb5_errors import kerberos_error, login_result
from airflow_kstream.model.errors import CredentialError, KstreamError, Unavailable
from airflow_kstream.model.kerberos.keytab import LoginResult

KDC_UNREACHABLE, REALM_UNKNOWN, SKEWED, KEY_REFUSED, OTHER = (
    -1765328228, -1765328230, -1765328347, -1765328360, -1765328377,
)  # fmt: skip


def told(number: int) -> list[KstreamError]:
    """Return our errors for this number, of libkrb5 and of GSSAPI, which tells it without its sign."""
    errors = (krb5.Krb5Error(krb5.init_context(), number), gssapi.raw.misc.GSSError(0xD0000, number & 0xFFFFFFFF))
    assert len({login_result(error) for error in errors}) == 1
    return [kerberos_error(error, tried="log in") for error in errors]


@pytest.mark.parametrize(
    ("number", "kind", "retryable"),
    [
        (KDC_UNREACHABLE, Unavailable, True),
        (REALM_UNKNOWN, CredentialError, False),
        (SKEWED, CredentialError, True),
        (KEY_REFUSED, CredentialError, False),
        (OTHER, CredentialError, False),
    ],
)
def test_what_passes_by_itself_may_be_tried_again(number: int, kind: type[KstreamError], retryable: bool) -> None:
    """A KDC comes back and a clock is set; a realm without one has to be configured."""
    assert [(type(error), error.retryable) for error in told(number)] == [(kind, retryable)] * 2


def test_a_refused_key_names_the_likely_cause() -> None:
    assert all("a newer key than the keytab" in error.message for error in told(KEY_REFUSED))


def test_a_number_without_a_meaning_of_its_own_is_a_refusal() -> None:
    assert login_result(krb5.Krb5Error(krb5.init_context(), OTHER)) is LoginResult.REFUSED
