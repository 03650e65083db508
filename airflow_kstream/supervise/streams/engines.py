"""The choice of the engine that runs a stream."""

from __future__ import annotations

from collections.abc import Callable

from airflow_kstream.model.streams.resume import ResumePoint
from airflow_kstream.model.streams.stream import FlinkStreamSpec, StreamSpec
from airflow_kstream.model.streams.submission import SparkDefaults
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.flink.flink_engine import FlinkEngine
from airflow_kstream.supervise.streams.flink.resume_points import read_point
from airflow_kstream.supervise.streams.folder.engine import Engine
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.spark.spark_engine import SparkEngine


def named_state(session: ClusterSession, path: str) -> ResumePoint:
    """Return the state with which a person wants a stream to begin, whose spec may not be known yet.

    Raises InvalidInput: when no job can begin with it. Raises Denied: when it can't be read.
    """
    return read_point(session, path)


def engine_of(spec: StreamSpec, spark: Callable[[], SparkDefaults] = SparkDefaults, spark_submit: str = "") -> Engine:
    """Return the engine of this stream.

    `spark` returns what the `spark` connection contributes; it is called only when a submission is built.
    `spark_submit` is the client that a person names, if any.
    """
    return FlinkEngine() if isinstance(spec, FlinkStreamSpec) else SparkEngine(spark, spark_submit)


def engine_for(run: StreamRun, spec: StreamSpec) -> Engine:
    """Return the run's engine, or another one for what was submitted as another engine's."""
    return run.engine if spec.engine is run.spec.engine else engine_of(spec)
