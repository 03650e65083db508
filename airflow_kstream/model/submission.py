"""A submission: what is ordered, its command line word by word, each with its reason, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.generation import StreamId
from airflow_kstream.model.secrets import SecretRef, Value
from airflow_kstream.model.stream import StreamSpec


@dataclass(frozen=True)
class Origin:
    """Where a word of the command line came from, and why it is there."""

    source: str
    why: str = ""


@dataclass(frozen=True)
class Argument:
    words: tuple[str, ...]
    origin: Origin


@dataclass(frozen=True)
class SparkDefaults:
    """What the `spark` connection contributes, and what is known of the client that will submit.

    `hadoop_version` is that of the client's own Hadoop jars; workarounds depend on it.
    """

    source: str = "default"
    binary: str = "spark-submit"
    queue: str | None = None
    hadoop_version: tuple[int, ...] | None = None


@dataclass(frozen=True)
class SubmissionOrder:
    """One generation of one stream that is to be submitted, whatever its engine."""

    cluster: Cluster
    spec: StreamSpec
    generation: int
    nonce: str

    @property
    def stream(self) -> StreamId:
        return StreamId(self.spec.name, self.cluster.state_dir)

    @property
    def folder_uri(self) -> str:
        """The stream's folder, as a job on the cluster reaches it."""
        return f"{self.cluster.default_fs}{self.stream.folder}"


@dataclass(frozen=True)
class Submission:
    """A command line. `obstacle` says why this host can't run it, and is empty where it can.

    `secret_conf` goes through a private properties file and is in neither `argv` nor repr. What is still a reference in
    it has to be looked up before it is run.
    """

    binary: str
    arguments: tuple[Argument, ...]
    secret_conf: Mapping[str, Value] = field(default_factory=dict, repr=False)
    obstacle: str = ""

    def revealed(self) -> dict[str, str]:
        """The secret confs to write down. Raises InvalidInput: one was never looked up."""
        if places := [str(value) for value in self.secret_conf.values() if isinstance(value, SecretRef)]:
            raise InvalidInput(f"{', '.join(places)} was not looked up", tried=f"run {self.binary}")
        return {key: str(value) for key, value in self.secret_conf.items()}

    def argv(self, properties_file: str | None = None) -> tuple[str, ...]:
        words = [word for argument in self.arguments for word in argument.words]
        # Spark 4 reads spark-defaults.conf beside a properties file only when told to.
        extra = ["--properties-file", properties_file, "--load-spark-defaults"] if properties_file else []
        return (self.binary, *extra, *words)


@dataclass(frozen=True)
class SubmitOutcome:
    """How the submitting client ended. Its exit code is a hint: whether there is an application is asked of YARN."""

    exit_code: int
    tail: str
