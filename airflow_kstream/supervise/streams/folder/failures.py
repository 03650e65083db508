"""The error of a failed generation, as its own driver reported it."""

from __future__ import annotations

import json
from contextlib import suppress

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.secrets import without_secrets
from airflow_kstream.model.streams.contract import failed_marker
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.observation import Observation


def failure_of(hdfs: Hdfs, stream: StreamId, observation: Observation) -> str:
    """Return the error of the current generation's failed query; empty if its driver left no readable one."""
    marker = failed_marker(observation.generation)
    if marker not in observation.files:
        return ""
    # YARN's diagnostics remain: an unreadable marker must not hide the stream's state.
    with suppress(KstreamError, ValueError, KeyError, TypeError, RecursionError):
        return without_secrets(str(json.loads(hdfs.read(f"{stream.folder}/{marker}"))["error"]))
    return ""
