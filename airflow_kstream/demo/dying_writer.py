"""A program that writes part of a file on HDFS and dies, as by a crash of its host: URL PATH."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from hdfs_native import AsyncClient, WriteOptions

_ROWS = b"a row that was flushed\n" * 10_000


async def main(url: str, path: str) -> None:
    client = AsyncClient(url)
    await client.mkdirs(os.path.dirname(path), 0o755, True)  # noqa: PTH120  a path of HDFS
    writer = await client.create(path, WriteOptions(overwrite=True))
    await writer.write(_ROWS)
    await writer.hsync()
    # Nothing is closed, and no lease is given back.
    os.kill(os.getpid(), signal.SIGKILL)


asyncio.run(main(*sys.argv[1:]))
