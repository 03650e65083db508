"""Free loopback ports."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable
from contextlib import closing

# Below Linux's ephemeral range (32768 and up): a port from inside it can be taken by any outgoing connection
# between choosing and binding, or while a killed daemon waits to be started again.
_LOWEST, _HIGHEST = 20_000, 32_000


def free_ports(names: Iterable[str]) -> dict[str, int]:
    """Choose a port for each name that is free at this moment; nothing is reserved."""
    wanted = list(names)
    candidates = random.sample(range(_LOWEST, _HIGHEST), _HIGHEST - _LOWEST)
    free = (port for port in candidates if _is_free(port))
    return dict(zip(wanted, free, strict=False))


def _is_free(port: int) -> bool:
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True
