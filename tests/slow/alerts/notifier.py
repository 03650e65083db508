"""A notifier that a person could read: it appends to a file. Airflow's processes import it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import BaseNotifier

if TYPE_CHECKING:
    from airflow.sdk import Context

FILE = "KSTREAM_TEST_TOLD"


class ToFile(BaseNotifier):
    """A line of JSON for each message, with the time at which it came."""

    template_fields = ("kind", "ended", "words")

    def __init__(self, kind: str, ended: str, words: str) -> None:
        super().__init__()
        self.kind, self.ended, self.words = kind, ended, words

    def notify(self, context: Context) -> None:
        line = {"at": time.time(), "kind": self.kind, "ended": self.ended == "True", "words": self.words}
        with Path(os.environ[FILE]).open("a") as told:
            told.write(json.dumps(line) + "\n")
