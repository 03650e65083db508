"""A check of the doctor: a row of the table, and one small pure function from facts to what it finds.

A function asks for facts with `known`, `need` and `setting`. The first one that is missing ends it (`NotKnown`), and
becomes "could not be asked": so no function has to handle that, and none can forget it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from airflow_kstream.model.clusters.cluster_facts import ClusterFacts, StreamFacts, known
from airflow_kstream.model.finding import Concern, Severity
from airflow_kstream.model.streams.stream import EngineName

# What a finding is about whose root is the client that this host submits with.
THIS_CLIENT = "this host's client"


@dataclass(frozen=True)
class FindingDraft:
    """A finding before its check and source are known: see `Finding`. What shares an `about` has one root."""

    severity: Severity
    words: str
    fix: str
    proof: str
    about: str = ""
    concerns: tuple[Concern, ...] = ()


def draft_on(
    stream: StreamFacts, severity: Severity, words: str, fix: str, proof: str, harm: str, since: datetime | None = None
) -> FindingDraft:
    """Return a finding about one stream. `harm` is what it means for that stream, from `since` on."""
    return FindingDraft(severity, words, fix, proof, concerns=(Concern(stream.name, harm, since),))


def of_running(facts: ClusterFacts, harm: str) -> tuple[Concern, ...]:
    """Return the concerns of a finding about the cluster that means the same for each stream that runs."""
    return tuple(Concern(stream.name, harm) for stream in known(facts.streams) if stream.runs)


OfCluster = Callable[[ClusterFacts], Iterator[FindingDraft]]
OfStream = Callable[[ClusterFacts, StreamFacts], Iterator[FindingDraft]]


@dataclass(frozen=True)
class Check:
    """A row: a stable name, the question that it answers, where the rule comes from, and its function.

    A check of streams is made for each one: a fact that is missing for one hides no other. `engine` is whose streams
    alone it is about; None for any.
    """

    id: str
    question: str
    source: str
    of_cluster: OfCluster | None = None
    of_stream: OfStream | None = None
    engine: EngineName | None = None
