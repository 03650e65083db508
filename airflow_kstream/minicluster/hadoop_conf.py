"""Hadoop's configuration files, as tables. A feature adds its own table and takes nothing away."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from xml.sax.saxutils import escape

from airflow_kstream.minicluster.config import Feature
from airflow_kstream.minicluster.site import NAMESERVICE, Site

Settings = dict[str, str | int | Path]
# Every open block reserves a whole block on the DataNode: large blocks would fill a small disk.
BLOCK_BYTES = 4 * 1024 * 1024
_WEB_APPLICATIONS = ("journal", "hdfs", "datanode", "secondary", "static", "logs")
_LOG4J = """\
log4j.rootLogger=INFO,FILE
log4j.appender.FILE=org.apache.log4j.FileAppender
log4j.appender.FILE.File=${kstream.log}
log4j.appender.FILE.layout=org.apache.log4j.PatternLayout
log4j.appender.FILE.layout.ConversionPattern=%d{ISO8601} %p %c: %m%n
log4j.logger.org.apache.hadoop.util.NativeCodeLoader=ERROR
"""
_LOG4J_AUDIT = """\
log4j.logger.org.apache.hadoop.hdfs.server.namenode.FSNamesystem.audit=INFO,AUDIT
log4j.additivity.org.apache.hadoop.hdfs.server.namenode.FSNamesystem.audit=false
log4j.appender.AUDIT=org.apache.log4j.FileAppender
log4j.appender.AUDIT.File=${kstream.audit}
log4j.appender.AUDIT.layout=org.apache.log4j.PatternLayout
log4j.appender.AUDIT.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
"""
_LOG4J_CLIENT = """\
log4j.rootLogger=WARN,ERR
log4j.appender.ERR=org.apache.log4j.ConsoleAppender
log4j.appender.ERR.target=System.err
log4j.appender.ERR.layout=org.apache.log4j.PatternLayout
log4j.appender.ERR.layout.ConversionPattern=%d{ISO8601} %p %c: %m%n
log4j.logger.org.apache.hadoop.util.NativeCodeLoader=ERROR
"""


def write_configuration(site: Site) -> None:
    """Fill the folders for clients and for daemons."""
    folders = site.folders
    folders.http_secret.write_text(secrets.token_hex(32))
    folders.http_secret.chmod(0o600)
    client = {name: table(site) for name, table in _CLIENT.items()}
    daemon = {name: client.get(name, {}) | table(site) for name, table in _DAEMON.items()}
    for feature in sorted(site.plan.features):
        for name, table in _FEATURES.get(feature, {}).items():
            daemon[name] |= table(site)
    _write_sites(folders.client_conf, client)
    _write_sites(folders.daemon_conf, daemon)
    (folders.client_conf / "log4j.properties").write_text(_LOG4J_CLIENT)
    (folders.daemon_conf / "log4j.properties").write_text(_LOG4J)
    (folders.daemon_conf / "log4j-audit.properties").write_text(_LOG4J + _LOG4J_AUDIT)
    _write_web_applications(folders.daemon_conf / "webapps")


def _core_client(site: Site) -> Settings:
    return {
        "fs.defaultFS": f"hdfs://{NAMESERVICE}",
        "hadoop.security.authentication": "kerberos",
        "hadoop.security.authorization": "true",
        "hadoop.rpc.protection": site.plan.rpc_protection,
        "hadoop.security.auth_to_local": _auth_to_local(site),
        "hadoop.tmp.dir": site.folders.data / "tmp",
        # With the default of one second, every start while another daemon is still starting takes seconds.
        "ipc.client.connect.retry.interval": 100,
        "ipc.client.connect.max.retries": 50,
    }


def _core_daemon(site: Site) -> Settings:
    return {
        "hadoop.http.filter.initializers": "org.apache.hadoop.security.AuthenticationFilterInitializer",
        "hadoop.http.authentication.type": "kerberos",
        "hadoop.http.authentication.simple.anonymous.allowed": "false",
        "hadoop.http.authentication.kerberos.principal": _service(site, "HTTP"),
        "hadoop.http.authentication.kerberos.keytab": site.folders.service_keytab,
        "hadoop.http.authentication.signature.secret.file": site.folders.http_secret,
        # Users of the realm that the operating system does not know.
        "hadoop.user.group.static.mapping.overrides": "hdfs=supergroup;yarn=hadoop;watcher=;gateway=;dr.who=;",
        "hadoop.proxyuser.gateway.hosts": "*",
        "hadoop.proxyuser.gateway.groups": "*",
    }


def _hdfs_client(site: Site) -> Settings:
    provider = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
    addresses: Settings = {}
    for name in site.namenodes:
        addresses[f"dfs.namenode.rpc-address.{NAMESERVICE}.{name}"] = site.address(f"{name}-rpc")
        addresses[f"dfs.namenode.http-address.{NAMESERVICE}.{name}"] = site.address(f"{name}-web")
    return addresses | {
        "dfs.nameservices": NAMESERVICE,
        f"dfs.ha.namenodes.{NAMESERVICE}": ",".join(site.namenodes),
        f"dfs.client.failover.proxy.provider.{NAMESERVICE}": provider,
        "dfs.namenode.kerberos.principal": _service(site, "nn"),
        "dfs.datanode.kerberos.principal": _service(site, "dn"),
        "dfs.journalnode.kerberos.principal": _service(site, "jn"),
        "dfs.data.transfer.protection": "authentication",
        "dfs.block.access.token.enable": "true",
        "dfs.replication": 1,
        "dfs.blocksize": BLOCK_BYTES,
    }


def _hdfs_daemon(site: Site) -> Settings:
    data, keytab = site.folders.data, site.folders.service_keytab
    keytabs: Settings = {f"dfs.{role}.keytab.file": keytab for role in ("namenode", "datanode", "journalnode")}
    web = ("dfs.namenode", "dfs.datanode", "dfs.journalnode")
    keytabs |= {f"{prefix}.kerberos.internal.spnego.principal": _service(site, "HTTP") for prefix in web}
    return keytabs | {
        "dfs.web.authentication.kerberos.principal": _service(site, "HTTP"),
        "dfs.web.authentication.kerberos.keytab": keytab,
        "dfs.datanode.data.dir": data / "blocks",
        "dfs.datanode.address": site.address("datanode-data"),
        "dfs.datanode.http.address": site.address("datanode-web"),
        "dfs.datanode.ipc.address": site.address("datanode-rpc"),
        "dfs.datanode.hostname": "localhost",
        # A DataNode without root's ports would have to speak TLS otherwise.
        "ignore.secure.ports.for.testing": "true",
        "dfs.heartbeat.interval": int(site.plan.heartbeat.total_seconds()),
        "dfs.namenode.safemode.extension": 0,
        "dfs.namenode.edits.noeditlogchannelflush": "true",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.namenode.fs-limits.min-block-size": 4096,
        "dfs.permissions.superusergroup": "supergroup",
        **_token_lifetimes(site, "dfs.namenode.delegation.key", "dfs.namenode.delegation.token"),
    }


def _yarn_client(site: Site) -> Settings:
    return {
        "yarn.resourcemanager.hostname": "localhost",
        "yarn.resourcemanager.address": site.address("resourcemanager-rpc"),
        "yarn.resourcemanager.scheduler.address": site.address("resourcemanager-scheduler"),
        "yarn.resourcemanager.resource-tracker.address": site.address("resourcemanager-tracker"),
        "yarn.resourcemanager.admin.address": site.address("resourcemanager-admin"),
        "yarn.resourcemanager.webapp.address": site.address("resourcemanager-web"),
        # The default of 30 s is how long a NodeManager would be lost after the ResourceManager was restarted.
        "yarn.resourcemanager.connect.retry-interval.ms": 1000,
        "yarn.resourcemanager.principal": _service(site, "rm"),
        "yarn.nodemanager.principal": _service(site, "nm"),
        "yarn.nodemanager.remote-app-log-dir": "/tmp/logs",
        # Else each container's log has a copy of its environment, with its secrets.
        "yarn.nodemanager.log-container-debug-info.enabled": "false",
        "yarn.log-aggregation-enable": "true",
        "yarn.acl.enable": "true",
        "yarn.admin.acl": "hdfs,yarn",
        "yarn.timeline-service.enabled": "false",
    }


def _yarn_daemon(site: Site) -> Settings:
    keytab, http = site.folders.service_keytab, _service(site, "HTTP")
    return {
        "yarn.resourcemanager.keytab": keytab,
        "yarn.resourcemanager.webapp.spnego-principal": http,
        "yarn.resourcemanager.webapp.spnego-keytab-file": keytab,
        "yarn.resourcemanager.recovery.enabled": "true",
        "yarn.resourcemanager.store.class": "org.apache.hadoop.yarn.server.resourcemanager.recovery."
        "FileSystemRMStateStore",
        "yarn.resourcemanager.fs.state-store.uri": (site.folders.data / "resourcemanager").as_uri(),
        "yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": 1000,
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": 250,
        "yarn.am.liveness-monitor.expiry-interval-ms": 60_000,
        "yarn.nm.liveness-monitor.expiry-interval-ms": 60_000,
        "yarn.scheduler.minimum-allocation-mb": 256,
        "yarn.scheduler.maximum-allocation-mb": 14_336,
        "yarn.nodemanager.keytab": keytab,
        "yarn.nodemanager.webapp.spnego-principal": http,
        "yarn.nodemanager.webapp.spnego-keytab-file": keytab,
        "yarn.nodemanager.hostname": "localhost",
        "yarn.nodemanager.address": site.address("nodemanager-rpc"),
        "yarn.nodemanager.localizer.address": site.address("nodemanager-localizer"),
        "yarn.nodemanager.webapp.address": site.address("nodemanager-web"),
        "yarn.nodemanager.local-dirs": site.folders.containers,
        "yarn.nodemanager.log-dirs": site.folders.logs / "containers",
        "yarn.nodemanager.resource.memory-mb": 14_336,
        "yarn.nodemanager.resource.cpu-vcores": 16,
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.0",
        "yarn.nodemanager.localizer.cache.target-size-mb": 2048,
        "yarn.resourcemanager.webapp.cross-origin.enabled": "false",
        **_token_lifetimes(site, "yarn.resourcemanager.delegation.key", "yarn.resourcemanager.delegation.token"),
    }


def _capacity_scheduler(_: Site) -> Settings:
    root = "yarn.scheduler.capacity.root"
    return {
        f"{root}.queues": "default",
        f"{root}.default.capacity": 100,
        # Without these two any user may view and kill any application.
        f"{root}.acl_submit_applications": "*",
        f"{root}.acl_administer_queue": "hdfs,yarn",
        "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
    }


def _hdfs_ha(site: Site) -> Settings:
    journal = site.address("journalnode-rpc")
    return {
        "dfs.namenode.shared.edits.dir": f"qjournal://{journal}/{NAMESERVICE}",
        "dfs.journalnode.edits.dir": site.folders.data / "journal",
        "dfs.journalnode.rpc-address": journal,
        "dfs.journalnode.http-address": site.address("journalnode-web"),
        # A NameNode ends itself when the journal is silent for longer; on a laptop that is no sign of anything.
        "dfs.qjournal.write-txns.timeout.ms": 120_000,
        "dfs.qjournal.start-segment.timeout.ms": 120_000,
        "dfs.qjournal.finalize-segment.timeout.ms": 120_000,
        "dfs.ha.fencing.methods": "shell(/bin/true)",
        "dfs.ha.tail-edits.period": 2,
    }


def _proxy_user_yarn(_: Site) -> Settings:
    return {"hadoop.proxyuser.yarn.hosts": "*", "hadoop.proxyuser.yarn.groups": "*"}


def _proxy_user_privileges(_: Site) -> Settings:
    return {"yarn.resourcemanager.proxy-user-privileges.enabled": "true"}


_Table = Callable[[Site], Settings]
_CLIENT: Mapping[str, _Table] = {
    "core-site.xml": _core_client,
    "hdfs-site.xml": _hdfs_client,
    "yarn-site.xml": _yarn_client,
}
_DAEMON: Mapping[str, _Table] = {
    "core-site.xml": _core_daemon,
    "hdfs-site.xml": _hdfs_daemon,
    "yarn-site.xml": _yarn_daemon,
    "capacity-scheduler.xml": _capacity_scheduler,
}
_FEATURES: Mapping[Feature, Mapping[str, _Table]] = {
    Feature.HA: {"hdfs-site.xml": _hdfs_ha},
    Feature.PROXY_USER_PRIVILEGES: {"core-site.xml": _proxy_user_yarn, "yarn-site.xml": _proxy_user_privileges},
}


def _service(site: Site, name: str) -> str:
    return site.kdc.principal(f"{name}/localhost")


def _auth_to_local(site: Site) -> str:
    """Map principals to users: containers run as the NodeManager's, but aggregated logs must belong to the job."""
    users = {"nn": "hdfs", "dn": "hdfs", "jn": "hdfs", "rm": "yarn", "nm": "yarn"}
    realm = site.plan.realm
    services = [f"RULE:[2:$1@$0]({name}@{realm})s/.*/{user}/" for name, user in users.items()]
    streamer = [f"RULE:[{parts}:$1@$0](streamer@{realm})s/.*/{site.user}/" for parts in (1, 2)]
    return "\n".join([*services, *streamer, "DEFAULT"])


def _token_lifetimes(site: Site, key: str, token: str) -> Settings:
    return {
        f"{key}.update-interval": _milliseconds(min(site.plan.max_lifetime, timedelta(days=1))),
        f"{token}.renew-interval": _milliseconds(site.plan.renew_interval),
        f"{token}.max-lifetime": _milliseconds(site.plan.max_lifetime),
    }


def _milliseconds(duration: timedelta) -> int:
    return int(duration / timedelta(milliseconds=1))


def _write_sites(folder: Path, sites: Mapping[str, Settings]) -> None:
    for name, settings in sites.items():
        rows = (
            f"<property><name>{key}</name><value>{escape(str(value))}</value></property>"
            for key, value in settings.items()
        )
        (folder / name).write_text("\n".join(["<configuration>", *rows, "</configuration>", ""]))


def _write_web_applications(folder: Path) -> None:
    # The jars of HDFS do not carry its web applications; WebHDFS, JMX and the servlets do without.
    shutil.rmtree(folder, ignore_errors=True)
    for name in _WEB_APPLICATIONS:
        (folder / name / "WEB-INF").mkdir(parents=True)
        (folder / name / "WEB-INF/web.xml").write_text("<web-app/>\n")
