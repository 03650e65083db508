"""A submission: its order, its command line word by word, each with its reason, and its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.secrets import SecretRef, Value, secrets_in
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.horizon import LaunchToken
from airflow_kstream.model.streams.installations import SparkInstallation
from airflow_kstream.model.streams.resume import ResumePoint
from airflow_kstream.model.streams.stream import StreamSpec


@dataclass(frozen=True)
class Origin:
    """The source of a word of the command line, and the reason for it."""

    source: str
    why: str = ""


def from_spec(why: str = "") -> Origin:
    return Origin("spec", why)


def from_kstream(why: str) -> Origin:
    return Origin("kstream", why)


@dataclass(frozen=True)
class Setting:
    """A conf's value and its origin."""

    value: Value
    origin: Origin

    def hidden(self, key: str) -> bool:
        """Return True if nobody may see it."""
        return isinstance(self.value, SecretRef) or bool(secrets_in(key, self.value))


def layered(*layers: tuple[Origin, Mapping[str, Value]]) -> dict[str, Setting]:
    """Return the confs of all layers; a later layer wins."""
    return {key: Setting(value, origin) for origin, conf in layers for key, value in conf.items()}


@dataclass(frozen=True)
class Argument:
    words: tuple[str, ...]
    origin: Origin


@dataclass(frozen=True)
class SparkDefaults:
    """The contribution of the `spark` connection, and the client that will submit.

    `installation` is the Spark that runs then, None if it was not asked; workarounds depend on it.
    """

    source: str = "default"
    binary: str = "spark-submit"
    queue: str | None = None
    installation: SparkInstallation | None = None


@dataclass(frozen=True)
class SubmissionOrder:
    """One generation of one stream that is to be submitted, regardless of the engine.

    `resume` is where it goes on; None for an engine whose job finds that itself.
    """

    cluster: Cluster
    spec: StreamSpec
    generation: int
    nonce: str
    resume: ResumePoint | None = None

    @property
    def stream(self) -> StreamId:
        return StreamId(self.spec.name, self.cluster.state_dir)

    @property
    def folder_uri(self) -> str:
        """Return the stream's folder, as a job on the cluster reaches it."""
        return f"{self.cluster.default_fs}{self.stream.folder}"


@dataclass(frozen=True)
class Submission:
    """A command line. `obstacle` is the reason why this host can't run it, empty if it can.

    `secret_conf` goes through a private file and is in neither `argv` nor repr. References in it must be looked up
    before the command runs. `settings` go through that file, too, and hold no secrets. `defaults_file` is what has to
    stand above it, None for a client that reads its defaults itself. `notes` are sentences about the whole.
    `launched_as` is for whom tokens have to be made for the launch; None if the client gets them itself.
    """

    binary: str
    arguments: tuple[Argument, ...]
    secret_conf: Mapping[str, Value] = field(default_factory=dict, repr=False)
    obstacle: str = ""
    defaults_file: str | None = None
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Setting] = field(default_factory=dict, repr=False)
    launched_as: Identity | None = None

    def revealed(self) -> dict[str, str]:
        """Return the secret confs to write down. Raises InvalidInput: when one was never looked up."""
        if places := [str(value) for value in self.secret_conf.values() if isinstance(value, SecretRef)]:
            raise InvalidInput(f"{', '.join(places)} was not looked up", tried=f"run {self.binary}")
        return {key: str(value) for key, value in self.secret_conf.items()}

    def argv(self, properties_file: str | None = None) -> tuple[str, ...]:
        words = [word for argument in self.arguments for word in argument.words]
        if properties_file is None:
            return (self.binary, *words)
        # Spark 4 reads spark-defaults.conf beside a properties file only when told to; before it, nothing does.
        reads = ["--load-spark-defaults"] if self.defaults_file is None else []
        return (self.binary, "--properties-file", properties_file, *reads, *words)


@dataclass(frozen=True)
class ExplainedSubmission:
    """A command line for people: each part of it with the source of its value and the reason for it.

    Secret values are masked. `notes` are sentences about the whole, and `blocked` those that say why it can't run.
    """

    notes: tuple[str, ...]
    binary: str = ""
    parts: tuple[tuple[str, Origin], ...] = ()
    blocked: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"  {text}  # {_words(origin)}" for text, origin in self.parts]
        head = [self.binary] if self.binary else []
        return "\n".join([*(f"# {note}" for note in self._sentences), *head, *lines])

    @property
    def _sentences(self) -> tuple[str, ...]:
        return (*(f"blocked: {why}" for why in self.blocked), *self.notes)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        parts = [{"text": text, "source": origin.source, "why": origin.why} for text, origin in self.parts]
        return {"notes": list(self._sentences), "binary": self.binary, "parts": parts}


def _words(origin: Origin) -> str:
    return f"{origin.source}: {origin.why}" if origin.why else origin.source


@dataclass(frozen=True)
class SubmitOutcome:
    """The end of the submitting client. Its exit code is a hint: only YARN knows whether there is an application.

    `exit_code` is None for a client that had to be ended because it took too long. `tokens` are those that it said it
    got for the job. `withdrawn` is whether it took back what it had submitted, because the queue had no room for it.
    """

    exit_code: int | None
    tail: str
    tokens: tuple[LaunchToken, ...] = ()
    withdrawn: bool = False
