"""The queues of YARN's schedulers, and what a successor needs of the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Size:
    """A size of containers: memory in MiB, and vcores; each is None if it is not known or not counted."""

    memory: int | None = None
    vcores: int | None = None


UNKNOWN_SIZE = Size()


@dataclass(frozen=True)
class Queue:
    """A queue that takes applications.

    `most` is what all its applications together may ever get on nodes without a label, `largest` the largest container.
    `state` is RUNNING, STOPPED or DRAINING; empty if the scheduler knows no states, as FairScheduler. `labelled` is
    whether its containers go to nodes with a label unless they ask for another.
    """

    path: str
    state: str = ""
    most: Size = UNKNOWN_SIZE
    largest: Size = UNKNOWN_SIZE
    labelled: bool = False

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]


@dataclass(frozen=True)
class Queues:
    """All queues. `complete` is False if the scheduler may make one when an application asks for it."""

    queues: tuple[Queue, ...] = ()
    complete: bool = False

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Queues:
        """Parse `/ws/v1/cluster/scheduler`; a scheduler of another kind has no queues that we know."""
        root = body["scheduler"]["schedulerInfo"]
        if root["type"] == "capacityScheduler":
            every = [root, *_below(root, "queues")]
            leaves = (queue for queue in every[1:] if not _children(queue, "queues"))
            return cls(tuple(map(_of_capacity, leaves)), complete=not any(map(_makes_queues, every)))
        if root["type"] == "fairScheduler":
            leaves = (
                queue for queue in _below(root, "rootQueue", "childQueues") if not _children(queue, "childQueues")
            )
            return cls(tuple(map(_of_fair, leaves)))
        return cls()

    def named(self, name: str) -> tuple[Queue, ...]:
        """Return those that a submission to this name may mean: a whole path, or its last word."""
        return tuple(queue for queue in self.queues if name in {queue.path, queue.name})


@dataclass(frozen=True)
class Needs:
    """The needs of the next generation that the cluster has to meet, as far as its submission tells.

    `queue` is where it is submitted, `declared` whether somebody named that. `containers` are those without which it
    does nothing, by name, `numbers` says how many of a name it needs, unless that is one. `labelled` is whether one of
    them asks for nodes with a label. `files` are the URIs that the cluster reads. `stops_itself` is whether it obeys
    the stop marker, without which only YARN can end it. `nodes` is whether its client fails at once on a cluster
    without nodes, instead of waiting there for one.
    """

    queue: str
    declared: bool = False
    containers: Mapping[str, Size] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)
    labelled: bool = False
    files: tuple[str, ...] = ()
    stops_itself: bool = True
    nodes: bool = False


def _children(queue: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    # FairScheduler's were once a list without the object around it.
    inside = queue.get(key) or {}
    return list(inside if isinstance(inside, list) else inside.get("queue") or [])


def _below(queue: Mapping[str, Any], *keys: str) -> Iterator[Mapping[str, Any]]:
    first, rest = keys[0], keys[1:] or keys
    children = [queue[first]] if first == "rootQueue" else _children(queue, first)
    for child in children:
        yield child
        yield from _below(child, *rest)


def _of_capacity(queue: Mapping[str, Any]) -> Queue:
    path = str(queue.get("queuePath") or queue["queueName"])
    # Its calculator may count memory alone, and the page doesn't tell; a single container is always held to both.
    most = Size(_most(queue, "maxEffectiveCapacity").memory)
    labelled = bool(queue.get("defaultNodeLabelExpression"))
    return Queue(path, str(queue.get("state", "")), most, _size(queue, "maximumAllocation"), labelled)


def _of_fair(queue: Mapping[str, Any]) -> Queue:
    largest = _size(queue, "maxContainerAllocation")
    return Queue(str(queue["queueName"]), most=_most(queue, "maxResources"), largest=largest)


def _most(queue: Mapping[str, Any], key: str) -> Size:
    """Return a share of the nodes. Of none, as for a while after a failover, it says nothing."""
    size = _size(queue, key)
    return size if size.memory else UNKNOWN_SIZE


def _size(queue: Mapping[str, Any], key: str) -> Size:
    told = queue.get(key)
    return Size(_number(told, "memory"), _number(told, "vCores")) if isinstance(told, Mapping) else UNKNOWN_SIZE


def _number(size: Mapping[str, Any], key: str) -> int | None:
    return int(size[key]) if key in size else None


def _makes_queues(queue: Mapping[str, Any]) -> bool:
    return bool(queue.get("autoCreateChildQueueEnabled")) or queue.get("autoCreationEligibility", "off") != "off"
