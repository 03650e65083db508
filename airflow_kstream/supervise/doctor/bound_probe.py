"""What the check of a connection tells of its `allow`: whether there is one, and what present declarations need."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_kstream.model.clusters.allow import Allow
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.streams.restart.allowed import words
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.doctor.state_dir_probes import ProbeFinding
from airflow_kstream.supervise.streams.folder.registry import newest_claims
from airflow_kstream.supervise.streams.look.allowed import needed_by, needed_by_all, not_allowed


def told_bound(session: ClusterSession, declared: Sequence[StreamSpec] = ()) -> ProbeFinding:
    """Tell what declarations may use, and which of these go beyond it; without a bound, the one that would do."""
    cluster = session.cluster
    if cluster.allow is None:
        needed = needed_by_all(newest_claims(session), cluster).with_all(needed_by(declared, cluster))
        line = needed.line()
        return ProbeFinding(
            "it has none, so a declaration may use any keytab, proxied user, secret and file that the workers reach; "
            f"`kstream connection allow` prints what the present ones need{': ' * bool(line)}{line}",
            warns=True,
        )
    missing = {spec.name: not_allowed(spec, cluster) for spec in declared}
    said = [f"{name}: {words(each, cluster.name)}" for name, each in missing.items() if each]
    return ProbeFinding("; ".join(said) or _patterns(cluster.allow), warns=bool(said))


def _patterns(allow: Allow) -> str:
    given = ", ".join(f"{len(names)} of {name}" for name, names in allow.items() if names)
    return f"declarations may use what the connection has, and patterns: {given}" if given else "what it has itself"
