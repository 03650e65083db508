"""The form of a log: what others put around its lines, and what begins its records.

Containers' runtimes, kubectl, syslog, Airflow, grep and loggers of JSON wrap each line. The log's beginning tells what
they put around it. That is taken away before the scan, so that a line means the same in each of them; the number of
lines stays. What has a moment of its own keeps that; other lines have the envelope's, if it has one. A log without any
envelope costs a look at its beginning. Loggers that write fields (JSON in one line, logfmt) name the level in one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from .printed import PRINTED

LEVELS = r"TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|SEVERE|CRITICAL"
# What begins a record where nothing has a moment.
LEVEL_FIRST = (
    rf"(?:\[[^\]\n]{{1,80}}\] *)?[\[(]?(?:{LEVELS})(?: *[\])]| *:|(?= +[\w.$/\[(<-]))|(?:严重|警告|信息): "
    r"|\[(?i:error|warn|warning|info|debug|critical|fatal)\]"
)
# In bytes: the beginning that tells the form.
_SAMPLE = 16 << 10
_DEPTH = 4
_ISO = r"\d{4}-\d\d-\d\d[T ,]+\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
_STRICT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)"
_SYSLOG = rf"(?:<\d+>)?(?:1 )?(?:{_STRICT}|[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d)"
# Begins a line whose form shows once what stands around it is gone: JSON, glog, kubectl, and a shell's echo.
_NESTED = r"\{ ?\"[\w@]|[IWEF](?:\d{4})?\d{4} \d\d:\d\d:\d\d\.\d|\[pod/|\++ [\w./\[]"
_PRINTED = "|".join((r"Exception in thread \"|Traceback \(most recent", *PRINTED))
# What belongs to the record above it, or is one without a head.
_BARE = (
    r"\t|#011| +(?:at |\.\.\. \d|File \"|Caused by|Suppressed)| {4,}\S"
    r"|at [\w.$/<>]+[(.]|Caused by: |\.\.\. \d+ |File \"|\r?$"
    r"|(?:\w+\.)+[A-Z]\w*: "
    r"|(?:[\w$]+\.)+[\w$]*(?:Exception|Error|Throwable)\b"
    r"|requirement failed: |(?:kinit|klist|kvno|kdestroy|ktutil): |LogType:|Container: container_|: \w+\."
    rf"|{_NESTED}|{_PRINTED}"
)
_LEVELS = rf"(?:{LEVELS})"
# What Airflow puts before the lines of a container in a pod; a level is none.
_CONTAINER = r"(?:\[(?!(?i:trace|debug|info|notice|warn(?:ing)?|error|fatal|critical)\])[a-z0-9][a-z0-9.-]*\] )?"
_OF_POD = re.compile(_CONTAINER)
_BEHIND_WRITER = rf" - (?:Job \d+: Subtask \S+ )?{_CONTAINER}"
# Around any line that has a head of its own, or belongs to the record above; other lines keep it as their head, unless
# their writer hands on another program's lines: then they are a part of its last record.
_DATED = {
    "airflow": rf"\[{_ISO}\] (?P<writer>(?:\{{+[\w./<>-]+:\d+\}}+ )?(?:INFO|WARNING)){_BEHIND_WRITER}",
    "structlog": rf"\[?{_ISO}\]? \[(?:trace|debug|info|warning|error|critical|exception) *\] ",
    "cri": rf"{_ISO} (?:stdout|stderr) [FP] ",
    "syslog": rf"{_SYSLOG} [\w.-]+ (?:[\w./@-]+(?:\[\d+\])?:|[\w./-]+ (?:\d+|-) \S+ -) ",
    "timestamps": rf"\[?{_STRICT}\]? (?:\d\d[OE][ +]?)?",
}
# Around each line, whatever it is.
_CONSTANT = {
    "kubectl": r"\[pod/[^\]\n]+\] ?",
    "stern": "[\\w.-]+ \u203a [\\w.-]+ (?:\u2502 )?",
    "fluentd": rf"{_ISO} [\w.*-]+:[ \t](?=\{{\")",
    "xml": r"[ \t]*<(?:log4j:)?(?:message|throwable|Message|Throwable)><!\[CDATA\[",
}
# Looks like other things, too: it is one only where most lines have it, and some have their head behind it.
_MOSTLY = {
    "numbered": r"[ \t]*\d{1,9}(?:\t| +)",
    "grep": r"(?:[\w./+=@-]{0,200}[A-Za-z_][\w./+=@-]{0,60}[:-](?:\d{1,9}[:-](?!\d\d-\d\d[T ]))?|\d{1,9}[:-])",
    "compose": r"[\w.-]+ *\| ",
    "pod": r"[\w.-]+-[\w.-]+ [\w.-]+ ",
    "quoted": r"(?:> ?)+",
    "indented": r"[ \t]{INDENT}",
}
_MOST = 0.6
# A writer hands on the lines of another program if so many of its lines have heads of their own.
_HANDED_ON = 0.2
# Before the moment of a record: a thread, a process, an application.
_BEFORE = (
    r"(?:\[[^\]\n]{1,100}\]|\([^)\n]{1,80}\)|\d{1,7}|(?:application|container|attempt)_\w+|[A-Za-z][\w-]*-\d+)[ :|-]+"
)
_ANSI = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
_ANSI_TEXT = re.compile(_ANSI.pattern.decode())
_JSON = re.compile(rb'^[ \t]*\{ ?"(?!ts":")[^\n]*\}[ \t\r]*$', re.M)
_DOCKER = rb'\{"log":"(?=INNER)([^"\\\n]*)\\n","stream":"\w+","time":"[^"\n]*"\}\r?$'
_SPARK_JSON = re.compile(rb'^\{"ts":"', re.M)
_GLOG = re.compile(rb"^([IWEF])((?:\d{4})?\d{4} \d\d:\d\d:\d\d\.\d+)", re.M)
_GLOG_LEVELS = {b"I": b"INFO", b"W": b"WARN", b"E": b"ERROR", b"F": b"FATAL"}
_MESSAGES = ("event", "log", "message", "msg", "@message", "textPayload")
_MOMENTS = ("timestamp", "@timestamp", "time", "ts", "asctime", "date", "eventTime")
_WRITERS = ("logger", "logger_name", "stream", "filename")
_ERROR_OF_ECS = ("error.type", "error.message")
_TRACES = ("error_detail", "exception", "exc_info", "stack_trace", "error.stack_trace", "stacktrace", "throwable")
_QUIET = {"", "INFO", "DEBUG", "TRACE", "NOTSET"}
_MILLISECONDS = 1e11

Layer = Callable[[bytes], bytes]


@dataclass(frozen=True)
class Form:
    """The layers that are taken off each block of whole lines, in this order, and what begins a record then."""

    layers: tuple[Layer, ...]
    heads: re.Pattern[bytes]

    def plain(self, block: bytes) -> bytes:
        for layer in self.layers:
            block = layer(block)
        return block


def opened(blocks: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the beginning of a log, and all its blocks."""
    coming = iter(blocks)
    beginning = b""
    for block in coming:
        beginning += block
        if len(beginning) >= _SAMPLE:
            break
    beginning = beginning.removeprefix(b"\xef\xbb\xbf")
    return beginning[:_SAMPLE], chain([beginning] if beginning else [], coming)


def form_of(sample: bytes, heads: re.Pattern[bytes]) -> Form:
    """Tell the form of a log by its beginning; `heads` matches a line that begins a record with its moment."""
    layers: list[Layer] = []
    for _ in range(_DEPTH):
        layer = _layer_of(sample, heads)
        if layer is None:
            break
        layers.append(layer)
        before, sample = sample, layer(sample)
        if sample == before:
            break
    dated = any(heads.match(line) for line in sample.split(b"\n"))
    return Form(tuple(layers), heads if dated else _LEVEL_HEADS)


_LEVEL_HEADS = re.compile(LEVEL_FIRST.encode())
_BEGINS = re.compile(f"{_NESTED}|{_PRINTED}".encode(), re.M)
_HEADS_WITHIN = re.compile(_NESTED.encode())


def _layer_of(sample: bytes, heads: re.Pattern[bytes]) -> Layer | None:
    if _ANSI.search(sample):
        return partial(_ANSI.sub, b"")
    if _JSON.search(sample):
        inner = re.compile(heads.pattern + b"|" + _BARE.encode(), re.M)
        line = partial(_of_json, heads, inner, _json_writers(sample, heads))
        return partial(_without_json, _compiled(_DOCKER.replace(b"INNER", inner.pattern)), line)
    if _SPARK_JSON.search(sample) and b'\\"' in sample:
        return _unescaped
    if _GLOG.search(sample):
        return partial(_GLOG.sub, _of_glog)
    return _text_layer(sample, heads)


def _without_json(docker: re.Pattern[bytes], line: Callable[[re.Match[bytes]], bytes], block: bytes) -> bytes:
    # Most lines of docker hold nothing that Python has to look at.
    return _JSON.sub(line, docker.sub(rb"\1", block))


def _text_layer(sample: bytes, heads: re.Pattern[bytes]) -> Layer | None:
    inner = b"(?:" + heads.pattern + b"|" + _BARE.encode() + b")"
    for envelope in _CONSTANT.values():
        if (regex := _compiled(envelope.encode())).search(sample):
            return partial(regex.sub, b"")
    for name, envelope in _DATED.items():
        # Airflow says much before the first line of a program that it starts.
        follows = b"" if name == "airflow" else b"(?=" + inner + b")"
        if _compiled(envelope.encode() + follows).search(sample):
            return partial(_compiled(_with_handed_on(envelope, inner, sample, heads)).sub, b"")
    lines = [line for line in sample.split(b"\n") if line.strip()]
    if 5 * sum(heads.match(line) is not None for line in lines) > len(lines):
        # Its records begin at the beginnings of lines.
        return None
    indent = str(min((len(line) - len(line.lstrip()) for line in lines), default=0) or 1)
    for envelope in (each.replace("INDENT", indent) for each in _MOSTLY.values()):
        regex = re.compile(b"(?!" + heads.pattern + b")" + envelope.encode())
        wrapped = [found for line in lines if (found := regex.match(line))]
        ends = [(found.string, found.end()) for found in wrapped]
        begun = any(heads.match(line, end) or _BEGINS.match(line, end) for line, end in ends)
        if begun and len(wrapped) >= _MOST * len(lines):
            return partial(_compiled(regex.pattern).sub, b"")
    before = _compiled(b"(?:[ \t]+|" + _BEFORE.encode() + b")(?=" + heads.pattern + b")")
    return partial(before.sub, b"") if before.search(sample) else None


def _with_handed_on(envelope: str, inner: bytes, sample: bytes, heads: re.Pattern[bytes]) -> bytes:
    """Return the regex of an envelope around lines that it may be taken off from."""
    plain = envelope.replace("?P<writer>", "?:").encode()
    seen = [
        (found.groupdict().get("writer", b""), found.end()) for found in _compiled(envelope.encode()).finditer(sample)
    ]
    begins = ((writer, heads.match(sample, end) or _HEADS_WITHIN.match(sample, end)) for writer, end in seen)
    writers = _handed_on((writer, found is not None) for writer, found in begins)
    known = envelope.encode().partition(b"(?P<writer>")
    if not writers:
        return b"(?:" + plain + b"(?=" + inner + b"))"
    if not known[1]:
        return b"(?:" + plain + b")"
    handed = b"|".join(map(re.escape, sorted(writers)))
    return b"(?:" + plain + b"(?=" + inner + b")|" + known[0] + b"(?:" + handed + b")" + _BEHIND_WRITER.encode() + b")"


def _handed_on(lines: Iterable[tuple[Any, bool]]) -> set[Any]:
    """Return the writers of lines of which enough have heads of their own."""
    counts: dict[Any, list[bool]] = {}
    for writer, has_head in lines:
        counts.setdefault(writer, []).append(has_head)
    return {writer for writer, heads in counts.items() if sum(heads) > _HANDED_ON * len(heads)}


def _json_writers(sample: bytes, heads: re.Pattern[bytes]) -> set[str]:
    lines = []
    for found in _JSON.finditer(sample):
        fields = _fields(found[0])
        if message := _message(fields):
            lines.append((_writer(fields), heads.match(_bytes(_ANSI_TEXT.sub("", message))) is not None))
    return _handed_on(lines)


def _writer(fields: Mapping[str, Any]) -> str:
    return f"{_first(fields, _WRITERS)} {_first(fields, NAMES_OF_LEVEL)}"


def _fields(line: bytes | str) -> Mapping[str, Any]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _message(fields: Mapping[str, Any]) -> str | None:
    said = next((fields[key] for key in _MESSAGES if isinstance(fields.get(key), str)), None)
    return said and _OF_POD.sub("", said, count=1) if "pod_manager" in str(fields.get("logger", "")) else said


def _compiled(envelope: bytes) -> re.Pattern[bytes]:
    return re.compile(b"^" + envelope, re.M)


def _unescaped(block: bytes) -> bytes:
    return block.replace(b'\\"', b'"')


def _of_glog(found: re.Match[bytes]) -> bytes:
    return found[2] + b" " + _GLOG_LEVELS[found[1]]


def _of_json(
    heads: re.Pattern[bytes], inner: re.Pattern[bytes], writers: Container[str], found: re.Match[bytes]
) -> bytes:
    """Return the message of a line of JSON; one without a head of its own gets the line's moment and level."""
    fields = _fields(found[0])
    message = _message(fields)
    if message is None:
        return found[0]
    level = level_in(fields)
    text = " | ".join(_ANSI_TEXT.sub("", message).rstrip("\n").splitlines())
    trace = _trace(_first(fields, _TRACES))
    said = ": ".join(str(fields[key]) for key in _ERROR_OF_ECS if fields.get(key))
    trace = trace if said in trace else f"{said} | {trace}"
    line = _bytes(f"{text}: {trace}" if trace else text)
    quiet = level in _QUIET and not trace
    if heads.match(line) or (quiet and (inner.match(line) or _writer(fields) in writers)):
        return line
    moment = _moment(_first(fields, _MOMENTS))
    # A level that begins a record has a colon behind it, whatever the message begins with.
    return _bytes((f"{moment} {level} " if moment or not level else f"{level}: ").lstrip()) + line


def _bytes(text: str) -> bytes:
    # JSON can name halves of characters.
    return text.encode(errors="replace")


def _first(fields: Mapping[str, Any], keys: Iterable[str]) -> Any:
    return next((fields[key] for key in keys if fields.get(key)), "")


def _moment(value: Any) -> str:
    """Return a moment as a head has it: milliseconds since 1970 where it is a number."""
    if not isinstance(value, int | float):
        return str(value)
    try:
        return str(int(value if value > _MILLISECONDS else value * 1000))
    except (ValueError, OverflowError):
        # Python reads NaN and Infinity as JSON.
        return ""


def _trace(value: Any) -> str:
    """Return the words of an exception: a text of lines, or a list of exceptions as Airflow writes it."""
    if isinstance(value, str):
        return " | ".join(line.strip() for line in value.splitlines() if line.strip())
    if isinstance(value, list):
        each = (item for item in value if isinstance(item, dict) and item.get("exc_type"))
        return " | ".join(f"{item['exc_type']}: {item.get('exc_value', '')}" for item in each)
    if isinstance(value, dict):
        return " | ".join(str(value[key]) for key in ("class", "name", "type", "msg", "message") if value.get(key))
    return ""


NAMES_OF_LEVEL = ("level", "log.level", "levelname", "severity", "log_level", "lvl", "loglevel")
# In other letters and words than log4j's; a longer one than the key begins with it, too.
_WORDS = {
    "ERR": "ERROR", "EROR": "ERROR", "CRIT": "CRITICAL", "FATAL": "FATAL", "PANIC": "FATAL", "DPANIC": "FATAL",
    "EMERG": "FATAL", "ALERT": "FATAL", "SEVERE": "SEVERE", "WARN": "WARN", "INFO": "INFO", "NOTICE": "NOTICE",
    "DEBUG": "DEBUG", "TRACE": "TRACE",
}  # fmt: skip
# bunyan's and pino's numbers, and those of syslog, which GELF has.
_NUMBERS = {10: "TRACE", 20: "DEBUG", 30: "INFO", 40: "WARN", 50: "ERROR", 60: "FATAL"}
_OF_SYSLOG = ("FATAL", "FATAL", "CRITICAL", "ERROR", "WARN", "NOTICE", "INFO", "DEBUG")
_PAIR = re.compile(r'(?<![^ \t])([\w.@-]+)=(?:"((?:[^"\\]|\\.)*)"|([^ \t"]*))')
# One of these tells a record from a list of settings.
_SAYS = {"msg", "message", "err", "error", "event", "ts", "time", "timestamp", "caller", "logger"}
# In characters.
_LONGEST = 2000


def level_in(fields: Mapping[str, Any]) -> str:
    """Return the level of a record in capitals, in log4j's word where it is known; empty if it has none."""
    found: Any = next((fields[key] for key in NAMES_OF_LEVEL if fields.get(key) not in (None, "")), "")
    inner = fields.get("log")
    if found == "" and isinstance(inner, Mapping):
        found = inner.get("level", "")
    if isinstance(found, int):
        return _of_number(found, "short_message" in fields)
    word = str(found).strip().upper()
    return next((level for begin, level in _WORDS.items() if word.startswith(begin)), word)


def level_of_fields(line: str) -> str:
    """Return the level of a line that is a record in JSON or logfmt; empty if it is none or has none."""
    if line.startswith("{"):
        return level_in(_fields(line))
    first = _PAIR.match(line)
    if first is None:
        return ""
    pairs: dict[str, str] = {}
    for found in _PAIR.finditer(line, 0, _LONGEST):
        pairs.setdefault(found[1], found[2] or found[3] or "")
    return level_in(pairs) if _SAYS & pairs.keys() else ""


def _of_number(number: int, is_gelf: bool) -> str:
    if is_gelf:
        return _OF_SYSLOG[number] if 0 <= number < len(_OF_SYSLOG) else ""
    return _NUMBERS.get(number, "")
