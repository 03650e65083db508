"""`kstream streams ...`: what a person sees of a stream, and says about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import typer

from airflow_kstream.cli.clusters import ClusterOption, is_file, opened
from airflow_kstream.cli.declarations import add_declarations
from airflow_kstream.cli.lease_options import duration
from airflow_kstream.cli.output import JsonOption, note, print_json, say
from airflow_kstream.cli.stream_freeze import DespiteFreeze, freeze, note_freeze, require_despite_freeze, unfreeze
from airflow_kstream.cli.stream_options import (
    ApplicationId,
    Client,
    DropsUnmapped,
    DryAdopt,
    DryRun,
    Fresh,
    HandOverTo,
    LookFor,
    Name,
    NeverSubmitted,
    Now,
    OfUser,
    Reason,
    ResumeFrom,
    SparkConnection,
    SparkSubmit,
    SpecFile,
    read_spec,
)
from airflow_kstream.cli.stream_status import status
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.declaration_kinds import STREAMS
from airflow_kstream.model.errors import Conflict, InvalidInput, NotFound, StreamEnded
from airflow_kstream.model.streams.generation import DesiredState, StreamId
from airflow_kstream.model.streams.plan import Phase, Report
from airflow_kstream.model.streams.resume import require_one_start
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.streams.horizon.horizon import horizon_of
from airflow_kstream.policy.streams.horizon.rotation import identity_of
from airflow_kstream.policy.streams.restart.former_spec import SpecChange, failed_spec_words
from airflow_kstream.policy.streams.restart.hand_over import hand_over
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.streams.checkpoint.adopt import accept_checkpoints, plan_adoption
from airflow_kstream.supervise.streams.checkpoint.adopt import adopt as adopt_application
from airflow_kstream.supervise.streams.checkpoint.take_over import take_over
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.look.observe import observe
from airflow_kstream.supervise.streams.orders.desired import (
    KnownSpec,
    SpecOf,
    claimed_spec,
    declared_at_last,
    known_spec,
    open_by_name,
    request_restart,
    set_desired,
    spec_of_any,
    start_from,
)
from airflow_kstream.supervise.streams.orders.desired import hold as put_on_hold
from airflow_kstream.supervise.streams.orders.hand_over import hand_over_facts, unwritable, user_named
from airflow_kstream.supervise.streams.pulse.evidence import take_evidence
from airflow_kstream.supervise.streams.restart.dry_run import blocked, explained
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from airflow_kstream.views.streams import evidence_lines

_FIRST_WORD = (
    "For a stream that was never submitted, pass --never-submitted to `stop` or `hold`; "
    "`kstream streams reconcile` submits it from its declaration"
)
app = typer.Typer(
    no_args_is_help=True,
    help="Streams: see, validate, plan, reconcile, start, stop, hold, restart, adopt, take over, freeze, and more.",
)
app.command()(status)


@app.command()
def plan(
    cluster_name: ClusterOption,
    spec_file: SpecFile,
    spark_submit: SparkSubmit = "",
    spark_conn_id: SparkConnection = "",
) -> None:
    """Print the exact command line, with the reason and the source of every word. A dry run: touches nothing.

    What blocks it comes first, with exit code 1: this host has no client, or the connection does not allow what the
    declaration uses. No server is asked: whether the stream's user may write its checkpoint, and whether it runs
    already, `kstream streams reconcile --dry-run` tells.
    """
    spec = read_spec(spec_file)
    with opened(cluster_name) as cluster:
        submission = explained(cluster, spec, Client(cluster_name, spark_submit, spark_conn_id).engine(spec))
    say(str(submission))
    if submission.blocked:
        raise typer.Exit(1)


@app.command()
def reconcile(
    cluster_name: ClusterOption,
    spec_file: SpecFile,
    dry_run: DryRun = False,
    spark_submit: SparkSubmit = "",
    spark_conn_id: SparkConnection = "",
) -> None:
    """Bring the stream to its declared and desired state, once, without watching it afterwards.

    With `--dry-run`, what blocks the first step comes first, with exit code 1: a client, a file, a ticket, room in the
    queue, or a right to a checkpoint that is missing.
    """
    with _declared(Client(cluster_name, spark_submit, spark_conn_id), spec_file) as run:
        if dry_run:
            _say_first_step(run)
        else:
            _reconcile(run)


@app.command()
def stop(
    cluster_name: ClusterOption,
    name: Name,
    reason: Reason = "",
    despite_freeze: DespiteFreeze = False,
    never_submitted: NeverSubmitted = False,
) -> None:
    """Stop the stream and wait until it has stopped (marker, then SIGTERM, then kill).

    With `--never-submitted`, a stream that was never submitted stays that way until `start`. While the cluster
    is frozen, nothing is stopped without `--despite-freeze`.
    """
    with _known(Client(cluster_name), name, never_submitted) as run:
        require_despite_freeze(run, despite_freeze=despite_freeze, tried=f"stop {name}")
        set_desired(run, DesiredState.STOPPED, reason)
        meant = replace(run, despite_freeze=despite_freeze)
        _conclude(meant, Reconciler(meant, tell=say, may_submit=False).run(), tried=f"stop {name}")


@app.command()
def start(
    cluster_name: ClusterOption,
    name: Name,
    reason: Reason = "",
    resume: ResumeFrom = "",
    fresh: Fresh = False,
    drops_unmapped: DropsUnmapped = False,
    now: Now = False,
    never_submitted: NeverSubmitted = False,
    spark_submit: SparkSubmit = "",
    spark_conn_id: SparkConnection = "",
) -> None:
    """Set the desired state to running.

    The supervisor starts the stream; if none is watching, the next DAG run or `kstream streams reconcile` does. With
    `--now`, it is started from here. If the desired state is running already, this takes back a requested restart. The
    first generation of a Flink stream waits for `--resume` or `--fresh`, together with `--never-submitted`.
    """
    require_one_start(name, resume, fresh=fresh)
    with _known(Client(cluster_name, spark_submit, spark_conn_id), name, never_submitted) as run:
        if resume or fresh or drops_unmapped:
            start_from(run, reason, path=resume, fresh=fresh, drops_unmapped=drops_unmapped)
        else:
            set_desired(run, DesiredState.RUNNING, reason)
        say(f"{name}: {DesiredState.RUNNING}")
        note_freeze(run.session)
        if now:
            _require_declaration(run)
            _reconcile(run)


@app.command()
def hold(cluster_name: ClusterOption, name: Name, reason: Reason = "", never_submitted: NeverSubmitted = False) -> None:
    """Set the desired state to held: no supervisor starts, restarts or stops the stream until `start` or `stop`.

    A stop that was begun before is not undone; the output tells how the stream stands. With `--never-submitted`, a
    stream is held before it was ever submitted.
    """
    with _known(Client(cluster_name), name, never_submitted) as run:
        left = put_on_hold(run, reason)
    say(f"{name}: {DesiredState.HELD}; {left}")


@app.command()
def restart(
    cluster_name: ClusterOption,
    name: Name,
    reason: Reason = "",
    now: Now = False,
    spark_submit: SparkSubmit = "",
    spark_conn_id: SparkConnection = "",
) -> None:
    """Request that the supervisor replaces the current generation. Two requests for one generation restart it once.

    With `--now`, it is replaced from here.
    """
    with _opened(Client(cluster_name, spark_submit, spark_conn_id), name, claimed_spec) as run:
        if now:
            run.require_declared(f"restart {name} from here")
        generation = request_restart(run, reason)
        begins = "" if now else ": its supervisor begins at its next look"
        say(f"generation {generation} of {name} is to be replaced{begins}")
        note_freeze(run.session)
        if now:
            _reconcile(run)


@app.command()
def adopt(
    cluster_name: ClusterOption,
    spec_file: SpecFile,
    application_id: ApplicationId,
    of_user: OfUser = "",
    dry_run: DryAdopt = False,
) -> None:
    """Adopt a running application as this stream, without restarting it.

    YARN does not tell which folders a job writes. A Flink job's JobManager does, and they have to be the declared ones;
    of a Spark job it is the person's word, until `kstream streams status` shows a commit. Another user's application is
    refused without `--of-user`. With `--dry-run`, it is refused for the same reasons, with the same exit code.
    """
    with _declared(Client(cluster_name), spec_file) as run:
        if dry_run:
            for line in plan_adoption(run, application_id, of_user).words(run):
                say(line)
            return
        told: list[str] = []
        claim = adopt_application(run, application_id, of_user, told.append)
    say(f"{application_id} is generation {claim.generation} of {run.spec.name}")
    for line in told:
        say(line)


@app.command()
def evidence(cluster_name: ClusterOption, name: Name, as_json: JsonOption = False) -> None:
    """Show what the running generation hangs on: three thread dumps, ten seconds apart. Changes nothing.

    The dumps of the process that leads the job and of up to 20 others that are busy come from its web UI, through the
    ResourceManager. With the ends of their logs they are kept on HDFS, in a folder that the stream's own user can read.
    """
    with _opened(Client(cluster_name), name, declared_at_last) as run:
        seen = observe(run)
        if seen.current is None:
            raise NotFound("none of its applications is known to YARN", tried=f"take evidence of {name}")
        found = take_evidence(run, seen.current, seen.generation, tell=note)
    if as_json:
        print_json(found.to_json())
    else:
        for line in evidence_lines(found):
            say(line)


@app.command("take-over")
def take_over_checkpoints(
    cluster_name: ClusterOption, spec_file: SpecFile, reason: Reason = "", look_for: LookFor = ""
) -> None:
    """Make the stream the owner of its checkpoints, although they have data or belonged to another stream.

    It first looks for applications of the former owner and of the job's user, and watches the checkpoints. It stops
    and submits nothing; the next reconcile goes on from their data.
    """
    look = duration("--look-for", look_for) if look_for else None
    with _declared(Client(cluster_name), spec_file) as run:
        taken = take_over(run, reason, look, tell=note)
    for line in taken.checked:
        say(f"checked: {line}")
    for checkpoint in taken.checkpoints:
        say(f"{checkpoint} belongs to {run.spec.name}")


@app.command("hand-over")
def hand_over_folder(cluster_name: ClusterOption, name: Name, to: HandOverTo) -> None:
    """Print what HDFS's superuser runs so that the stream's folder belongs to another user; called again, check it.

    Claims of the former user count afterwards, so that the next generation follows once the former one is proven dead.
    Changes nothing.
    """
    with opened(cluster_name) as cluster, open_session(cluster, cluster.watcher) as session:
        spec = read_spec(Path(to)) if is_file(to) else None
        if spec and spec.name != name:
            raise InvalidInput(f"{to} declares {spec.name}, not {name}", tried=f"hand {name} over")
        user = _user_of(cluster, spec) if spec else user_named(session, to)
        step = hand_over(hand_over_facts(session, name, user))
        for line in step.words:
            say(line)
        for command in step.commands:
            say(f"  {command}")
        if spec and step.done:
            for line in unwritable(cluster, spec):
                note(line)


def _user_of(cluster: Cluster, spec: StreamSpec) -> str:
    with open_session(cluster, identity_of(spec, cluster)) as session:
        return session.hdfs.user()


@app.command()
def accept(cluster_name: ClusterOption, spec_file: SpecFile, reason: Reason = "") -> None:
    """Let the next generation start from its checkpoints as they are, though they are not what the last one left.

    A generation is refused if its checkpoint is gone, older than it was, or another query's. This accepts, once, the
    position that each checkpoint has now, and lets the generation follow one whose outputs still change. A checkpoint
    that was never this stream's is for `take-over`.
    """
    with _declared(Client(cluster_name), spec_file) as run:
        generation, accepted = accept_checkpoints(run, reason)
    for line in accepted:
        say(line)
    say(f"generation {generation} of {run.spec.name} may start from there")


def _say_first_step(run: StreamRun) -> None:
    observation, step = Reconciler(run).plan()
    note_freeze(run.session)
    in_its_way = blocked(run, observation, step)
    for why in in_its_way:
        say(f"blocked: {why}")
    say(f"{type(step).__name__.lower()}: {step.why}")
    change = SpecChange(run.spec, observation)
    if failed := failed_spec_words(run.spec.name, change.failed):
        say(failed)
    for each in run.engine.uncounted_tokens(run.cluster, run.spec):
        note(str(each))
    ends = horizon_of(run.spec, observation)
    if ends and ends.replacement and (warning := ends.replacement.words(observation.now)):
        note(warning)
    for line in change.difference.words:
        say(f"{line} (on_change: {run.spec.on_change})")
    if in_its_way:
        raise typer.Exit(1)


def _reconcile(run: StreamRun) -> None:
    _conclude(run, Reconciler(run, tell=say).run(), tried=f"reconcile {run.spec.name}")


def _conclude(run: StreamRun, report: Report, tried: str) -> None:
    """Say how the stream was left. Raises Conflict or StreamEnded: when that is not what the person wants."""
    if report.phase is Phase.FROZEN:
        raise Conflict(f"{report.why}; the cluster is {report.freeze}", tried=tried).passing(not run.freeze().doubt)
    if report.phase in {Phase.BACKING_OFF, Phase.KILLED}:
        raise StreamEnded(report.why, tried=tried).passing(report.phase is Phase.BACKING_OFF)
    say(f"{report.stream} is {report.phase}: {report.why}")
    if report.declaration.failed_spec:
        say(report.declaration.failed_spec)


@contextmanager
def _declared(client: Client, spec_file: Path) -> Iterator[StreamRun]:
    """Open the stream that a file declares, as the stream's own identity."""
    spec = read_spec(spec_file)
    with opened(client.cluster_name) as cluster, open_session(cluster, identity_of(spec, cluster)) as session:
        yield StreamRun(session, spec, client.engine(spec))


def _require_declaration(run: StreamRun) -> None:
    tried = f"submit {run.spec.name}"
    if not run.spec.application:
        advice = "run `kstream streams reconcile` with its declaration"
        raise NotFound(f"no generation of it was ever claimed; {advice}", tried=tried)
    run.require_declared(tried)


@contextmanager
def _known(client: Client, name: str, never_submitted: bool = False) -> Iterator[StreamRun]:
    """Open the stream that its newest claim names or, before the first, one that has a name alone: a person may speak
    first."""
    with _opened(client, name, spec_of_any if never_submitted else _spec_of_known) as run:
        yield run


def _spec_of_known(session: ClusterSession, stream: StreamId) -> KnownSpec:
    try:
        return known_spec(session, stream)
    except NotFound as error:
        raise NotFound(f"{error.message}. {_FIRST_WORD}", tried=error.tried) from None


@contextmanager
def _opened(client: Client, name: str, spec_of: SpecOf) -> Iterator[StreamRun]:
    """Open a stream by its name, as `open_by_name` does."""
    with opened(client.cluster_name) as cluster, open_by_name(cluster, name, note, spec_of) as (session, known):
        yield StreamRun(session, known.spec, client.engine(known.spec), declared=known.submittable)


# Help lists commands in this order.
app.command()(freeze)
app.command()(unfreeze)
add_declarations(app, STREAMS)
