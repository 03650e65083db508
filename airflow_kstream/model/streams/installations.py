"""The clients of engines that this host has, as they say it or as their folders show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_kstream.model.known_faults import HadoopVersion


@dataclass(frozen=True)
class SparkInstallation:
    """The Spark that runs when `binary` is started, which may be a distribution's script around it.

    It is what the client told when it was asked, or what its folder shows. What is empty or None is not known.
    `home` is its SPARK_HOME, `conf_dir` the folder of its spark-defaults.conf, `class_path` what its JVM loads after
    that folder. `version` begins with Spark's major and minor number; `hadoop` is the version of the Hadoop client on
    the class path. `trouble` is why it could not be asked now.
    """

    binary: str
    home: str = ""
    conf_dir: str = ""
    class_path: tuple[str, ...] = ()
    version: tuple[int, ...] = ()
    hadoop: HadoopVersion | None = None
    trouble: str = ""

    @property
    def jars(self) -> str:
        return f"{self.home}/jars" if self.home else ""

    @property
    def defaults_file(self) -> str:
        """Return the path of its spark-defaults.conf, which need not exist."""
        return f"{self.conf_dir}/spark-defaults.conf" if self.conf_dir else ""


@dataclass(frozen=True)
class FlinkInstallation:
    """A folder with `bin/flink`, and the version by the name of its `flink-dist` jar.

    `java` are the options of Java that this Flink needs (`env.java.opts.*` of its own configuration), and nothing else
    of that counts. `renewer` is the ResourceManager's principal, `jar` the path of the jar that goes beside each job.
    """

    home: str
    version: tuple[int, ...] = ()
    java: Mapping[str, str] = field(default_factory=dict)
    renewer: str = ""
    jar: str = ""

    @property
    def binary(self) -> str:
        return f"{self.home}/bin/flink"

    @property
    def number(self) -> str:
        return ".".join(map(str, self.version))

    @property
    def obstacle(self) -> str:
        """Return why nothing is submitted with it; empty if it can be."""
        if self.version[:2] == (1, 20) or self.version[:1] == (2,):
            return ""
        return f"{self.home} is Flink {self.number}; supported are 1.20 and 2.x"
