"""Opens many files of HDFS by one client, hsyncs bytes to each or closes it, and waits for the end of its input."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any
from urllib.parse import unquote_plus

from hdfs_native import AsyncClient, AsyncFileWriter, WriteOptions

_AT_ONCE = 64


async def main() -> None:
    task = json.loads(unquote_plus(sys.stdin.readline()))
    client = AsyncClient(task["url"])
    health = asyncio.Semaphore(_AT_ONCE)
    # Kept: a writer without any reference would close its connection.
    writers = await asyncio.gather(*(_open(client, health, path, task) for path in task["paths"]))
    print(f"done\t{len(writers)}", flush=True)
    sys.stdin.read()
    # An orderly exit would wait for background tasks of the library; nothing here is to be put in order.
    os._exit(0)


async def _open(client: AsyncClient, health: asyncio.Semaphore, path: str, task: dict[str, Any]) -> AsyncFileWriter:
    async with health:
        writer = await client.create(path, WriteOptions(block_size=task["block_size"]))
        if task["size"]:
            period = bytes(range(251))
            await writer.write((period * (task["size"] // len(period) + 1))[: task["size"]])
            await writer.hsync()
        if task["closed"]:
            await writer.close()
        return writer


asyncio.run(main())
