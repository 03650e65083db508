"""`kstream streams ...`: see, start, stop, restart, adopt."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from airflow_kstream.cli.clusters import ClusterOption, opened
from airflow_kstream.clients.local.regular_files import read_text
from airflow_kstream.clients.spark import find_spark_submit, hadoop_version
from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import InvalidInput, NotFound
from airflow_kstream.model.generation import DesiredState, StreamId
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.model.submission import SparkDefaults
from airflow_kstream.policy.streams.spark_submission import identity_of
from airflow_kstream.policy.streams.spec_change import spec_change
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.streams import desired
from airflow_kstream.supervise.streams.acting import open_as_stream
from airflow_kstream.supervise.streams.adopt import adopt as take_over
from airflow_kstream.supervise.streams.dry_run import explain
from airflow_kstream.supervise.streams.reconcile import Reconciler
from airflow_kstream.supervise.streams.registry import stream_names
from airflow_kstream.supervise.streams.watch import Verdict, Watch

app = typer.Typer(no_args_is_help=True, help="Streams: see, start, stop, restart, adopt.")

Name = Annotated[str, typer.Argument(help="The stream's name.")]
SpecFile = Annotated[Path, typer.Argument(help="A YAML file with one stream.", exists=True, dir_okay=False)]
Reason = Annotated[str, typer.Option("--reason", help="For those who find it later.")]
AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]


@app.command()
def status(cluster: ClusterOption, name: Annotated[str, typer.Argument()] = "", as_json: AsJson = False) -> None:
    """How a stream stands, or all of this state_dir: application, heartbeat, last commit, time to the horizon.

    The heartbeat is HEALTHY, IDLE (nothing planned), STARTING (no commit of this generation yet), START_STALLED,
    STALLED or UNKNOWN. A horizon of none is a job that makes its own tokens.
    """
    with opened(cluster) as found, open_session(found, found.watcher) as session:
        known = stream_names(session)
        if name and name not in known:
            raise NotFound(f"{found.state_dir} knows {', '.join(known) or 'no stream'}", tried=f"look at stream {name}")
        verdicts = Watch(session).round([name] if name else known)
    if as_json:
        typer.echo(json.dumps({stream: verdict.to_json() for stream, verdict in verdicts.items()}, indent=1))
        return
    # Folded and never cut: an application id is there to be copied.
    headings = ("stream", "generation", "state", "last commit", "horizon")
    table = Table(*(Column(heading, overflow="fold") for heading in headings))
    for stream, verdict in sorted(verdicts.items()):
        table.add_row(stream, str(verdict.generation), _state(verdict), *_times(verdict))
    Console().print(table)


@app.command()
def plan(cluster: ClusterOption, spec_file: SpecFile) -> None:
    """Dry run: the exact command line, with the reason and the source of every word. Touches nothing."""
    with opened(cluster) as found:
        typer.echo(explain(found, _read(spec_file), _defaults()))


@app.command()
def reconcile(
    cluster: ClusterOption,
    spec_file: SpecFile,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say the first step, and do nothing.")] = False,
) -> None:
    """Make sure that the stream runs as declared and desired, once, without watching it."""
    spec = _read(spec_file)
    with opened(cluster) as found, open_session(found, identity_of(spec, found)) as session:
        reconciler = Reconciler(session, spec, _defaults(), tell=typer.echo)
        if dry_run:
            seen, step = reconciler.plan()
            typer.echo(f"{type(step).__name__.lower()}: {step.why}")
            for line in spec_change(spec, seen.claim).words:
                typer.echo(f"{line} (on_change: {spec.on_change})")
            return
        report = reconciler.run()
    typer.echo(f"{report.stream} is {report.phase}: {report.why}")


@app.command()
def stop(cluster: ClusterOption, name: Name, reason: Reason = "") -> None:
    """Want it stopped, and see that it is: by marker, SIGTERM or kill."""
    with _as_stream(cluster, name) as (session, spec):
        desired.want(session, StreamId(name, session.cluster.state_dir), DesiredState.STOPPED, reason)
        report = Reconciler(session, spec, SparkDefaults(), tell=typer.echo, may_submit=False).run()
    typer.echo(f"{name} is {report.phase}: {report.why}")


@app.command()
def start(cluster: ClusterOption, name: Name, reason: Reason = "") -> None:
    """Want it running. Whoever watches it starts it; else the next run of its DAG, or `kstream streams reconcile`."""
    _want(cluster, name, DesiredState.RUNNING, reason)


@app.command()
def hold(cluster: ClusterOption, name: Name, reason: Reason = "") -> None:
    """Hands off: nobody restarts or stops it until `start` or `stop`."""
    _want(cluster, name, DesiredState.HELD, reason)


@app.command()
def restart(cluster: ClusterOption, name: Name, reason: Reason = "") -> None:
    """Want its present generation replaced. Whoever watches it does so; asking twice restarts once."""
    with _as_stream(cluster, name) as (session, _):
        number = desired.request_restart(session, StreamId(name, session.cluster.state_dir), reason)
    typer.echo(f"generation {number} of {name} will be replaced by whoever watches it")


@app.command()
def adopt(cluster: ClusterOption, spec_file: SpecFile, application_id: Annotated[str, typer.Option()]) -> None:
    """Take a running application over as this stream, without restarting it."""
    spec = _read(spec_file)
    with opened(cluster) as found, open_session(found, identity_of(spec, found)) as session:
        claim = take_over(session, spec, application_id)
    typer.echo(f"{application_id} is generation {claim.generation} of {spec.name}")


def _want(cluster: str, name: str, state: DesiredState, reason: str) -> None:
    with _as_stream(cluster, name) as (session, _):
        desired.want(session, StreamId(name, session.cluster.state_dir), state, reason)
    typer.echo(f"{name}: {state}")


@contextmanager
def _as_stream(cluster: str, name: str) -> Iterator[tuple[ClusterSession, StreamSpec]]:
    """Access as the stream's own identity, which its newest claim names."""
    with opened(cluster) as found:
        spec = _claimed(found, name)
        with open_as_stream(found, spec, lambda line: typer.echo(line, err=True)) as session:
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


def _defaults() -> SparkDefaults:
    binary = find_spark_submit()
    return replace(SparkDefaults(), binary=binary, hadoop_version=hadoop_version(binary))


def _state(verdict: Verdict) -> str:
    pulse = f", {verdict.heartbeat.pulse}" if verdict.heartbeat else ""
    return f"{verdict.why}{pulse}"


_NO_HORIZON = {True: "none", False: "unknown"}


def _times(verdict: Verdict) -> tuple[str, str]:
    age = verdict.heartbeat.commit_age if verdict.heartbeat else None
    return (
        f"{format_duration(age)} ago" if age is not None else "",
        f"in {format_duration(verdict.remaining)}"
        if verdict.remaining is not None
        else _NO_HORIZON[verdict.horizon_known],
    )
