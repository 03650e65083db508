"""The private properties file, read by Spark itself."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from airflow_kstream.clients.spark import _properties_file


def test_every_secret_arrives_as_it_was_looked_up(spark: SparkSession, tmp_path: Path) -> None:
    conf = {
        "spark.plain": "zzz-very-secret",
        "spark.signs": r"""a=b:c #!"'\ d\n{}%$&;ü€""",
        "spark.lines": 'x.ScramLoginModule required\n\tusername="u"\r\n password="p";',
        "spark.odd key:=": "#1",
    }
    file = _properties_file(conf, tmp_path)
    assert file is not None
    read = spark._jvm.org.apache.spark.util.Utils.getPropertiesFromFile(file)  # type: ignore[union-attr]
    assert {key: read.apply(key) for key in conf} == conf
    assert Path(file).stat().st_mode & 0o777 == 0o600
