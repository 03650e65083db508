"""Our reader of conf folders against Hadoop's own Configuration, on the same files."""

from __future__ import annotations

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path

from tests.hadoop_conf_cases import ENVIRONMENT, READ, TOO_DEEP, files
from tests.run_folder import java_options

# The table has the temporary folder of a JVM that nobody told another one.
UNTOUCHED = ("-Djava.io.tmpdir=/tmp",)
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
    spark = find_spec("pyspark")
    assert spark
    assert spark.origin
    classpath = f"{tmp_path}:{Path(spark.origin).parent}/jars/*"
    asked = subprocess.run(
        ["java", *java_options(), *UNTOUCHED, "-cp", classpath, str(tmp_path / "Ask.java"), *READ],
        env=os.environ | ENVIRONMENT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert dict(zip(READ, asked.stdout.splitlines(), strict=True)) == READ
