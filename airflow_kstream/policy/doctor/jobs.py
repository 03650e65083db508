"""Checks of jobs, their clients and their files: what a stream was submitted with."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from airflow_kstream.model.clusters.cluster import REFUSED
from airflow_kstream.model.clusters.cluster_facts import ClusterFacts, EffectiveConf, NotKnown, StreamFacts, known
from airflow_kstream.model.clusters.hdfs_path import as_word
from airflow_kstream.model.finding import Concern, NotChecked, Severity
from airflow_kstream.policy.doctor.check import FindingDraft, draft_on

_SPECULATION, _PRESERVE = "spark.speculation", "spark.yarn.preserve.staging.files"
_HTTPCLIENT = "httpclient"
# HTTPCLIENT-1478: from 4.3.6 on the socket's timeout is set before the TLS handshake.
_FIRST_WITH_TIMEOUT = (4, 3, 6)
_RM_HA = "yarn.resourcemanager.ha.enabled"
_HTTP_POLICY = "yarn.http.policy"
_RM_IDS = "yarn.resourcemanager.ha.rm-ids"


def object_store_client(_: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find HTTP clients whose TLS handshake waits for ever, in jobs that keep checkpoints in an object store."""
    if not stream.runs or not stream.job.object_stores:
        return
    driver = known(stream.job.driver)
    version = driver.jars.get(_HTTPCLIENT)
    if version is None:
        why = f"no jar on the class path of {driver.application} names it"
        raise NotKnown(NotChecked("the version of httpclient", why))
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    if numbers < _FIRST_WITH_TIMEOUT:
        speculates = stream.setting(_SPECULATION) == "true"
        yield draft_on(
            stream,
            Severity.WARNING,
            "a task that writes to the object store may wait for ever in a TLS handshake, and its stream with it",
            "httpclient 4.3.6 or later in spark.driver.extraClassPath and spark.executor.extraClassPath"
            + ("" if speculates else "; until then spark.speculation=true"),
            f"httpclient-{version}.jar on the class path of {driver.application}",
            f"it uses {', '.join(stream.job.object_stores)}, and may hang at any batch",
        )


def speculation(_: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find jobs that run a slow task twice: a sink without a commit protocol then writes its rows twice."""
    if stream.runs and (stream.setting(_SPECULATION) or "").lower() == "true":
        yield draft_on(
            stream,
            Severity.NOTE,
            "slow tasks run twice at the same time: sinks of Kafka, foreach and foreachBatch get rows twice",
            f"{_SPECULATION}=false, or a sink that is idempotent by batch id",
            f"{_SPECULATION}=true ({stream.job.conf_from})",
            "a slow task's rows may be written twice",
        )


def staging_missing(_: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find running applications whose staging folder is gone: no container can start any longer."""
    if stream.runs and not known(stream.staging.staged):
        yield draft_on(
            stream,
            Severity.ERROR,
            "somebody deleted the staging folders of running applications: no new executor can start, so the loss of "
            "one is final",
            "exempt /user/*/.sparkStaging from clean-up jobs; restart the stream",
            f"HDFS has no folder {known(stream.running)} in the .sparkStaging of {stream.user}",
            "it can't replace an executor",
        )


def staging_left(_: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find staging folders of ended applications: with a keytab, each holds a copy of it."""
    known(stream.staging.staged)
    if stream.staging.unused_staging:
        number = len(stream.staging.unused_staging)
        yield draft_on(
            stream,
            Severity.WARNING if stream.credentials.renews_itself else Severity.NOTE,
            "staging folders of ended applications are left, and with a keytab each has a copy of it",
            f"hdfs dfs -rm -r {as_word(stream.staging.unused_staging[0])}",
            f"HDFS has {', '.join(stream.staging.unused_staging[:3])}{' and more' if number > 3 else ''}",
            f"{number} of its ended applications left one",
        )


def staging_preserved(_: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find jobs whose conf leaves their staging folder behind."""
    if (stream.setting(_PRESERVE) or "").lower() == "true":
        yield draft_on(
            stream,
            Severity.WARNING if stream.credentials.renews_itself else Severity.NOTE,
            "every end leaves the staging folder behind, with a copy of the keytab if there is one",
            f"{_PRESERVE}=false",
            f"{_PRESERVE}=true ({stream.job.conf_from})",
            "its end leaves its files behind",
        )


def resourcemanagers_named(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find connections that name fewer ResourceManagers than there are: after a failover they see none."""
    conf = known(facts.confs.resourcemanager)
    ids = _resourcemanager_ids(conf)
    if len(ids) > len(facts.named.resourcemanagers):
        named = ", ".join(facts.named.resourcemanagers)
        yield FindingDraft(
            Severity.ERROR,
            f"the connection names {named}, and the cluster has {len(ids)} ResourceManagers: after a failover no "
            "stream is watched or restarted",
            "resourcemanagers of the connection: the web addresses of all of them",
            conf.said(_RM_IDS),
            about="connection",
        )


def namenodes_named(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find connections that name fewer NameNodes than there are."""
    conf, key = known(facts.confs.namenode), f"dfs.ha.namenodes.{facts.named.nameservice}"
    if len(_ids(conf.get(key))) > len(facts.named.namenodes):
        named = ", ".join(facts.named.namenodes)
        yield FindingDraft(
            Severity.ERROR,
            f"the connection names {named}, and the nameservice has more NameNodes: after a failover none of them is "
            "the active one",
            "namenodes of the connection: the web addresses of all of them",
            conf.said(key),
        )


def plain_http(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find servers that prove nothing of what they say: over plain http, anybody on the way can say it for them."""
    plain = [url for url in (*facts.named.resourcemanagers, *facts.named.namenodes) if url.startswith("http:")]
    nodes = facts.confs.nodemanager
    if plain:
        # A NodeManager that doesn't tell its configuration hides no other server.
        policy = nodes.get(_HTTP_POLICY) if isinstance(nodes, EffectiveConf) else None
    else:
        policy = known(nodes).need(_HTTP_POLICY)
    if (policy or "").upper() == "HTTP_ONLY":
        plain.append("the NodeManagers")
    if plain:
        yield FindingDraft(
            Severity.NOTE,
            f"{', '.join(plain)} are believed as the network delivers them: who can change what it delivers can let "
            "a running stream look dead, so that a second one is started beside it, and reads what WebHDFS carries",
            "yarn.http.policy and dfs.http.policy HTTPS_ONLY, https:// in the connection's addresses, and its tls",
            nodes.said(_HTTP_POLICY) if isinstance(nodes, EffectiveConf) else "the addresses of the connection",
        )


def client_knows_ha(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find conf folders that know one ResourceManager of several: jobs take it with them."""
    conf = known(facts.confs.resourcemanager)
    ids = _resourcemanager_ids(conf)
    if len(ids) < 2:
        return
    client = known(known(facts.client).conf)
    if len(_ids(client.get(_RM_IDS))) < len(ids):
        running = [stream for stream in known(facts.streams) if stream.runs and stream.supervised]
        yield FindingDraft(
            Severity.ERROR,
            "jobs take the submitter's conf folder with them: their ApplicationMaster knows one ResourceManager, and "
            "ends when another one becomes active",
            f"{_RM_IDS} and the addresses of each in yarn-site.xml of the connection's hadoop_conf_dir",
            f"{conf.said(_RM_IDS)}; {client.said(_RM_IDS)}",
            concerns=tuple(Concern(stream.name, "a failover of the ResourceManager ends it") for stream in running),
        )


def client_environment(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find variables that the client's own script reads and that a submission does not hand on."""
    client = known(facts.client)
    for name, set_here in known(client.missing).items():
        if name in REFUSED:
            continue
        value = {"inherit": name} if set_here else "..."
        yield FindingDraft(
            Severity.WARNING if set_here else Severity.NOTE,
            f"{name} is set on this host, and no submission hands it on: the client's script does without it, and may "
            "start another Spark than in a shell"
            if set_here
            else f"the client's script reads {name}, which nothing sets: it does as it does without it",
            f"client_environment of the connection: {json.dumps({name: value})}",
            f"{client.binary} reads ${name}",
            about=name,
        )


def _resourcemanager_ids(conf: EffectiveConf) -> list[str]:
    """Return the names of all ResourceManagers if there are several; none if there is one, which has no name."""
    return _ids(conf.get(_RM_IDS)) if conf.get(_RM_HA) is not None and conf.is_true(_RM_HA) else []


def _ids(text: str | None) -> list[str]:
    return [one.strip() for one in (text or "").split(",") if one.strip()]
