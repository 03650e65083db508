"""Take over an application that somebody else submitted, without restarting it."""

from __future__ import annotations

from airflow_kstream.model.application import Application
from airflow_kstream.model.checkpoint_owner import Word
from airflow_kstream.model.errors import Conflict
from airflow_kstream.model.generation import ALL_STREAMS_TAG, Claim, DesiredState
from airflow_kstream.model.observation import Observation
from airflow_kstream.policy.streams.watchable import require_submittable
from airflow_kstream.supervise.clusters.token_lifetimes import learn_lifetimes
from airflow_kstream.supervise.streams.formats import ClaimDraft
from airflow_kstream.supervise.streams.observe import observe
from airflow_kstream.supervise.streams.ownership import own, require_owned
from airflow_kstream.supervise.streams.run import StreamRun
from airflow_kstream.supervise.streams.state_folder import new_nonce


def adopt(run: StreamRun, application_id: str) -> Claim:
    """Claim the next generation of the stream for a running application.

    The application's age is the ResourceManager's start time less a margin: its tokens are older than its start.
    A running generation of the stream itself, whose claim was lost with `state_dir` or is missing in an older copy of
    it, is claimed again under its own number, which its driver goes by.

    Raises Conflict: when the application has ended or already belongs to a stream, when the stream already runs an
    application or may soon, when its desired state is not to run, or when another stream owns a checkpoint.
    """
    session, spec = run.session, run.spec
    tried = f"adopt {application_id} as {spec.name}"
    require_submittable(spec, session.cluster)
    app = session.yarn.application(application_id)
    observation = observe(run)
    if not app.alive:
        raise Conflict(f"it ended as {app.state}", tried=tried)
    again = _lost_its_claim(observation, app)
    if observation.current and observation.current.alive and not again:
        raise Conflict(f"the stream already runs {observation.current.id}", tried=tried)
    if observation.claim and observation.claim.newer:
        raise Conflict(
            f"generation {observation.claim.generation} is not ours to follow: {observation.claim.doubt}", tried=tried
        )
    if observation.current is None and observation.claim and observation.claim.fence in observation.files:
        raise Conflict(f"generation {observation.claim.generation} was claimed and may still arrive", tried=tried)
    if observation.desired.state is not DesiredState.RUNNING:
        raise Conflict(
            f"its desired state is {observation.desired.state}; run `kstream streams start {spec.name}` first",
            tried=tried,
        )
    if ALL_STREAMS_TAG in app.tags and not again:
        raise Conflict("it is a generation of a stream already", tried=tried)
    own(run, observation, Word.ADOPT, f"adopted {application_id}")
    draft = ClaimDraft(
        generation=observation.generation if again else observation.generation + 1,
        nonce=new_nonce(),
        spec=spec,
        lifetimes=learn_lifetimes(session.hdfs, session.identity),
        positions={point.path: point.position for point in observation.checkpoints},
        reason=f"adopted {application_id}",
        adopted=application_id,
        adopted_started=app.started,
    )
    claim = run.folder.make_claim(draft)
    require_owned(run)
    return claim


def _lost_its_claim(observation: Observation, app: Application) -> bool:
    """Return True if it is the stream's only living application, and newer than every claim in its folder.

    A claim that was merely not seen yet is found in the way when this one is made.
    """
    claimed = observation.claim.generation if observation.claim else 0
    alive = [(number, each.id) for number, each in observation.applications if each.alive]
    return claimed < observation.generation and alive == [(observation.generation, app.id)]
