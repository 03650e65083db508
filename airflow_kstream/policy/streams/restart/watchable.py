"""Checks of a stream's declaration before anything is done for it: by itself, and against its cluster.

A queue must take the next generation, and be able to run it some day: one that is merely full is not an obstacle. Its
ACL must let the stream's user submit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.clusters.queue import Needs, Queue, Queues, Size
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.spark_conf import misplaced_staging
from airflow_kstream.model.streams.stream import StreamSpec

# CapacityScheduler's rules take it for no choice at all.
_LEFT_TO_RULES = "default"

_CHECKPOINT = re.compile(r"(?P<filesystem>hdfs://[^/]*)?(?P<path>/.*)")


def require_submittable(spec: StreamSpec, cluster: Cluster) -> None:
    """Check the declaration as if it had just been read: one that was built in Python never was.

    Raises InvalidInput: when `StreamSpec.from_mapping` would refuse it, or as `require_watchable`, or when the staging
    folder is on another filesystem, or a folder of its states and `state_dir` lie in one another.
    """
    spec.checked()
    require_watchable(spec, cluster)
    for name, folder in spec.own_folders.items():
        if _overlap(folder, cluster.state_dir):
            raise InvalidInput(
                f"{name}: {folder} and the connection's state_dir {cluster.state_dir} lie in one another",
                tried=f"check {spec.name} against {cluster.name}",
            )
    for error in misplaced_staging(spec.conf, cluster):
        raise InvalidInput(error, tried=f"check {spec.name} against {cluster.name}")


def require_watchable(spec: StreamSpec, cluster: Cluster) -> None:
    """Check the checkpoints against the cluster's filesystem and `state_dir`, before anything is touched.

    Raises InvalidInput: when one is on another filesystem, where silence and heartbeat would look at a wrong path; when
    one is, contains or lies in `state_dir`, which `cleanup` of either would destroy; when one is declared twice.
    """
    if errors := "; ".join(_errors(spec, cluster)):
        raise InvalidInput(f"checkpoints: {errors}", tried=f"check {spec.name} against {cluster.name}")


def is_watchable(checkpoint: str, cluster: Cluster) -> bool:
    """Return True if it is on the filesystem whose NameNodes we ask. A claim may name another, which was ours.

    Its path without the filesystem would be a folder of ours that has nothing to do with it.
    """
    return _split(checkpoint)[0] in {"", "hdfs://", cluster.default_fs.rstrip("/")}


def _errors(spec: StreamSpec, cluster: Cluster) -> Iterator[str]:
    earlier: dict[str, str] = {}
    for checkpoint in spec.checkpoints:
        filesystem, path = _split(checkpoint)
        if not is_watchable(checkpoint, cluster):
            yield f"{checkpoint} lies on {filesystem}; allowed is {cluster.default_fs}, which {cluster.name} watches"
            continue
        if _overlap(path, cluster.state_dir):
            yield f"{checkpoint} and the connection's state_dir {cluster.state_dir} lie in one another"
        yield from (
            f"{checkpoint} and {other} lie in one another"
            for other_path, other in earlier.items()
            if _overlap(path, other_path)
        )
        earlier[path] = checkpoint


def _split(checkpoint: str) -> tuple[str, str]:
    match = _CHECKPOINT.fullmatch(checkpoint)
    return (match["filesystem"] or "", match["path"].rstrip("/") or "/") if match else ("", checkpoint)


def _overlap(one: str, other: str) -> bool:
    shorter, longer = sorted((one.rstrip("/") + "/", other.rstrip("/") + "/"), key=len)
    return longer.startswith(shorter)


def queue_obstacle(queues: Queues, needs: Needs) -> str:
    """Return what keeps the next generation from its queue; empty if nothing does, or if that can't be told.

    A name that several queues end with, and one that nobody declared, may mean any queue: placement rules decide.
    """
    match queues.named(needs.queue):
        case (queue,):
            return "; ".join(_obstacles(queue, needs))
        case () if needs.declared and queues.complete:
            known = ", ".join(sorted(queue.path for queue in queues.queues)) or "none"
            return f"there is no queue {needs.queue}; there are {known}"
    return ""


def refusing_queue(rights: Mapping[str, bool], needs: Needs, asked: str, placed: str) -> str:
    """Return the queue that the next generation is bound for and whose ACL keeps its user out; empty if there is none.

    `rights` says of each queue whether the user may submit to it. Placement rules may put an application elsewhere than
    where it asks to go. The running one shows whether they do: it `asked` for a queue, and was `placed` in one. Where
    these differ nothing is known, nor where the next one leaves the choice to the rules and the running one did not.
    """
    bound = _meant(rights, needs.queue)
    running = _meant(rights, placed)
    obeyed = bool(running) and running == _meant(rights, asked)
    chosen = needs.declared and _last_word(bound) != _LEFT_TO_RULES
    return bound if not rights.get(bound, True) and obeyed and (bound == running or chosen) else ""


def _meant(rights: Mapping[str, bool], name: str) -> str:
    """Return the queue that a submission to this name means; empty if none or several end with it."""
    found = [queue for queue in rights if name in {queue, _last_word(queue)}]
    return found[0] if len(found) == 1 else ""


def _last_word(queue: str) -> str:
    return queue.rpartition(".")[2]


def _obstacles(queue: Queue, needs: Needs) -> Iterator[str]:
    if queue.state not in {"", "RUNNING"}:
        yield f"queue {queue.path} is {queue.state} and takes no application"
    for unit, of in _UNITS.items():
        # One whose size is not known is left out: what is left is a lower bound.
        sizes = {name: size for name, each in needs.containers.items() if (size := of(each)) is not None}
        yield from _too_large(queue, sizes, of(queue.largest), unit)
        if not (needs.labelled or queue.labelled):
            yield from _too_much(queue, sizes, needs.numbers, of(queue.most), unit)


_UNITS: Mapping[str, Callable[[Size], int | None]] = {
    "MiB": lambda size: size.memory,
    "vcores": lambda size: size.vcores,
}


def _too_large(queue: Queue, sizes: Mapping[str, int], largest: int | None, unit: str) -> Iterator[str]:
    for name, size in sizes.items():
        if largest is not None and size > largest:
            yield f"its {name} needs {size} {unit}, and queue {queue.path} grants no container above {largest} {unit}"


def _too_much(
    queue: Queue, sizes: Mapping[str, int], numbers: Mapping[str, int], most: int | None, unit: str
) -> Iterator[str]:
    least = sum(size * numbers.get(name, 1) for name, size in sizes.items())
    if most is not None and least > most:
        named = (f"{numbers[name]} {name}s" if name in numbers else f"one {name}" for name in sizes)
        names = " and ".join(named).removeprefix("one ")
        yield f"its {names} need {least} {unit}, and queue {queue.path} never has more than {most} {unit}"
