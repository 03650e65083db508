"""Writers whose files stay open, and Hadoop's own view of them."""

from tests.live.writers.killed_stream import KilledStream, spark_stream_killed_in_the_middle
from tests.live.writers.writers import (
    Bucket,
    Writer,
    flink_like_bucket,
    leave_bucket,
    leave_open,
    make_closed,
    native_writer,
    pattern,
    writer,
)

__all__ = [
    "Bucket",
    "KilledStream",
    "Writer",
    "flink_like_bucket",
    "leave_bucket",
    "leave_open",
    "make_closed",
    "native_writer",
    "pattern",
    "spark_stream_killed_in_the_middle",
    "writer",
]
