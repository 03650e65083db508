"""Spark confs that can only be mistakes: they take a job's tokens away, or hide the job from the supervisor."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo
from pydantic_core import PydanticCustomError

from airflow_kstream.model.conf_values import ConfValue
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
# No job on a kerberized cluster can live without HDFS tokens. It may well do without those of Hive, HBase and Kafka.
_TOKENS_OFF = re.compile(r"spark\.(yarn\.)?security\.(credentials|tokens)\.(hadoopfs|hdfs)\.enabled")
_RATIO = "spark.security.credentials.renewalRatio"
# Confs that the supervisor itself reads or checks.
_NO_SECRETS = {_TAGS, _RATIO, *_TAKEN, *_ONLY}


def conf_errors(conf: Mapping[str, Value]) -> Iterator[str]:
    """Yield a sentence for each conf that must be a mistake; it shows the value only if that is not a secret."""
    plain = {key: value for key, value in conf.items() if isinstance(value, str)}
    yield from (f"takes {key} from a secret, which it may not" for key in _NO_SECRETS & (conf.keys() - plain.keys()))
    for key, value in plain.items():
        if key in _TAKEN:
            yield f"sets {key}, which it may not: {_TAKEN[key]}"
        if key in _ONLY and value not in _ONLY[key]:
            yield f"sets {key}={value!r}; allowed is {' or '.join(_ONLY[key])}"
        if _TOKENS_OFF.fullmatch(key) and value.strip().lower() != "true":
            yield f"sets {key}={value!r}; allowed is true: the job would get no HDFS tokens"
    if any(tag.strip().lower().startswith(_OUR_TAG) for tag in plain.get(_TAGS, "").split(",")):
        yield f"sets {_TAGS}; no tag of a job's own may begin with {_OUR_TAG}, by which the supervisor finds its own"
    if not _is_share(plain.get(_RATIO, "0.75")):
        yield f"sets {_RATIO}={plain[_RATIO]!r}; allowed is more than 0 and less than 1"


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


SparkConf = Annotated[Mapping[ConfKey, ConfValue], AfterValidator(_checked)]
# For a connection: Airflow encrypts it, so it contains its secrets literally.
LiteralSparkConf = Annotated[Mapping[ConfKey, Argument], AfterValidator(_checked)]
