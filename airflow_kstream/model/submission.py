"""A spark-submit, word by word, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
class Submission:
    """`secret_conf` goes through a private properties file and is in neither `argv` nor repr."""

    binary: str
    arguments: tuple[Argument, ...]
    secret_conf: Mapping[str, str] = field(default_factory=dict, repr=False)

    def argv(self, properties_file: str | None = None) -> tuple[str, ...]:
        words = [word for argument in self.arguments for word in argument.words]
        # Spark 4 reads spark-defaults.conf beside a properties file only when told to.
        extra = ["--properties-file", properties_file, "--load-spark-defaults"] if properties_file else []
        return (self.binary, *extra, *words)
