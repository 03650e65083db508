"""Looks that tell whether streams have committed what had arrived by a moment: one round for all who ask.

The checkpoint's files count if the stream's user wrote them. Brokers are asked as its declaration or a supervisor's
copy of it names them, within the connection's `allow`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from airflow_kstream.model.errors import InvalidInput, KstreamError, NotFound
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.progress import (
    CommittedBatch,
    ProgressAnswer,
    ProgressCondition,
    QueryJudgement,
    StreamStanding,
    TopicsAt,
)
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.streams.pulse.progress import SETTLES, discounted, judged, made_again
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.folder.engine import Engine
from airflow_kstream.supervise.streams.folder.registry import no_such_stream, streams_among
from airflow_kstream.supervise.streams.look.verdict import Seen, Verdict
from airflow_kstream.supervise.streams.look.watch import Subject, Watch
from airflow_kstream.supervise.streams.look.watched_claim import watches_no_progress

log = logging.getLogger(__name__)

_TRIED = "look what it has committed"
# Partitions, some hundred megabytes at most; an answer itself takes as much as some of them.
_REMEMBERED, _ANSWER = 1_000_000, 10
Answers = Mapping[str, ProgressAnswer | KstreamError]


class ProgressWatch:
    """A watcher with the rights of `session`'s identity, which only needs to view. Not thread-safe.

    `again` is whether it looks again. `installation` is the Airflow whose folder may declare the streams.
    """

    def __init__(
        self,
        session: ClusterSession,
        engine_of: Callable[[StreamSpec], Engine] = engine_of,
        *,
        again: bool = False,
        installation: str | None = None,
    ) -> None:
        self._session = session
        self._engine_of = engine_of
        self._watch = Watch(session, engine_of, again=again, reads_logs=False)
        self._installation = installation
        # What Kafka had at a moment stays true, by the brokers, the moment, and the query that reads the topics;
        # the one that was used last comes last.
        self._known: dict[tuple[object, ...], TopicsAt] = {}
        self._held = 0

    def answer(self, awaited: ProgressCondition) -> ProgressAnswer:
        """Look once for one question. Raises as `answers` tells."""
        answer = self.answers([awaited])[awaited.key]
        if isinstance(answer, KstreamError):
            raise answer
        return answer

    def answers(self, questions: Iterable[ProgressCondition]) -> Answers:
        """Return the answer to each question, or the error that kept it from one, by the questions' keys.

        All are answered by one round: one listing of applications, and one look at each stream. InvalidInput: the
        declaration lets nobody tell. Denied: the connection does not allow its brokers. NotFound: there is no such
        stream yet, or what its checkpoint or Kafka had is gone. Unavailable: a server is away.
        """
        asked = sorted(questions, key=_by_subject)
        groups = [list(group) for _, group in groupby(asked, _by_subject)]
        verdicts = self._watch.looks(self._subject(group[0]) for group in groups)
        looked = ((group, verdict) for group, (_, verdict) in zip(groups, verdicts, strict=True))
        return dict(self._answered(looked))

    def _subject(self, awaited: ProgressCondition) -> Subject:
        return Subject(awaited.stream, awaited.policies, self._installation)

    def _answered(
        self, looked: Iterable[tuple[list[ProgressCondition], Verdict]]
    ) -> Iterator[tuple[str, ProgressAnswer | KstreamError]]:
        for group, verdict in looked:
            try:
                look = self._look(group[0].stream, verdict)
            except Exception as error:
                yield from ((awaited.key, _failed(awaited, error)) for awaited in group)
                continue
            for awaited in group:
                try:
                    yield awaited.key, self._concluded(awaited, look) if look else _unknown(awaited, verdict.why)
                except Exception as error:
                    yield awaited.key, _failed(awaited, error)

    def _look(self, name: str, verdict: Verdict) -> _Look | None:
        """Return what all questions about a stream share; None if nothing is known of it."""
        seen, facts = verdict.seen, verdict.facts
        if seen is None or facts is None:
            return None
        self._require_watched(name, seen)
        engine = self._engine_of(seen.spec)
        standing = StreamStanding(seen.now, facts.desired, verdict.lives, verdict.progress.pulse)
        batches = tuple((point, engine.committed(self._session, point)) for point in seen.checkpoints)
        return _Look(seen, standing, engine, batches, self._strange(name, seen))

    def _require_watched(self, name: str, seen: Seen) -> None:
        """Raises NotFound: when there is no such stream. Raises InvalidInput: when nothing shows its progress."""
        if seen.claim is None:
            state_dir = self._session.cluster.state_dir
            known = [stream.name for stream in streams_among(self._session.state.last().entries, state_dir)]
            if name not in known:
                raise no_such_stream(self._session, name, known, tried=_TRIED)
            raise NotFound(f"no generation of {name} was ever claimed", tried=_TRIED)
        if watches_no_progress(seen.claim):
            raise InvalidInput(f"{name} declares no checkpoint, so that nothing shows it", tried=_TRIED)

    def _strange(self, name: str, seen: Seen) -> str:
        """Return in words who else wrote in the checkpoints' logs; empty if only the stream's users did."""
        writers = frozenset(writer for point in seen.checkpoints for writer in point.writers)
        others = {each for each in writers - seen.speakers if each not in self._session.state.supervisors}
        stream = StreamId(name, self._session.cluster.state_dir)
        # Its former user may have written some of them.
        strangers = others - self._session.copies.users(stream, among=others) if others else others
        names = ", ".join(sorted(strangers))
        return f"its checkpoint has batches that {names} wrote, who is not the stream's user" if names else ""

    def _concluded(self, awaited: ProgressCondition, look: _Look) -> ProgressAnswer:
        why = discounted(awaited, look.standing) or look.strange
        queries = (
            {} if why else {point.path: self._judged(awaited, look, point, batch) for point, batch in look.batches}
        )
        return ProgressAnswer(awaited, look.standing.now, queries, why)

    def _judged(
        self, awaited: ProgressCondition, look: _Look, point: Checkpoint, batch: CommittedBatch | None
    ) -> QueryJudgement:
        topics = self._topics(awaited.moment, look.seen, point, batch) if batch and batch.kafka else None
        beside = batch is not None and batch.reads_more
        if (topics is None or beside) and (why := look.engine.limited(look.seen.spec, beside_kafka=beside)):
            raise InvalidInput(why, tried=_TRIED)
        return judged(awaited, look.standing, point, batch, topics)

    def _topics(self, moment: datetime, seen: Seen, point: Checkpoint, batch: CommittedBatch) -> TopicsAt | None:
        """Return what Kafka had, None where no brokers are declared."""
        kafka = seen.spec.kafka
        if kafka.bootstrap_servers is None:
            _require_none_claimed(seen)
            return None
        question = (kafka, moment, point.path, point.query, frozenset(batch.kafka))
        topics = self._known.pop(question, None)
        if topics is None:
            # Producers' clocks differ, so that records are out of order by as much.
            topics = self._session.topics_at(kafka, batch.kafka, moment + SETTLES)
            if why := made_again(batch, topics):
                raise NotFound(why, tried=_TRIED)
            self._held += _size(topics)
        self._known[question] = topics
        while self._held > _REMEMBERED and len(self._known) > 1:
            self._held -= _size(self._known.pop(next(iter(self._known))))
        return topics


@dataclass(frozen=True)
class _Look:
    """One look at one stream, with the newest committed batch of each checkpoint."""

    seen: Seen
    standing: StreamStanding
    engine: Engine
    batches: tuple[tuple[Checkpoint, CommittedBatch | None], ...]
    strange: str


def _unknown(awaited: ProgressCondition, why: str) -> ProgressAnswer:
    return ProgressAnswer(awaited, None, {}, f"nothing is known of it now: {why}")


def _failed(awaited: ProgressCondition, error: Exception) -> ProgressAnswer | KstreamError:
    """Return an error of ours as it is. A defect in one look must not cost other streams theirs."""
    if isinstance(error, KstreamError):
        return error
    log.error("A look at what %s has committed failed", awaited.stream, exc_info=error)
    return _unknown(awaited, f"this look failed: {error!r}")


def _size(topics: TopicsAt) -> int:
    return _ANSWER + sum(len(partitions) for partitions in topics.topics.values())


def _by_subject(awaited: ProgressCondition) -> tuple[str, str]:
    return awaited.stream, json.dumps(awaited.policies, sort_keys=True)


def _require_none_claimed(seen: Seen) -> None:
    """Raises NotFound: when only a claim names brokers, which its own job may have written; nobody logs in to those."""
    claimed = seen.claim.spec if seen.claim and not seen.claim.file.copied else None
    if isinstance(claimed, StreamSpec) and claimed.kafka.bootstrap_servers:
        why = "no supervisor kept a copy of its declaration, and nobody asks brokers that a claim alone names"
        raise NotFound(f"{why}: run `kstream streams reconcile` with the declaration", tried=_TRIED)
