"""Why a generation died, by its own driver's word."""

from __future__ import annotations

import json
from contextlib import suppress

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.contract import failed_marker
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.generation import StreamId
from airflow_kstream.model.observation import Observation


def failure_of(hdfs: Hdfs, stream: StreamId, seen: Observation) -> str:
    """Return the error of the current generation's failed query; empty if its driver left none that can be read."""
    marker = failed_marker(seen.generation)
    if marker not in seen.files:
        return ""
    # YARN's diagnostics remain: a marker that can't be read must not hide how the stream stands.
    with suppress(KstreamError, ValueError, KeyError, TypeError):
        return str(json.loads(hdfs.read(f"{stream.folder}/{marker}"))["error"])
    return ""
