"""What a person takes as it is: a running application that somebody else submitted, or the checkpoints' positions."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import Conflict
from airflow_kstream.model.streams.checkpoint_owner import OwnerGrant, OwnerStatement
from airflow_kstream.model.streams.contract import claim_file
from airflow_kstream.model.streams.generation import ALL_STREAMS_TAG, Age, Claim, DesiredState
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.streams.restart.watchable import require_submittable
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.clusters.tokens import learn_lifetimes
from airflow_kstream.supervise.streams.checkpoint.ownership import own, require_available, require_owned
from airflow_kstream.supervise.streams.folder.declared_copies import keep_copy, keep_word_on_adopted
from airflow_kstream.supervise.streams.folder.engine import Adopted
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.folder.state_folder import new_nonce
from airflow_kstream.supervise.streams.look.blocked import require_allowed
from airflow_kstream.supervise.streams.look.observe import observe

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AdoptionPlan:
    """An adoption with nothing in its way. `job` is what the engine says of the application, `others` is whether that
    runs as another user, and `old` is the file of its claim of an earlier format, nothing if it has none."""

    app: Application
    observation: Observation
    generation: int
    old: tuple[str, ...]
    others: bool
    job: Adopted

    @property
    def told(self) -> tuple[str, ...]:
        """Return what is known of its job; of one that shows nothing, that its checkpoints are a person's word."""
        paths = [point.path for point in self.observation.checkpoints]
        nothing = "nothing shows that it writes {} until a commit comes: `kstream streams status` tells"
        return (*(self.job.shown or map(nothing.format, paths)), *self.job.doubts)

    def words(self, run: StreamRun) -> tuple[str, ...]:
        """Return what was checked, and what `adopt` would write."""
        app, folder = self.app, run.id.folder
        checkpoints = ", ".join(point.path for point in self.observation.checkpoints)
        return (
            f"checked: {app.id} runs as {app.user or 'nobody knows whom'}, and is no other stream's",
            *self.told,
            f"checked: {run.cluster.name} allows what the declaration uses",
            *((f"checked: no other stream owns {checkpoints}",) * bool(checkpoints)),
            f"would write: the claim of generation {self.generation}, {folder}/{claim_file(self.generation)}",
            *(f"would remove: the claim of an earlier format, {folder}/{name}" for name in self.old),
            *((f"would write: that {run.spec.name} owns {checkpoints}",) * bool(checkpoints)),
            *((f"would write: your word that {run.spec.name} runs as {app.user}",) * self.others),
            "would write: a copy of the declaration, by which its next generation is submitted",
        )


def adopt(run: StreamRun, application_id: str, of_user: str = "", tell: Callable[[str], None] = log.info) -> Claim:
    """Claim the next generation of the stream for a running application, and tell what its engine knows of it.

    The application's age is the ResourceManager's start time less a margin: its tokens are older than its start.
    A running generation of the stream itself, whose claim was lost with `state_dir` or is missing in an older copy of
    it, is claimed again under its own number, which its driver goes by. `of_user` is a person's word that it runs as
    this user, and not as the stream's own.

    Raises InvalidInput and Conflict: as `plan_adoption`, or when another stream was quicker.
    """
    planned = plan_adoption(run, application_id, of_user)
    session, spec, observation = run.session, run.spec, planned.observation
    draft = ClaimDraft(
        generation=planned.generation,
        nonce=new_nonce(),
        spec=spec,
        lifetimes=learn_lifetimes(session.hdfs, session.identity),
        positions={point.path: point.position for point in observation.checkpoints},
        reason=f"adopted {application_id}",
        adopted=application_id,
        adopted_started=planned.app.started,
        adopted_job=planned.job.job,
        adopted_settings=planned.job.settings,
    )
    if why := keep_copy(run):
        log.warning("%s: %s", spec.name, why)
    if planned.others:
        keep_word_on_adopted(run, application_id, of_user)
    own(run, observation, OwnerStatement(OwnerGrant.ADOPT, draft.reason, draft.generation))
    run.folder.repeat_former(observation.desired)
    # The driver goes by its number, so the claim of the earlier format makes way for one of the same number.
    run.folder.forget(planned.old)
    claim = run.folder.make_claim(draft)
    require_owned(run)
    for line in planned.told:
        tell(line)
    return claim


def plan_adoption(run: StreamRun, application_id: str, of_user: str = "") -> AdoptionPlan:
    """Check whether the stream can adopt the application; change nothing.

    Raises InvalidInput: when the connection does not allow what the declaration uses. Raises Conflict: when the
    application has ended or already belongs to a stream, when it runs as another user, when
    the stream already runs an application or may soon, when its desired state is not to run, when another stream
    owns a checkpoint, or as the engine's `adopted`.
    """
    session, spec = run.session, run.spec
    tried = f"adopt {application_id} as {spec.name}"
    require_submittable(spec, session.cluster)
    app = session.yarn.application(application_id)
    observation = observe(run)
    # From then on the generation has it, and its successors may.
    require_allowed(spec, session.cluster, observation.claim)
    if not app.alive:
        raise Conflict(f"it ended as {app.state}", tried=tried)
    old = _claim_of_earlier_format(observation, app)
    again = bool(old) or _lost_its_claim(observation, app)
    if observation.current and observation.current.alive and not again:
        raise Conflict(f"the stream already runs {observation.current.id}", tried=tried)
    if observation.claim and observation.claim.file.age is Age.NEWER:
        raise Conflict(
            f"generation {observation.claim.generation} is not ours to follow: {observation.claim.doubt}", tried=tried
        )
    if observation.current is None and observation.claim and _may_arrive(spec, observation, observation.claim):
        raise Conflict(_claimed(run, observation, observation.claim), tried=tried).passing()
    if observation.desired.state is not DesiredState.RUNNING:
        raise Conflict(
            f"its desired state is {observation.desired.state}; run `kstream streams start {spec.name}` first",
            tried=tried,
        )
    if ALL_STREAMS_TAG in app.tags and not again:
        raise Conflict("it is a generation of a stream already", tried=tried)
    others = _is_another_users(session, app, of_user, tried)
    require_available(run, observation, OwnerGrant.ADOPT)
    generation = observation.generation if again else observation.next_generation
    return AdoptionPlan(app, observation, generation, old, others, run.engine.adopted(session, spec, app))


def _is_another_users(session: ClusterSession, app: Application, of_user: str, tried: str) -> bool:
    """Return whether it runs as the user that a person named, and not as the stream's own.

    Raises Conflict: when it runs as neither.
    """
    own = session.yarn.user() or session.state.user
    if app.user in {"", own}:
        return False
    if app.user != of_user:
        raise Conflict(
            f"it runs as {app.user}, and the stream as {own}, who would have to stop it, and whose jobs follow it; "
            f"`--of-user {app.user}` adopts it all the same",
            tried=tried,
        )
    return True


def _may_arrive(spec: StreamSpec, observation: Observation, claim: Claim) -> bool:
    """Return False for the claim of a job that somebody else had submitted: it was running when it was claimed."""
    if claim.fence not in observation.files or claim.adoption.application:
        return False
    return claim.submitted_by_us or observation.now < claim.claimed_at + spec.submit.ttl


def _claimed(run: StreamRun, observation: Observation, claim: Claim) -> str:
    """Return why a claim without an application stands in the way, and for how long."""
    left = claim.claimed_at + run.spec.submit.ttl - observation.now
    if left > timedelta():
        wait = format_duration(left)
        return f"generation {claim.generation} was claimed and may still arrive for another {wait} (submit.ttl)"
    advice = f"its supervisor does that, or `kstream streams stop {run.spec.name}` and then `start`"
    return f"generation {claim.generation} was claimed, never arrived, and is not given up yet: {advice}"


def _claim_of_earlier_format(observation: Observation, app: Application) -> tuple[str, ...]:
    """Return the file of the application's claim if it is of an earlier format; nothing otherwise."""
    claim, current = observation.claim, observation.current
    if claim is None or claim.file.age is not Age.OLDER or current is None or current.id != app.id:
        return ()
    return (claim_file(claim.generation),) if claim.generation == observation.generation else ()


def _lost_its_claim(observation: Observation, app: Application) -> bool:
    """Return True if it is the stream's only living application, and newer than every claim in its folder.

    A claim that was merely not seen yet is found in the way when this one is made.
    """
    claimed = observation.claim.generation if observation.claim else 0
    alive = [(number, each.id) for number, each in observation.applications if each.alive]
    return claimed < observation.generation and alive == [(observation.generation, app.id)]


def accept_checkpoints(run: StreamRun, reason: str) -> tuple[int, tuple[str, ...]]:
    """Let the next generation start from the positions that the declared checkpoints have now, and from no others.

    Returns its number and what was accepted, a line for each checkpoint.

    Raises Conflict: when an application of the stream lives, which still moves them, or when the stream does not own
    them: then a take-over is the word.
    """
    require_submittable(run.spec, run.cluster)
    observation = observe(run)
    living = [app.id for _, app in observation.applications if app.alive]
    if living:
        raise Conflict(f"{', '.join(living)} still runs", tried=f"accept the checkpoints of {run.spec.name}")
    require_available(run, observation)
    number = observation.next_generation
    run.folder.accept(number, {point.path: point.position for point in observation.checkpoints}, reason)
    return number, tuple(
        f"{point.path}: batch {point.position.offset} planned, {point.position.commit} committed, "
        f"query {point.position.query or 'none'}"
        for point in observation.checkpoints
    )
