"""A Spark client of this host: which Spark it runs, and which files that reads."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_kstream.model.clusters.hadoop_version import HadoopVersion


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
