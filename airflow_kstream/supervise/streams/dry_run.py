"""Dry run: every word of the submission with its reason and source, without touching the cluster."""

from __future__ import annotations

import shlex
from operator import itemgetter

from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.secrets import MASK, SecretRef, Value
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.model.submission import Origin, Submission, SubmissionOrder
from airflow_kstream.policy.streams.identity import identity_of
from airflow_kstream.policy.streams.refresh_words import refresh_words
from airflow_kstream.policy.streams.uncounted_tokens import uncounted_tokens
from airflow_kstream.policy.streams.watchable import require_submittable
from airflow_kstream.supervise.streams.engine import Engine
from airflow_kstream.supervise.streams.token_pushes import ways_in_clear

_NEXT, _NONCE = 0, "NONCE"


def explain(cluster: Cluster, spec: StreamSpec, engine: Engine) -> str:
    """Return the command line that a submission would run, each line with a comment.

    Generation and nonce are placeholders. If this host can't run it, the text says why; it also names the services
    whose tokens may end before the horizon.
    """
    require_submittable(spec, cluster)
    plan = engine.submission(SubmissionOrder(cluster, spec, _NEXT, _NONCE))
    head = [f"# as {identity_of(spec, cluster)}; generation {_NEXT} and {_NONCE} stand for the claim's own"]
    if plan.obstacle:
        head.append(f"# can't be submitted from here: {plan.obstacle}")
    head += [f"# {each}" for each in refresh_words(spec, ways_in_clear(cluster))]
    head += [f"# {each}" for each in uncounted_tokens(spec, cluster.spark_conf, cluster.default_fs)]
    return "\n".join([*head, shlex.quote(plan.binary) + " \\", *_lines(plan)])


def _lines(plan: Submission) -> list[str]:
    lines = [f"  {shlex.join(argument.words)}  # {_origin(argument.origin)}" for argument in plan.arguments]
    return [*(_hidden(key, value) for key, value in sorted(plan.secret_conf.items(), key=itemgetter(0))), *lines]


def _hidden(key: str, value: Value) -> str:
    why = "through a private properties file, in no argv"
    if isinstance(value, SecretRef):
        return f"  {key}={MASK}  # {value}, looked up right before the submission; {why}"
    return f"  {key}={MASK}  # {why}"


def _origin(origin: Origin) -> str:
    return f"{origin.source}: {origin.why}" if origin.why else origin.source
