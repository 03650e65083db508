"""Hadoop's configuration files, as tables. A feature adds its own table and takes nothing away."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from airflow_kstream.minicluster import hdfs_conf, httpfs, kms, tls, yarn_conf
from airflow_kstream.minicluster.config import Feature
from airflow_kstream.minicluster.settings import Settings, auth_to_local, http_authentication
from airflow_kstream.minicluster.site import NAMESERVICE, Site

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
    client = _tables(site, {}, _CLIENT, _CLIENT_FEATURES)
    daemon = _tables(site, client, _DAEMON, _DAEMON_FEATURES)
    for name, key, value in site.plan.daemon_settings:
        daemon[name][key] = value
    _write_sites(folders.client_conf, client)
    _write_sites(folders.daemon_conf, daemon)
    (folders.client_conf / "log4j.properties").write_text(_LOG4J_CLIENT)
    (folders.daemon_conf / "log4j.properties").write_text(_LOG4J)
    (folders.daemon_conf / "log4j-audit.properties").write_text(_LOG4J + _LOG4J_AUDIT)
    (folders.daemon_conf / "httpfs-log4j.properties").write_text(_LOG4J)
    _write_web_applications(folders.daemon_conf / "webapps")


def _core_client(site: Site) -> Settings:
    return {
        "fs.defaultFS": f"hdfs://{NAMESERVICE}",
        "hadoop.security.authentication": "kerberos",
        "hadoop.security.authorization": "true",
        "hadoop.rpc.protection": site.plan.rpc_protection,
        "hadoop.security.auth_to_local": auth_to_local(site),
        "hadoop.tmp.dir": site.folders.data / "tmp",
        # With the default of one second, every start while another daemon is still starting takes seconds.
        "ipc.client.connect.retry.interval": 100,
        "ipc.client.connect.max.retries": 50,
    }


def _core_daemon(site: Site) -> Settings:
    return {
        "hadoop.http.filter.initializers": "org.apache.hadoop.security.AuthenticationFilterInitializer",
        **http_authentication(site),
        "hadoop.user.group.static.mapping.overrides": _groups(site.user),
        "hadoop.proxyuser.gateway.hosts": "*",
        "hadoop.proxyuser.gateway.groups": "*",
    }


def _groups(streamer: str) -> str:
    """Return each user's groups: the operating system does not know most of these users. `watcher` has none.

    The members of `kstream` may create folders in state_dir. `supervisor` also reads what `streamer` keeps for its own
    group, and aggregated logs.
    """
    groups = {
        "hdfs": "supergroup",
        "yarn": "hadoop",
        streamer: f"{streamer},kstream",
        "supervisor": f"kstream,{streamer},hadoop",
        "gateway": "kstream",
        **dict.fromkeys(("watcher", "httpfs", "dr.who"), ""),
    }
    return "".join(f"{user}={names};" for user, names in groups.items())


_Table = Callable[[Site], Settings]
_CLIENT: Mapping[str, _Table] = {
    "core-site.xml": _core_client,
    "hdfs-site.xml": hdfs_conf.client,
    "yarn-site.xml": yarn_conf.client,
}
_DAEMON: Mapping[str, _Table] = {
    "core-site.xml": _core_daemon,
    "hdfs-site.xml": hdfs_conf.daemon,
    "yarn-site.xml": yarn_conf.daemon,
    "capacity-scheduler.xml": yarn_conf.capacity_scheduler,
}
# What a feature adds for clients, and for daemons beyond that.
_CLIENT_FEATURES: Mapping[Feature, Mapping[str, _Table]] = {
    Feature.KMS: {"core-site.xml": kms.provider},
    Feature.RM_HA: {"yarn-site.xml": yarn_conf.resourcemanagers},
    Feature.TLS: {"hdfs-site.xml": hdfs_conf.tls, "yarn-site.xml": yarn_conf.tls, "ssl-client.xml": tls.trust},
}
_DAEMON_FEATURES: Mapping[Feature, Mapping[str, _Table]] = {
    Feature.HA: {"hdfs-site.xml": hdfs_conf.high_availability},
    Feature.RM_HA: {"yarn-site.xml": yarn_conf.election},
    Feature.HTTPFS: {"core-site.xml": httpfs.impersonation, "httpfs-site.xml": httpfs.settings},
    Feature.KMS: {"kms-site.xml": kms.settings, "kms-acls.xml": kms.acls},
    Feature.PROXY_USER_PRIVILEGES: {
        "core-site.xml": yarn_conf.proxy_user_yarn,
        "yarn-site.xml": yarn_conf.proxy_user_privileges,
    },
    Feature.TLS: {"ssl-server.xml": tls.identity},
}


def _tables(
    site: Site,
    base: Mapping[str, Settings],
    basics: Mapping[str, _Table],
    features: Mapping[Feature, Mapping[str, _Table]],
) -> dict[str, Settings]:
    """Return the settings of each file: the base's, then the basics', then those of each feature."""
    files = {name: dict(settings) for name, settings in base.items()}
    for tables in (basics, *(features.get(feature, {}) for feature in sorted(site.plan.features))):
        for name, table in tables.items():
            files[name] = files.get(name, {}) | table(site)
    return files


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
