"""The probe of one keytab: its principal, and the KDC's answer to its key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from airflow_kstream.clients.kerberos import keytabs
from airflow_kstream.model.errors import CredentialError, InvalidInput, Unavailable
from airflow_kstream.model.finding import Severity
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.kerberos.keytab import FindingKind, KdcStatus, KeytabFile, KeytabFinding, LoginResult
from airflow_kstream.policy.tickets import keytab_findings, unreadable
from airflow_kstream.supervise.tickets.renewal import RealmCircuitBreaker


@dataclass(frozen=True, order=True)
class KeytabPlace:
    principal: str
    path: str


@dataclass(frozen=True)
class KdcProbe:
    """The KDCs to probe with keys. `helpers` are caches whose tickets authenticate the requests."""

    breaker: RealmCircuitBreaker = field(default_factory=RealmCircuitBreaker)
    helpers: Sequence[Path] = ()

    def ask(self, keytab: KeytabFile, principal: str) -> KdcStatus:
        try:
            self.breaker.require_speaking(principal, "log in")
        except Unavailable as error:
            return KdcStatus(LoginResult.UNREACHABLE, error.message)
        status = keytabs.ask_kdc(keytab, principal, self.helpers)
        if status.login is LoginResult.UNREACHABLE:
            self.breaker.note_silence(principal)
        return status


def explained(refusal: CredentialError, identity: Identity) -> CredentialError:
    """Return the refusal of a login in the words of the keytab check: libraries report a rotated key as a failed
    decryption. It passes where nothing but a clock is wrong, which NTP mends within minutes."""
    errors = _errors(KeytabPlace(identity.principal, identity.keytab)) if identity.keytab else ()
    why = "; ".join(f"{finding.words}: {finding.remedy}" for finding in errors) or refusal.message
    told = CredentialError(why, tried=refusal.tried, principal=identity.principal)
    clock = bool(errors) and all(finding.kind is FindingKind.CLOCK for finding in errors)
    return told.passing(clock or refusal.retryable)


def _errors(place: KeytabPlace) -> tuple[KeytabFinding, ...]:
    return tuple(finding for finding in _findings(place) if finding.severity is Severity.ERROR)


def _findings(place: KeytabPlace) -> tuple[KeytabFinding, ...]:
    try:
        keytab = keytabs.read(place.path)
    except CredentialError as error:
        return (unreadable(error.message),)
    holds_a_key = keytab.version(place.principal) is not None
    return keytab_findings(keytab, place.principal, KdcProbe().ask(keytab, place.principal) if holds_a_key else None)


def only_principal(path: str) -> str:
    """Return the keytab's only principal.

    Raises InvalidInput: when it holds keys of several principals or none. Raises CredentialError: when it can't be
    read.
    """
    principals = keytabs.read(path).principals
    if len(principals) != 1:
        raise InvalidInput(f"{path} has keys of {', '.join(principals) or 'nobody'}; choose one with --principal")
    return principals[0]
