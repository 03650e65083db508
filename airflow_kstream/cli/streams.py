"""`kstream streams ...`: see, start, stop, restart, adopt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from airflow_kstream.cli.clusters import ClusterOption, opened
from airflow_kstream.cli.output import JsonOption, note, print_json, say, show
from airflow_kstream.clients.local.regular_files import read_text
from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput, NotFound
from airflow_kstream.model.generation import DesiredState, StreamId
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.model.submission import SparkDefaults
from airflow_kstream.policy.streams.identity import identity_of
from airflow_kstream.policy.streams.spec_change import spec_change
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.streams import desired
from airflow_kstream.supervise.streams.acting import open_as_stream
from airflow_kstream.supervise.streams.adopt import adopt as take_over
from airflow_kstream.supervise.streams.dry_run import explain
from airflow_kstream.supervise.streams.engine import Engine
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.reconcile import Reconciler
from airflow_kstream.supervise.streams.registry import stream_names
from airflow_kstream.supervise.streams.run import StreamRun
from airflow_kstream.supervise.streams.watch import Watch
from airflow_kstream.views.streams import streams_table

app = typer.Typer(no_args_is_help=True, help="Streams: see, start, stop, restart, adopt.")

Name = Annotated[str, typer.Argument(help="The stream's name.")]
NameOrAll = Annotated[str, typer.Argument(metavar="NAME", help="The stream's name; all of them without it.")]
SpecFile = Annotated[Path, typer.Argument(help="A YAML file with one stream.", exists=True, dir_okay=False)]
ApplicationId = Annotated[str, typer.Option("--application-id", help="The YARN application to take over.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept beside the desired state for others to read.")]
Now = Annotated[bool, typer.Option("--now", help="Do it from here, as the newest claim declares the stream.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say the first step; do nothing.")]
SparkSubmit = Annotated[
    str, typer.Option("--spark-submit", metavar="PATH", help="The client to submit with, instead of this host's own.")
]


@app.command()
def status(cluster_name: ClusterOption, name: NameOrAll = "", as_json: JsonOption = False) -> None:
    """Show a stream, or every stream of this state_dir: application, heartbeat, last commit, time to the horizon.

    The heartbeat is HEALTHY, IDLE (nothing planned), STARTING (no commit of this generation yet), START_STALLED,
    STALLED or UNKNOWN. A horizon of none is a job that makes its own tokens.
    """
    with opened(cluster_name) as cluster, open_session(cluster, cluster.watcher) as session:
        known = stream_names(session)
        if name and name not in known:
            names = ", ".join(known) or "no stream"
            raise NotFound(f"{cluster.state_dir} knows {names}", tried=f"look at stream {name}")
        verdicts = Watch(session).round([name] if name else known)
    if as_json:
        print_json({stream: verdict.to_json() for stream, verdict in verdicts.items()})
    else:
        show(streams_table(verdicts))


@app.command()
def plan(cluster_name: ClusterOption, spec_file: SpecFile, spark_submit: SparkSubmit = SparkDefaults.binary) -> None:
    """Print the exact command line, with the reason and the source of every word. A dry run: touches nothing."""
    with opened(cluster_name) as cluster:
        spec = _read(spec_file)
        say(explain(cluster, spec, _engine(spec, spark_submit)))


@app.command()
def reconcile(
    cluster_name: ClusterOption,
    spec_file: SpecFile,
    dry_run: DryRun = False,
    spark_submit: SparkSubmit = SparkDefaults.binary,
) -> None:
    """Bring the stream to its declared and desired state, once, without watching it afterwards."""
    spec = _read(spec_file)
    with opened(cluster_name) as cluster, open_session(cluster, identity_of(spec, cluster)) as session:
        reconciler = Reconciler(StreamRun(session, spec, _engine(spec, spark_submit)), tell=say)
        if dry_run:
            seen, step = reconciler.plan()
            say(f"{type(step).__name__.lower()}: {step.why}")
            for line in spec_change(spec, seen.claim).words:
                say(f"{line} (on_change: {spec.on_change})")
            return
        report = reconciler.run()
    say(f"{report.stream} is {report.phase}: {report.why}")


@app.command()
def stop(cluster_name: ClusterOption, name: Name, reason: Reason = "") -> None:
    """Stop the stream and wait until it has stopped (marker, then SIGTERM, then kill)."""
    with _as_stream(cluster_name, name) as (session, spec):
        desired.want(session, StreamId(name, session.cluster.state_dir), DesiredState.STOPPED, reason)
        report = Reconciler(StreamRun(session, spec, engine_of(spec)), tell=say, may_submit=False).run()
    say(f"{name} is {report.phase}: {report.why}")


@app.command()
def start(
    cluster_name: ClusterOption,
    name: Name,
    reason: Reason = "",
    now: Now = False,
    spark_submit: SparkSubmit = SparkDefaults.binary,
) -> None:
    """Set the desired state to running.

    The supervisor starts the stream; if none is watching, the next DAG run or `kstream streams reconcile` does. With
    `--now`, it is started from here.
    """
    with _as_stream(cluster_name, name) as (session, spec):
        desired.want(session, StreamId(name, session.cluster.state_dir), DesiredState.RUNNING, reason)
        say(f"{name}: {DesiredState.RUNNING}")
        if now:
            _reconcile_from_claim(session, spec, spark_submit)


@app.command()
def hold(cluster_name: ClusterOption, name: Name, reason: Reason = "") -> None:
    """Set the desired state to held: no supervisor restarts or stops the stream until `start` or `stop`."""
    _want(cluster_name, name, DesiredState.HELD, reason)


@app.command()
def restart(
    cluster_name: ClusterOption,
    name: Name,
    reason: Reason = "",
    now: Now = False,
    spark_submit: SparkSubmit = SparkDefaults.binary,
) -> None:
    """Request that the supervisor replaces the current generation. Two requests for one generation restart it once.

    With `--now`, it is replaced from here.
    """
    with _as_stream(cluster_name, name) as (session, spec):
        number = desired.request_restart(session, StreamId(name, session.cluster.state_dir), reason)
        say(f"generation {number} of {name} is to be replaced")
        if now:
            _reconcile_from_claim(session, spec, spark_submit)


@app.command()
def adopt(cluster_name: ClusterOption, spec_file: SpecFile, application_id: ApplicationId) -> None:
    """Take over a running application as this stream, without restarting it."""
    spec = _read(spec_file)
    with opened(cluster_name) as cluster, open_session(cluster, identity_of(spec, cluster)) as session:
        claim = take_over(StreamRun(session, spec, engine_of(spec)), application_id)
    say(f"{application_id} is generation {claim.generation} of {spec.name}")


def _reconcile_from_claim(session: ClusterSession, spec: StreamSpec, spark_submit: str) -> None:
    """Submit what the newest claim says, unless its secrets are masked, as the first version did."""
    declared = spec.checked()
    report = Reconciler(StreamRun(session, declared, _engine(declared, spark_submit)), tell=say).run()
    say(f"{report.stream} is {report.phase}: {report.why}")


def _want(cluster_name: str, name: str, state: DesiredState, reason: str) -> None:
    with _as_stream(cluster_name, name) as (session, _):
        desired.want(session, StreamId(name, session.cluster.state_dir), state, reason)
    say(f"{name}: {state}")


@contextmanager
def _as_stream(cluster_name: str, name: str) -> Iterator[tuple[ClusterSession, StreamSpec]]:
    """Open a session as the stream's own identity, which its newest claim names."""
    with opened(cluster_name) as cluster:
        spec = _claimed(cluster, name)
        with open_as_stream(cluster, spec, note) as session:
            yield session, spec


def _claimed(cluster: Cluster, name: str) -> StreamSpec:
    with open_session(cluster, cluster.watcher) as session:
        return desired.declared_at_last(session, StreamId(name, cluster.state_dir))


def _read(spec_file: Path) -> StreamSpec:
    text = read_text(spec_file)
    try:
        return StreamSpec.from_yaml(text)
    except InvalidInput as error:
        raise InvalidInput(f"{spec_file}: {error.message}") from None


def _engine(spec: StreamSpec, spark_submit: str) -> Engine:
    return engine_of(spec, lambda: SparkDefaults(source="--spark-submit", binary=spark_submit))
