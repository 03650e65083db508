"""The table of the doctor's checks. To add one, write its function beside its like, and its row here.

`examine` applies them to facts: one finding for each root, and what could not be decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from airflow_kstream.model.clusters.cluster_facts import ClusterFacts, NotKnown, known
from airflow_kstream.model.finding import DoctorReport, Finding, NotChecked, Severity, UndecidedCheck, by_severity
from airflow_kstream.model.known_faults import source_of
from airflow_kstream.model.streams.stream import EngineName
from airflow_kstream.policy.doctor import flink, hdfs, jobs, kerberos, state_dir, tokens, yarn
from airflow_kstream.policy.doctor.check import Check, FindingDraft

_Outcome = FindingDraft | UndecidedCheck

_SPARK, _FLINK = EngineName.SPARK, EngineName.FLINK
CHECKS: tuple[Check, ...] = (
    # Delegation tokens.
    Check(
        "hdfs-9276",
        "do new tokens reach the connections to an HA pair?",
        f"{source_of('HDFS-9276', 'Credentials.addToken')}; SPARK-11182",
        of_stream=tokens.stale_ha_tokens,
        engine=_SPARK,
    ),
    Check(
        "token-end",
        "do its tokens end while it runs?",
        "dfs.namenode.delegation.token.max-lifetime (AbstractDelegationTokenSecretManager)",
        of_stream=tokens.token_end,
    ),
    Check(
        "idle-connections",
        "do its connections close between two batches?",
        "ipc.client.connection.maxidletime (org.apache.hadoop.ipc.Client)",
        of_stream=tokens.idle_connections,
        engine=_SPARK,
    ),
    Check(
        "renewal-retry",
        "how soon is a failed round of new tokens repeated?",
        "SPARK-37787; spark.security.credentials.retryWait (HadoopDelegationTokenManager)",
        of_stream=tokens.renewal_retry,
        engine=_SPARK,
    ),
    Check(
        "uncounted-tokens",
        "does it use services whose tokens end unseen?",
        "HiveDelegationTokenProvider, HBaseDelegationTokenProvider, KafkaDelegationTokenProvider",
        of_stream=tokens.uncounted_tokens,
    ),
    Check(
        "impersonation",
        "may the connection's principal act for its proxy users?",
        "hadoop.proxyuser.* (DefaultImpersonationProvider)",
        of_cluster=tokens.impersonation,
    ),
    # YARN.
    Check(
        "yarn-3103",
        "does its ApplicationMaster keep its token when the key is rolled?",
        source_of("YARN-3103", "AMRMClientImpl.updateAMRMToken"),
        of_cluster=yarn.old_client,
        of_stream=yarn.amrm_token,
        engine=_SPARK,
    ),
    Check(
        "second-attempt",
        "does a second attempt begin with tokens that ended?",
        "YARN-11954 (ContainerLaunch), AMLauncher.setupTokens",
        of_stream=yarn.dead_second_attempt,
        engine=_SPARK,
    ),
    Check(
        "attempt-window",
        "are its attempts counted as YARN counts them?",
        "SPARK-22876; spark.yarn.am.attemptFailuresValidityInterval",
        of_stream=yarn.attempt_window,
        engine=_SPARK,
    ),
    Check(
        "no-way-to-stop",
        "can its applications be stopped?",
        "RMWebServices.initForWritableEndpoints (the default static user); ApplicationClientProtocol",
        of_cluster=yarn.no_way_to_stop,
    ),
    Check(
        "open-nodemanagers",
        "do NodeManagers know who reads logs?",
        "hadoop.http.authentication.type (ContainerLogsUtils.checkAccess)",
        of_cluster=yarn.open_nodemanagers,
    ),
    Check(
        "rm-privileges",
        "does the ResourceManager make tokens for logs and localisation?",
        "YARN-2704 (DelegationTokenRenewer.requestNewHdfsDelegationTokenIfNeeded, AppLogAggregatorImpl)",
        of_cluster=yarn.privileges,
    ),
    Check(
        "rm-proxyuser",
        "may the ResourceManager act for users at the NameNode?",
        "YARN-2704; hadoop.proxyuser.* (DefaultImpersonationProvider)",
        of_cluster=yarn.privileges_refused,
    ),
    Check(
        "log-aggregation",
        "are logs kept beyond a stream's end?",
        "yarn.log-aggregation-enable (LogHandler)",
        of_cluster=yarn.aggregation_off,
    ),
    Check(
        "rm-recovery",
        "do applications outlive a restart of the ResourceManager?",
        "yarn.resourcemanager.recovery.enabled (RMStateStore), YARN-556",
        of_cluster=yarn.resourcemanager_recovery,
    ),
    Check(
        "nm-recovery",
        "do containers outlive a restart of their NodeManager?",
        "yarn.nodemanager.recovery.enabled, YARN-1336",
        of_cluster=yarn.nodemanager_recovery,
    ),
    Check(
        "lifetime-limit",
        "does YARN end it at a limit?",
        "maximum-application-lifetime (RMAppLifetimeMonitor), YARN-3813",
        of_stream=yarn.lifetime_limit,
    ),
    Check(
        "yarn-acls", "may any user end a stream?", "yarn.acl.enable (ApplicationACLsManager)", of_cluster=yarn.rights
    ),
    Check(
        "rm-addresses",
        "does the connection name all ResourceManagers?",
        "yarn.resourcemanager.ha.rm-ids (RMWebAppFilter)",
        of_cluster=jobs.resourcemanagers_named,
    ),
    Check(
        "client-rm-addresses",
        "do jobs know all ResourceManagers?",
        "yarn.resourcemanager.ha.rm-ids (ConfiguredRMFailoverProxyProvider)",
        of_cluster=jobs.client_knows_ha,
    ),
    Check(
        "client-environment",
        "does the client's script get the variables that it reads?",
        "the script around Spark's spark-submit, as a distribution installs it",
        of_cluster=jobs.client_environment,
    ),
    # HDFS.
    Check(
        "nn-addresses",
        "does the connection name all NameNodes?",
        "dfs.ha.namenodes.* (HAUtilClient)",
        of_cluster=jobs.namenodes_named,
    ),
    Check(
        "plain-http",
        "do the servers prove who they are?",
        "yarn.http.policy, dfs.http.policy (HttpConfig); SPNEGO proves the client alone",
        of_cluster=jobs.plain_http,
    ),
    Check(
        "open-webhdfs",
        "does WebHDFS know who asks?",
        "hadoop.http.authentication.type, dfs.web.authentication.* (AuthFilter, JspHelper.getUGI)",
        of_cluster=hdfs.open_webhdfs,
    ),
    Check(
        "lease-limit",
        "how long does a dead writer's file stay open?",
        f"{source_of('HDFS-14758', 'LeaseManager')}; before it a constant of an hour (HdfsConstants)",
        of_cluster=hdfs.hard_limit,
    ),
    *hdfs.DEFECTS,
    Check(
        "hdfs-10549",
        "is the lease of a file given up whose close() failed?",
        source_of("HDFS-10549", "DFSOutputStream.closeImpl"),
        of_cluster=hdfs.leaking_client,
        of_stream=hdfs.leaking_close,
        engine=_SPARK,
    ),
    Check(
        "hdfs-14694",
        "does the client recover a file whose close() failed?",
        source_of("HDFS-14694", "dfs.client.write.recover.lease.on.close.exception"),
        of_stream=hdfs.unrecovered_close,
        engine=_SPARK,
    ),
    # state_dir.
    Check(
        "state-dir-open",
        "may others create something in state_dir?",
        "docs/security.md: a file counts by its owner, and a name is whose who comes first",
        of_cluster=state_dir.open_state_dir,
    ),
    Check(
        "state-dir-strangers",
        "did strangers leave something in state_dir?",
        "docs/security.md: only supervisors and a stream's user speak",
        of_cluster=state_dir.strangers,
    ),
    Check(
        "stream-folder-open",
        "may others write in a stream's folder?",
        "docs/security.md: in a closed folder earlier files of others count",
        of_cluster=state_dir.open_stream_folders,
    ),
    Check(
        "supervisors-stream",
        "does a stream run as a supervisor's user?",
        "docs/security.md: who may say what",
        of_cluster=state_dir.supervisors_streams,
    ),
    Check(
        "no-supervisor",
        "may the connection's principal speak for all streams?",
        "docs/security.md: who may say what",
        of_cluster=state_dir.no_supervisor,
    ),
    Check(
        "unbounded",
        "is it bounded what declarations use?",
        "docs/security.md: a connection bounds its declarations",
        of_cluster=state_dir.unbounded,
    ),
    Check(
        "supervisors-file",
        "can everybody read who speaks for all streams?",
        "docs/security.md: who may speak stands on HDFS, the same for every reader",
        of_cluster=state_dir.supervisors_file,
    ),
    Check(
        "void-orders",
        "does an order no longer count?",
        "docs/security.md: an order counts as long as its author may speak",
        of_cluster=state_dir.void_orders,
    ),
    Check(
        "long-listings",
        "is a folder too long to be looked at?",
        "dfs.ls.limit (FSDirStatAndListingOp): a page for each thousand entries",
        of_cluster=state_dir.long_listings,
    ),
    # Kerberos on this host.
    Check(
        "clock-skew", "do the clocks agree?", "clockskew of krb5.conf, RFC 4120 (1.6)", of_cluster=kerberos.clock_skew
    ),
    Check(
        "ticket-end",
        "does the connection's ticket end?",
        "RFC 4120, 2.3: renewable tickets",
        of_cluster=kerberos.ticket_end,
    ),
    Check("ticket-life", "do tickets live long enough?", "max_life of kdc.conf", of_cluster=kerberos.ticket_life),
    Check(
        "ticket-renewable",
        "does the KDC grant renewable tickets?",
        "max_renewable_life of kdc.conf, RFC 4120 (2.3)",
        of_cluster=kerberos.not_renewable,
    ),
    Check(
        "ticket-forwardable",
        "are tickets forwardable?",
        "RFC 4120, 2.6: forwardable tickets",
        of_cluster=kerberos.not_forwardable,
    ),
    Check(
        "canonical-names",
        "are tickets requested for the servers that are named?",
        "dns_canonicalize_hostname and rdns of krb5.conf",
        of_cluster=kerberos.canonical_names,
    ),
    Check(
        "keytabs",
        "do the keytabs work?",
        "the KDC's answers, see `kstream tickets check`",
        of_cluster=kerberos.keytab_troubles,
    ),
    Check("kdc", "does the KDC answer?", "the KDC's answers", of_cluster=kerberos.silent_kdc),
    Check(
        "enctypes",
        "do current libraries take the keytabs' keys?",
        "JDK-8139348 (Java 17): RC4 and 3DES are weak, allow_weak_crypto of krb5.conf",
        of_cluster=kerberos.weak_enctypes,
    ),
    # Jobs.
    Check(
        "object-store-client",
        "can a write to an object store hang for ever?",
        source_of("HTTPCLIENT-1478", "SSLConnectionSocketFactory"),
        of_stream=jobs.object_store_client,
        engine=_SPARK,
    ),
    Check(
        "speculation",
        "do slow tasks run twice?",
        "spark.speculation; Kafka and foreach sinks are at-least-once",
        of_stream=jobs.speculation,
        engine=_SPARK,
    ),
    Check(
        "staging-missing",
        "can it start new executors?",
        "Spark's staging folder (org.apache.spark.deploy.yarn.Client)",
        of_stream=jobs.staging_missing,
        engine=_SPARK,
    ),
    Check(
        "staging-left",
        "have ended applications left their files?",
        "SPARK-17340, SPARK-7705",
        of_stream=jobs.staging_left,
    ),
    Check(
        "staging-preserved",
        "does it leave its files behind?",
        "spark.yarn.preserve.staging.files (ApplicationMaster.cleanupStagingDir)",
        of_stream=jobs.staging_preserved,
        engine=_SPARK,
    ),
    # Flink's.
    Check(
        "flink-retry",
        "how soon is a failed round of new tokens repeated?",
        "security.delegation.tokens.renewal.retry.backoff (DefaultDelegationTokenManager)",
        of_stream=flink.retry_backoff,
        engine=_FLINK,
    ),
    Check(
        "flink-renewer",
        "can a lost TaskManager be replaced?",
        source_of("FLINK-28608", "Utils.createTaskExecutorContext of flink-yarn"),
        of_stream=flink.empty_renewer,
        engine=_FLINK,
    ),
    Check(
        "flink-checkpoints",
        "do its checkpoints outlive it?",
        "execution.checkpointing.externalized-checkpoint-retention (ExternalizedCheckpointRetention)",
        of_stream=flink.lost_checkpoints,
        engine=_FLINK,
    ),
    Check(
        "flink-logs",
        "can its logs be read while it runs?",
        "yarn.view.acls (YarnConfigOptions); ContainerLogsUtils.checkAccess",
        of_stream=flink.unread_logs,
        engine=_FLINK,
    ),
    Check(
        "flink-port",
        "who may stop its job?",
        "rest.bind-port, security.ssl.rest.authentication-enabled (SecurityOptions)",
        of_stream=flink.open_port,
        engine=_FLINK,
    ),
    Check(
        "flink-stop",
        "does a stop make a savepoint?",
        "security.ssl.rest.enabled (SecurityOptions); kstream.flink.Stop",
        of_stream=flink.stop_without_savepoint,
        engine=_FLINK,
    ),
    Check(
        "flink-recovery",
        "does Flink restart it beside its supervisor?",
        "high-availability.type (HighAvailabilityMode), FLINK-38112",
        of_stream=flink.own_recovery,
        engine=_FLINK,
    ),
    Check(
        "flink-shown-secrets",
        "does its JobManager show secrets?",
        "GlobalConfiguration.isSensitive; /jobmanager/config (ClusterConfigHandler)",
        of_stream=flink.shown_secrets,
        engine=_FLINK,
    ),
)


def examine(facts: ClusterFacts, checks: Sequence[Check] = CHECKS) -> DoctorReport:
    """Apply all checks. One without a finding has passed, unless a fact was missing."""
    findings: list[Finding] = []
    undecided: list[UndecidedCheck] = []
    quiet: list[Check] = []
    for check in checks:
        outcomes = list(_outcomes(check, facts))
        findings += _findings(check, [one for one in outcomes if isinstance(one, FindingDraft)])
        undecided += _merged([one for one in outcomes if isinstance(one, UndecidedCheck)])
        quiet += [] if outcomes else [check]
    idle = [check.id for check in quiet if not check.of_cluster and not facts.streams]
    passed = [check.id for check in quiet if check.id not in idle]
    return DoctorReport(
        by_severity(findings),
        tuple(undecided),
        passed=tuple(passed),
        idle=tuple(idle),
        blind=isinstance(facts.confs.namenode, NotChecked) and isinstance(facts.confs.resourcemanager, NotChecked),
    )


def _outcomes(check: Check, facts: ClusterFacts) -> Iterator[_Outcome]:
    if check.of_cluster:
        yield from _tried(check, check.of_cluster(facts))
    if check.of_stream is None:
        return
    try:
        streams = known(facts.streams)
    except NotKnown as missing:
        yield UndecidedCheck(check.id, missing.fact)
        return
    for stream in streams:
        if check.engine not in {None, stream.job.engine}:
            continue
        yield from _tried(check, check.of_stream(facts, stream), stream.name)


def _tried(check: Check, looks: Iterator[FindingDraft], *streams: str) -> Iterator[_Outcome]:
    try:
        yield from looks
    except NotKnown as missing:
        yield UndecidedCheck(check.id, missing.fact, streams)


def _findings(check: Check, found: Iterable[FindingDraft]) -> Iterator[Finding]:
    """Make one finding of all that have one root: the worst severity, and the concerns of all."""
    roots: dict[str, list[FindingDraft]] = {}
    for one in found:
        roots.setdefault(one.about, []).append(one)
    for about, same in roots.items():
        worst = min(same, key=lambda one: list(Severity).index(one.severity))
        concerns = tuple(concern for one in same for concern in one.concerns)
        yield Finding(check.id, worst.severity, worst.words, worst.fix, worst.proof, check.source, about, concerns)


def _merged(undecided: Iterable[UndecidedCheck]) -> Iterator[UndecidedCheck]:
    """Make one of all that lack the same fact for the same reason."""
    facts: dict[NotChecked, UndecidedCheck] = {}
    for one in undecided:
        before = facts.get(one.fact)
        facts[one.fact] = replace(one, streams=(*before.streams, *one.streams)) if before else one
    yield from facts.values()
