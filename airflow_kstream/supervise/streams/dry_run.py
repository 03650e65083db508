"""A dry run: every word of the submission with its reason and its source, without touching the cluster."""

from __future__ import annotations

import shlex

from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.generation import StreamId
from airflow_kstream.model.secrets import MASK
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.model.submission import Origin, SparkDefaults, Submission
from airflow_kstream.policy.streams.spark_submission import identity_of
from airflow_kstream.policy.streams.watchable import require_watchable
from airflow_kstream.supervise.streams.submit import planned

_NEXT, _NONCE = 0, "NONCE"


def explain(cluster: Cluster, spec: StreamSpec, defaults: SparkDefaults) -> str:
    """The command line as it would be run, each line with a comment; generation and nonce are placeholders."""
    require_watchable(spec, cluster)
    stream = StreamId(spec.name, cluster.state_dir)
    plan = planned(cluster, stream, spec, defaults, generation=_NEXT, nonce=_NONCE)
    identity = identity_of(spec, cluster)
    head = f"# as {identity}; generation {_NEXT} and {_NONCE} stand for the claim's own\n"
    return head + "\n".join([shlex.quote(plan.binary) + " \\", *_lines(plan)])


def _lines(plan: Submission) -> list[str]:
    lines = [f"  {shlex.join(argument.words)}  # {_origin(argument.origin)}" for argument in plan.arguments]
    hidden = [f"  {key}={MASK}  # through a private properties file, in no argv" for key in sorted(plan.secret_conf)]
    return hidden + lines


def _origin(origin: Origin) -> str:
    return f"{origin.source}: {origin.why}" if origin.why else origin.source
