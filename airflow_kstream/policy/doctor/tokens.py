"""Checks of delegation tokens: how long they live, who replaces them, and what comes of clients that don't notice."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from airflow_kstream.model.clusters.cluster_facts import ClusterFacts, NotKnown, StreamFacts, known
from airflow_kstream.model.durations import format_duration, parse_duration
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.finding import Concern, NotChecked, Severity
from airflow_kstream.model.kerberos.tokens import USUAL_RENEWAL_RATIO
from airflow_kstream.model.known_faults import mended
from airflow_kstream.policy.doctor.check import FindingDraft, draft_on

_NO_CACHE = "fs.hdfs.impl.disable.cache"
_IDLE = "ipc.client.connection.maxidletime"
_RETRY, _RATIO = "spark.security.credentials.retryWait", "spark.security.credentials.renewalRatio"
# Spark's own pause after a failed round (HadoopDelegationTokenManager); SPARK-37787 names the shorter one.
_RETRY_BY_DEFAULT, _RETRY_ADVISED = timedelta(hours=1), timedelta(minutes=10)


def stale_ha_tokens(facts: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find jobs that get new tokens and go on with the first ones: HDFS HA, and a client without HDFS-9276."""
    if not (stream.runs and (stream.credentials.renews_itself or stream.credentials.refreshed)):
        return
    namenode = known(facts.confs.namenode)
    members = f"dfs.ha.namenodes.{facts.named.nameservice}"
    if "," not in (namenode.get(members) or "") or stream.setting(f"spark.hadoop.{_NO_CACHE}") == "true":
        return
    hadoop = stream.hadoop
    fixed = mended(hadoop, "HDFS-9276")
    if fixed is None:
        raise NotKnown(NotChecked("HDFS-9276", f"Hadoop {hadoop} is a distribution's, which may carry the fix"))
    if not fixed:
        interval = known(facts.hdfs.lifetimes).renew_interval
        since = stream.started + interval if stream.started else None
        yield draft_on(
            stream,
            Severity.ERROR,
            "new tokens don't reach the connections to the NameNodes: the job fails with InvalidToken when its first "
            "tokens end, although it has newer ones",
            f"spark.hadoop.{_NO_CACHE}=true, or a client of Hadoop 2.8.2 or later",
            f"{namenode.said(members)}; {stream.name} has Hadoop {hadoop}",
            "it fails with InvalidToken",
            since,
        )


def token_end(facts: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find jobs whose tokens end and are not replaced: a note if a supervisor restarts them before."""
    if not stream.runs or stream.replaced:
        return
    if stream.credentials.tokens_end is None:
        raise NotKnown(NotChecked("the end of its tokens", "its claim doesn't tell when they were issued"))
    past = stream.credentials.tokens_end <= facts.now
    severity = Severity.ERROR if past else Severity.NOTE if stream.restarted else Severity.WARNING
    yield draft_on(
        stream,
        severity,
        "jobs without a keytab live on the tokens of their submission, which end at their max-lifetime: they fail at "
        "the first connection that they open after that, however healthy they look",
        "credentials: {mode: keytab}, or refresh: true",
        f"a token of this cluster lives for {format_duration(known(facts.hdfs.lifetimes).max_lifetime)} (measured)",
        _of_its_end(stream, past=past),
        stream.credentials.tokens_end,
    )


def _of_its_end(stream: StreamFacts, *, past: bool) -> str:
    if stream.held:
        return f"nobody restarts it while it is held, and `kstream streams start {stream.name}` lifts that: it fails"
    if not stream.supervised:
        return "it fails"
    return (
        "nobody restarted it in time: it fails" if past else "its supervisor restarts it before; without one it fails"
    )


def idle_connections(_: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find jobs that have no grace after their tokens' end, because their connections close between two batches."""
    if not stream.runs or stream.replaced or stream.pause is None:
        return
    conf = stream.hadoop_conf
    idle = conf.duration(_IDLE)
    if stream.pause <= idle:
        return
    pause, closed = format_duration(stream.pause), format_duration(idle)
    yield draft_on(
        stream,
        Severity.NOTE if stream.restarted else Severity.WARNING,
        "connections that are idle for longer than this are closed, and the next batch needs a token to open them "
        "again: the job fails with the first batch after its tokens' end, without any failover",
        "restart.plan_ratio leaves room for a late restart; credentials: {mode: keytab} or refresh: true needs none",
        conf.said(_IDLE),
        f"{pause} between its batches, {closed} until they close: it fails",
        stream.credentials.tokens_end,
    )


def renewal_retry(facts: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find jobs with a keytab that wait too long after a failed round of tokens (SPARK-37787 and its like)."""
    if not (stream.runs and stream.credentials.renews_itself):
        return
    told = stream.setting(_RETRY)
    wait = _spark_duration(_RETRY, told) if told else _RETRY_BY_DEFAULT
    if wait <= _RETRY_ADVISED:
        return
    ratio = float(stream.setting(_RATIO) or USUAL_RENEWAL_RATIO)
    left = known(facts.hdfs.lifetimes).renew_interval * (1 - ratio)
    tries = left // wait
    few = f"{tries} tries" if tries != 1 else "one try"
    yield draft_on(
        stream,
        Severity.WARNING if tries < 3 else Severity.NOTE,
        "after a failed round of new tokens the driver waits for long, with the end of the old ones near",
        f"{_RETRY}=10m",
        f"{_RETRY} is {told} ({stream.job.conf_from})"
        if told
        else f"{stream.job.conf_from} sets no {_RETRY}: Spark waits 1h",
        f"a KDC or NameNode that is away at its round leaves it {few}",
    )


def uncounted_tokens(_: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find jobs that use services whose tokens may end before HDFS's, which nobody can tell."""
    services = ", ".join(stream.credentials.uncounted)
    if stream.runs and services:
        yield draft_on(
            stream,
            Severity.WARNING,
            "tokens of other services may end before those of HDFS, and no server tells when",
            "restart: {max_age: 23h}, or credentials: {mode: keytab}",
            f"{stream.job.conf_from} names {services}",
            f"the end of its token of {services} is not known",
        )


def impersonation(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find users for whom the watching principal may not act: their streams can't be submitted, seen or stopped."""
    for answer in known(facts.kerberos.impersonations):
        if answer.refusal:
            user = known(facts.user) or "<user>"
            theirs = [stream.name for stream in known(facts.streams) if stream.proxied == answer.user]
            yield FindingDraft(
                Severity.ERROR,
                f"{answer.server} lets nobody act for {answer.user} here: the next submission is refused",
                f"hadoop.proxyuser.{user}.hosts and hadoop.proxyuser.{user}.groups (or .users) in core-site.xml",
                f"{answer.server} answered: {answer.refusal}",
                about=f"{answer.user}",
                concerns=tuple(Concern(name, "its next submission is refused") for name in theirs),
            )


def _spark_duration(key: str, text: str) -> timedelta:
    """Read a duration as Spark does: seconds without a unit. Raises NotKnown: when it is none."""
    try:
        return timedelta(seconds=int(text)) if text.isdecimal() else parse_duration(text.replace("min", "m"))
    except InvalidInput:
        raise NotKnown(NotChecked(key, f"{text!r} is not a duration")) from None
