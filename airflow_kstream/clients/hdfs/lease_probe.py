"""Probes of files' holders, also where WebHDFS has none: a TRUNCATE is refused for erasure-coded and lazy-persist files
before the lease is looked at (FSDirTruncateOp), and Hadoop offers nothing else over HTTP that looks at it.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_kstream.clients.hdfs.leases import HolderAnswer, LeaseHdfsPool, answer_of
from airflow_kstream.clients.hdfs.namenode import NameNodeRpc
from airflow_kstream.clients.rpc.java_exceptions import NO_SUCH_OPERATION
from airflow_kstream.model.errors import Conflict, InvalidInput, KstreamError, NotFound


def ask_holders(
    pool: LeaseHdfsPool, rpc: NameNodeRpc | None, paths: Sequence[str]
) -> list[HolderAnswer | KstreamError]:
    """Probe whether the holders of these open files' leases live, over WebHDFS or, where that can't, by RPC.

    Side effects are those of `LeaseHdfs.ask_holder`, and so are the errors, which are answers here.
    """
    answers = pool.holder_answers(paths)
    if rpc is None:
        return answers
    return [
        _answered_by_rpc(rpc.refusal_to_open(path), path) if _is_not_offered(answer) else answer
        for path, answer in zip(paths, answers, strict=True)
    ]


def _is_not_offered(answer: HolderAnswer | KstreamError) -> bool:
    return isinstance(answer, HolderAnswer) and any(name in answer.refusal for name in NO_SUCH_OPERATION)


def _answered_by_rpc(refusal: KstreamError, path: str) -> HolderAnswer | KstreamError:
    if isinstance(refusal, NotFound) or not isinstance(refusal, Conflict | InvalidInput):
        return refusal
    return answer_of(refusal.message, path)
