"""The probe of a file's holder where WebHDFS has none: a TRUNCATE is refused for erasure-coded and lazy-persist files
before the lease is looked at (FSDirTruncateOp), and Hadoop offers nothing else over HTTP that looks at it.
"""

from __future__ import annotations

from airflow_kstream.clients.hdfs.leases import HolderAnswer, LeaseHdfs, answer_of
from airflow_kstream.clients.hdfs.namenode import NameNodeRpc
from airflow_kstream.clients.rpc.java_exceptions import NO_SUCH_OPERATION
from airflow_kstream.model.errors import Conflict, InvalidInput, KstreamError, NotFound


def ask_holder(web: LeaseHdfs, rpc: NameNodeRpc | None, path: str) -> HolderAnswer:
    """Probe whether the holder of this open file's lease lives, over WebHDFS or, where that can't, by RPC.

    Side effects and errors are those of `LeaseHdfs.ask_holder`.
    """
    answer = web.ask_holder(path)
    if rpc is None or not any(name in answer.refusal for name in NO_SUCH_OPERATION):
        return answer
    return _answered_by_rpc(rpc.refusal_to_open(path), path)


def _answered_by_rpc(refusal: KstreamError, path: str) -> HolderAnswer:
    if isinstance(refusal, NotFound) or not isinstance(refusal, Conflict | InvalidInput):
        raise refusal
    return answer_of(refusal.message, path)
