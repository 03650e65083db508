"""A search for secrets in many files at once, in every form in which a program could have written them."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

# A shorter run of bytes would be found by chance.
_SHORTEST = 8


def forms(secret: bytes) -> Iterator[bytes]:
    """Return the secret as it is, in hex, and in both alphabets of base64 at each offset in a longer text."""
    # The tool takes one pattern a line.
    yield max(secret.split(b"\n"), key=len)
    yield secret.hex().encode()
    yield secret.hex().upper().encode()
    for shift in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            # Characters that also depend on the neighbouring bytes are left out.
            yield encode(bytes(shift) + secret).rstrip(b"=")[4 if shift else 0 : -2]


def where_any_is(
    secrets: Iterable[bytes], places: Iterable[Path], scratch: Path, not_below: Iterable[str] = ()
) -> list[str]:
    """Return the files below these places that hold a secret, without folders of these names; never which secret."""
    patterns = scratch / "patterns"
    wanted = {form for secret in secrets for form in forms(secret) if len(form) >= _SHORTEST}
    patterns.write_bytes(b"\n".join(sorted(wanted)))
    left_out = (f"--exclude-dir={name}" for name in not_below)
    command = ["grep", "-rlaF", "-D", "skip", *left_out, "-f", str(patterns), *map(str, places)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}, check=False)
    # 1 means nothing found, 2 that files vanished during the search.
    patterns.unlink()
    return sorted(done.stdout.splitlines())
