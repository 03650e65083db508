"""Whether a queue would take the next generation and could ever run it. One that is merely full is not an obstacle.

Whether its ACL lets the stream's user submit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from airflow_kstream.model.clusters.queue import Needs, Queue, Queues, Size

# CapacityScheduler's rules take it for no choice at all.
_LEFT_TO_RULES = "default"


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
