"""Spark confs that nobody can mean: they would take a job's tokens away, or what the supervisor finds it by."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo
from pydantic_core import PydanticCustomError

from airflow_kstream.model.fields import PERSISTED, Argument, ConfKey
from airflow_kstream.model.secrets import Value

_TAGS = "spark.yarn.tags"
_OUR_TAG = "kstream"
_TAKEN = {
    "spark.hadoop.fs.defaultFS": "it is the connection's default_fs, on which the checkpoints are watched",
    "spark.hadoop.fs.default.name": "it is the connection's default_fs, on which the checkpoints are watched",
    "spark.hadoop.hadoop.security.authentication": "kstream is for clusters with Kerberos",
}
# A driver in a container has no ticket cache; it would lose its keytab's login.
_ONLY = {"spark.kerberos.renewal.credentials": ("keytab",)}
# Without HDFS tokens no job of a kerberized cluster can live. Those of Hive, HBase and Kafka may be of no use to one.
_TOKENS_OFF = re.compile(r"spark\.(yarn\.)?security\.(credentials|tokens)\.(hadoopfs|hdfs)\.enabled")
_RATIO = "spark.security.credentials.renewalRatio"


def conf_errors(settings: Mapping[str, Value]) -> Iterator[str]:
    """Say what is wrong with each conf that can't be meant; values are only shown where they are no secret."""
    conf = {key: value for key, value in settings.items() if isinstance(value, str)}
    for key, value in conf.items():
        if key in _TAKEN:
            yield f"sets {key}, which it may not: {_TAKEN[key]}"
        if key in _ONLY and value not in _ONLY[key]:
            yield f"sets {key}={value!r}; allowed is {' or '.join(_ONLY[key])}"
        if _TOKENS_OFF.fullmatch(key) and value.strip().lower() != "true":
            yield f"sets {key}={value!r}; allowed is true: the job would get no HDFS tokens"
    if any(tag.strip().lower().startswith(_OUR_TAG) for tag in conf.get(_TAGS, "").split(",")):
        yield f"sets {_TAGS}; no tag of a job's own may begin with {_OUR_TAG}, by which the supervisor finds its own"
    if not _is_share(conf.get(_RATIO, "0.75")):
        yield f"sets {_RATIO}={conf[_RATIO]!r}; allowed is more than 0 and less than 1"


def _is_share(text: str) -> bool:
    try:
        return 0 < float(text) < 1
    except ValueError:
        return False


def _checked(conf: Mapping[str, Value], info: ValidationInfo) -> Mapping[str, Value]:
    if (info.context or {}).get(PERSISTED):
        return conf
    if wrong := "; ".join(conf_errors(conf)):
        raise PydanticCustomError("conf", "{wrong}", {"wrong": wrong})
    return conf


SparkConf = Annotated[Mapping[ConfKey, Value], AfterValidator(_checked)]
# Of a connection, in which Airflow keeps secrets itself.
PlainConf = Annotated[Mapping[ConfKey, Argument], AfterValidator(_checked)]
