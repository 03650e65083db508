"""Checks of YARN: second attempts, restarts of its daemons, limits, logs and rights."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_kstream.model.clusters.cluster_facts import ClusterFacts, EffectiveConf, NotKnown, StreamFacts, known
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.finding import Concern, NotChecked, Severity
from airflow_kstream.model.kerberos.identity import short_name
from airflow_kstream.model.known_faults import mended
from airflow_kstream.policy.doctor.check import THIS_CLIENT, FindingDraft, draft_on, of_running

TO_ASK = (
    "On the ResourceManagers: hadoop.http.authentication.type=kerberos, and no StaticUserWebFilter in "
    "hadoop.http.filter.initializers. In the connection: a hadoop_conf_dir with yarn.resourcemanager.address and "
    "yarn.resourcemanager.principal, so that commands go over RPC"
)
TO_ASK_NODES = (
    "On the NodeManagers: hadoop.http.authentication.type=kerberos with its principal and keytab, and no "
    "StaticUserWebFilter in hadoop.http.filter.initializers"
)
OPEN_LOGS = (
    "everybody on the network reads the logs of running containers or, behind the static user of an older Hadoop, "
    "nobody does"
)
_PRIVILEGES = "yarn.resourcemanager.proxy-user-privileges.enabled"
_ATTEMPTS, _MOST_ATTEMPTS = "yarn.resourcemanager.am.max-attempts", "yarn.resourcemanager.am.global.max-attempts"
_OWN_ATTEMPTS, _WINDOW = "spark.yarn.maxAppAttempts", "spark.yarn.am.attemptFailuresValidityInterval"
_ROLLING = "yarn.resourcemanager.am-rm-tokens.master-key-rolling-interval-secs"
_AGGREGATION = "yarn.log-aggregation-enable"
_RECOVERY = "yarn.resourcemanager.recovery.enabled"
_WORK_PRESERVING = "yarn.resourcemanager.work-preserving-recovery.enabled"
_NM_RECOVERY = "yarn.nodemanager.recovery.enabled"


def attempts_of(facts: ClusterFacts, stream: StreamFacts) -> int:
    """Return how many attempts YARN gives its ApplicationMaster (RMAppImpl, ApplicationSubmissionContext)."""
    conf = known(facts.confs.resourcemanager)
    own = stream.setting(_OWN_ATTEMPTS)
    usual = _number(conf, _ATTEMPTS)
    most = int(conf.get(_MOST_ATTEMPTS) or usual)
    return min(int(own), most) if own and own.isdecimal() and int(own) > 0 else min(usual, most)


def dead_second_attempt(facts: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find jobs without a keytab whose second attempt begins with the tokens of the first."""
    if not stream.runs or stream.credentials.renews_itself:
        return
    attempts = attempts_of(facts, stream)
    if attempts > 1:
        yield draft_on(
            stream,
            Severity.WARNING,
            "YARN starts a further attempt with the tokens of the submission, also when they have ended: it fails, and "
            "with it the application",
            f"{_OWN_ATTEMPTS}=1, and a supervisor that submits again",
            _said_of_attempts(facts, stream),
            "its second attempt will fail",
            stream.credentials.launch_tokens_end,
        )


def attempt_window(facts: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find jobs whose failures are counted for ever, or whose count Spark and YARN disagree about (SPARK-22876)."""
    if not stream.runs or attempts_of(facts, stream) <= 1:
        return
    window = stream.setting(_WINDOW)
    if window is None:
        yield FindingDraft(
            Severity.WARNING,
            "failures of its ApplicationMaster count for as long as the application lives, so after months the next "
            "one is the last",
            f"{_OWN_ATTEMPTS}=1 and a supervisor, or {_WINDOW}=1h",
            f"{_said_of_attempts(facts, stream)}; {stream.job.conf_from} sets no {_WINDOW}",
            "unlimited",
            (Concern(stream.name, f"{attempts_of(facts, stream)} failures end it, however far apart"),),
        )
    else:
        yield FindingDraft(
            Severity.NOTE,
            "an ApplicationMaster whose number is the last allowed one unregisters and deletes its staging folder when "
            "it ends in order, although YARN would grant another",
            f"{_OWN_ATTEMPTS}=1, and a supervisor that submits again",
            f"{_WINDOW}={window} ({stream.job.conf_from})",
            "window",
            (Concern(stream.name, "an orderly end of its last attempt is final"),),
        )


def amrm_token(facts: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find clients that lose their ApplicationMaster's token when the ResourceManager rolls its key (YARN-3103)."""
    if not stream.runs:
        return
    hadoop = stream.hadoop
    fixed = mended(hadoop, "YARN-3103")
    if fixed is None:
        raise NotKnown(NotChecked("YARN-3103", f"Hadoop {hadoop} is a distribution's, which may carry the fix"))
    if not fixed:
        conf = known(facts.confs.resourcemanager)
        rolls = conf.duration(_ROLLING, "s")
        yield draft_on(
            stream,
            Severity.ERROR,
            "once the ResourceManager has rolled the key of its tokens, an ApplicationMaster that connects again fails "
            "with Invalid AMRMToken: at a failover or restart of the ResourceManager at the latest",
            "a client of Hadoop 2.6.1, 2.7.0 or later",
            f"{conf.said(_ROLLING)}; {stream.name} has Hadoop {hadoop}",
            "its next reconnect may end it",
            stream.started + rolls if stream.started else None,
        )


def old_client(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find a client on this host whose jobs would do the same. A host without a client submits nothing."""
    if isinstance(facts.client, NotChecked):
        return
    hadoop = known(facts.client.hadoop)
    if mended(hadoop, "YARN-3103") is False:
        yield FindingDraft(
            Severity.WARNING,
            "what is submitted from this host may lose its ApplicationMaster at a failover of the ResourceManager",
            "a client of Hadoop 2.6.1, 2.7.0 or later",
            f"{facts.client.binary} has Hadoop {hadoop}",
            THIS_CLIENT,
        )


def no_way_to_stop(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find a ResourceManager that lets nobody stop an application: planned restarts, stops and kills fail there."""
    way = known(facts.stops)
    if not way.works:
        yield FindingDraft(
            Severity.ERROR,
            "a stream that does not obey its marker can't be stopped, so neither its planned restart nor a stop works",
            TO_ASK,
            way.words,
            concerns=of_running(facts, "nobody can kill its application"),
        )


def open_nodemanagers(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find NodeManagers that do not know who asks, which is whom they show a container's log by."""
    found = known(facts.open_webs.node)
    if found:
        yield FindingDraft(
            Severity.WARNING,
            f"{OPEN_LOGS}, so that what hangs stays unexplained",
            TO_ASK_NODES,
            f"{found.server} wants no proof of who asks",
            concerns=of_running(facts, "its running containers' logs are shown to nobody or to everybody"),
        )


def privileges(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find ResourceManagers that make no tokens of their own, so that logs and second attempts depend on old ones."""
    conf = known(facts.confs.resourcemanager)
    if conf.is_true(_PRIVILEGES):
        return
    fix = "; ".join([f"{_PRIVILEGES}=true in the ResourceManager's yarn-site.xml", *_missing_lines(facts)])
    yield FindingDraft(
        Severity.WARNING,
        "NodeManagers aggregate logs and localise second attempts with the tokens of the submission: after their end "
        "the logs are deleted unread, and an attempt can't start",
        fix,
        conf.said(_PRIVILEGES),
        concerns=_after_tokens(facts),
    )


def privileges_refused(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find ResourceManagers that ask the NameNode for tokens in users' names, and are refused."""
    conf, namenode = known(facts.confs.resourcemanager), known(facts.confs.namenode)
    if not conf.is_true(_PRIVILEGES):
        return
    hosts, groups = proxy_lines(facts)
    users = groups.replace(".groups", ".users")
    if not namenode.get(hosts) or not (namenode.get(groups) or namenode.get(users)):
        yield FindingDraft(
            Severity.ERROR,
            "the ResourceManager asks the NameNode for tokens in users' names and is refused: logs of applications "
            "that outlive their tokens are lost as without the privileges",
            "; ".join(_on_namenodes([line for line in (hosts, groups) if not namenode.get(line)])),
            namenode.said(hosts, groups),
            concerns=_after_tokens(facts),
        )
    elif namenode.get(hosts) != "*" or "*" not in {namenode.get(groups), namenode.get(users)}:
        said = namenode.said(hosts, groups)
        why = f"{said}, and only the NameNode knows whether that includes its address and all users"
        raise NotKnown(
            NotChecked("whether the ResourceManager may act for users", why, "the ResourceManager's own keytab")
        )


def proxy_lines(facts: ClusterFacts) -> tuple[str, str]:
    """Return the properties by which the NameNode lets the ResourceManager act for users, by its short name.

    Raises NotKnown: when the NameNode's rules make no name of its principal, or can't be read.
    """
    namenode = known(facts.confs.namenode)
    principal = known(facts.confs.resourcemanager).need("yarn.resourcemanager.principal")
    realm = principal.rpartition("@")[2]
    rules = namenode.get("hadoop.security.auth_to_local") or "DEFAULT"
    try:
        user = short_name(rules, principal.replace("_HOST", "host"), realm)
    except InvalidInput as error:
        raise NotKnown(NotChecked("the ResourceManager's short name", error.message)) from None
    if user is None:
        raise NotKnown(NotChecked("the ResourceManager's short name", f"{namenode.server} has no rule for {principal}"))
    return f"hadoop.proxyuser.{user}.hosts", f"hadoop.proxyuser.{user}.groups"


def aggregation_off(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find clusters that keep no logs of ended applications."""
    conf = known(facts.confs.nodemanager)
    if not conf.is_true(_AGGREGATION):
        yield FindingDraft(
            Severity.WARNING,
            "logs stay on the nodes and are deleted hours after a stream's end: nobody can read why it ended",
            f"{_AGGREGATION}=true in the NodeManagers' yarn-site.xml",
            conf.said(_AGGREGATION),
        )


def resourcemanager_recovery(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find ResourceManagers whose restart or failover ends applications."""
    conf = known(facts.confs.resourcemanager)
    if not conf.is_true(_RECOVERY):
        yield FindingDraft(
            Severity.ERROR,
            "a restart of the ResourceManager kills all streams, and forgets that they ever ran",
            f"{_RECOVERY}=true, with yarn.resourcemanager.store.class",
            conf.said(_RECOVERY),
            "recovery",
        )
    elif not conf.is_true(_WORK_PRESERVING):
        yield FindingDraft(
            Severity.WARNING,
            "a restart or failover of the ResourceManager ends all containers: it costs each stream an attempt",
            f"{_WORK_PRESERVING}=true",
            conf.said(_WORK_PRESERVING),
            "work-preserving",
        )


def nodemanager_recovery(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find NodeManagers whose restart ends their containers."""
    conf = known(facts.confs.nodemanager)
    if not conf.is_true(_NM_RECOVERY):
        yield FindingDraft(
            Severity.WARNING,
            "a restart of a NodeManager, as for an upgrade, ends the containers on it: drivers and executors",
            f"{_NM_RECOVERY}=true and yarn.nodemanager.recovery.dir, with a fixed port in yarn.nodemanager.address",
            conf.said(_NM_RECOVERY),
        )


def lifetime_limit(_: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find applications that YARN ends at a limit of its queue, or of its submission."""
    if stream.runs and stream.limit_ends:
        yield draft_on(
            stream,
            Severity.NOTE if stream.restarted else Severity.WARNING,
            "YARN kills applications at a lifetime limit",
            "yarn.scheduler.capacity.<queue>.maximum-application-lifetime=-1, and default-application-lifetime=-1",
            f"the ResourceManager's timeouts of {known(stream.running)}",
            "YARN kills it",
            stream.limit_ends,
        )


def rights(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find clusters where every user may end every stream, or where the watcher sees none."""
    conf = known(facts.confs.resourcemanager)
    if not conf.is_true("yarn.acl.enable"):
        yield FindingDraft(
            Severity.WARNING,
            "every user of the cluster may view and kill every stream",
            "yarn.acl.enable=true, with yarn.admin.acl and acl_administer_queue of the root queue",
            conf.said("yarn.acl.enable"),
        )


def _missing_lines(facts: ClusterFacts) -> list[str]:
    """Return the lines that the NameNodes need as well: those that they lack, as far as they tell."""
    try:
        namenode, lines = known(facts.confs.namenode), proxy_lines(facts)
        return _on_namenodes([line for line in lines if not namenode.get(line)])
    except NotKnown:
        # What the ResourceManager said is proof enough.
        return _on_namenodes(["hadoop.proxyuser.<user>.hosts", "hadoop.proxyuser.<user>.groups"])


def _after_tokens(facts: ClusterFacts) -> tuple[Concern, ...]:
    streams = () if isinstance(facts.streams, NotChecked) else facts.streams
    running = (stream for stream in streams if isinstance(stream.running, str) and stream.running)
    return tuple(
        Concern(stream.name, _lost(facts, stream), stream.credentials.launch_tokens_end)
        for stream in running
        if stream.credentials.launch_tokens_end
    )


def _lost(facts: ClusterFacts, stream: StreamFacts) -> str:
    if stream.credentials.renews_itself and _may_retry(facts, stream):
        return "its second attempt will fail, and its logs are lost if it ends,"
    return "its logs are lost if it ends"


def _may_retry(facts: ClusterFacts, stream: StreamFacts) -> bool:
    try:
        return attempts_of(facts, stream) > 1
    except NotKnown:
        # The check of attempts says so.
        return False


def _on_namenodes(lines: list[str]) -> list[str]:
    return [f"{line}=* in the NameNodes' core-site.xml" for line in lines]


def _said_of_attempts(facts: ClusterFacts, stream: StreamFacts) -> str:
    own = stream.setting(_OWN_ATTEMPTS)
    return (
        f"{_OWN_ATTEMPTS}={own} ({stream.job.conf_from})" if own else known(facts.confs.resourcemanager).said(_ATTEMPTS)
    )


def _number(conf: EffectiveConf, key: str) -> int:
    value = conf.need(key)
    if not value.isdecimal():
        raise NotKnown(NotChecked(key, f"{conf.server} says {value!r}, which is not a number"))
    return int(value)
