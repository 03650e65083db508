"""The stream of plain_rate.py in a driver that refuses all tokens, but takes the test of the channel.

No supervisor of ours makes tokens that a driver refuses. In
tests/real/cluster/test_token_pushes.py one refuses, for real, what others made.
"""

import runpy
from typing import Any

import kstream_tokens  # type: ignore[import-not-found]  # shipped by --py-files


def refuse(self: Any, content: bytes) -> None:
    raise kstream_tokens.Refused("this driver refuses all tokens")


kstream_tokens.SparkTokens.tried = refuse
runpy.run_path("plain_rate.py", run_name="__main__")
