"""Runs one command of a test run and leaves nothing of it behind, not even when the run itself is killed.

    python guarded.py RUN_FD RUN_FOLDER COMMAND [ARGUMENT ...]

RUN_FD is the read end of a pipe whose write end only the run holds: `airflow_kstream.demo.reaper` says what happens
when it closes. A run that was killed can't delete its folder; then this program does.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from airflow_kstream.demo.reaper import guard
from tests.run_folder import remove

# For pytest to say what has failed so far, and to take its clusters down.
_GRACE_SECONDS = 30


def main() -> int:
    run = os.getppid()
    code = guard(int(sys.argv[1]), _GRACE_SECONDS, sys.argv[3:])
    if os.getppid() != run:
        remove(Path(sys.argv[2]))
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
