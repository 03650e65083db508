"""When a ticket is due for renewal, and when a failed renewal becomes an alert; what is wrong with a keytab.

Each finding about a keytab has a remedy. It comes from the file and from the KDC's answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.finding import Severity
from airflow_kstream.model.kerberos.declarations import RenewalPolicy
from airflow_kstream.model.kerberos.keytab import (
    FindingKind,
    KdcStatus,
    KeytabFile,
    KeytabFinding,
    KeyVersion,
    LoginResult,
    enctype_name,
)
from airflow_kstream.model.kerberos.ticket import Ticket

# The skew that MIT Kerberos and Java allow by default (clockskew in krb5.conf), and the skew that is worth a warning.
_REFUSED_SKEW, _NOTED_SKEW = timedelta(minutes=5), timedelta(minutes=1)
_GROUP, _OTHERS = 0o070, 0o007
_EXPORT = "kadmin: ktadd -norandkey (without -norandkey it rotates the key once more)"
_MERGED = "export into a new file: ktadd adds to one that is there, and leaves what it has"
_BY_HAND = f"MIT's clients and Java don't mind; gokrb5, and a service that takes tickets with it, do; {_EXPORT}"
_SET_CLOCK = "set the clocks by NTP, on this host or on the KDC's, whichever is wrong"
_Answer = tuple[FindingKind, Severity, str, str]
_ANSWERS: dict[LoginResult, _Answer] = {
    LoginResult.UNKNOWN: (
        FindingKind.UNKNOWN,
        Severity.ERROR,
        "the KDC does not know {principal}: it was deleted or renamed",
        "ask the KDC's administrators for its current name",
    ),
    LoginResult.EXPIRED: (
        FindingKind.EXPIRED,
        Severity.ERROR,
        "{principal} has expired",
        "kadmin: modprinc -expire never (Active Directory: accountExpires)",
    ),
    LoginResult.LOCKED: (
        FindingKind.LOCKED,
        Severity.ERROR,
        "{principal} is locked or disabled",
        "kadmin: modprinc +allow_tix, or -unlock after too many failed logins; find out which client failed",
    ),
    LoginResult.PASSWORD_EXPIRED: (
        FindingKind.PASSWORD_EXPIRED,
        Severity.ERROR,
        "the password of {principal} has expired, and a keytab can't change it",
        "kadmin: modprinc -pwexpire never, or rotate the key and get a new keytab",
    ),
    LoginResult.ENCTYPES_REFUSED: (
        FindingKind.ENCTYPES_REFUSED,
        Severity.ERROR,
        "the KDC accepts none of the keytab's enctypes for {principal}",
        f"get a new one with an enctype that is allowed; {_EXPORT}",
    ),
    LoginResult.NO_KEY: (
        FindingKind.ENCTYPES_REFUSED,
        Severity.ERROR,
        "it has no key for {principal} in an enctype that this host and the KDC allow",
        f"get a new one, or check permitted_enctypes in krb5.conf; {_EXPORT}",
    ),
    LoginResult.SKEWED: (FindingKind.CLOCK, Severity.ERROR, "the KDC refuses this host's clock", _SET_CLOCK),
    LoginResult.UNREACHABLE: (
        FindingKind.UNREACHABLE,
        Severity.WARNING,
        "no KDC answered; nothing is concluded about the key",
        "check the realm's kdc in krb5.conf, and try again",
    ),
    LoginResult.REFUSED: (
        FindingKind.REFUSED,
        Severity.ERROR,
        "the KDC refuses a login of {principal}",
        "check the KDC's log",
    ),
}


@dataclass(frozen=True)
class _Case:
    keytab: KeytabFile
    principal: str
    kdc: KdcStatus
    version: KeyVersion
    worked: datetime | None

    @property
    def stamped(self) -> str:
        """Return the last moment at which the key is known to have been the right one, as text."""
        known = [moment for moment in (self.version.stamped, self.worked) if moment]
        return f"{max(known):%Y-%m-%d %H:%M:%S %Z}" if known else "it was written"


def keytab_findings(
    keytab: KeytabFile, principal: str, kdc: KdcStatus | None, worked: datetime | None = None
) -> tuple[KeytabFinding, ...]:
    """Return all findings, errors first; none means that all is well. Without `kdc`, only the file is judged.

    `worked` is the last known login with that key, None if unknown.
    """
    version = keytab.version(principal)
    if version is None:
        return (*_mode(keytab), _no_entry(keytab, principal))
    if kdc is None:
        return tuple(_mode(keytab))
    case = _Case(keytab, principal, kdc, version, worked)
    findings = [*_mode(keytab), *(finding for rule in _RULES for finding in rule(case))]
    return tuple(sorted(findings, key=lambda finding: list(Severity).index(finding.severity)))


def unreadable(words: str) -> KeytabFinding:
    return KeytabFinding(FindingKind.UNREADABLE, Severity.ERROR, words, "give this process a readable, whole keytab")


def _mode(keytab: KeytabFile) -> Iterator[KeytabFinding]:
    if keytab.mode & (_GROUP | _OTHERS):
        whom = "everybody on this host" if keytab.mode & _OTHERS else "a group"
        severity = Severity.ERROR if keytab.mode & _OTHERS else Severity.WARNING
        words = f"its mode is {keytab.mode:04o}: besides {keytab.owner}, {whom} can access the key"
        remedy = f"chmod 0600 {keytab.path}, and rotate the key if somebody could have read it"
        yield KeytabFinding(FindingKind.OPEN_TO_OTHERS, severity, words, remedy)


def _no_entry(keytab: KeytabFile, principal: str) -> KeytabFinding:
    there = ", ".join(keytab.principals) or "none"
    words = f"it has no key for {principal}; it has keys for: {there}"
    return KeytabFinding(FindingKind.NO_ENTRY, Severity.ERROR, words, "name the right keytab, or the right principal")


def _login(case: _Case) -> Iterator[KeytabFinding]:
    if case.kdc.login in _ANSWERS:
        kind, severity, words, remedy = _ANSWERS[case.kdc.login]
        detail = f" ({case.kdc.detail})" if case.kdc.detail else ""
        yield KeytabFinding(kind, severity, f"{words.format(principal=case.principal)}{detail}", remedy)


def _another_number(case: _Case) -> Iterator[KeytabFinding]:
    """The KDC's own answer goes before the numbers: it logs nobody in with a key that is not the current one, even
    where it keeps older ones for tickets (`cpw -keepold`; tried on MIT's)."""
    known, ours = case.kdc.kvno, case.version.kvno
    if known is None or known == ours:
        return
    kind = FindingKind.BEHIND if known > ours else FindingKind.AHEAD
    numbers = f"the KDC has kvno {known}, this keytab kvno {ours}"
    if case.kdc.login is LoginResult.ACCEPTED:
        words = f"{numbers}, and its key is the current one: somebody wrote the number, or the KDCs don't agree yet"
        yield KeytabFinding(kind, Severity.NOTE, words, _BY_HAND)
    elif case.keytab.has(case.principal, known):
        words = f"the KDC has kvno {known}; this keytab has keys of {known} and of {ours}, and logins take the highest"
        yield KeytabFinding(kind, Severity.ERROR, words, _MERGED)
    elif known > ours:
        words = f"{numbers}: it was rotated after {case.stamped}"
        yield KeytabFinding(kind, Severity.ERROR, words, f"get a new one; {_EXPORT}")
    else:
        words = (
            f"{numbers}: the principal was deleted and made again after {case.stamped}, or the KDC that answered is a "
            "replica that lags behind, was restored from a backup, or belongs to another realm of the same name"
        )
        yield KeytabFinding(kind, Severity.ERROR, words, "ask the KDC's administrators which; don't rotate again")


def _key_refused(case: _Case) -> Iterator[KeytabFinding]:
    if case.kdc.login is not LoginResult.KEY_REFUSED or case.kdc.kvno not in {None, case.version.kvno}:
        return
    if case.kdc.kvno is None:
        words = f"the KDC refuses its key ({case.kdc.detail}): most likely it was rotated after {case.stamped}"
        yield KeytabFinding(FindingKind.KEY_REFUSED, Severity.ERROR, words, f"get a new one; {_EXPORT}")
        return
    words = (
        f"the KDC refuses its key ({case.kdc.detail}) although both have kvno {case.version.kvno}: it was made from a "
        "password with a wrong salt or a typo, or its kvno was set by hand"
    )
    salt = f"; the KDC's salt is {case.kdc.salt!r}" if case.kdc.salt is not None else ""
    yield KeytabFinding(FindingKind.KEY_REFUSED, Severity.ERROR, words + salt, f"don't make it by hand: {_EXPORT}")


def _enctypes(case: _Case) -> Iterator[KeytabFinding]:
    gone = case.kdc.refused_enctypes
    if gone and case.kdc.login is not LoginResult.ENCTYPES_REFUSED:
        words = f"the KDC no longer accepts {', '.join(map(enctype_name, gone))} for this principal"
        yield KeytabFinding(
            FindingKind.ENCTYPES_REFUSED, Severity.WARNING, words, "get a new one before clients pick that key"
        )


def _salt(case: _Case) -> Iterator[KeytabFinding]:
    salt = case.kdc.salt
    if salt is not None and salt != default_salt(case.principal):
        words = f"the KDC's salt is {salt!r}, not the default: the principal was renamed, or is in Active Directory"
        remedy = "keys made from a password need that salt (ktutil: addent -f, or -s SALT); exported keys don't"
        yield KeytabFinding(FindingKind.SALT, Severity.NOTE, words, remedy)


def _clock(case: _Case) -> Iterator[KeytabFinding]:
    offset = case.kdc.offset
    if offset is None or abs(offset) <= _NOTED_SKEW:
        return
    which = "ahead of" if offset > timedelta() else "behind"
    words = f"the KDC's clock is {format_duration(abs(offset))} {which} this host's"
    if abs(offset) > _REFUSED_SKEW:
        words += ": servers and Java refuse more than 5m, though this library corrects for it"
    severity = Severity.ERROR if abs(offset) > _REFUSED_SKEW else Severity.WARNING
    yield KeytabFinding(FindingKind.CLOCK, severity, words, _SET_CLOCK)


def _kvno_not_learned(case: _Case) -> Iterator[KeytabFinding]:
    kdc = case.kdc
    # With a wrong clock no service ticket can be obtained, and the clock is already a finding.
    clock_is_wrong = kdc.offset is not None and abs(kdc.offset) > _REFUSED_SKEW
    if (
        kdc.kvno is None
        and kdc.kvno_unknown
        and kdc.login in {LoginResult.ACCEPTED, LoginResult.KEY_REFUSED}
        and not clock_is_wrong
    ):
        words = f"the KDC's kvno is unknown: {kdc.kvno_unknown}"
        remedy = "nothing to do: the login has shown whether the key works"
        yield KeytabFinding(FindingKind.KVNO_NOT_LEARNED, Severity.NOTE, words, remedy)


def default_salt(principal: str) -> bytes:
    """Return the default salt of RFC 4120, section 4: the realm and the name's parts, joined."""
    name, _, realm = principal.rpartition("@")
    return (realm + name.replace("/", "")).encode()


_Rule = Callable[[_Case], Iterator[KeytabFinding]]
_RULES: tuple[_Rule, ...] = (
    _login,
    _another_number,
    _key_refused,
    _enctypes,
    _salt,
    _clock,
    _kvno_not_learned,
)


class TicketState(StrEnum):
    """The state of a ticket. FRESH needs nothing, DUE can wait, URGENT expires soon; MISSING: there is no ticket."""

    FRESH = "fresh"
    DUE = "due"
    URGENT = "urgent"
    EXPIRED = "expired"
    MISSING = "missing"

    @property
    def serves(self) -> bool:
        """Return True if the ticket is still valid."""
        return self in {TicketState.FRESH, TicketState.DUE, TicketState.URGENT}

    @property
    def alarming(self) -> bool:
        """Return True if a failed renewal in this state can't wait for the next round."""
        return self in {TicketState.URGENT, TicketState.EXPIRED, TicketState.MISSING}


def ticket_state(ticket: Ticket | None, policy: RenewalPolicy, now: datetime) -> TicketState:
    if ticket is None:
        return TicketState.MISSING
    edges = (
        (ticket.expiry, TicketState.EXPIRED),
        (policy.urgent(ticket), TicketState.URGENT),
        (policy.due(ticket), TicketState.DUE),
    )
    return next((state for edge, state in edges if now >= edge), TicketState.FRESH)
