"""A stream's desired state as a person gives it, written where every supervisor reads it.

A command uses the stream's own identity or, if that can't log in, the connection's. On a held stream nobody starts,
restarts or stops anything, so the person answers for its credentials. `what_falls_into_the_freeze` names the streams
whose credentials may end in a freeze.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import Conflict, CredentialError, Denied, InvalidInput, KstreamError, NotFound
from airflow_kstream.model.fields import require_stream_name
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.contract import newest_claim, newest_trace
from airflow_kstream.model.streams.generation import Age, Claim, Desired, DesiredState, StreamId
from airflow_kstream.model.streams.resume import NOTHING, StartWord, require_one_start
from airflow_kstream.model.streams.stream import StreamSpec, TicketCredentials
from airflow_kstream.model.streams.stream_policies import KafkaPolicy
from airflow_kstream.model.versioned import UnknownSpec
from airflow_kstream.policy.streams.horizon.rotation import identity_of
from airflow_kstream.policy.streams.restart.freeze import ends_held, left_as
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.streams.engines import named_state
from airflow_kstream.supervise.streams.folder.registry import require_known, stream_names
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from airflow_kstream.supervise.streams.look.blocked import not_allowed
from airflow_kstream.supervise.streams.look.observe import observe
from airflow_kstream.supervise.streams.look.watch import Watch

# Said to a person whose request is refused, and has been heard before.
REQUESTED = "is requested already, and follows"


def set_desired(run: StreamRun, state: DesiredState, reason: str, start: StartWord | None = None) -> None:
    """Write the desired state. What was said of a start before is taken back.

    A requested restart stays requested, unless a stream that is to run gets the order to run: that takes it back.
    """
    taken_back: list[int] = []

    def wanted(current: Desired) -> Desired:
        # Of what others request at this very moment this person knows nothing.
        again = state is current.state is DesiredState.RUNNING
        taken_back.append(current.restart_up_to if again else 0)
        restart = 0 if current.restart_up_to == taken_back[0] else current.restart_up_to
        return replace(current, state=state, reason=reason, start=start, restart_up_to=restart)

    run.folder.change_desired(wanted)


def start_from(
    run: StreamRun, reason: str, *, path: str = "", fresh: bool = False, drops_unmapped: bool = False
) -> None:
    """Write that it is to run, and where its next generation starts: a word for that generation alone.

    Raises Conflict: when an application of it lives, whose successor would begin there some day. Raises InvalidInput:
    when a start is both fresh and from a state, or as `named_state`.
    """
    tried = f"start {run.spec.name}"
    require_one_start(run.spec.name, path, fresh=fresh)
    if alive := [app.id for app in run.session.yarn.applications(run.id.tag) if app.alive]:
        raise Conflict(f"{', '.join(alive)} runs: stop the stream first", tried=tried)
    state = named_state(run.session, path) if path else NOTHING
    names = run.folder.names()
    number = max(newest_claim(names), newest_trace(names)) + 1
    set_desired(run, DesiredState.RUNNING, reason, StartWord(number, state.path, state.number, fresh, drops_unmapped))


def request_restart(run: StreamRun, reason: str) -> int:
    """Request that the current generation be replaced, and return its number. Two requests restart it once.

    Raises NotFound: when it was never submitted. Raises Conflict: when its desired state is not to run, also when
    somebody changes it at the same moment: a held stream stays held.
    """
    name, tried = run.spec.name, f"request a restart of {run.spec.name}"
    claim = run.folder.claim(run.folder.names())
    if claim is None:
        raise NotFound("it was never submitted", tried=tried)

    def restarting(current: Desired) -> Desired:
        if current.state is not DesiredState.RUNNING:
            advice = f"run `kstream streams start {name}` first"
            if current.restarts(claim.generation):
                # By this person, who heard no answer, or by another before the present word.
                advice = f"a restart of generation {claim.generation} {REQUESTED} `kstream streams start {name}`"
            raise Conflict(f"its desired state is {current.state}; {advice}", tried=tried)
        return replace(current, restart_up_to=claim.generation, reason=reason)

    run.folder.change_desired(restarting)
    return claim.generation


@dataclass(frozen=True)
class KnownSpec:
    """A stream's spec, found without its declaration.

    `submittable` is whether a supervisor's copy of the declaration holds it. What only a claim says of itself is enough
    to watch the stream, and to stop it as the connection's own principal, and for nothing else: `doubt` tells why.
    """

    spec: StreamSpec
    submittable: bool = False
    doubt: str = ""

    def identity(self, cluster: Cluster) -> Identity:
        """Return whom to act as: the connection's principal, unless a supervisor's copy says more. No claim does."""
        return identity_of(self.spec, cluster) if self.submittable else cluster.watcher


def known_spec(session: ClusterSession, stream: StreamId) -> KnownSpec:
    """Return the spec of a stream that has a folder: a name that nobody knows is a mistyped one.

    Raises NotFound: when it has none. Raises InvalidInput: as `spec_of_any`.
    """
    require_stream_name(stream.name)
    require_known(session, stream.name, tried=f"find stream {stream.name}")
    return spec_of_any(session, stream)


def spec_of_any(session: ClusterSession, stream: StreamId) -> KnownSpec:
    """Return the newest claim's spec or, before the first claim, one that only names the stream.

    Raises InvalidInput: when the claim can't be read, or this can't be a stream's name.
    """
    try:
        return claimed_spec(session, stream)
    except NotFound:
        require_stream_name(stream.name)
        return KnownSpec(StreamSpec(stream.name, TicketCredentials(), application="", checkpoints=()))


def declared_at_last(session: ClusterSession, stream: StreamId) -> KnownSpec:
    """Return the declaration that the newest claim names, as a supervisor kept it: enough to submit the stream where
    its declaration isn't at hand.

    It only refers to its secrets, so the program that submits from it must be able to reach them.

    Raises NotFound: when it was never submitted. Raises InvalidInput: when the claim can't be read, or no supervisor
    kept what it names.
    """
    known = claimed_spec(session, stream)
    if not known.submittable:
        raise InvalidInput(known.doubt, tried=f"find the declaration of {stream.name}")
    return known


def newest_claim_of(session: ClusterSession, stream: StreamId) -> Claim | None:
    """Return the newest claim of a stream, None before the first."""
    folder = StreamFolder(session, stream)
    return folder.claim(folder.names())


def claimed_spec(session: ClusterSession, stream: StreamId) -> KnownSpec:
    """Return the spec that the newest claim names. Raises as `declared_at_last`, copies apart."""
    claim, tried = newest_claim_of(session, stream), f"read the claims of {stream.name}"
    if claim is None:
        require_known(session, stream.name, tried)
        raise NotFound("no generation of it was ever claimed", tried=tried)
    if isinstance(claim.spec, UnknownSpec):
        upgrade = "use that version, or end what runs with `yarn application -kill`"
        why = f"{claim.doubt}; {upgrade}" if claim.file.age is Age.NEWER else claim.doubt
        raise InvalidInput(why, tried=f"read the claim of generation {claim.generation} of {stream.name}")
    # Its own word makes this principal submit nothing that its user could not submit anyway, within what the connection
    # allows: a worker reaches more than a job does.
    own = claim.file.author == session.state.user and identity_of(claim.spec, session.cluster) == session.identity
    own = own and not not_allowed(claim.spec, session.cluster)
    doubt = (
        f"generation {claim.generation} was claimed by {claim.file.author or 'somebody'}, and no supervisor of "
        f"{stream.state_dir} ({session.state.supervisors}) kept a copy of the declaration that it names: "
        "run `kstream streams reconcile` with the declaration"
    )
    known = claim.file.copied or own
    # Nobody logs in to brokers that a claim alone names.
    return KnownSpec(claim.spec if known else replace(claim.spec, kafka=KafkaPolicy()), known, doubt)


def hold(run: StreamRun, reason: str) -> str:
    """Set the desired state to held; say what that leaves the stream as, and when that ends."""
    set_desired(run, DesiredState.HELD, reason)
    try:
        return left_as(observe(run)) + _end(run)
    except KstreamError as error:
        # The order stands; what became of the stream meanwhile is only news.
        return f"how it stands can't be seen now: {error.without_advice}"


def _end(run: StreamRun) -> str:
    """Say when a generation that runs dies unless somebody starts the stream; nothing for one that does not."""
    verdict = Watch(run.session, lambda _: run.engine).round([run.spec.name])[run.spec.name]
    ends = verdict.credentials
    if not verdict.lives or ends.remaining is None or ends.horizon is None:
        return ""
    return ends_held(run.spec.name, ends.horizon, ends.remaining)


SpecOf = Callable[[ClusterSession, StreamId], KnownSpec]


@contextmanager
def open_as_stream(cluster: Cluster, spec: StreamSpec, tell: Callable[[str], None]) -> Iterator[ClusterSession]:
    """Open the servers as the stream's own identity, which can do all that its commands need.

    If that identity can't log in, fall back to the connection's own principal: as a supervisor it can hold a stream,
    and with the right to administer the stream's queue it can stop it.

    Raises CredentialError: when that principal lacks a right, too; the error names the keytab to repair.
    """
    identity = identity_of(spec, cluster)
    refusal = None if identity == cluster.watcher else _login_error(identity)
    if refusal is None:
        with open_session(cluster, identity) as session:
            yield session
        return
    tell(f"{refusal.without_advice}; going on as {cluster.watcher}")
    with open_session(cluster, cluster.watcher) as session:
        try:
            yield session
        except Denied as denied:
            raise CredentialError(
                f"{refusal.message}; and {cluster.watcher} may not: {denied.message}",
                tried=refusal.tried,
                principal=refusal.principal,
            ) from denied


@contextmanager
def open_by_name(
    cluster: Cluster, name: str, tell: Callable[[str], None], spec_of: SpecOf = known_spec
) -> Iterator[tuple[ClusterSession, KnownSpec]]:
    """Open a stream that is only known by its name: the spec that its newest claim names, and the servers as
    `open_as_stream`; as the connection's principal, if no supervisor kept that spec: no claim chooses whom we act as.

    Raises as `open_as_stream` and `spec_of`.
    """
    with open_session(cluster, cluster.watcher) as session:
        known = spec_of(session, StreamId(name, cluster.state_dir))
    if not known.submittable:
        with open_session(cluster, cluster.watcher) as session:
            yield session, known
        return
    with open_as_stream(cluster, known.spec, tell) as session:
        yield session, known


def _login_error(identity: Identity) -> CredentialError | None:
    """Return why it gets no ticket; an unreachable KDC is not a reason to act as somebody else."""
    try:
        with private_folder() as private:
            tickets.log_in(identity, private / "tickets")
    except CredentialError as error:
        return error
    return None


def what_falls_into_the_freeze(session: ClusterSession) -> Iterator[str]:
    """Yield a line for each stream whose credentials end, or may end, while the cluster is frozen."""
    for name, verdict in sorted(Watch(session).round(stream_names(session)).items()):
        if verdict.people.freeze_warning:
            yield f"{name}: {verdict.people.freeze_warning}"
        elif verdict.step is None:
            yield f"{name}: whether its credentials end meanwhile is not known: {verdict.why}"
