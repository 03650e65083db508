"""The JobManager's own port, which lets a job be stopped: YARN's proxy lets nothing but GET through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import requests

from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import Unavailable

_SECONDS = 20.0


def stop_with_savepoint(address: str, job: str, terms: Mapping[str, Any], tls: Tls | None = None) -> None:
    """Begin a stop with savepoint. The same `triggerId` begins it once, however often it is sent.

    With `tls` the JobManager's certificate is checked, as any other server's. Raises Unavailable: when the port can't
    be reached, or the JobManager refuses.
    """
    tried = f"stop job {job}"
    try:
        where, verify = ("http", True) if tls is None else ("https", tls.verify)
        url = f"{where}://{address}/jobs/{job}/stop"
        answer = requests.post(url, json=dict(terms), timeout=_SECONDS, verify=verify)
    except requests.RequestException as error:
        raise Unavailable(f"it can't be reached ({type(error).__name__})", tried=tried, server=address) from error
    if answer.status_code != requests.codes.accepted:
        raise Unavailable(f"it answered {answer.status_code}: {answer.text[:300]}", tried=tried, server=address)
