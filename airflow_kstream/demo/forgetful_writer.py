"""A program that writes a file on HDFS, never closes it, and lives on, so that its lease is renewed: URL PATH.

It ends with its standard input.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from hdfs_native import AsyncClient, WriteOptions

# Who recovers the lease of a file needs the right to write it.
_FOR_THE_GROUP = 0o664
_ROWS = b"a row that was flushed\n" * 10_000


async def main(url: str, path: str) -> None:
    client = AsyncClient(url)
    await client.mkdirs(os.path.dirname(path), 0o755, True)  # noqa: PTH120  a path of HDFS
    writer = await client.create(path, WriteOptions(permission=_FOR_THE_GROUP, overwrite=True))
    await writer.write(_ROWS)
    await writer.hsync()
    print("written", flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    # A terminal's Ctrl-C reaches this program, too; its starter ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(main(*sys.argv[1:]))
