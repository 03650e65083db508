"""Checks of HDFS: lease limits, and defects of leases and their recovery by version."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from airflow_kstream.model.clusters.cluster_facts import ClusterFacts, NotKnown, OpenWeb, StreamFacts, known
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.finding import Concern, NotChecked, Severity
from airflow_kstream.model.known_faults import KNOWN_FAULTS, HadoopVersion, mended
from airflow_kstream.policy.doctor.check import THIS_CLIENT, Check, FindingDraft, draft_on

TO_ASK = (
    "On the NameNodes: hadoop.http.authentication.type=kerberos with its principal and keytab, and no "
    "StaticUserWebFilter in hadoop.http.filter.initializers; where WebHDFS has a filter of its own (older Hadoop) also "
    "dfs.web.authentication.kerberos.principal and .keytab"
)
_HARD_LIMIT = "dfs.namenode.lease-hard-limit-sec"
_LONG = timedelta(hours=1)
_RECOVER = "dfs.client.write.recover.lease.on.close.exception"


@dataclass(frozen=True)
class _Defect:
    """A fault of the table, and what it does. `coded` is whether only erasure-coded files have it."""

    jira: str
    question: str
    words: str
    fix: str
    severity: Severity = Severity.WARNING
    coded: bool = False

    @property
    def source(self) -> str:
        """Return where it is known from, with the releases that have the fix."""
        return f"{self.jira}, {KNOWN_FAULTS[self.jira].where}"


_OF_NAMENODES = (
    _Defect(
        "HDFS-10763",
        "can an open file lose its lease?",
        "a file can lose its lease and stay open: no recovery closes it",
        "copy such a file and delete it, or restart the NameNode; Hadoop 2.7.4, 2.8.0 or later",
    ),
    _Defect(
        "HDFS-11576",
        "does a repeated recoverLease begin again?",
        "each repeated recoverLease begins the recovery again, so that a loop of them may never end",
        "repeat it once a minute at most, and poll whether the file is closed; Hadoop 2.9.1, 3.0.0 or later",
    ),
    _Defect(
        "HDFS-11817",
        "does a faulty DataNode make a recovery fail?",
        "a faulty DataNode in a block's list makes its recovery fail, and its lease leak",
        "Hadoop 2.8.2, 2.9.0 or later",
    ),
    _Defect(
        "HDFS-17430",
        "does a recovery wait for a host without power?",
        "a recovery may wait for many minutes for a DataNode whose host lost its power",
        "recover leases after the DataNode counts as dead; Hadoop 3.5.0 or later",
        Severity.NOTE,
    ),
    _Defect(
        "HDFS-17861",
        "can mass recovery crash the standby NameNode?",
        "recovering many leases while DataNodes are dead or overloaded can crash the standby NameNode",
        "`kstream leases recover` holds back while DataNodes are dead or stale, a loop of `hdfs debug recoverLease` "
        "does not; Hadoop 3.5.0 or later",
    ),
    _Defect(
        "HDFS-17150",
        "can every erasure-coded file be recovered?",
        "an erasure-coded file with fewer internal blocks than data units can't be recovered",
        "Hadoop 3.4.0 or later",
        coded=True,
    ),
)
_OF_DATANODES = (
    _Defect(
        "HDFS-12070",
        "does one failing replica end a recovery?",
        "one replica that fails ends the recovery of the whole block",
        "Hadoop 2.8.4, 2.9.1, 3.0.2 or later",
    ),
    _Defect(
        "HDFS-17358",
        "are erasure-coded groups with empty blocks recovered?",
        "an erasure-coded block group with empty or missing internal blocks is recovered without end",
        "Hadoop 3.5.0 or later",
        coded=True,
    ),
)
_HDFS_10549 = _Defect(
    "HDFS-10549",
    "is the lease of a file given up whose close() failed?",
    "a close() that is interrupted leaves the file open, and its process renews the lease for as long as it lives",
    "end a process whose close() failed; a client of Hadoop 2.8.0 or later",
)


def open_words(found: Collection[OpenWeb]) -> str:
    """Return what it means that the WebHDFS of these NameNodes wants no proof of who asks."""
    names = ", ".join(web.server for web in found)
    user = next((web.user for web in found if web.user), "")
    if user:
        return f"WebHDFS of {names} wants no proof of who asks: everybody is {user} there, and so is this connection"
    return (
        f"WebHDFS of {names} believes any name in a URL (user.name=hdfs is the superuser), and refuses this "
        "connection, which gives none and proves its own"
    )


def open_webhdfs(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find NameNodes that believe everybody: the owner of a file, by which claims and orders count, proves nothing."""
    found = known(facts.open_webs.webhdfs)
    if found:
        yield FindingDraft(
            Severity.ERROR,
            "everybody on the network reads and writes HDFS under another's name, so the owner of a claim or an order "
            "proves nothing, or this connection reaches no state_dir; what runs goes on, for jobs use RPC",
            TO_ASK,
            open_words(found),
        )


def hard_limit(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find NameNodes that leave the files of dead writers open for an hour or more."""
    conf, version = known(facts.confs.namenode), known(facts.hdfs.namenode_version)
    if conf.get(_HARD_LIMIT) is not None:
        limit, proof = conf.duration(_HARD_LIMIT, "s"), conf.said(_HARD_LIMIT)
        fix = f"{_HARD_LIMIT}=1200, or `kstream leases recover`"
    else:
        limit, proof = _constant_limit(version), f"{conf.server} is Hadoop {version}: the limit is a constant"
        fix = "`kstream leases recover`; Hadoop 2.10.1, 3.1.4, 3.2.2, 3.3.0 or later have 20m and a setting"
    if limit >= _LONG:
        words = f"a file whose writer died stays open for {format_duration(limit)}: readers miss its end"
        yield FindingDraft(Severity.WARNING, words, fix, proof)


def _constant_limit(version: HadoopVersion) -> timedelta:
    has_setting = mended(version, "HDFS-14758")
    if has_setting is not False:
        raise NotKnown(NotChecked(_HARD_LIMIT, f"Hadoop {version} does not tell it, and may have another limit"))
    # Before it the limit is a constant of an hour (HdfsConstants.LEASE_HARDLIMIT_PERIOD).
    return _LONG


def _of_namenode(defect: _Defect, facts: ClusterFacts) -> Iterator[FindingDraft]:
    version = known(facts.hdfs.namenode_version)
    if _concerns(defect, facts, version):
        yield _found(defect, f"the NameNode is Hadoop {version}")


def _of_datanodes(defect: _Defect, facts: ClusterFacts) -> Iterator[FindingDraft]:
    having = [version for version in known(facts.hdfs.datanodes) if _concerns(defect, facts, version)]
    if having:
        yield _found(defect, f"DataNodes have Hadoop {', '.join(map(str, having))}")


def leaking_close(_: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find clients that renew the lease of a file which they failed to close."""
    if stream.runs:
        hadoop = stream.hadoop
        if _lacks(_HDFS_10549, hadoop):
            concern = Concern(stream.name, "a close() that fails leaves its file open")
            yield _found(_HDFS_10549, f"{stream.name} has Hadoop {hadoop}", concern)


def leaking_client(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find a client on this host whose jobs would do the same. A host without a client submits nothing."""
    if isinstance(facts.client, NotChecked):
        return
    hadoop = known(facts.client.hadoop)
    if mended(hadoop, _HDFS_10549.jira) is False:
        yield replace(_found(_HDFS_10549, f"{facts.client.binary} has Hadoop {hadoop}"), about=THIS_CLIENT)


def unrecovered_close(_: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find clients that could recover the lease of a file which they failed to close, and don't."""
    if not stream.runs:
        return
    hadoop, conf = stream.hadoop, stream.hadoop_conf
    if mended(hadoop, "HDFS-14694") and (conf.get(_RECOVER) is None or not conf.is_true(_RECOVER)):
        yield draft_on(
            stream,
            Severity.NOTE,
            "a file whose close() failed stays open as long as its process writes others: the client can recover its "
            "lease at once, and is not told to",
            f"spark.hadoop.{_RECOVER}=true",
            f"{conf.said(_RECOVER)}; Hadoop {hadoop}'s own value is false",
            "a close() that fails leaves its file open",
        )


def _concerns(defect: _Defect, facts: ClusterFacts, version: HadoopVersion) -> bool:
    return _lacks(defect, version) and (not defect.coded or known(facts.hdfs.coded_blocks) > 0)


def _lacks(defect: _Defect, version: HadoopVersion) -> bool:
    has = mended(version, defect.jira)
    if has is None:
        raise NotKnown(NotChecked(defect.jira, f"Hadoop {version} is a distribution's, which may carry the fix"))
    return not has


def _found(defect: _Defect, proof: str, *concerns: Concern) -> FindingDraft:
    return FindingDraft(defect.severity, defect.words, defect.fix, proof, concerns=concerns)


def _rows(
    defects: tuple[_Defect, ...], look: Callable[[_Defect, ClusterFacts], Iterator[FindingDraft]]
) -> Iterator[Check]:
    for defect in defects:
        yield Check(defect.jira.lower(), defect.question, defect.source, of_cluster=partial(look, defect))


DEFECTS = (*_rows(_OF_NAMENODES, _of_namenode), *_rows(_OF_DATANODES, _of_datanodes))
