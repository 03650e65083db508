"""The options of `kstream streams`, and the client that a person names by them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from airflow_kstream.cli.clusters import is_file, spark_defaults
from airflow_kstream.clients.local.regular_files import read_text, require_there
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import is_application_id, require_application_id, require_stream_name
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.submission import SparkDefaults
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.folder.engine import Engine


def checked_name(name: str) -> str:
    """Return the name. Raises InvalidInput: when no stream can have it, which needs no server."""
    if name:
        require_stream_name(name)
    return name


def checked_application(application_id: str) -> str:
    """Return the id. Raises InvalidInput: when no application can have it."""
    if application_id:
        require_application_id(application_id)
    return application_id


def checked_target(target: str) -> str:
    """Return an application's id or a path. Raises InvalidInput: when it is neither."""
    if not is_application_id(target):
        if target.startswith("application_") and not Path(target).exists():
            require_application_id(target)
        require_there(Path(target))
    return target


Name = Annotated[str, typer.Argument(metavar="NAME", callback=checked_name, help="The stream's name.")]
NameOrAll = Annotated[
    str, typer.Argument(metavar="NAME", callback=checked_name, help="The stream's name; all of them without it.")
]
SpecFile = Annotated[
    Path, typer.Argument(metavar="SPEC.yaml", help="A YAML file with one stream.", exists=True, dir_okay=False)
]
ApplicationId = Annotated[
    str,
    typer.Option(
        "--application-id", metavar="APPLICATION", callback=checked_application, help="The YARN application to adopt."
    ),
]
OfUser = Annotated[
    str,
    typer.Option("--of-user", metavar="USER", help="Adopt it although it runs as this user instead of the stream's."),
]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept for others to read.")]
HandOverTo = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="USER|SPEC.yaml",
        help="Who gets it: the user's short name on HDFS, or the stream's declaration, whose credentials tell it.",
    ),
]
Now = Annotated[
    bool,
    typer.Option("--now", help="Act from here, with the declaration that a supervisor kept of its last submission."),
]
NeverSubmitted = Annotated[
    bool,
    typer.Option(
        "--never-submitted", help="Confirm that the name is not mistyped: nobody has submitted this stream yet."
    ),
]
ResumeFrom = Annotated[
    str,
    typer.Option(
        "--resume",
        metavar="PATH",
        help="Let the next generation begin with this savepoint or checkpoint: a folder on HDFS with a _metadata.",
    ),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Let the next generation begin with no state at all.")]
DropsUnmapped = Annotated[
    bool,
    typer.Option(
        "--allow-non-restored-state", help="Let the next generation lose the state of operators that it doesn't have."
    ),
]
LookFor = Annotated[
    str,
    typer.Option(
        "--look-for",
        metavar="DURATION",
        help="How long to watch the checkpoints; by default twice the time between two batches, at least stop.silence, "
        "at most ten minutes.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the first step; change nothing.")]
DryAdopt = Annotated[
    bool, typer.Option("--dry-run", help="Print what is checked and what would be written; write nothing.")
]
SparkSubmit = Annotated[
    str,
    typer.Option(
        "--spark-submit", metavar="PATH", help="The client to submit with, instead of the declaration's or this host's."
    ),
]
SparkConnection = Annotated[
    str,
    typer.Option(
        "--spark-conn-id",
        metavar="ID",
        help="The Airflow connection of type spark whose queue and client are used where the declaration names none. "
        "Without it, that of the shipped DAGs, if --cluster is an Airflow connection.",
    ),
]


@dataclass(frozen=True)
class Client:
    """The client and the `spark` connection that the command line names, if any."""

    cluster_name: str
    spark_submit: str = ""
    spark_conn_id: str = ""

    def engine(self, spec: StreamSpec) -> Engine:
        return engine_of(spec, self._defaults, self.spark_submit)

    def _defaults(self) -> SparkDefaults:
        conn_id = self.spark_conn_id or ("" if is_file(self.cluster_name) else _of_the_shipped_dags())
        return spark_defaults(conn_id) if conn_id else SparkDefaults()


def _of_the_shipped_dags() -> str:
    # Imported late: Airflow takes seconds, which a command with a file need not spend.
    from airflow_kstream import settings

    return settings.text("spark_conn_id")


def read_spec(spec_file: Path) -> StreamSpec:
    """Read a declaration. Raises InvalidInput: when it is none, with the file's name."""
    text = read_text(spec_file)
    try:
        return StreamSpec.from_yaml(text)
    except InvalidInput as error:
        raise InvalidInput(f"{spec_file}: {error.message}") from None
