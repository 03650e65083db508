"""A Flink of this host, with which a job is submitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class FlinkInstallation:
    """A folder with `bin/flink`, and the version by the name of its `flink-dist` jar.

    `java` are the options of Java that this Flink needs (`env.java.opts.*` of its own configuration), and nothing else
    of that counts. `renewer` is the ResourceManager's principal, `jar` the path of the jar that goes beside each job.
    """

    home: str
    version: tuple[int, ...] = ()
    java: Mapping[str, str] = field(default_factory=dict)
    renewer: str = ""
    jar: str = ""

    @property
    def binary(self) -> str:
        return f"{self.home}/bin/flink"

    @property
    def number(self) -> str:
        return ".".join(map(str, self.version))

    @property
    def obstacle(self) -> str:
        """Return why nothing is submitted with it; empty if it can be."""
        if self.version[:2] == (1, 20) or self.version[:1] == (2,):
            return ""
        return f"{self.home} is Flink {self.number}; supported are 1.20 and 2.x"
