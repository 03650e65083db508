"""One real local Spark for all tests of a worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from py4j.clientserver import SHUTDOWN_FINALIZER_WORKER  # type: ignore[import-untyped]
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A real local Spark, without a cluster."""
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    gateway = session.sparkContext._gateway
    assert gateway is not None
    session.stop()
    # Its finalizer would go on to tell a JVM that is gone of collected objects, in a log that is closed.
    gateway._gateway_client.finalizer_deque.append(SHUTDOWN_FINALIZER_WORKER)
