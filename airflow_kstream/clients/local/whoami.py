"""The user and host of this process, for records that people read later."""

from __future__ import annotations

import getpass
import os
import socket
from functools import cache


# Each look at a stream asks, and where users are in a directory service the answer comes over the network.
@cache
def user_at_host() -> str:
    """Return `user@host`; the uid stands for a user that has no name, as in a container with a random uid."""
    return f"{_user()}@{socket.gethostname()}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # Neither the environment nor passwd has its name; Python 3.13 raises OSError, earlier versions KeyError.
        return str(os.getuid())
