"""The site of a minicluster, which all its parts share: its plan, its folders, its ports."""

from __future__ import annotations

import getpass
from dataclasses import dataclass

from airflow_kstream.minicluster.config import MOST_DATANODES, Feature, MiniclusterConfig
from airflow_kstream.minicluster.folders import Folders
from airflow_kstream.minicluster.kdc import Kdc

NAMESERVICE = "kstream"
DATANODES = ("datanode", *(f"datanode{number}" for number in range(2, MOST_DATANODES + 1)))
# Since Java 17 Hadoop needs these to reach Kerberos internals; Java ignores KRB5_CONFIG.
JAVA_MODULES = (
    "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
)
# Without it a JVM writes counters into /tmp/hsperfdata_USER, whatever its java.io.tmpdir says.
NO_COUNTERS = "-XX:-UsePerfData"
JAVA_BRISK = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-Djava.net.preferIPv4Stack=true",
    NO_COUNTERS,
)


@dataclass(frozen=True)
class Site:
    plan: MiniclusterConfig
    ports: dict[str, int]

    @property
    def folders(self) -> Folders:
        return Folders(self.plan.root)

    @property
    def kdc(self) -> Kdc:
        return Kdc(self.plan, self.folders, self.ports["kdc"])

    @property
    def namenodes(self) -> tuple[str, ...]:
        return ("nn1", "nn2") if Feature.HA in self.plan.features else ("nn1",)

    @property
    def datanodes(self) -> tuple[str, ...]:
        return DATANODES[: self.plan.datanodes]

    @property
    def resourcemanagers(self) -> tuple[str, ...]:
        return ("rm1", "rm2") if Feature.RM_HA in self.plan.features else ("resourcemanager",)

    @property
    def scheme(self) -> str:
        return "https" if Feature.TLS in self.plan.features else "http"

    @property
    def user(self) -> str:
        """Return the operating system's user that runs the minicluster; HDFS and YARN map `streamer` to it."""
        return getpass.getuser()

    def address(self, port: str) -> str:
        return f"localhost:{self.ports[port]}"

    def url(self, port: str) -> str:
        """Return the base URL of a web server."""
        return f"{self.scheme}://{self.address(port)}"

    def java_options(self) -> tuple[str, ...]:
        """Return the options for every JVM of the minicluster and of its clients."""
        return (*JAVA_BRISK, *JAVA_MODULES, f"-Djava.security.krb5.conf={self.folders.krb5_conf}")

    def java_options_outside_yarn(self) -> tuple[str, ...]:
        """Return these and a folder for temporary files, which a container of YARN has of its own."""
        return (*self.java_options(), f"-Djava.io.tmpdir={self.folders.temporary}")
