"""`python -m tests.simulation FAMILY FROM TO`: run these histories, and print the first broken one of each promise,
shortened, with how many there were and how fast they went."""

from __future__ import annotations

import logging
import sys
import time

from tests.simulation.families import plan
from tests.simulation.history import run, shortened


def main(family: str, first: int, last: int) -> None:
    # The story tells what matters of it.
    logging.basicConfig(level=logging.CRITICAL, force=True)
    found: dict[str, int] = {}
    requests, began = 0, time.process_time()
    for number in range(first, last + 1):
        history = run(plan(family, number))
        requests += history.requests
        for promise in history.promises - found.keys():
            found[promise] = number
            print(f"=== history {number}\n{run(shortened(plan(family, number), promise))}\n")
    seconds = time.process_time() - began
    print(f"{last - first + 1} histories, {requests} requests, {requests / seconds:.0f} a second of CPU; {found}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
