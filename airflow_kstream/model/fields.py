"""The kinds of values that a declaration's fields may hold, each with the words for what it allows."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from math import isfinite
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    GetJsonSchemaHandler,
    Tag,
    ValidationInfo,
)
from pydantic_core import CoreSchema, PydanticCustomError

from airflow_kstream.model.durations import Duration
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.identity import CacheKind, is_principal, split_cache_name
from airflow_kstream.model.names import ID, LONGEST_APP_NAME, OF_AN_APP_NAME, OF_AN_ID, allowed_for, is_app_name, is_id
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.versioned import PERSISTED

# The names under which distributions install Spark's client, as in Airflow's own provider; the first is the default.
SPARK_BINARIES = ("spark-submit", "spark2-submit", "spark3-submit")
# How each class of a declaration is read: a field that it doesn't have is refused.
STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
# A name, an IPv4 or an IPv6 address. No resolver takes a longer name, or one with a longer or an empty part.
_NAME = r"(?!-|.{254})[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*(?<!-)"
_HOST = re.compile(rf"{_NAME}|(?=.*:)[0-9a-fA-F:]{{2,39}}(?:%[A-Za-z0-9]{{1,15}})?")
_OF_A_HOST = "; a host's name has up to 253 characters, 1 to 63 of them between dots"
_FILESYSTEM = re.compile(r"(?:hdfs|viewfs)://[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?(?::[0-9]{1,5})?/?")
_HDFS_URI = re.compile(r"hdfs://[^/]*(?P<path>/.+)")
_CHECKPOINT = re.compile(r"(?:hdfs://[A-Za-z0-9._:-]*)?(?P<path>/.*)")
_AN_APPLICATION = "application_1700000000000_0001"
_APPLICATION = re.compile(r"application_[0-9]+_[0-9]{4,}")
_PATH_PARTS = re.compile(r"(/[A-Za-z0-9_=@+-][A-Za-z0-9._=@+-]*)+/?")
_MEMORY = re.compile(r"[1-9][0-9]{0,8}([bB]|[kKmMgGtTpP][bB]?)?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SERVICE = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@-]*\$?")
_LONGEST = timedelta(days=3660)


@dataclass(frozen=True)
class FieldCheck(AfterValidator):
    """A check, and as much of it as a JSON schema can say."""

    keywords: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), **self.keywords}


def must(
    holds: Callable[[Any], bool],
    allowed: str | Callable[[Any], str],
    *,
    hidden: Callable[[Any], bool] = lambda value: False,
    **keywords: Any,
) -> AfterValidator:
    """Refuse a value for which `holds` is false; the refusal does not show a `hidden` value.

    `allowed` may depend on the value that is refused. `keywords` are those of a JSON schema that say the same, or
    a part of it, to an editor.
    """

    def checked(value: Any, info: ValidationInfo) -> Any:
        if not (info.context or {}).get(PERSISTED) and not holds(value):
            words = allowed if isinstance(allowed, str) else allowed(value)
            raise PydanticCustomError("refused", "{allowed}", {"allowed": words, "hidden": hidden(value)})
        return value

    said = {"description": f"Allowed: {allowed}."} if isinstance(allowed, str) else {}
    return FieldCheck(checked, {**said, **keywords})


def whole(regex: re.Pattern[str]) -> str:
    """Return the pattern of a text that matches as a whole, for a JSON schema."""
    return f"^(?:{regex.pattern})$"


def _always(value: object) -> bool:
    return True


def _may_hold_a_password(address: str) -> bool:
    return "@" in address


def is_stream_name(text: str) -> bool:
    return is_id(text)


def is_application_id(text: str) -> bool:
    return _APPLICATION.fullmatch(text) is not None


def require_application_id(text: str) -> None:
    """Raises InvalidInput: when no application of YARN can have this id."""
    if not is_application_id(text):
        raise InvalidInput(f"{text} is not the id of an application; one looks like {_AN_APPLICATION}")


def require_stream_name(text: str) -> None:
    """Raises InvalidInput: when no stream can have this name."""
    if not is_stream_name(text):
        raise InvalidInput(f"name is {text!r}; allowed is {allowed_for(text)}")


def _is_line(text: str) -> bool:
    return text.isprintable() and text == text.strip() != ""


def _is_line_up_to(most: int) -> Callable[[str], bool]:
    return lambda text: len(text) <= most and _is_line(text)


def _is_plain(value: object, depth: int = 20) -> bool:
    """Return True for what JSON can hold; a value that contains itself is too deep."""
    if isinstance(value, list | dict) and depth:
        names, items = (value, value.values()) if isinstance(value, dict) else ((), value)
        return all(isinstance(name, str) for name in names) and all(_is_plain(item, depth - 1) for item in items)
    return value is None or isinstance(value, str | int) or (isinstance(value, float) and isfinite(value))


def _is_word(text: str) -> bool:
    return _is_line(text) and " " not in text and not text.startswith("-")


def _is_local_path(text: str) -> bool:
    return _is_line(text) and text.startswith("/") and ".." not in text.split("/")


def _written_scalar(value: object) -> object:
    """Return a scalar as YAML writes it: `8` and `true` in a conf are text without quotes."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) and abs(value) < 10**300 else value


def _between(low: timedelta, high: timedelta) -> Callable[[timedelta], bool]:
    return lambda value: low <= value <= high


def addresses(text: str | None) -> tuple[str, ...]:
    """Split a list of base URLs."""
    return tuple(address.strip().rstrip("/") for address in (text or "").split(",") if address.strip())


def _are_addresses(text: str) -> bool:
    listed = addresses(text)
    return bool(listed) and len(set(listed)) == len(listed) and all(_is_address(address) for address in listed)


def _are_brokers(text: str) -> bool:
    """Return True for host:port, several with commas between them, none twice."""
    listed = text.split(",")
    hosts = [one.rpartition(":") for one in listed]
    return len(set(listed)) == len(listed) and all(
        _HOST.fullmatch(host.strip("[]")) and port.isdecimal() and 0 < int(port) < 65_536 for host, _, port in hosts
    )


def _is_address(text: str) -> bool:
    """Return True for a server and nothing else: a password in it would be shown wherever the address is."""
    try:
        url = urlsplit(text)
        host, port = url.hostname or "", url.port
    except ValueError:
        return False
    more = url.query, url.fragment, url.username, url.password
    return bool(
        _is_word(text) and url.scheme in {"http", "https"} and _HOST.fullmatch(host) and port != 0 and not any(more)
    )


def _is_base64(text: str) -> bool:
    try:
        return bool(base64.b64decode(text, validate=True))
    except ValueError:
        return False


def _is_hdfs_path(text: str) -> bool:
    return text.startswith("/") and "\0" not in text and not {".", ".."} & set(text.split("/"))


def _is_token_file(text: str) -> bool:
    return _is_local_path(text) or (
        _is_line(text) and bool(_HDFS_URI.fullmatch(text)) and _is_hdfs_path("/" + text.split("/", 3)[3])
    )


def _is_hdfs_folder(text: str) -> bool:
    match = _CHECKPOINT.fullmatch(text)
    return _is_line(text) and match is not None and not {",", ";"} & {*text} and _is_hdfs_path(match["path"])


def _is_port_range(text: str) -> bool:
    first, _, last = text.partition("-")
    numbers = [int(each) for each in (first, last) if each.isdecimal() and len(each) <= 5]
    return len(numbers) == 2 and 1024 <= numbers[0] <= numbers[1] <= 65535


def _is_file_name(text: str) -> bool:
    return _is_line(text) and not text.startswith("-") and "," not in text and not text.endswith("/")


def _is_application(text: str) -> bool:
    return _is_file_name(text) and text.endswith((".py", ".jar", ".R"))


def _parts(checkpoint: str) -> list[str]:
    """Return the names between the slashes of a checkpoint's path; none if it has no path."""
    match = _CHECKPOINT.fullmatch(checkpoint)
    return match["path"].removesuffix("/").split("/")[1:] if match else []


def _without_faults(checkpoint: str, info: ValidationInfo) -> str:
    """Refuse a checkpoint that the NameNode would refuse, or that two declarations could spell differently."""
    why = next((why for faulty, why in _CHECKPOINT_FAULTS if faulty(checkpoint)), "")
    if why and not (info.context or {}).get(PERSISTED):
        allowed = f"an absolute HDFS path below /, or an hdfs:// URI of one: {why}"
        raise PydanticCustomError("refused", "{allowed}", {"allowed": allowed, "hidden": False})
    return checkpoint


def _none_is_empty(value: object) -> object:
    """Read the word for no checkpoint at all."""
    return () if value == NO_CHECKPOINT else value


def _lie_apart(checkpoints: tuple[str, ...]) -> bool:
    paths = sorted("/".join(_parts(checkpoint)) + "/" for checkpoint in checkpoints)
    return not any(later.startswith(earlier) for earlier, later in pairwise(paths))


def _is_cache_file(text: str) -> bool:
    return _is_cache_name(text) and split_cache_name(text)[0] is CacheKind.FILE


def _is_cache_name(text: str) -> bool:
    try:
        kind, rest = split_cache_name(text)
    except InvalidInput:
        return False
    # Why KCM and KEYRING are of no use, the error of a look into the cache says.
    return _is_line(text) and bool(rest or not kind.ours) and (kind is not CacheKind.FILE or _is_local_path(rest))


Line = Annotated[str, must(_is_line, "text of printable characters without spaces around it")]
# Airflow's database has no room for longer ones (airflow.models.taskinstance, airflow.models.dag).
AirflowName = Annotated[str, must(_is_line_up_to(250), "up to 250 printable characters without spaces around them")]
AirflowTag = Annotated[str, must(_is_line_up_to(100), "up to 100 printable characters without spaces around them")]
Priority = Annotated[int, must(lambda number: abs(number) < 2**31, "a whole number between -2147483647 and 2147483647")]
PlainData = Annotated[Any, must(_is_plain, "text, numbers, true, false, null, and lists and mappings of these")]
Word = Annotated[str, must(_is_word, "one printable word that doesn't begin with -", pattern="^[^- ][^ ]*$")]
LocalPath = Annotated[str, must(_is_local_path, "an absolute path with no '..' in it", pattern="^/")]
Principal = Annotated[
    str,
    must(
        is_principal,
        "primary[/instance]@REALM, printable, that doesn't begin with -",
        pattern="^(?!-)[^@/]+(/[^@/]+)?@[^@/]+$",
    ),
]
UserName = Annotated[str, must(lambda text: _USER.fullmatch(text) is not None, "a user's name", pattern=whole(_USER))]
# It becomes part of --files, where , and # are separators and { [ * ? are patterns.
StateDir = Annotated[
    str,
    must(
        lambda text: _PATH_PARTS.fullmatch(text) is not None,
        "an absolute HDFS path below / of letters, digits and . _ - = + @",
    ),
]
Addresses = Annotated[
    str,
    must(
        _are_addresses,
        f"http://host:port or https://host:port, several with commas between them{_OF_A_HOST}",
        hidden=_may_hold_a_password,
    ),
]
Brokers = Annotated[
    str,
    must(
        _are_brokers,
        f"host:port, several with commas between them{_OF_A_HOST}",
        hidden=_may_hold_a_password,
        pattern="^[^, ]+:[0-9]+(,[^, ]+:[0-9]+)*$",
    ),
]
# A ticket for one of these, sent to a host that a declaration names, would open other servers of that host.
_OTHER_SERVICES = frozenset(
    {"http", "host", "nn", "dn", "jn", "rm", "nm", "jhs", "hdfs", "yarn", "mapred", "hive", "hbase", "krbtgt"}
)
ServiceName = Annotated[
    str,
    must(
        lambda text: _SERVICE.fullmatch(text) is not None and text.lower() not in _OTHER_SERVICES,
        "the primary of the brokers' principal, and of no other service, such as HTTP",
    ),
]
DefaultFs = Annotated[str, must(lambda text: _FILESYSTEM.fullmatch(text) is not None, "hdfs://nameservice")]
Base64 = Annotated[str, must(_is_base64, "base64 of a file", hidden=_always)]
TicketCacheName = Annotated[
    str, must(_is_cache_name, "an absolute path, or FILE, DIR or MEMORY and a colon before its name")
]
CacheFile = Annotated[str, must(_is_cache_file, "the absolute path of a file, which every Java program can read")]
# For open files: a name may contain anything, even line breaks; it is found, and shown escaped.
HdfsPath = Annotated[str, must(_is_hdfs_path, "an absolute HDFS path with no '..' in it", pattern="^/")]
TokenFile = Annotated[str, must(_is_token_file, "an absolute path or an hdfs:// URI")]
StreamName = Annotated[str, must(is_stream_name, allowed_for, description=f"Allowed: {OF_AN_ID}.", pattern=whole(ID))]
AppName = Annotated[str, must(is_app_name, OF_AN_APP_NAME, maxLength=LONGEST_APP_NAME, pattern=r"^[^\s-](?:.*\S)?$")]
ApplicationId = Annotated[str, must(is_application_id, f"like {_AN_APPLICATION}", pattern=whole(_APPLICATION))]
# YAML's 8 and true are text to a job.
_Scalar = BeforeValidator(_written_scalar, json_schema_input_type=str | float | bool)
Memory = Annotated[
    str, _Scalar, must(lambda text: _MEMORY.fullmatch(text) is not None, "like 512m or 4g", pattern=whole(_MEMORY))
]
# Excludes 0, 1 and NaN.
Share = Annotated[
    float,
    must(lambda number: 0 < number < 1, "a number between 0 and 1", exclusiveMinimum=0, exclusiveMaximum=1),
]
ShareOrNone = Annotated[
    float, must(lambda number: 0 <= number < 1, "a number from 0 to below 1", minimum=0, exclusiveMaximum=1)
]
Factor = Annotated[float, must(lambda number: 1 <= number <= 1000, "a number from 1 to 1000", minimum=1, maximum=1000)]
Count = Annotated[
    int,
    must(lambda number: 1 <= number <= 1_000_000, "a whole number from 1 to 1000000", minimum=1, maximum=1_000_000),
]

# Fewer than the claims that a stream's folder keeps: what an older one began with is not known.
FewGenerations = Annotated[
    int, must(lambda number: 1 <= number <= 8, "a whole number from 1 to 8", minimum=1, maximum=8)
]

# As Spark accepts them: a local path or a URI, with an optional # and the name that it gets in the container.
FileName = Annotated[
    str, must(_is_file_name, "a path or a URI, printable, without a comma", pattern="^(?!-)[^,]*[^,/]$")
]
HdfsFolder = Annotated[
    str,
    must(_is_hdfs_folder, "an hdfs:// URI of a folder, or its absolute path, without ; and ,", pattern="^(hdfs:/)?/"),
]
PortRange = Annotated[
    str, _Scalar, must(_is_port_range, "two ports from 1024 to 65535 with - between them", pattern="^[0-9]+-[0-9]+$")
]
# A path would let everybody who may write a declaration run any file of a worker.
SparkBinary = Annotated[
    str,
    must(
        lambda text: text in SPARK_BINARIES, f"one of {', '.join(SPARK_BINARIES)}, and no path", enum=[*SPARK_BINARIES]
    ),
]
ApplicationFile = Annotated[
    str, must(_is_application, "the path or URI of one .py, .jar or .R file", pattern=r"^[^-,][^,]*\.(py|jar|R)$")
]
JarFile = Annotated[
    str,
    must(
        lambda text: _is_file_name(text) and text.endswith(".jar"),
        "the path or URI of one .jar file",
        pattern=r"^[^-,][^,]*\.jar$",
    ),
]
# The word in a declaration for a job that keeps no checkpoint on HDFS.
NO_CHECKPOINT = "none"
# The first that applies is the reason. Hadoop's Path takes no colon; a comma would divide a list.
_CHECKPOINT_FAULTS: tuple[tuple[Callable[[str], bool], str], ...] = (
    (lambda text: not _is_line(text), "it must be printable, without spaces around it"),
    (lambda text: "://" in text and not text.startswith("hdfs://"), "no other filesystem can be watched"),
    (lambda text: not _CHECKPOINT.fullmatch(text), "it has no absolute path"),
    (lambda text: _parts(text) == [""] or not any(_parts(text)), "the root holds everything"),
    (lambda text: "" in _parts(text), "// has an empty name between its slashes"),
    (lambda text: bool({".", ".."} & {*_parts(text)}), "'.' and '..' are refused by HDFS"),
    (lambda text: any(":" in part for part in _parts(text)), "HDFS takes no : in a name"),
    (lambda text: any("," in part for part in _parts(text)), "a comma would end the path in a list"),
)
_Checkpoint = Annotated[str, FieldCheck(_without_faults, {"pattern": "^(hdfs://[^/]*)?/."})]
Checkpoints = Annotated[
    tuple[_Checkpoint, ...],
    BeforeValidator(_none_is_empty, json_schema_input_type=tuple[_Checkpoint, ...] | Literal["none"]),
    must(_lie_apart, "folders of which none is or holds another"),
]

# Reaches a job unchanged. A NUL ends an argument; everything else is up to the job.
Argument = Annotated[str, _Scalar, must(lambda text: "\0" not in text, "text without NUL", hidden=_always)]
ConfKey = Annotated[
    str, must(lambda key: _is_word(key) and "=" not in key, "a name of printable characters", pattern="^[^- =][^ =]*$")
]
VariableName = Annotated[
    str,
    must(
        lambda key: _VARIABLE.fullmatch(key) is not None,
        "a name of letters, digits and _, no digit first",
        pattern=whole(_VARIABLE),
    ),
]

# For things that may take no time at all.
Wait = Annotated[Duration, must(_between(timedelta(), _LONGEST), "0s to 3660d")]
# For things that make no sense with no time at all.
Patience = Annotated[Duration, must(_between(timedelta(seconds=1), _LONGEST), "1s to 3660d")]
# The interval between requests to servers.
Pace = Annotated[Duration, must(_between(timedelta(milliseconds=100), timedelta(days=1)), "0.1s to 1d")]
# The age at which a job is replaced: a restart alone takes a minute.
Age = Annotated[Duration, must(_between(timedelta(minutes=1), _LONGEST), "1m to 3660d")]
# The interval at which Airflow starts something.
Schedule = Annotated[Duration, must(_between(timedelta(seconds=10), timedelta(days=366)), "10s to 366d")]

# No field's name has brackets: pydantic's error locations contain these tags, and our messages leave them out.
_TEXT, _REFERENCE = "<text>", "<reference>"


def _kind_of(value: object) -> str:
    return _REFERENCE if isinstance(value, Mapping | SecretRef) else _TEXT


# The value of a setting that a job gets: text, or a reference to a secret. The shape decides first which of the two it
# is meant to be, so that an error is about one only.
ConfValue = Annotated[
    Annotated[Argument, Tag(_TEXT)] | Annotated[SecretRef, Tag(_REFERENCE)],
    Discriminator(_kind_of),
]
