"""Filters for other packages' loggers while they work for us: no token in an address, and not every call.

Their levels stay as the process's configuration set them: the same packages may also work for others in it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_HTTP = "urllib3.connectionpool"
_CHATTY = "hdfs.client"
_TOKEN = re.compile(r"(?P<name>\b(?:delegation|token)=)[^&\s\"']+")
_hushed: ContextVar[bool] = ContextVar("kstream_hushed", default=False)


def keep_tokens_out_of_logs() -> None:
    """Hide the delegation tokens in the addresses that urllib3 logs at DEBUG, for the whole process."""
    logging.getLogger(_HTTP).addFilter(_without_tokens)


@contextmanager
def hushed() -> Iterator[None]:
    """Drop the HDFS client's log lines about each call of this thread meanwhile, except its warnings.

    A task's log is for decisions and actions.
    """
    logging.getLogger(_CHATTY).addFilter(_unless_hushed)
    before = _hushed.set(True)
    try:
        yield
    finally:
        _hushed.reset(before)


def _without_tokens(record: logging.LogRecord) -> bool:
    message = record.getMessage()
    if _TOKEN.search(message):
        record.msg, record.args = _TOKEN.sub(r"\g<name>***", message), ()
    return True


def _unless_hushed(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING or not _hushed.get()
