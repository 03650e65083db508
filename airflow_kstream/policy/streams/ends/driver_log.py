"""When a dead application's log is read for the error that ended it: if nobody else has kept its word."""

from __future__ import annotations

from airflow_kstream.model.streams.generation_end import EndKind
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.policy.streams.ends.ends import end_of, fingerprint_of

# A container executor's words, which name no error of the job.
_LAUNCH = "Exception from container-launch"
# These say nothing of why: YARN's own words of them are as good as none.
_UNEXPLAINED = {EndKind.CODE, EndKind.UNKNOWN}


def log_is_asked(observation: Observation) -> bool:
    """Return whether the newest application has ended, and neither YARN nor its driver's last word names an error."""
    app = observation.current
    told = observation.driver.failure or observation.driver.log_error
    if app is None or app.alive or app.succeeded or not app.logs_url or told:
        return False
    diagnostics = app.diagnostics.replace(_LAUNCH, "")
    return end_of(diagnostics).kind in _UNEXPLAINED and not fingerprint_of(diagnostics)
