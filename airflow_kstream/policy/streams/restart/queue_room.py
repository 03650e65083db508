"""Whether a queue would take the next generation and could ever run it. One that is merely full is not an obstacle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from airflow_kstream.model.clusters.queue import Needs, Queue, Queues, Size


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
    if queue.state not in {"", "RUNNING"}:
        yield f"queue {queue.path} is {queue.state} and takes no application"
    for unit, of in _UNITS.items():
        # One whose size is not known is left out: what is left is a lower bound.
        sizes = {name: size for name, each in needs.containers.items() if (size := of(each)) is not None}
        yield from _too_large(queue, sizes, of(queue.largest), unit)
        if not (needs.labelled or queue.labelled):
            yield from _too_much(queue, sizes, of(queue.most), unit)


_UNITS: Mapping[str, Callable[[Size], int | None]] = {
    "MiB": lambda size: size.memory,
    "vcores": lambda size: size.vcores,
}


def _too_large(queue: Queue, sizes: Mapping[str, int], largest: int | None, unit: str) -> Iterator[str]:
    for name, size in sizes.items():
        if largest is not None and size > largest:
            yield f"its {name} needs {size} {unit}, and queue {queue.path} grants no container above {largest} {unit}"


def _too_much(queue: Queue, sizes: Mapping[str, int], most: int | None, unit: str) -> Iterator[str]:
    least = sum(sizes.values())
    if most is not None and least > most:
        names = " and one ".join(sizes)
        yield f"its {names} need {least} {unit}, and queue {queue.path} never has more than {most} {unit}"
