"""Scans the logs of applications for the patterns of a catalogue, on all cores, and writes what it found.

    spark-submit --py-files triage.zip triage.py --patterns patterns.json --to OUT LOGS...

It reads files and folders of any file system that Spark knows: plain logs, compressed ones (.gz), and what YARN
aggregated as TFiles or indexed files. All but compressed logs are split, so that one of 200 MB occupies all cores: a
TFile at its containers, and a large log in it where a chunk begins. Python workers read the bytes themselves, local
files directly and HDFS by hdfs-native, or over WebHDFS with a delegation token of the driver's, and hand whole blocks
to the scanner: no line becomes a row, and Spark's SQL, which takes seconds to start, has nothing to do. The driver
scans, too, until somebody else can. Of each part the hits that were kept come back. Who judges them reads OUT, one
JSON document: {"logs": [{"name", "sections"}], "unread": [...]}.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple
from uuid import uuid4

from log_parts import (  # type: ignore[import-not-found]  # shipped beside this file by --py-files
    Part,
    PartScan,
    compiled,
    is_indexed,
    joined_logs,
    packed,
    packed_part,
    parts_of,
    plain_parts,
    why_unread,
)
from log_reads import Reader, Source, WebHdfs  # type: ignore[import-not-found]
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext

_APPLICATION = re.compile(r"application_\d+_\d+")
# In seconds, once the result is written: for YARN to start, which takes ten where there is room, and for Spark to end.
# Java itself waits a quarter of an hour for a ResourceManager that is away.
_TO_START, _TO_END = 15.0, 30.0


class Java(NamedTuple):
    """The driver's JVM, and its Hadoop configuration."""

    jvm: Any
    conf: Any

    @classmethod
    def started(cls) -> Java:
        """Return that of spark-submit, which is there before any context."""
        SparkContext._ensure_initialized()
        jvm: Any = SparkContext._jvm
        conf = jvm.org.apache.spark.deploy.SparkHadoopUtil.get().newConfiguration(jvm.org.apache.spark.SparkConf())
        return cls(jvm, conf)


class Workers:
    """Those who take tasks. They start, and compile the patterns, while the driver does other things."""

    def __init__(self, settings: str, awaited: bool = False) -> None:
        """Start them. Those who are `awaited` leave nothing to the driver."""
        self._awaited = awaited
        self._tag = f"kstream-triage-{uuid4().hex}"
        thread = ThreadPoolExecutor(1)
        self._context = thread.submit(SparkContext.getOrCreate, _tagged(self._tag))
        self._compiled = thread.submit(self._compile, settings)
        # It ends with its work.
        thread.shutdown(wait=False)

    @property
    def ready(self) -> bool:
        """Return whether the tasks are theirs: they can take them, never will, or are awaited."""
        return self._awaited or self._compiled.done()

    @property
    def context(self) -> SparkContext:
        """Wait for Spark's context. Raises Py4JJavaError: when there will be none."""
        return self._context.result()

    def end(self, java: Java) -> None:
        """Stop Spark. While it waits for a place in YARN's queue, kill its application: nobody needs it any longer."""
        on_yarn = SparkConf().get("spark.master", "").startswith("yarn")
        # Where there is no context there is nothing to stop.
        with suppress(Py4JJavaError):
            while not self._stopped_within(_TO_START if on_yarn else None):
                # A refusal is not a reason to fail: the result is there.
                with suppress(Py4JJavaError):
                    kill_applications(java, self._tag)

    def _stopped_within(self, seconds: float | None) -> bool:
        try:
            context = self._context.result(seconds)
        except TimeoutError:
            return False
        context.stop()
        return True

    def _compile(self, settings: str) -> None:
        number = self.context.defaultParallelism
        self.context.parallelize(range(number), number).foreach(lambda _: compiled(settings))


def _tagged(tag: str) -> SparkConf:
    conf = SparkConf()
    return conf.set("spark.yarn.tags", ",".join(filter(None, (conf.get("spark.yarn.tags", ""), tag))))


def kill_applications(java: Java, tag: str) -> None:
    """Kill the applications with this tag that have not ended."""
    jvm, conf = java
    client = jvm.org.apache.hadoop.yarn.client.api.YarnClient.createYarnClient()
    client.init(jvm.org.apache.hadoop.yarn.conf.YarnConfiguration(conf))
    client.start()
    tags = jvm.java.util.HashSet()
    tags.add(tag)
    request = jvm.org.apache.hadoop.yarn.api.protocolrecords.GetApplicationsRequest.newInstance()
    request.setApplicationTags(tags)
    for application in client.getApplications(request):
        client.killApplication(application.getApplicationId())
    client.stop()


def sources_of(java: Java, locations: list[str]) -> list[Source]:
    """List all files below the locations, but hidden ones and those that are being written."""
    jvm, conf = java
    sources = []
    for location in locations:
        path = jvm.org.apache.hadoop.fs.Path(location)
        root = path.getFileSystem(conf).makeQualified(path)
        files = path.getFileSystem(conf).listFiles(root, True) if _is_folder(path, conf) else None
        statuses = _all(files) if files else [path.getFileSystem(conf).getFileStatus(root)]
        above = len(root.toUri().getPath()) + 1 if files else len(root.getParent().toUri().getPath().rstrip("/")) + 1
        for status in statuses:
            uri = str(status.getPath().toUri())
            name = str(status.getPath().toUri().getPath())[above:]
            if not any(part.startswith((".", "_")) for part in name.split("/")) and not name.endswith(".tmp"):
                sources.append(Source(uri, name, int(status.getLen())))
    return sources


def _is_folder(path: Any, conf: Any) -> bool:
    return bool(path.getFileSystem(conf).getFileStatus(path).isDirectory())


def _all(files: Any) -> Iterator[Any]:
    while files.hasNext():
        yield files.next()


def indexed_parts(java: Java, source: Source, size: int) -> list[Part]:
    """Cut an indexed file of YARN's by its index, which Hadoop's own reader reads: it is an object of Java's.

    Raises OSError: when it is compressed in a way not known here. Raises Py4JJavaError: when Hadoop refuses it.
    """
    jvm, conf = java
    found = _APPLICATION.search(source.uri)
    if found is None:
        raise OSError("it is an indexed log, and no folder above it is named after its application")
    controller = jvm.org.apache.hadoop.yarn.logaggregation.filecontroller.ifile.LogAggregationIndexedFileController()
    controller.initialize(conf, "IFile")
    application = jvm.org.apache.hadoop.yarn.api.records.ApplicationId.fromString(found[0])
    index = controller.loadIndexedLogsMeta(jvm.org.apache.hadoop.fs.Path(source.uri), source.length, application)
    compression = str(index.getCompressName())
    if compression not in {"none", "gz"}:
        raise OSError(f"its logs are compressed with {compression}, which is not read here")
    parts: list[Part] = []
    for upload in index.getLogMetas():
        for entry in upload.getLogMetas().entrySet():
            for file in entry.getValue():
                name, first = f"{source.name}#{entry.getKey()}/{file.getFileName()}", int(file.getStartIndex())
                last = first + int(file.getFileCompressedSize())
                plain = compression == "none"
                parts += (
                    plain_parts(source, name, first, last, size) if plain else [packed_part(source, name, first, last)]
                )
    return parts


def web_hdfs(java: Java, addresses: str, sources: list[Source]) -> WebHdfs:
    """Return the means to read HDFS, with a token that the driver has or gets; none where nothing is on HDFS."""
    first = next((source.uri for source in sources if source.uri.startswith("hdfs:")), None)
    if first is None:
        return WebHdfs()
    jvm, conf = java
    user = jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser()
    credentials = user.getCredentials()
    if user.hasKerberosCredentials():
        path = jvm.org.apache.hadoop.fs.Path(first)
        path.getFileSystem(conf).addDelegationTokens(user.getShortUserName(), credentials)
    tokens = [
        token for token in _all(credentials.getAllTokens().iterator()) if "HDFS_DELEGATION" in str(token.getKind())
    ]
    return WebHdfs(tuple(addresses.split(",")), str(tokens[0].encodeToUrlString()) if tokens else "")


def found_in(
    java: Java, workers: Workers, settings: str, locations: list[str], namenodes: str, size: int
) -> Mapping[str, Any]:
    """Scan all logs below the locations. `size` is that of a task in bytes."""
    sources = sources_of(java, locations)
    reader = Reader(web_hdfs(java, namenodes, sources))
    parts: list[Part] = []
    unread: list[str] = []
    for source in sources:
        try:
            parts += indexed_parts(java, source, size) if is_indexed(reader, source) else parts_of(reader, source, size)
        except Exception as error:  # Whatever a file does to its reader, Hadoop's too: the others are read.
            unread.append(f"{source.name}: {why_unread(error)}")
    found = joined_logs(settings, _scanned(workers, PartScan(settings, reader), parts, packed(parts, size)))
    return {**found, "unread": [*unread, *found["unread"]]}


def _scanned(workers: Workers, scan: PartScan, parts: list[Part], tasks: list[list[int]]) -> list[tuple[int, str]]:
    """Return what was found in each part. Workers take longer to start than a gigabyte takes to be scanned."""

    def scanned(task: list[int]) -> list[tuple[int, str]]:
        return [(number, json.dumps(scan.found(parts[number]))) for number in task]

    rows = []
    while tasks and not workers.ready:
        rows += scanned(tasks.pop())
    if tasks:
        rows += workers.context.parallelize(tasks, len(tasks)).flatMap(scanned).collect()
    return rows


def write(java: Java, location: str, text: str) -> None:
    """Write the result, readable for its owner alone: logs show data."""
    jvm, conf = java
    path = jvm.org.apache.hadoop.fs.Path(location)
    files = path.getFileSystem(conf)
    out = files.create(path, True)
    # It is empty until then.
    files.setPermission(path, jvm.org.apache.hadoop.fs.permission.FsPermission("600"))
    out.write(bytearray(text.encode()))
    out.close()


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("logs", nargs="+", metavar="LOGS", help="files and folders, as URIs or paths of the default file system")
    add("--patterns", required=True, help="what to look for, as `kstream triage --spark` writes it")
    add("--to", required=True, help="where to write what was found")
    add("--namenodes", default="", help="base URLs of the NameNodes' web servers, with commas between them")
    add("--await-workers", action="store_true", help="scan nothing in the driver, however long workers take to start")
    add("--task-size", type=int, default=64 << 20, help="bytes of a task")
    return parser


def main() -> None:
    settings = arguments().parse_args()
    patterns = Path(settings.patterns).read_text(encoding="utf-8")
    java, workers = Java.started(), Workers(patterns, settings.await_workers)
    found = found_in(java, workers, patterns, settings.logs, settings.namenodes, settings.task_size)
    write(java, settings.to, json.dumps(found))
    ending = Thread(target=workers.end, args=(java,), daemon=True)
    ending.start()
    ending.join(_TO_END)
    if ending.is_alive():
        # Else Python would wait for the thread that waits for Java.
        os._exit(0)


if __name__ == "__main__":
    main()
