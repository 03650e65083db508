"""The error that a dead driver's log ends with: for a job whose own word nobody else has kept.

YARN only says "User application exited with status 1" about a Python job in cluster mode. Its traceback is in the
container's stdout, because Spark sends both of Python's streams there (PythonRunner); Spark's own log, which names the
Java exceptions behind it, is in stderr.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

# In characters, of each of the two errors.
_LONGEST = 400
# Python's names of Java's exceptions, whose cause is in Spark's log.
_FROM_JAVA = re.compile(r"(?:py4j\.|pyspark\.(?:errors\.|sql\.utils\.))")
_TRACEBACK = "Traceback (most recent call last):"
_PYTHON_ERROR = re.compile(r"[A-Za-z_][\w.]*(?::|$)")
_JAVA_ERROR = re.compile(
    r"(?:Exception in thread \"[^\"]*\" |: )?(?P<error>(?:[\w$]+\.)+[\w$]*(?:Exception|Error|InvalidToken)\b.*)"
)
_CAUSE = re.compile(r"[ \t]*Caused by: (?P<error>\S.*)")
# The wrapper of a Python job's exit, and what other threads meet when the JVM ends.
_NO_CAUSE = re.compile(
    r"org\.apache\.spark\.SparkUserAppException|java\.lang\.InterruptedException"
    r"|java\.nio\.channels\.Closed\w*Exception|java\.util\.concurrent\.RejectedExecutionException"
)
# Log4j's lines begin with a time and a level.
_LOGGED = re.compile(r"\S*\d\S*(?: \S+)? +(?P<level>TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b")
_HARMLESS = {"WARN", "INFO", "DEBUG", "TRACE"}


def last_error(stdout: str, stderr: str) -> str:
    """Return the error that ended a driver, as its log says it; below it, the Java exception that caused it, if any.

    An error of Python alone is explained by nothing in Spark's log. Empty if the log names none.
    """
    python = _last_of_python(stdout)
    if python and not _FROM_JAVA.match(python):
        return _short(python)
    # py4j prints Java's stack trace below Python's.
    java = _last_of_java(stdout.rpartition(python)[2] if python else stdout) or _last_of_java(stderr)
    cause = f"Caused by: {_short(java)}" if java and python else _short(java)
    return "\n".join(filter(None, (_short(python), cause)))


def _last_of_python(text: str) -> str:
    """Return the last line that follows a traceback's frames at the beginning of a line, empty if there is none."""
    error, in_frames = "", False
    for line in text.splitlines():
        if line.startswith('  File "'):
            in_frames = True
        elif in_frames and line and not line[0].isspace():
            in_frames = False
            error = line if _PYTHON_ERROR.match(line) else error
    return error


def _last_of_java(text: str) -> str:
    """Return the innermost cause of the last exception that may have ended the driver, empty if there is none."""
    errors = [error for error in _traces(text) if not _NO_CAUSE.match(error)]
    error = errors[-1] if errors else ""
    # Java's wrapper of an error in a Python worker or callback.
    return (_last_of_python(text) or error) if error.endswith(_TRACEBACK) else error


def _traces(text: str) -> Iterator[str]:
    """Yield the innermost cause of each exception that was logged as more than a warning."""
    level, error = "", ""
    for line in text.splitlines():
        if logged := _LOGGED.match(line):
            if error:
                yield error
            level, error = logged["level"], ""
        elif level in _HARMLESS:
            continue
        elif cause := _CAUSE.match(line):
            error = error if _says_more(error, cause["error"]) else cause["error"]
        elif begun := _JAVA_ERROR.match(line):
            if error:
                yield error
            error = begun["error"]
    if error:
        yield error


def _says_more(error: str, cause: str) -> bool:
    """Return whether the cause is the same error with fewer words: Hadoop's NetUtils adds the address to it."""
    (kind, _, words), (inner, _, fewer) = error.partition(": "), cause.partition(": ")
    return kind == inner and fewer in words


def _short(error: str) -> str:
    return textwrap.shorten(error, _LONGEST, placeholder=" ...")
