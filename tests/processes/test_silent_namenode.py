"""A program whose NameNode never answers can still end."""

from __future__ import annotations

import subprocess
import sys

ASKS = """
import threading
from airflow_kstream.clients.hdfs.lease_recovery_native import _Crew

class Silent:
    def recover_lease(self, path):
        threading.Event().wait()

print(_Crew(Silent(), 2).ask(["/a", "/b", "/c"], 0.2))
"""


def test_threads_that_wait_for_a_silent_namenode_keep_no_process_alive() -> None:
    done = subprocess.run([sys.executable, "-c", ASKS], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "{}\n")
