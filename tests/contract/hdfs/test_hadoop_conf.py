"""Hadoop's own Configuration, without a server, and the conf folder of a cluster: both as our reader reads them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pyspark

from airflow_kstream.minicluster import Minicluster
from tests.hadoop_conf_cases import ENVIRONMENT, READ, TOO_DEEP, files
from tests.live.streams import cluster
from tests.run_folder import java_options

JARS = Path(pyspark.__file__).parent / "jars"
# The table has the temporary folder that a JVM has by default; the test run's is another one.
JAVA = ("java", "-XX:TieredStopAtLevel=1", *java_options(), "-Djava.io.tmpdir=/tmp")
ASK = """
import org.apache.hadoop.conf.Configuration;
public class Ask {
  public static void main(String[] keys) {
    Configuration conf = new Configuration(false);
    conf.addResource("core-site.xml");
    for (String key : keys) {
      String said;
      try { said = conf.getTrimmed(key); } catch (IllegalStateException error) { said = "%s"; }
      System.out.println(said);
    }
  }
}
"""


def test_hadoop_reads_each_property_as_the_table_says(tmp_path: Path) -> None:
    for name, content in (files() | {"Ask.java": ASK % TOO_DEEP}).items():
        (tmp_path / name).write_text(content)
    # Java compiles the program at its start, so it gets no more of Spark's jars than it needs.
    jars = (jar for name in ("hadoop-client", "slf4j", "log4j") for jar in JARS.glob(f"{name}*.jar"))
    classpath = os.pathsep.join(map(str, (tmp_path, *jars)))
    asked = subprocess.run(
        [*JAVA, "-cp", classpath, str(tmp_path / "Ask.java"), *READ],
        env=os.environ | ENVIRONMENT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert dict(zip(READ, asked.stdout.splitlines(), strict=True)) == READ


def test_a_cluster_is_described_by_its_hadoop_conf_folder(minicluster: Minicluster) -> None:
    with cluster(minicluster) as described:
        assert described.namenodes == minicluster.namenodes
        assert described.resourcemanagers == minicluster.resourcemanagers
        assert described.default_fs == minicluster.default_fs
