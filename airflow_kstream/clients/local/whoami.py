"""Who this process is on its host, for records that people read later."""

from __future__ import annotations

import getpass
import os
import socket


def user_at_host() -> str:
    """Return `user@host`; the uid stands for a user that has no name, as in a container with a random uid."""
    return f"{_user()}@{socket.gethostname()}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # Neither the environment nor passwd names it; Python 3.13 raises OSError, earlier ones KeyError.
        return str(os.getuid())
