"""Runs a PySpark job that knows nothing of kstream, and takes fresh delegation tokens beside it.

    spark-submit ... --files jobs/orders.py --py-files kstream_driver.py,kstream_tokens.py
        kstream_launcher.py orders.py ARGUMENTS

The job runs as `__main__`, with its own arguments, in this process. As soon as it has a SparkContext, a thread of
kstream_tokens.py takes what its supervisor pushes; whatever is wrong with that, the job runs on without.
"""

from __future__ import annotations

import logging
import runpy
import sys
import threading
import time
from typing import Any

_POLL_SECONDS = 1.0

log = logging.getLogger("kstream_launcher")


def take_tokens_when_possible() -> None:
    """Wait for the job's SparkContext, and begin to take its tokens."""
    import kstream_driver  # type: ignore[import-not-found]  # shipped by --py-files

    while (context := _context()) is None:
        time.sleep(_POLL_SECONDS)
    kstream_driver.take_tokens(context)


def _context() -> Any:
    """Return the job's SparkContext once it is complete.

    PySpark is imported by the job alone: two threads that import it at once break its circular imports, in both.
    """
    context = getattr(getattr(sys.modules.get("pyspark"), "SparkContext", None), "_active_spark_context", None)
    # One that is being made is there already, without its Java half.
    return context if getattr(context, "_jsc", None) is not None else None


def _in_background() -> None:
    try:
        take_tokens_when_possible()
    except Exception as error:  # an older helper of the job's own, a Spark that hides its context
        log.warning("this driver takes no fresh tokens: %s", error)


def main() -> None:
    job = sys.argv[1]
    threading.Thread(target=_in_background, name="kstream-launcher", daemon=True).start()
    sys.argv = sys.argv[1:]
    runpy.run_path(job, run_name="__main__")


if __name__ == "__main__":
    main()
