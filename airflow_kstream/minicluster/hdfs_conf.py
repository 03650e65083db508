"""HDFS's settings."""

from __future__ import annotations

from airflow_kstream.minicluster.settings import Settings, service, token_lifetimes
from airflow_kstream.minicluster.site import NAMESERVICE, Site

# Every open block reserves a whole block on the DataNode: large blocks would fill a small disk.
BLOCK_BYTES = 4 * 1024 * 1024


def client(site: Site) -> Settings:
    """Return the settings of clients of HDFS; its daemons have them, too."""
    provider = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
    addresses: Settings = {}
    for name in site.namenodes:
        addresses[f"dfs.namenode.rpc-address.{NAMESERVICE}.{name}"] = site.address(f"{name}-rpc")
        addresses[f"dfs.namenode.{site.scheme}-address.{NAMESERVICE}.{name}"] = site.address(f"{name}-web")
    return addresses | {
        "dfs.nameservices": NAMESERVICE,
        f"dfs.ha.namenodes.{NAMESERVICE}": ",".join(site.namenodes),
        f"dfs.client.failover.proxy.provider.{NAMESERVICE}": provider,
        "dfs.namenode.kerberos.principal": service(site, "nn"),
        "dfs.datanode.kerberos.principal": service(site, "dn"),
        "dfs.journalnode.kerberos.principal": service(site, "jn"),
        "dfs.data.transfer.protection": "authentication",
        "dfs.block.access.token.enable": "true",
        "dfs.replication": 1,
        "dfs.blocksize": BLOCK_BYTES,
    }


def daemon(site: Site) -> Settings:
    """Return the settings that NameNodes, DataNodes and JournalNode share."""
    keytab = site.folders.service_keytab
    keytabs: Settings = {f"dfs.{role}.keytab.file": keytab for role in ("namenode", "datanode", "journalnode")}
    web = ("dfs.namenode", "dfs.datanode", "dfs.journalnode")
    keytabs |= {f"{prefix}.kerberos.internal.spnego.principal": service(site, "HTTP") for prefix in web}
    return keytabs | {
        "dfs.web.authentication.kerberos.principal": service(site, "HTTP"),
        "dfs.web.authentication.kerberos.keytab": keytab,
        "dfs.datanode.hostname": "localhost",
        # A DataNode without root's ports would have to speak TLS otherwise.
        "ignore.secure.ports.for.testing": "true",
        "dfs.heartbeat.interval": int(site.plan.heartbeat.total_seconds()),
        "dfs.namenode.safemode.extension": 0,
        "dfs.namenode.edits.noeditlogchannelflush": "true",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.namenode.fs-limits.min-block-size": 4096,
        "dfs.permissions.superusergroup": "supergroup",
        **token_lifetimes(site, "dfs.namenode.delegation.key", "dfs.namenode.delegation.token"),
    }


def high_availability(site: Site) -> Settings:
    """Return the settings of two NameNodes that share a journal."""
    journal = site.address("journalnode-rpc")
    return {
        "dfs.namenode.shared.edits.dir": f"qjournal://{journal}/{NAMESERVICE}",
        "dfs.journalnode.edits.dir": site.folders.data / "journal",
        "dfs.journalnode.rpc-address": journal,
        f"dfs.journalnode.{site.scheme}-address": site.address("journalnode-web"),
        # A NameNode ends itself when the journal is silent for longer; on a laptop that is not a sign of anything.
        "dfs.qjournal.write-txns.timeout.ms": 120_000,
        "dfs.qjournal.start-segment.timeout.ms": 120_000,
        "dfs.qjournal.finalize-segment.timeout.ms": 120_000,
        "dfs.ha.fencing.methods": "shell(/bin/true)",
        "dfs.ha.tail-edits.period": 2,
    }


def tls(_: Site) -> Settings:
    """Return the settings of web servers that speak TLS and nothing else."""
    return {"dfs.http.policy": "HTTPS_ONLY"}
