"""The choice of the engine that runs a stream."""

from __future__ import annotations

from collections.abc import Callable

from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.model.submission import SparkDefaults
from airflow_kstream.supervise.streams.engine import Engine
from airflow_kstream.supervise.streams.spark_engine import SparkEngine


def engine_of(spec: StreamSpec, spark: Callable[[], SparkDefaults] = SparkDefaults) -> Engine:
    """Return the engine of this stream: today always Spark.

    `spark` gives what the `spark` connection or the command line says about the client. It is called only when a
    submission is built.
    """
    return SparkEngine(spark)
