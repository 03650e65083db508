"""YARN's settings."""

from __future__ import annotations

from airflow_kstream.minicluster.jars import hadoop_jars
from airflow_kstream.minicluster.settings import Settings, service, token_lifetimes
from airflow_kstream.minicluster.site import Site

_PORTS = {
    "address": "rpc",
    "scheduler.address": "scheduler",
    "resource-tracker.address": "tracker",
    "admin.address": "admin",
}


def client(site: Site) -> Settings:
    """Return the settings of clients of YARN; its daemons have them, too."""
    return _addresses(site) | {
        # The default of 30 s is how long a NodeManager would be lost after the ResourceManager was restarted.
        "yarn.resourcemanager.connect.retry-interval.ms": 1000,
        "yarn.resourcemanager.principal": service(site, "rm"),
        "yarn.nodemanager.principal": service(site, "nm"),
        "yarn.nodemanager.remote-app-log-dir": "/tmp/logs",
        # The Hadoop of containers whose engine brings none, as Spark does.
        "yarn.application.classpath": f"{site.folders.client_conf},{hadoop_jars()}/*",
        # Else each container's log has a copy of its environment, with its secrets.
        "yarn.nodemanager.log-container-debug-info.enabled": "false",
        "yarn.log-aggregation-enable": "true",
        "yarn.acl.enable": "true",
        "yarn.admin.acl": "hdfs,yarn",
        "yarn.timeline-service.enabled": "false",
    }


def daemon(site: Site) -> Settings:
    """Return the settings of ResourceManagers and NodeManager."""
    keytab, http = site.folders.service_keytab, service(site, "HTTP")
    expiry = int(site.plan.expiry.total_seconds() * 1000)
    return {
        "yarn.resourcemanager.keytab": keytab,
        "yarn.resourcemanager.webapp.spnego-principal": http,
        "yarn.resourcemanager.webapp.spnego-keytab-file": keytab,
        "yarn.resourcemanager.recovery.enabled": "true",
        "yarn.resourcemanager.store.class": "org.apache.hadoop.yarn.server.resourcemanager.recovery."
        "FileSystemRMStateStore",
        "yarn.resourcemanager.fs.state-store.uri": (site.folders.data / "resourcemanager").as_uri(),
        # Its default is a folder in /tmp that all clusters of the machine would share (FileSystemNodeAttributeStore).
        "yarn.node-attribute.fs-store.root-dir": (site.folders.data / "node-attributes").as_uri(),
        "yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": 1000,
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": 250,
        "yarn.am.liveness-monitor.expiry-interval-ms": expiry,
        "yarn.nm.liveness-monitor.expiry-interval-ms": expiry,
        "yarn.scheduler.minimum-allocation-mb": 256,
        "yarn.scheduler.maximum-allocation-mb": 14_336,
        "yarn.nodemanager.keytab": keytab,
        "yarn.nodemanager.webapp.spnego-principal": http,
        "yarn.nodemanager.webapp.spnego-keytab-file": keytab,
        "yarn.nodemanager.hostname": "localhost",
        "yarn.nodemanager.address": site.address("nodemanager-rpc"),
        "yarn.nodemanager.localizer.address": site.address("nodemanager-localizer"),
        f"yarn.nodemanager.{_web(site)}": site.address("nodemanager-web"),
        "yarn.nodemanager.local-dirs": site.folders.containers,
        "yarn.nodemanager.log-dirs": site.folders.logs / "containers",
        "yarn.nodemanager.resource.memory-mb": 14_336,
        "yarn.nodemanager.resource.cpu-vcores": 16,
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.0",
        "yarn.nodemanager.localizer.cache.target-size-mb": 2048,
        "yarn.resourcemanager.webapp.cross-origin.enabled": "false",
        **token_lifetimes(site, "yarn.resourcemanager.delegation.key", "yarn.resourcemanager.delegation.token"),
    }


def capacity_scheduler(_: Site) -> Settings:
    """Return the settings of the queues."""
    root = "yarn.scheduler.capacity.root"
    return {
        f"{root}.queues": "default",
        f"{root}.default.capacity": 100,
        # Without these two any user may view and kill any application.
        f"{root}.acl_submit_applications": "*",
        f"{root}.acl_administer_queue": "hdfs,yarn,supervisor",
        "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
    }


def proxy_user_yarn(_: Site) -> Settings:
    """Let the ResourceManager impersonate users of HDFS."""
    return {"hadoop.proxyuser.yarn.hosts": "*", "hadoop.proxyuser.yarn.groups": "*"}


def proxy_user_privileges(_: Site) -> Settings:
    """Let the ResourceManager get tokens of HDFS in the name of users."""
    return {"yarn.resourcemanager.proxy-user-privileges.enabled": "true"}


def resourcemanagers(site: Site) -> Settings:
    """Return what clients need to know of two ResourceManagers."""
    return {
        "yarn.resourcemanager.ha.enabled": "true",
        "yarn.resourcemanager.ha.rm-ids": ",".join(site.resourcemanagers),
        "yarn.resourcemanager.cluster-id": "kstream",
    }


def election(site: Site) -> Settings:
    """Return the settings of ResourceManagers that elect the active one, and keep applications, in ZooKeeper.

    ZooKeeper itself is without Kerberos: it listens on loopback, and only daemons know its address.
    """
    return {
        "hadoop.zk.address": site.address("zookeeper"),
        "yarn.resourcemanager.store.class": "org.apache.hadoop.yarn.server.resourcemanager.recovery.ZKRMStateStore",
    }


def tls(_: Site) -> Settings:
    """Return the settings of web servers that speak TLS and nothing else."""
    return {"yarn.http.policy": "HTTPS_ONLY"}


def _addresses(site: Site) -> Settings:
    addresses: Settings = {}
    for name in site.resourcemanagers:
        # Settings of one of two ResourceManagers end with its name.
        suffix = f".{name}" if len(site.resourcemanagers) > 1 else ""
        addresses[f"yarn.resourcemanager.hostname{suffix}"] = "localhost"
        addresses[f"yarn.resourcemanager.{_web(site)}{suffix}"] = site.address(f"{name}-web")
        for setting, port in _PORTS.items():
            addresses[f"yarn.resourcemanager.{setting}{suffix}"] = site.address(f"{name}-{port}")
    return addresses


def _web(site: Site) -> str:
    """Return the end of the name of a web server's setting."""
    return "webapp.https.address" if site.scheme == "https" else "webapp.address"
