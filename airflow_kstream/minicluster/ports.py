"""Free loopback ports."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable
from contextlib import closing

# Below Linux's ephemeral range (32768 and up): a port from inside it can be taken by any outgoing connection
# between choosing and binding, or while a killed daemon waits to be started again.
_PORTS = range(20_000, 32_000)


def free_ports(names: Iterable[str]) -> dict[str, int]:
    """Choose a port for each name that is free now, and that no process of this program chooses until this one ends."""
    wanted = list(names)
    candidates = random.sample(_PORTS, len(_PORTS))
    free = (port for port in candidates if _reserve(port))
    return dict(zip(wanted, free, strict=False))


def _reserve(port: int) -> bool:
    """Return False if the port is taken, or chosen by a process whose daemon does not listen yet.

    A choice is an abstract Unix socket (unix(7)): it belongs to the network namespace, as ports do, and vanishes with
    its process, however that ends.
    """
    choice = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        choice.bind(f"\0airflow-kstream-port-{port}")
        free = _is_free(port)
    except OSError:
        free = False
    if free:
        choice.detach()
    choice.close()
    return free


def _is_free(port: int) -> bool:
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True
