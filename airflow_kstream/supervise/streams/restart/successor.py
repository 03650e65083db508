"""What the next generation needs of the cluster: asked before its predecessor is stopped, as the stream's identity."""

from __future__ import annotations

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.clusters.hdfs_path import plain_path
from airflow_kstream.model.clusters.queue import Needs
from airflow_kstream.model.errors import Conflict, Denied, InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.streams.checkpoint_owner import OWNER_FOLDER
from airflow_kstream.model.streams.contract import newest_claim
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.policy.streams.restart.watchable import is_watchable, queue_obstacle, refusing_queue
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.run import StreamRun

_READ, _WRITE, _ALL = "r--", "-wx", "rwx"


def require_successors_needs(run: StreamRun) -> None:
    """Check queue, files and checkpoints. What can't be asked is not an obstacle, but for the first
    submission of what only YARN can stop; what HDFS refuses is one.

    Raises Conflict: when the queue would not take it. Raises InvalidInput: when a file is missing. Raises Denied: when
    the stream's identity may not read a file, or not write a checkpoint, or when nobody could stop what was never
    submitted yet. Raises Unavailable: when HDFS is away, or when nobody can tell that.
    """
    needs = run.engine.needs(run.cluster, run.spec)
    if not needs.stops_itself and not newest_claim(run.folder.names()):
        # What was submitted once goes on, whatever happens to its next stop.
        run.session.yarn.way_to_stop()
    _require_queue(run.session, needs, run.spec.name)
    for path in needs.files:
        _require_file(run.session, path)
    for checkpoint in run.spec.checkpoints:
        if is_watchable(checkpoint, run.cluster):
            _require_checkpoint(run.session, plain_path(checkpoint), run.spec.name)


def require_nodes(run: StreamRun, observation: Observation | None = None) -> None:
    """Check that YARN has nodes, which it may lack for a while after the start of a whole cluster, or after a failover.

    Nothing that runs is stopped without them, and no client that fails at once without is started: each try would cost
    a generation. What would wait there for a node is let do so, because an autoscaler may add the first one for it
    alone.

    What can't be asked does not count. Raises Unavailable: when none runs.
    """
    yarn, runs = run.session.yarn, observation is not None and observation.any_alive
    try:
        if not (runs or run.engine.needs(run.cluster, run.spec).nodes):
            return
        nodes, server = yarn.running_nodes(), yarn.active()
    except KstreamError:
        return
    if not nodes:
        tried, who = f"find a node for the next generation of {run.spec.name}", str(run.session.identity)
        raise Unavailable("no node of YARN's runs", tried=tried, server=server, principal=who)


def require_right_to_submit(run: StreamRun, observation: Observation) -> None:
    """Check that the queue's ACL lets the stream's user submit what follows the running generation.

    What can't be asked does not count, and neither does an answer that YARN may not hold to: its ACLs are switched off,
    or its placement rules choose the queue. Nothing is asked where nothing runs: a refusal by YARN costs nothing then.

    Raises Denied: when it does not.
    """
    claim, app = observation.claim, observation.current
    if not (claim and app and app.alive and type(claim.spec) is type(run.spec)):
        return
    session = run.session
    try:
        needs, asked = (run.engine.needs(run.cluster, spec) for spec in (run.spec, claim.spec))
        queue = refusing_queue(session.yarn.queue_rights(), needs, asked.queue, session.yarn.queue_of(app.id))
        if not queue or not session.yarn.checks_rights():
            return
        user, server = session.identity.do_as or session.yarn.user() or session.identity, session.yarn.active()
    except KstreamError:
        return
    why = (
        f"user {user} may not submit to queue {queue}: it has neither SUBMIT_APPLICATIONS nor ADMINISTER_QUEUE there. "
        f"An administrator of YARN gives it (acl_submit_applications of the queue, `yarn rmadmin -refreshQueues`), and "
        f"the restart then follows by itself"
    )
    tried = f"make sure that its queue takes the next generation of {run.spec.name}"
    raise Denied(why, tried=tried, server=server, principal=str(session.identity))


def _require_queue(session: ClusterSession, needs: Needs, name: str) -> None:
    try:
        obstacle = queue_obstacle(session.yarn.queues(), needs)
    except (Unavailable, Denied, NotFound):
        # The page of the scheduler proves nothing about the queue.
        return
    if obstacle:
        tried, server = f"find room for the next generation of {name}", session.yarn.active()
        raise Conflict(obstacle, tried=tried, server=server, principal=str(session.identity))


def _require_file(session: ClusterSession, path: str) -> None:
    try:
        session.hdfs.check_access(path, _READ)
    except NotFound as missing:
        raise InvalidInput(
            f"{path} does not exist", tried=missing.tried, server=missing.server, principal=missing.principal
        ) from missing


def _require_checkpoint(session: ClusterSession, path: str, name: str) -> None:
    try:
        _require_right(session.hdfs, path)
    except Denied as denied:
        raise Denied(
            f"{denied.message} (asked to {denied.tried})",
            tried=f"make sure that {name} may write its checkpoint {path}",
            server=denied.server,
            principal=denied.principal,
        ) from denied


def _require_right(hdfs: Hdfs, path: str) -> None:
    """Check the folder and that of its owner's record or, if the job is yet to make it, that which it is made in."""
    try:
        hdfs.check_access(path, _ALL)
    except NotFound:
        _require_parent(hdfs, path)
        return
    try:
        hdfs.check_access(f"{path}/{OWNER_FOLDER}", _WRITE)
    except NotFound:
        return


def _require_parent(hdfs: Hdfs, path: str) -> None:
    parent = path.rpartition("/")[0] or "/"
    try:
        hdfs.check_access(parent, _WRITE)
    except NotFound:
        if parent == "/":
            raise
        _require_parent(hdfs, parent)
