"""Settings for clients of a minicluster: their environment, and the confs of Spark jobs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from airflow_kstream.minicluster.hdfs_conf import BLOCK_BYTES
from airflow_kstream.minicluster.site import Site
from airflow_kstream.minicluster.spark_classes import spark_home, spark_options
from airflow_kstream.minicluster.tools import java_home
from airflow_kstream.model.errors import MiniclusterError


def client_environment(site: Site, name: str) -> dict[str, str]:
    """Return everything that a child process of that principal needs, and nothing of the caller's own environment."""
    home = site.folders.homes / name.replace("/", "_")
    home.mkdir(mode=0o700, exist_ok=True)
    options = site.java_options_outside_yarn()
    # spark-submit takes the pyspark of the first python on the PATH.
    path = [str(Path(sys.executable).parent), str(java_home() / "bin"), "/usr/local/bin", "/usr/bin", "/bin"]
    return {
        "PATH": os.pathsep.join(path),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "JAVA_HOME": str(java_home()),
        "HADOOP_CONF_DIR": str(site.folders.client_conf),
        "KRB5_CONFIG": str(site.folders.krb5_conf),
        "KRB5CCNAME": f"FILE:{site.kdc.ticket(name)}",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TMPDIR": str(site.folders.temporary),
        "SPARK_SUBMIT_OPTS": " ".join([*options, *spark_options()[0]]),
        # Those of the JVM that prints the command line of the next one.
        "SPARK_LAUNCHER_OPTS": " ".join(options),
    }


def first_stream(name: str, principal: str, keytab: Path) -> dict[str, Any]:
    """Return the declaration of the pages' first stream, as it runs on a minicluster."""
    folder = f"/data/{name}"
    return {
        "name": name,
        "credentials": {"mode": "keytab", "principal": principal, "keytab": str(keytab)},
        "application": str(Path(__file__).parents[1] / "demo" / "jobs" / "ticking.py"),
        "arguments": [folder],
        "checkpoints": [f"{folder}/checkpoint"],
    }


def spark_conf(site: Site) -> dict[str, str]:
    """Return the confs that every Spark job on this minicluster needs; a real cluster needs none of them.

    No tokens can be pushed by hand to a job that has them all: for that, `spark.authenticate` has to be false.
    """
    archive, classpath = spark_options()
    java = " ".join([*site.java_options(), *archive])
    classes = {f"spark.{role}.extraClassPath": classpath for role in ("driver", "executor") if classpath}
    environment = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    return {
        # Nothing to upload: the containers run on the machine that has the jars.
        "spark.yarn.jars": f"local:{_spark_home()}/jars/*",
        "spark.driver.extraJavaOptions": java,
        "spark.executor.extraJavaOptions": java,
        "spark.yarn.am.extraJavaOptions": java,
        # Of executors whose driver is on this host; python3 on the PATH lacks what Spark needs.
        "spark.pyspark.python": sys.executable,
        "spark.driver.memory": "512m",
        "spark.driver.memoryOverhead": "256m",
        "spark.executor.memory": "512m",
        "spark.executor.memoryOverhead": "256m",
        "spark.executor.instances": "1",
        "spark.executor.cores": "1",
        # Each user of this host reaches a driver's port: without a secret it gives its tokens to any of them.
        "spark.authenticate": "true",
        "spark.ui.showConsoleProgress": "false",
        # Also of the containers' logs, on NodeManagers.
        "spark.ui.view.acls": "supervisor",
        # Parquet asks for blocks of 128 MB otherwise. The NameNode reserves as much for each block that it allocated in
        # the last 20 minutes and that nobody completed: some hundred files of killed writers fill the disk
        # (DatanodeDescriptor.chooseStorage4Block).
        "spark.hadoop.parquet.block.size": str(BLOCK_BYTES),
        # With blocks as small as that, Parquet would fill each file's first one with zeros: 4 MB a batch
        # (ParquetFileWriter.PaddingAlignment, which allows for 8 MB).
        "spark.hadoop.parquet.writer.max-padding": "0",
        **classes,
        **{f"spark.yarn.appMasterEnv.{name}": value for name, value in environment.items()},
        **{f"spark.executorEnv.{name}": value for name, value in environment.items()},
    }


def _spark_home() -> Path:
    home = spark_home()
    if home is None:
        raise MiniclusterError("pyspark is not installed in the environment that runs the minicluster")
    return home
