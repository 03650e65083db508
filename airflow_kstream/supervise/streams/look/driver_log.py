"""The error in a dead driver's log, read once, when its end is recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from airflow_kstream.clients.container_logs import ContainerLogs
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.logs.container_log import LoggedContainer
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.policy.streams.ends.ends import log_is_asked
from airflow_kstream.supervise.streams.folder.run import StreamRun

# Bytes of each file, and seconds for all: a restart waits for it. Spark prints an error in a foreachBatch as three
# nested stack traces, 28 kB in stdout and 60 kB in stderr, and the address that did not answer stands in the first.
_SIZE, _SECONDS = 100_000, 10.0


def with_log_error(run: StreamRun, observation: Observation, tell: Callable[[str], None]) -> Observation:
    """Return the observation with the error that the driver's log ends with, if nothing else names one.

    Costs up to ten seconds, once for each end. A log that can't be read is not an obstacle: `tell` gets the reason, and
    the end is recorded without it.
    """
    app = observation.current
    container = LoggedContainer.of_link(app.logs_url) if app and log_is_asked(observation) else None
    if container is None:
        return observation
    logs, names = ContainerLogs(run.cluster, run.session.identity), run.engine.words.logs
    try:
        tails = logs.tails(container, names, _SIZE, _SECONDS)
    except KstreamError as error:
        tell(f"the log of {container.id}, which may name the error, can't be read: {error.without_advice}")
        return observation
    log_error = run.engine.last_error({name: tail.text for name, tail in tails.items()})
    return replace(observation, driver=replace(observation.driver, log_error=log_error))
