"""Whether a queue would take the next generation and could ever run it. A queue that is merely full is no obstacle."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_kstream.model.queue import Needs, Queue, Queues


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


def _obstacles(queue: Queue, needs: Needs) -> Iterator[str]:
    containers = needs.containers or {}
    if queue.state not in {"", "RUNNING"}:
        yield f"queue {queue.path} is {queue.state} and takes no application"
    for name, memory in containers.items():
        if queue.largest is not None and memory > queue.largest:
            yield f"its {name} needs {memory} MiB, and queue {queue.path} grants no container above {queue.largest} MiB"
    least = sum(containers.values())
    if queue.most is not None and least > queue.most:
        names = " and one ".join(containers)
        yield f"its {names} need {least} MiB, and queue {queue.path} never has more than {queue.most} MiB"
