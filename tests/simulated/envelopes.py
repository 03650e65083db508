"""What programs put around the lines of a log on its way to a person, and the heads that loggers give its records."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime

Wrap = Callable[[str], str]

_CLOCK = "2026-03-01T10:00:{:02}.123456789Z"
# As Spark's own default has it.
_HEAD = re.compile(r"(\d\d/\d\d/\d\d \d\d:\d\d:\d\d) (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) ([\w.$]+): ?")
_LETTERS = {"INFO": "I", "WARN": "W", "ERROR": "E", "FATAL": "F"}


def each_line(around: Callable[[int, str], str]) -> Wrap:
    def wrap(text: str) -> str:
        return "".join(around(number, line) + "\n" for number, line in enumerate(text.splitlines()))

    return wrap


def _docker(number: int, line: str) -> str:
    return json.dumps({"log": f"{line}\n", "stream": "stderr", "time": _at(number)}, separators=(",", ":"))


def _logstash(number: int, line: str) -> str:
    return json.dumps({"@timestamp": _at(number), "@version": "1", "message": line, "level": "INFO"})


def _at(number: int) -> str:
    return _CLOCK.format(number // 10 % 60)


def _syslog(number: int, line: str) -> str:
    return f"Mar  1 10:00:{number // 10 % 60:02} nm7 spark[4711]: {line}"


ENVELOPES: Mapping[str, Wrap] = {
    "docker": each_line(_docker),
    "logstash": each_line(_logstash),
    "cri": each_line(lambda number, line: f"{_at(number)} stderr F {line}"),
    "kubectl --prefix": each_line(lambda _, line: f"[pod/driver-0/spark] {line}"),
    "kubectl --timestamps": each_line(lambda number, line: f"{_at(number)} {line}"),
    "kubectl both": each_line(lambda number, line: f"[pod/driver-0/spark] {_at(number)} {line}"),
    "stern": each_line(lambda _, line: f"driver-0 spark {line}"),
    "stern, marked": each_line(lambda _, line: f"driver-0 \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} spark {line}"),
    "compose": each_line(lambda _, line: f"spark-1  | {line}"),
    "syslog": each_line(_syslog),
    "syslog, new": each_line(lambda number, line: f"<14>1 {_at(number)} nm7 spark 4711 - - {line}"),
    "ansi": each_line(lambda _, line: f"\x1b[1;31m{line}\x1b[0m"),
    "ansi in docker": lambda text: ENVELOPES["docker"](ENVELOPES["ansi"](text)),
    "grep -n": each_line(lambda number, line: f"{number + 1}:{line}"),
    "grep -Hn": each_line(lambda number, line: f"logs/driver.log:{number + 1}:{line}"),
    "grep -H": each_line(lambda _, line: f"driver.log:{line}"),
    "cat -n": each_line(lambda number, line: f"{number + 1:6}\t{line}"),
    "less -N": each_line(lambda number, line: f"{number + 1:7} {line}"),
    "jenkins": each_line(lambda number, line: f"[{_at(number)}] {line}"),
    "gitlab": each_line(lambda number, line: f"{_at(number)} 01O {line}"),
    "fluentd": each_line(
        lambda number, line: f"2026-03-01 10:00:00.000000000 +0000 spark.driver: {_docker(number, line)}"
    ),
    "journald": each_line(lambda number, line: f"2026-03-01T10:00:{number // 10 % 60:02}+0000 nm7 spark[4711]: {line}"),
    "quoted": each_line(lambda _, line: f"> {line}"),
    "indented": each_line(lambda _, line: f"    {line}"),
    "airflow 1.10": each_line(
        lambda _, line: f"[2026-03-01 10:00:00,123] {{bash_operator.py:126}} INFO - {line.strip()}"
    ),
    "airflow 1.10, twice": each_line(
        lambda _, line: (
            "[2026-03-01 10:00:00,123] {base_task_runner.py:101} INFO - Job 7: Subtask load "
            f"[2026-03-01 10:00:00,120] {{spark_submit_hook.py:427}} INFO - {line.strip()}"
        )
    ),
    "airflow 2.2": each_line(
        lambda _, line: f"[2026-03-01, 10:00:00 UTC] {{spark_submit.py:523}} INFO - {line.strip()}"
    ),
    "airflow 2.10": each_line(
        lambda _, line: f"[2026-03-01T10:00:00.123+0000] {{spark_submit.py:634}} INFO - {line.strip()}"
    ),
    "crlf": lambda text: text.replace("\n", "\r\n"),
}


def _rehead(form: Callable[[datetime, str, str], str]) -> Wrap:
    def wrap(text: str) -> str:
        return "".join(_reheaded(line, form) + "\n" for line in text.splitlines())

    return wrap


def _reheaded(line: str, form: Callable[[datetime, str, str], str]) -> str:
    found = _HEAD.match(line)
    if found is None:
        return line
    when = datetime.strptime(found[1], "%y/%m/%d %H:%M:%S")
    return form(when, found[2], found[3]) + line[found.end() :]


def _dated(pattern: str, rest: str = "{level} {name}: ") -> Wrap:
    return _rehead(lambda when, level, name: when.strftime(pattern) + " " + rest.format(level=level, name=name))


def _java(when: datetime, level: str, name: str) -> str:
    words = {"WARN": "WARNING", "ERROR": "SEVERE", "FATAL": "SEVERE"}
    return (
        f"{when:%b %d, %Y} {when.hour % 12 or 12}:{when:%M:%S %p} org.x.{name} run\n{words.get(level, level)}: {name}: "
    )


def _java_chinese(when: datetime, level: str, name: str) -> str:
    words = {"WARN": "警告", "ERROR": "严重", "FATAL": "严重"}
    half = "上午" if when.hour < 12 else "下午"
    clock = f"{when.hour % 12 or 12}:{when:%M:%S}"
    return f"三月 {when:%d, %Y} {clock} {half} org.x.{name} run\n{words.get(level, '信息')}: {name}: "


# The heads of records in a log whose records begin as Spark's do.
HEADS: Mapping[str, Wrap] = {
    "iso": _dated("%Y-%m-%dT%H:%M:%S.123Z"),
    "hadoop": _dated("%Y-%m-%d %H:%M:%S,123"),
    "kafka": _rehead(lambda when, level, name: f"[{when:%Y-%m-%d %H:%M:%S},123] {level} [{name}] "),
    "level first": _rehead(lambda when, level, name: f"{level} {when:%Y-%m-%d %H:%M:%S},123 {name}: "),
    "tomcat": _dated("%d-%b-%Y %H:%M:%S.123"),
    "log4j's DATE": _dated("%d %b %Y %H:%M:%S,123"),
    "java": _rehead(_java),
    "java, chinese": _rehead(_java_chinese),
    "milliseconds": _rehead(lambda when, level, name: f"{when:1772%d0%H%M%S} {level} {name}: "),
    "glog": _rehead(lambda when, level, name: f"{_LETTERS[level]}{when:%m%d %H:%M:%S}.123456  4711 {name}.cc:12] "),
    "date": _dated("%a %b %d %H:%M:%S CST %Y"),
    "month and day": _dated("%m-%d %H:%M:%S"),
    "compact": _dated("%Y%m%d %H:%M:%S"),
    "underscore": _dated("%Y-%m-%d_%H:%M:%S"),
    "day first": _dated("%d/%m/%Y %H:%M:%S"),
    "short year": _dated("%y-%m-%d %H:%M:%S"),
    "xml": _rehead(
        lambda when, level, name: (
            f'<log4j:event logger="{name}" timestamp="{when:1772%d0%H%M%S}" level="{level}">\n<log4j:message><![CDATA['
        )
    ),
    "thread first": _rehead(lambda when, level, name: f"[Thread-7] {when:%Y-%m-%d %H:%M:%S},123 {level} {name}: "),
    "pid first": _rehead(lambda when, level, name: f"4711 {when:%Y-%m-%d %H:%M:%S},123 {level} {name}: "),
    "small letters": _rehead(lambda when, level, name: f"{when:%Y-%m-%d %H:%M:%S},123 [{level.lower()}] {name}: "),
    "logfmt": _rehead(lambda when, level, name: f"time={when:%Y-%m-%dT%H:%M:%S}Z level={level.lower()} msg={name} "),
    "structlog": _rehead(lambda when, level, name: f"{when:%Y-%m-%dT%H:%M:%S.123456}Z [{level.lower():<9}] {name}: "),
    "no time": _rehead(lambda _, level, name: f"{level} {name}: "),
    "thread, no time": _rehead(lambda _, level, name: f"[main] {level} org.x.{name} - "),
}
