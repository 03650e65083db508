"""What a reconcile did and where it ended, as plain values for people, XCom and the UI."""

from __future__ import annotations

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import DeclarationReport, DoneAction, JobReport, Phase, Report, Settled
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.streams.pulse.heartbeat import heartbeat
from airflow_kstream.policy.streams.restart.former_spec import failed_spec_words
from airflow_kstream.policy.streams.restart.freeze import freeze_of
from airflow_kstream.policy.streams.restart.held import is_well
from airflow_kstream.policy.streams.restart.reconcile import horizon_of
from airflow_kstream.policy.streams.restart.spec_change import SpecChange


def report(
    spec: StreamSpec, observation: Observation, step: Settled, active_rm: str, done: tuple[DoneAction, ...] = ()
) -> Report:
    """Return an observation and its verdict as plain values for people, XCom and the UI."""
    app: Application | None = observation.current
    ended = step.phase in {Phase.STOPPED, Phase.ENDED}
    change = SpecChange(spec, observation)
    return Report(
        stream=spec.name,
        phase=step.phase,
        why=step.why,
        generation=observation.generation,
        job=JobReport(
            application=app.id if app else None,
            application_url=f"{active_rm}/cluster/app/{app.id}" if app else "",
            logs_url=app.logs_url or _attempt_page(active_rm, app) if app else "",
            succeeded=_succeeded(step, observation),
            diagnostics=app.diagnostics if app and ended else "",
        ),
        horizon=horizon_of(spec, observation),
        heartbeat=heartbeat(spec.heartbeat, observation),
        declaration=DeclarationReport(
            spec_differences=change.difference.fields,
            spec_doubt=change.difference.doubt,
            failed_spec=failed_spec_words(spec.name, change.failed),
        ),
        freeze="; ".join(filter(None, freeze_of(observation, horizon_of(spec, observation)))),
        done=done,
    )


def _succeeded(step: Settled, observation: Observation) -> bool:
    match step.phase:
        case Phase.ENDED:
            return bool(observation.current and observation.current.succeeded)
        case Phase.HELD:
            return is_well(observation)
        case _:
            return True


def _attempt_page(active_rm: str, app: Application) -> str:
    """Return the page that links the logs of the only attempt: it has an address before the attempt has a container."""
    return f"{active_rm}/cluster/appattempt/{app.id.replace('application', 'appattempt')}_000001"
