"""Secrets looked for in many files at once, in every form in which they could have been written."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

# A shorter run of bytes is found by chance.
_SHORTEST = 8


def forms(secret: bytes) -> Iterator[bytes]:
    """As it is, in hex, and in both alphabets of base64 wherever in a longer text it may begin."""
    # The tool's patterns end with a line.
    yield max(secret.split(b"\n"), key=len)
    yield secret.hex().encode()
    yield secret.hex().upper().encode()
    for shift in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            # What its neighbours have a part in is left out.
            yield encode(bytes(shift) + secret).rstrip(b"=")[4 if shift else 0 : -2]


def where_any_is(
    secrets: Iterable[bytes], places: Iterable[Path], scratch: Path, not_below: Iterable[str] = ()
) -> list[str]:
    """The files below these places that hold one of the secrets, folders of these names left out; never which."""
    patterns = scratch / "patterns"
    wanted = {form for secret in secrets for form in forms(secret) if len(form) >= _SHORTEST}
    patterns.write_bytes(b"\n".join(sorted(wanted)))
    left_out = (f"--exclude-dir={name}" for name in not_below)
    command = ["grep", "-rlaF", "-D", "skip", *left_out, "-f", str(patterns), *map(str, places)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}, check=False)
    # 1 is nothing found; files that vanish while it reads end in 2.
    patterns.unlink()
    return sorted(done.stdout.splitlines())
