"""Lets a PySpark stream stop when its supervisor asks, and refuse to run beside a newer generation of itself.

Ship this one file with `--py-files` next to any Structured Streaming job and replace the job's last line:

    from kstream_driver import Generation

    generation = Generation.of(spark)                # before any query starts
    query = table.writeStream. ... .start()
    generation.await_termination(query)              # instead of query.awaitTermination()

The contract between a driver and its supervisor is four Spark confs and five kinds of file in the stream's folder:

    spark.kstream.contract     "1"
    spark.kstream.stream       the stream's id
    spark.kstream.generation   n, the number of this submission
    spark.kstream.state        the stream's folder, an hdfs:// URI

    gen-00000n      claim: its writer may submit generation n            written by the supervisor
    started-00000n  the driver of n runs and will honour stop-00000n     written here
    stop-00000n     asks the driver of n to stop                         written by the supervisor
    stopped-00000n  the driver of n has stopped all its queries; never
                    while another query of the driver runs               written here
    failed-00000n   the error that ended a query of n; for a Python
                    driver YARN's diagnostics have only the exit code    written here, if HDFS can still be reached

Claims and stop markers count by HDFS's owner of each file, never by its name alone: of the driver's own user, of the
folder's owner, of its parent's, and of HDFS's superuser, who owns the root; and each has to say its generation, since a
file that is moved keeps its owner. What a stranger wrote is logged once, and otherwise as if it were not there. Whose
the driver is, it learns from HDFS's owner of its own file.

With a fifth conf, `spark.kstream.tokens`, the driver also takes fresh delegation tokens: kstream_tokens.py, which is
then shipped beside this file, tells how. A session without these confs (plain spark-submit) behaves as with
`awaitTermination`. This module does not restart anything, does not know Airflow, and can't stop a driver that is cut
off from HDFS; such a driver can finish its current batch, which is harmless for sinks that are idempotent by batch id.

Works with Spark 3 and 4 in the classic API (Spark Connect sessions have no JVM to reach HDFS through), Python 3.8+.
"""

from __future__ import annotations

import json
import logging
import re
import time
import uuid
from collections.abc import Callable
from typing import Any

# model/streams/contract.py has these names for the supervisor; this file is shipped alone and can't import them.
CONTRACT = "1"
CONTRACT_CONF = "spark.kstream.contract"
STREAM_CONF = "spark.kstream.stream"
GENERATION_CONF = "spark.kstream.generation"
STATE_CONF = "spark.kstream.state"
TOKENS_CONF = "spark.kstream.tokens"
_LONGEST_ERROR = 4000
_LONGEST_WORD = 1 << 20
_NO_WORD = ("java.io.FileNotFoundException", "AccessControlException")

log = logging.getLogger("kstream_driver")


def started_marker(generation: int) -> str:
    return f"started-{generation:06d}"


def stop_marker(generation: int) -> str:
    return f"stop-{generation:06d}"


def stopped_marker(generation: int) -> str:
    return f"stopped-{generation:06d}"


def failed_marker(generation: int) -> str:
    return f"failed-{generation:06d}"


def newest_claim(names: set[str]) -> int:
    """Return the highest generation that these file names claim, 0 if none."""
    claims = (re.fullmatch(r"gen-(\d{6,})", name) for name in names)
    return max((int(claim[1]) for claim in claims if claim), default=0)


class ContractError(RuntimeError):
    """The session's spark.kstream.* confs are incomplete or of a version that this file does not know."""


class Superseded(RuntimeError):
    """A newer generation of this stream was claimed; this driver must no longer write."""


class Generation:
    """One driver's part in the contract. Make it with `Generation.of(spark)`."""

    def __init__(
        self, stream: str, number: int, folder: StateFolder | None, application: str = "", spark: Any = None
    ) -> None:
        self.stream = stream
        self.number = number
        self.poll_seconds = 1.0
        self.quiescence_seconds = 60.0
        self._application = application
        self._spark = spark
        self._folder = folder
        self._blind = False
        self._ignored: set[str] = set()

    @classmethod
    def of(cls, spark: Any) -> Generation:
        """Read the session's confs, check that no newer generation was claimed, and write `started-n`.

        Call it before the queries start. A stranger's file that occupies that name is left there, and the driver runs.

        Raises Superseded: when a newer generation was claimed. Raises ContractError: when the confs are incomplete or
        of another version. Hadoop's own errors pass through: a driver that can't read its stream's folder at the start
        does not know whether it may run.
        """
        version = spark.conf.get(CONTRACT_CONF, None)
        if version is None:
            return cls("", 0, None)
        if version != CONTRACT:
            raise ContractError(f"{CONTRACT_CONF} is {version!r}; this kstream_driver.py knows {CONTRACT!r} only")
        stream, number, uri = (_required(spark, name) for name in (STREAM_CONF, GENERATION_CONF, STATE_CONF))
        folder = StateFolder(spark.sparkContext, uri)
        generation = cls(stream, int(number), folder, spark.sparkContext.applicationId, spark)
        generation._refuse_to_follow(generation._words_to_end(folder))
        folder.put(started_marker(generation.number), generation._report())
        take_tokens(spark.sparkContext)
        return generation

    def await_termination(self, *queries: Any) -> None:
        """Return when all queries have ended, or were stopped because of this generation's stop marker.

        Raises Superseded: when a newer generation was claimed; all queries are stopped by then and write nothing more.
        A failing query's error passes through. An unreachable HDFS is logged and never ends a query.
        """
        while alive := self._alive(queries):
            names = self._read_names()
            if newest_claim(names) > self.number:
                _stop_at_once(queries)
                self._refuse_to_follow(names)
            if stop_marker(self.number) in names:
                self._stop(queries)
                return
            self._wait(alive[0])

    def _alive(self, queries: Any) -> list[Any]:
        ended = [query for query in queries if not query.isActive]
        for query in ended:
            self._wait(query)  # returns at once, or raises what ended the query
        return [query for query in queries if query not in ended]

    def _wait(self, query: Any) -> None:
        try:
            query.awaitTermination(self.poll_seconds)
        except Exception as error:
            self._tell(failed_marker(self.number), query=_standing(query), error=str(error)[:_LONGEST_ERROR])
            raise

    def _refuse_to_follow(self, names: set[str]) -> None:
        newest = newest_claim(names)
        if newest > self.number:
            raise Superseded(f"stream {self.stream}: generation {newest} was claimed, this driver is of {self.number}")

    def _words_to_end(self, folder: StateFolder) -> set[str]:
        """Return the files that would end this driver: by their names, their owners, and what they say."""
        return {name for name in folder.names(self._would_end) if self._says_so(folder, name)}

    def _would_end(self, name: str) -> bool:
        return name == stop_marker(self.number) or newest_claim({name}) > self.number

    def _says_so(self, folder: StateFolder, name: str) -> bool:
        """Return whether the file is about the generation in its name: who may move a file keeps its owner, and gives
        it any name."""
        said = _said(folder, name)
        if isinstance(said, dict) and said.get("generation") == int(name.rpartition("-")[2]):
            return True
        if name not in self._ignored:
            log.warning("%s/%s ends nothing: it does not say its generation", folder, name)
        self._ignored.add(name)
        return False

    def _read_names(self) -> set[str]:
        """Return the names of what asks this driver to end; none if that can't be read now, or not who wrote it."""
        if self._folder is None:
            return set()
        try:
            names = self._words_to_end(self._folder)
        except Exception as error:  # whatever HDFS, Kerberos or the JVM throws here, the stream may be healthy
            if not self._blind:
                log.warning("can't read %s, going on without its supervisor: %s", self._folder, _brief(error))
            self._blind = True
            return set()
        if self._blind:
            log.warning("can read %s again", self._folder)
        self._blind = False
        return names

    def _stop(self, queries: Any) -> None:
        log.warning("stream %s: generation %d found its stop marker and stops", self.stream, self.number)
        deadline = time.monotonic() + self.quiescence_seconds
        for query in queries:
            _await_quiescence(query, deadline)
            query.stop()
        if others := self._still_active(queries):
            # The supervisor takes the marker's word for all that this driver writes.
            log.warning("no %s: these queries still run: %s", stopped_marker(self.number), ", ".join(others))
            return
        self._tell(stopped_marker(self.number), queries=[_standing(query) for query in queries])

    def _still_active(self, stopped: Any) -> list[str]:
        """Return the ids of the driver's queries that `await_termination` was not given."""
        if self._spark is None:
            return []
        active = {str(query.id) for query in self._spark.streams.active} | _active_in_any_session(self._spark)
        return sorted(active - {str(query.id) for query in stopped})

    def _tell(self, name: str, **what: Any) -> None:
        if self._folder is None:
            return
        try:
            self._folder.put(name, self._report(**what))
        except Exception as error:  # the supervisor has other ways to learn this
            log.warning("can't write %s: %s", name, _brief(error))

    def _report(self, **more: Any) -> dict[str, Any]:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        origin = {"contract": CONTRACT, "stream": self.stream, "generation": self.number}
        return {**origin, "application": self._application, "time": now, **more}


class StateFolder:
    """The stream's folder on HDFS, through the Hadoop client in the driver's JVM.

    It keeps a FileSystem of its own, since any code in this JVM can close the one in Hadoop's cache. It sees the tokens
    that Spark replaces, since each new connection takes the newest from the user's credentials. After an error it opens
    a new FileSystem, which also helps Hadoop clients that copy tokens once per FileSystem (HDFS-9276).

    It believes a file by its owner, as HDFS tells it in the same listing. Only where somebody else than its own user
    wrote what matters does it ask for more: whose the folder is, its parent, and the root.
    """

    def __init__(self, context: Any, uri: str) -> None:
        self._jvm = context._jvm
        self._hadoop = self._jvm.org.apache.hadoop.fs
        self._conf = context._jsc.hadoopConfiguration()
        self._uri = uri.rstrip("/")
        self._filesystem: Any = None
        # As HDFS names it; unknown until this driver has written a file.
        self._user: str | None = None
        self._strangers: set[str] = set()

    def __str__(self) -> str:
        return self._uri

    def names(self, matters: Callable[[str], bool]) -> set[str]:
        """Return the names that matter, of those files alone whose owners may speak to this driver."""
        names: set[str] = self._with_filesystem(lambda filesystem: self._names(filesystem, matters))
        return names

    def put(self, name: str, content: dict[str, Any]) -> None:
        """Write or replace a file; readers never see a part of it.

        A stranger's file that can't be replaced stays, with a warning: nobody who looks at owners believes it.
        """
        self._with_filesystem(lambda filesystem: self._put(filesystem, name, content))

    def read(self, name: str, longest: int) -> bytes:
        """Return a file's content.

        Raises ValueError: when it has more than `longest` bytes, or its owner may not speak to this driver.
        """
        content: bytes = self._with_filesystem(lambda filesystem: self._read(filesystem, name, longest))
        return content

    def delete(self, name: str) -> bool:
        """Delete a file, past any trash, and return whether there was one."""
        return bool(self._with_filesystem(lambda filesystem: filesystem.delete(self._path(name), False)))

    def _names(self, filesystem: Any, matters: Callable[[str], bool]) -> set[str]:
        named = ((str(status.getPath().getName()), status) for status in filesystem.listStatus(self._path("")))
        # Each question to the JVM takes a while, and a stream of years has thousands of files.
        owners = {name: str(status.getOwner()) for name, status in named if matters(name)}
        believed = self._believed(filesystem, set(owners.values()))
        strange = {name for name, owner in owners.items() if owner not in believed}
        for name in sorted(strange - self._strangers):
            log.warning("%s/%s counts for nothing: %s may not speak to this driver", self, name, owners[name])
        self._strangers |= strange
        return set(owners) - strange

    def _believed(self, filesystem: Any, owners: set[str]) -> set[str]:
        """Return those owners of files that may speak to this driver.

        Modes and ACLs prove nothing: a folder that nobody else can write in may have been open before.
        """
        if owners <= {self._user}:
            return owners
        folder = self._path("")
        above = [folder, folder.getParent(), self._hadoop.Path("/")]
        speakers = {str(filesystem.getFileStatus(path).getOwner()) for path in above}
        if not owners <= speakers:
            speakers.add(self._own_user(filesystem))
        return owners & speakers

    def _own_user(self, filesystem: Any) -> str:
        """Return this driver's user, proven by the owner of a file that it writes: its principal's name may differ."""
        if self._user is None:
            written = self._write(filesystem, "check", {})
            filesystem.delete(written, False)
        return str(self._user)

    def _read(self, filesystem: Any, name: str, longest: int) -> bytes:
        status = filesystem.getFileStatus(self._path(name))
        owner = str(status.getOwner())
        if owner not in self._believed(filesystem, {owner}):
            raise ValueError(f"{name} is of {owner}, who may not speak to this driver")
        length = int(status.getLen())
        if length > longest:
            raise ValueError(f"{name} has {length} bytes; {longest} are allowed")
        stream = filesystem.open(self._path(name))
        try:
            # The jars of Spark 3 and 4 have it; InputStream.readNBytes came with Java 11.
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream, length))
        finally:
            stream.close()

    def _put(self, filesystem: Any, name: str, content: dict[str, Any]) -> None:
        unfinished, final = self._write(filesystem, name, content), self._path(name)
        try:
            filesystem.delete(final, False)
            if not filesystem.rename(unfinished, final):
                raise OSError(f"HDFS refused to rename {unfinished} to {name}")
        except Exception:
            stranger = self._stranger_at(filesystem, final)
            if stranger is None:
                raise
            log.warning("%s is not written: %s occupies its name in %s", name, stranger, self)
            filesystem.delete(unfinished, False)

    def _stranger_at(self, filesystem: Any, path: Any) -> str | None:
        """Return the owner of a file that is not this driver's; None if there is none, or HDFS does not tell."""
        try:
            owner = str(filesystem.getFileStatus(path).getOwner())
        except Exception as error:
            log.info("nobody is known to occupy %s: %s", path, _brief(error))
            return None
        return owner if owner != self._user else None

    def _write(self, filesystem: Any, name: str, content: dict[str, Any]) -> Any:
        """Write a file under a name that nobody can guess, learn this driver's user by it, and return its path."""
        path = self._path(f".{name}.{uuid.uuid4().hex}.tmp")
        stream = filesystem.create(path, True)
        try:
            stream.write(bytearray(json.dumps(content, indent=1).encode()))
        finally:
            stream.close()
        owner = self._user or str(filesystem.getFileStatus(path).getOwner())
        # Whatever the umask and the folder's default ACL: others read it, and nobody else may change it. HDFS refuses
        # this for a file that is not ours, which somebody may have put into its place.
        filesystem.setPermission(path, self._hadoop.permission.FsPermission("644"))
        self._user = owner
        return path

    def _with_filesystem(self, act: Callable[[Any], Any]) -> Any:
        if self._filesystem is None:
            self._filesystem = self._hadoop.FileSystem.newInstance(self._path("").toUri(), self._conf)
        try:
            return act(self._filesystem)
        except Exception:
            broken, self._filesystem = self._filesystem, None
            _close(broken)
            raise

    def _path(self, name: str) -> Any:
        return self._hadoop.Path(f"{self._uri}/{name}" if name else self._uri)


def take_tokens(context: Any) -> None:
    """Take fresh delegation tokens if the supervisor brings any. Whatever is wrong with that, the stream runs without.

    `Generation.of` calls it; calling it again for the same application changes nothing.
    """
    conf = context.getConf()
    if conf.get(TOKENS_CONF) is None:
        return
    try:
        import kstream_tokens  # type: ignore[import-not-found]  # shipped beside this file

        folder = StateFolder(context, conf.get(STATE_CONF))
        kstream_tokens.take_tokens(context, folder, int(conf.get(GENERATION_CONF)))
    except Exception as error:
        log.warning("this driver takes no fresh tokens: %s", _brief(error))


def _said(folder: StateFolder, name: str) -> Any:
    """Return what a file says as JSON; None if that is none, if it is not a file, or if this driver may not read it.

    A supervisor's words are files, and for all to read. Whatever else was moved there keeps no driver from its work.
    """
    try:
        return json.loads(folder.read(name, _LONGEST_WORD))
    except (ValueError, RecursionError):
        return None
    except Exception as error:  # Py4J's, for whatever Java has raised
        if not any(kind in _brief(error) for kind in _NO_WORD):
            raise
        return None


def _required(spark: Any, name: str) -> str:
    value = spark.conf.get(name, None)
    if not value:
        raise ContractError(f"{CONTRACT_CONF} is set but {name} is not")
    return str(value)


def _await_quiescence(query: Any, deadline: float) -> None:
    """Wait until no batch is in progress, or one has just been committed: a stop then repeats no work."""
    batch = _last_batch(query)
    while query.isActive and query.status["isTriggerActive"] and _last_batch(query) == batch:
        if time.monotonic() > deadline:
            log.warning("query %s was never between two batches; its current batch will be repeated", query.id)
            return
        time.sleep(0.05)


def _active_in_any_session(spark: Any) -> set[str]:
    """Return the ids of all sessions' queries: those of `newSession()` are listed there alone.

    Spark 2 has no such list (SharedState.activeStreamingQueries): then only this session's are known.
    """
    try:
        return {str(query) for query in spark._jsparkSession.sharedState().activeStreamingQueries().keySet()}
    except Exception as error:  # AttributeError without a JVM, Py4JError from an old one
        log.info("queries of other sessions are not known: %s", _brief(error))
        return set()


def _stop_at_once(queries: Any) -> None:
    for query in queries:
        try:
            query.stop()
        except Exception as error:  # the next query must be stopped too
            log.warning("stopping query %s: %s", query.id, _brief(error))


def _standing(query: Any) -> dict[str, Any]:
    return {"id": str(query.id), "name": query.name, "last_batch": _last_batch(query)}


def _last_batch(query: Any) -> int:
    """Return the last committed batch, -1 before the first. A progress without `addBatch` is that of the next batch."""
    progress = query.lastProgress
    if progress is None:
        return -1
    return int(progress["batchId"]) - ("addBatch" not in progress["durationMs"])


def _close(filesystem: Any) -> None:
    try:
        filesystem.close()
    except Exception as error:  # it has already failed and is being discarded
        log.info("closing a FileSystem: %s", _brief(error))


def _brief(error: Exception) -> str:
    """Return the message without its stack. Py4J names the call in its first line, and the reason in the next one."""
    lines = [line.strip(": ") for line in str(error).strip().splitlines()[:2] if not line.startswith("\tat ")]
    return ": ".join(lines) or type(error).__name__
