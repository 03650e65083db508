"""Dry run: what a reconcile would do, and each word of a submission with its reason and source; nothing is changed."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from operator import itemgetter

from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import KstreamError, Unavailable
from airflow_kstream.model.secrets import MASK, SecretRef, Value
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import (
    Refuse,
    Step,
    Stop,
    Submit,
)
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.submission import ExplainedSubmission, Origin, Submission, SubmissionOrder
from airflow_kstream.policy.streams.horizon.refresh import refresh_words
from airflow_kstream.policy.streams.horizon.rotation import identity_of
from airflow_kstream.policy.streams.restart.allowed import words
from airflow_kstream.policy.streams.restart.watchable import require_submittable
from airflow_kstream.supervise.streams.checkpoint.ownership import require_available
from airflow_kstream.supervise.streams.folder.engine import Engine
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.look.blocked import not_allowed
from airflow_kstream.supervise.streams.orders.desired import KnownSpec
from airflow_kstream.supervise.streams.restart.former_spec import to_be_submitted
from airflow_kstream.supervise.streams.restart.submit import obstacles
from airflow_kstream.supervise.streams.restart.token_pushes import ways_in_clear

_ANY, _NONCE = 0, "NONCE"
_PRIVATELY = "through a private file, in no argv"


def explained(cluster: Cluster, spec: StreamSpec, engine: Engine, generation: int = _ANY) -> ExplainedSubmission:
    """Return the command line that a submission would run, each part with its reason.

    The nonce is a placeholder, and so is the generation where it is not known. It is blocked if this host can't run it,
    or the connection does not allow it. Notes say what becomes of the client's own defaults, and name the services
    whose tokens may end before the horizon.
    """
    require_submittable(spec, cluster)
    plan = engine.draft(SubmissionOrder(cluster, spec, generation, _NONCE))
    stands = f"{_NONCE} stands" if generation else f"generation {_ANY} and {_NONCE} stand"
    notes = [f"as {identity_of(spec, cluster)}; {stands} for the claim's own"]
    notes += plan.notes
    said = engine.words
    notes += [str(each) for each in refresh_words(spec, ways_in_clear(cluster), said.refreshed, said.leader)]
    notes += [str(each) for each in engine.uncounted_tokens(cluster, spec)]
    return ExplainedSubmission(
        tuple(notes), shlex.quote(plan.binary), tuple(_parts(plan)), tuple(_blocked(cluster, spec, plan))
    )


def planned(cluster: Cluster, known: KnownSpec, engine: Engine, generation: int = _ANY) -> ExplainedSubmission:
    """Return the command line of the next submission. To watch or to stop a stream, none is needed."""
    if not known.submittable:
        # Not even its client's version is looked up: a claim names no program that runs here.
        return ExplainedSubmission((f"is not submitted: {known.doubt}",))
    try:
        return explained(cluster, known.spec, engine, generation)
    except KstreamError as error:
        return ExplainedSubmission((), blocked=(f"can't be submitted from here: {error.without_advice}",))


def _blocked(cluster: Cluster, spec: StreamSpec, plan: Submission) -> Iterator[str]:
    if missing := not_allowed(spec, cluster):
        yield f"{words(missing, cluster.name)}. Only what already runs with it goes on"
    if plan.obstacle:
        yield f"can't be submitted from here: {plan.obstacle}"


def blocked_start(plan: ExplainedSubmission, run: StreamRun, tell: Callable[[str], None]) -> list[str]:
    """Return all that blocks a first start, each once, and tell what could not be asked. Nothing is written."""
    why = list(plan.blocked)
    for error in obstacles(run):
        if isinstance(error, Unavailable):
            tell(f"Not asked: {error}")
        elif not any(error.message in known for known in why):
            why.append(error.without_advice)
    return why


def blocked(run: StreamRun, observation: Observation, step: Step) -> tuple[str, ...]:
    """Return what keeps this step from being taken, or the successor of a stopped generation from starting.

    Servers are asked, and nothing is written. Raises Unavailable: when one doesn't answer and nothing else is known.
    """
    match step:
        case Refuse(why):
            return (why,)
        case Stop(obstacle=obstacle) if obstacle:
            return (f"it keeps running, because its successor could not start: {obstacle}",)
        case Submit() | Stop():
            errors = list(_errors(run, observation, step))
        case _:
            return ()
    proven = [error for error in errors if not isinstance(error, Unavailable)]
    if errors and not proven:
        raise errors[0]
    return tuple(error.without_advice for error in proven)


def _errors(run: StreamRun, observation: Observation, step: Submit | Stop) -> Iterator[KstreamError]:
    try:
        require_available(run, observation)
    except KstreamError as error:
        yield error
    if isinstance(step, Stop) and not step.preflight:
        return
    if isinstance(step, Submit):
        try:
            # What a generation that runs will leave can't be told yet.
            run.engine.resume(run.session, run.spec, observation)
        except KstreamError as error:
            yield error
    yield from obstacles(to_be_submitted(run, observation), observation)


def _parts(plan: Submission) -> Iterator[tuple[str, Origin]]:
    for key, value in sorted(plan.secret_conf.items(), key=itemgetter(0)):
        yield f"{key}={MASK}", _hidden(value)
    for key, setting in sorted(plan.settings.items(), key=itemgetter(0)):
        yield f"{key}: {setting.value}", setting.origin
    for argument in plan.arguments:
        yield shlex.join(argument.words), argument.origin


def _hidden(value: Value) -> Origin:
    if isinstance(value, SecretRef):
        return Origin(f"{value}, looked up right before the submission; {_PRIVATELY}")
    return Origin(_PRIVATELY)
