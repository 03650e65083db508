"""Checks of Kerberos on this host: clocks, tickets, names, keytabs and krb5.conf."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from airflow_kstream.model.clusters.cluster_facts import ClusterFacts, NotKnown, ServerClock, known
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.finding import Concern, NotChecked, Severity
from airflow_kstream.model.kerberos.keytab import FindingKind, enctype_name
from airflow_kstream.policy.doctor.check import FindingDraft

# clockskew of MIT Kerberos and of Java where krb5.conf sets none; what is worth a warning before that.
_SKEW_BY_DEFAULT, _NOTED_SKEW = timedelta(minutes=5), timedelta(minutes=1)
# A ticket this short may end while spark-submit works with it.
_SHORT = timedelta(minutes=5)
# des-cbc-*, des3 and arcfour: Java 17 takes them with allow_weak_crypto alone.
_WEAK = frozenset({1, 3, 16, 23, 24})
_TRUE = {"true", "yes", "y", "on", "1"}
# Found by checks of their own, once for all keytabs.
_ELSEWHERE = {FindingKind.CLOCK, FindingKind.STREAMS_NOT_KNOWN, FindingKind.UNREACHABLE}


def clock_skew(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find clocks apart: one finding for this host's if all servers agree, else one for each server."""
    allowed = _allowed_skew(facts)
    if not facts.kerberos.clocks:
        raise NotKnown(NotChecked("the clocks of the servers", "none answered"))
    off = [clock for clock in facts.kerberos.clocks if abs(clock.ahead) > _NOTED_SKEW]
    if len(off) > 1 and len(off) == len(facts.kerberos.clocks) and _agree(off):
        yield _skewed(f"{len(off)} servers", off[0].ahead, allowed, "this host", off)
        return
    for clock in off:
        yield _skewed(clock.server, clock.ahead, allowed, clock.server, [clock])


def _skewed(whose: str, ahead: timedelta, allowed: timedelta, about: str, clocks: list[ServerClock]) -> FindingDraft:
    which = "ahead of" if ahead > timedelta() else "behind"
    refused = abs(ahead) > allowed
    words = f"{whose} refuse tickets made here" if refused else "near the difference at which tickets are refused"
    shown = "; ".join(f"{clock.server} by {format_duration(abs(clock.ahead))}" for clock in clocks)
    return FindingDraft(
        Severity.ERROR if refused else Severity.WARNING,
        f"clocks differ by {format_duration(abs(ahead))}, and {format_duration(allowed)} are allowed: {words}",
        f"NTP on {about}",
        f"{which} this host's clock: {shown}",
        about=about,
    )


def _agree(clocks: list[ServerClock]) -> bool:
    return max(clock.ahead for clock in clocks) - min(clock.ahead for clock in clocks) < _NOTED_SKEW


def _allowed_skew(facts: ClusterFacts) -> timedelta:
    told = known(facts.kerberos.krb5).get("clockskew", "")
    return timedelta(seconds=int(told)) if told.isdecimal() else _SKEW_BY_DEFAULT


def ticket_end(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find a connection whose only ticket ends: nobody can submit, watch or stop anything afterwards."""
    ticket = known(facts.kerberos.ticket)
    if facts.kerberos.has_keytab:
        return
    ends = ticket.renew_until or ticket.expiry
    why = "its renewals end" if ticket.renew_until else "it is not renewable, and ends"
    yield FindingDraft(
        Severity.ERROR if ends <= facts.now + timedelta(days=1) else Severity.WARNING,
        f"the connection has a ticket and no keytab: {why} at {ends:%Y-%m-%d %H:%M} UTC, and from then on no stream is "
        "watched or restarted",
        "keytab_path in the connection; or a ticket with kinit -r 7d, renewed by `kstream tickets renew`",
        f"the ticket of {ticket.client}: expires {ticket.expiry:%Y-%m-%d %H:%M}, renewable until {ticket.renew_until}",
    )


def ticket_life(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find tickets that end while a client may still work with them."""
    ticket = known(facts.kerberos.ticket)
    if ticket.life <= _SHORT:
        yield FindingDraft(
            Severity.WARNING,
            f"a ticket lives for {format_duration(ticket.life)}: it may end while spark-submit works with it",
            "kadmin: modprinc -maxlife 10h, and max_life in kdc.conf",
            f"the KDC's ticket for {ticket.client}",
        )


def not_renewable(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find KDCs that grant no renewable tickets although krb5.conf requests them."""
    ticket, wanted = known(facts.kerberos.ticket), known(facts.kerberos.krb5).get("renew_lifetime", "0")
    if wanted.strip("0smhd: ") and ticket.renew_until is None:
        yield FindingDraft(
            Severity.NOTE if facts.kerberos.has_keytab else Severity.WARNING,
            "tickets can't be renewed, so that a program without a keytab ends with its first one",
            "kadmin: modprinc -maxrenewlife 7d, for the principal and for krbtgt/REALM",
            f"renew_lifetime={wanted} in krb5.conf, and the KDC's ticket for {ticket.client} is not renewable",
        )


def not_forwardable(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find tickets that no other host can use. Hadoop and Spark don't need that; logins by GSSAPI beyond a host do."""
    ticket = known(facts.kerberos.ticket)
    if "forwardable" in ticket.flags:
        return
    wanted = known(facts.kerberos.krb5).get("forwardable", "").lower() in _TRUE
    yield FindingDraft(
        Severity.NOTE,
        "tickets are not forwardable: programs that log in with them on another host, such as ssh with delegation, "
        "find none there; Spark, YARN and HDFS don't need it",
        "kadmin: modprinc +allow_forwardable" if wanted else "forwardable = true in [libdefaults] of krb5.conf",
        f"the KDC's ticket for {ticket.client} has the flags {', '.join(sorted(ticket.flags))}",
    )


def canonical_names(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find servers for which DNS makes libkrb5 request another host's ticket."""
    for service in known(facts.kerberos.services):
        if service.requested.lower() != service.host.lower():
            yield FindingDraft(
                Severity.WARNING,
                f"the ticket for {service.host} is requested for {service.requested}: SPNEGO fails as soon as DNS or "
                "/etc/hosts say something else, and Java's programs request another one",
                "dns_canonicalize_hostname = false and rdns = false in [libdefaults] of krb5.conf; full names in the "
                "connection",
                f"libkrb5 canonicalised HTTP@{service.host} to {service.requested}",
                about=service.host,
            )


def keytab_troubles(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find what is wrong with the keytabs of the connection and of its streams, on disk and at the KDC."""
    for keytab in known(facts.kerberos.keytabs):
        for finding in keytab.findings:
            if finding.kind not in _ELSEWHERE:
                yield FindingDraft(
                    finding.severity,
                    f"{keytab.path} of {keytab.principal}: {finding.words}",
                    finding.remedy,
                    "the file, and the KDC's answer to its key",
                    f"{keytab.principal} {finding.kind}",
                    keytab.endangered if finding.severity is Severity.ERROR else (),
                )


def silent_kdc(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Say that no KDC answered, which proves nothing about a keytab."""
    for keytab in known(facts.kerberos.keytabs):
        if any(finding.kind is FindingKind.UNREACHABLE for finding in keytab.findings):
            raise NotKnown(NotChecked("the KDC", f"it did not answer about {keytab.principal}"))
    yield from ()


def weak_enctypes(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find keytabs whose newest keys are all of types that current libraries refuse."""
    for keytab in known(facts.kerberos.keytabs):
        if keytab.enctypes and not set(keytab.enctypes) - _WEAK:
            names = ", ".join(map(enctype_name, keytab.enctypes))
            yield FindingDraft(
                Severity.WARNING,
                f"{keytab.path} has only keys that Java 17 refuses without allow_weak_crypto: an upgraded client can't "
                "log in with it",
                "kadmin: ktadd -e aes256-cts-hmac-sha1-96:normal, and supported_enctypes in kdc.conf",
                f"the newest keys of {keytab.principal}: {names}",
                about=keytab.principal,
                concerns=tuple(Concern(name, "its next submission may not log in") for name in keytab.streams),
            )
