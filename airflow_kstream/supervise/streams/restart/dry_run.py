"""Dry run: every word of the submission with its reason and source, without touching the cluster."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from operator import itemgetter

from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.secrets import MASK, SecretRef, Value
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.submission import ExplainedSubmission, Origin, Submission, SubmissionOrder
from airflow_kstream.policy.streams.horizon.identity import identity_of
from airflow_kstream.policy.streams.horizon.refresh_words import refresh_words
from airflow_kstream.policy.streams.restart.allowed import words
from airflow_kstream.policy.streams.restart.watchable import require_submittable
from airflow_kstream.supervise.streams.folder.engine import Engine
from airflow_kstream.supervise.streams.look.allowed import not_allowed
from airflow_kstream.supervise.streams.restart.token_pushes import ways_in_clear

_NEXT, _NONCE = 0, "NONCE"
_PRIVATELY = "through a private properties file, in no argv"


def explain(cluster: Cluster, spec: StreamSpec, engine: Engine) -> str:
    """Return the command line that a submission would run, each line with a comment."""
    return str(explained(cluster, spec, engine))


def explained(cluster: Cluster, spec: StreamSpec, engine: Engine) -> ExplainedSubmission:
    """Return the command line that a submission would run, each part with its reason.

    Generation and nonce are placeholders. If this host can't run it, or the connection does not allow it, a note says
    why; notes also say what becomes of the client's own defaults, and name the services whose tokens may end before the
    horizon.
    """
    require_submittable(spec, cluster)
    plan = engine.draft(SubmissionOrder(cluster, spec, _NEXT, _NONCE))
    notes = [f"as {identity_of(spec, cluster)}; generation {_NEXT} and {_NONCE} stand for the claim's own"]
    if missing := not_allowed(spec, cluster):
        notes.append(f"{words(missing, cluster.name)}. Only what already runs with it goes on")
    if plan.obstacle:
        notes.append(f"can't be submitted from here: {plan.obstacle}")
    notes += plan.notes
    notes += [str(each) for each in refresh_words(spec, ways_in_clear(cluster), engine.words.refreshed)]
    notes += [str(each) for each in engine.uncounted_tokens(cluster, spec)]
    return ExplainedSubmission(tuple(notes), shlex.quote(plan.binary), tuple(_parts(plan)))


def _parts(plan: Submission) -> Iterator[tuple[str, Origin]]:
    for key, value in sorted(plan.secret_conf.items(), key=itemgetter(0)):
        yield f"{key}={MASK}", _hidden(value)
    for argument in plan.arguments:
        yield shlex.join(argument.words), argument.origin


def _hidden(value: Value) -> Origin:
    if isinstance(value, SecretRef):
        return Origin(f"{value}, looked up right before the submission; {_PRIVATELY}")
    return Origin(_PRIVATELY)
