"""A declaration that passes the checks can be written to a claim and read back, for all its fields."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import timedelta
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits
from typing import Any, get_args, get_type_hints

import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from airflow_kstream.model.airflow_options import AirflowOptions, CallbackName, NotifyPolicy, require_no_secret
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import SPARK_BINARIES
from airflow_kstream.model.names import is_app_name
from airflow_kstream.model.secrets import SecretRef, require_no_literals, secrets_in
from airflow_kstream.model.streams.declarations import Change, change, differences, fingerprint, read_spec
from airflow_kstream.model.streams.deploy import Deploy, FlinkDeploy, SavepointFormat, Savepoints
from airflow_kstream.model.streams.stream import (
    EngineName,
    FlinkStreamSpec,
    KeytabCredentials,
    OnChange,
    ProxyUserCredentials,
    StreamCredentials,
    StreamSpec,
    TicketCredentials,
)
from airflow_kstream.model.streams.stream_policies import (
    FailurePolicy,
    HeartbeatPolicy,
    KafkaPolicy,
    KafkaProtocol,
    OnStall,
    RefreshPolicy,
    RestartPolicy,
    StopPolicy,
    SubmitPolicy,
    WatchPolicy,
)
from tests.simulated.yarn import TICKET_SPEC

_MICROSECOND, _SECOND = timedelta(microseconds=1), timedelta(seconds=1)


def _words(letters: str, least: int = 1, most: int = 8) -> st.SearchStrategy[str]:
    return st.text(letters, min_size=least, max_size=most)


def _durations(least: timedelta, most: timedelta = timedelta(days=3660)) -> st.SearchStrategy[timedelta]:
    return st.integers(least // _MICROSECOND, most // _MICROSECOND).map(_MICROSECOND.__mul__)


def _path(drawn: str) -> str:
    """Return a path of one to three names that end in a letter."""
    return "".join(f"/{name}z" for name in drawn.split("/")[:3])


def _without_literals(settings: dict[str, Any]) -> dict[str, Any]:
    """Leave out what a declaration may not hold: Hypothesis draws the words of our own code, `Secret` among them."""
    return {key: value for key, value in settings.items() if isinstance(value, SecretRef) or not secrets_in(key, value)}


def _are_without_literals(arguments: list[str]) -> bool:
    try:
        require_no_literals({}, {}, arguments)
    except InvalidInput:
        return False
    return True


def _tell_no_secret(kwargs: dict[str, Any]) -> bool:
    try:
        require_no_secret(kwargs)
    except InvalidInput:
        return False
    return True


# A spec has some fifty values. Each is a single draw where that is possible: drawing takes longer than the checks.
_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
_LINE = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=12)
_SMALL = _words(ascii_lowercase)
_WORD = _words(f"{ascii_letters}{digits}_.")
_PATH = _words(f"{ascii_lowercase}{digits}._-/", least=0).map(_path)
_PRINCIPAL = st.builds("{}{}@{}".format, _SMALL, st.just("") | _SMALL.map("/{}".format), _words(ascii_uppercase))
_PLACE = st.builds("{}:{}".format, st.sampled_from(["conn", "var", "env", "file"]), _WORD)
_VALUE = _TEXT | _PLACE.map(SecretRef)
_BY_FIELD: dict[str, st.SearchStrategy[Any]] = {
    "plan_ratio": st.floats(0.5, 0.99),
    "jitter_ratio": st.floats(0, 0.49),
    # One engine's alone.
    "for_new_taskmanagers": st.just(False),
    "executor_config": st.dictionaries(_WORD, st.none() | _TEXT | st.lists(st.booleans(), max_size=2), max_size=2),
    "environment": st.dictionaries(_words(f"{ascii_uppercase}_"), _VALUE, max_size=3).map(_without_literals),
}
_BY_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "Wait": _durations(timedelta()),
    "Patience": _durations(_SECOND),
    "Pace": _durations(_SECOND / 10, timedelta(days=1)),
    "Age | None": st.none() | _durations(60 * _SECOND),
    "Factor": st.floats(1, 1000),
    "Share": st.floats(0.01, 0.99),
    "OnStall": st.sampled_from(OnStall),
    "KafkaProtocol": st.sampled_from(KafkaProtocol),
    "ServiceName": _WORD.map(lambda drawn: drawn.strip(".") or "kafka"),
    "Brokers | None": st.none() | st.builds("{}:{}".format, _SMALL, st.integers(1, 65_535)),
    "Count": st.integers(1, 1_000_000),
    "FewGenerations": st.integers(1, 8),
    "Word | None": st.none() | _WORD,
    "SparkBinary | None": st.none() | st.sampled_from(SPARK_BINARIES),
    "Memory | None": st.none() | st.builds("{}{}".format, st.integers(1, 9999), st.sampled_from(["", *"kmgtKMGT"])),
    "Count | None": st.none() | st.integers(1, 10**6),
    "AirflowName | None": st.none() | _WORD,
    "Priority | None": st.none() | st.integers(-1000, 1000),
    "tuple[AirflowTag, ...]": st.lists(_WORD, max_size=2).map(tuple),
    "PortRange | None": st.none() | st.integers(1024, 65_535).map(lambda port: f"{port}-65535"),
    "tuple[HdfsFolder, ...]": st.lists(_SMALL.map("hdfs://ns/{}".format), max_size=2).map(tuple),
    "HdfsPath | None": st.none() | _SMALL.map("/savepoints/{}".format),
    "SavepointFormat": st.sampled_from(SavepointFormat),
    "tuple[FileName, ...]": st.lists(_PATH, max_size=3).map(tuple),
}

_NOTIFY = st.builds(
    NotifyPolicy,
    st.builds("{}.{}".format, _SMALL, _SMALL),
    st.dictionaries(_SMALL, st.lists(_SMALL | st.integers() | st.none(), max_size=2), max_size=2).filter(
        _tell_no_secret
    ),
)
_BY_TYPE |= {
    "NotifyPolicy": _NOTIFY,
    "Mapping[CallbackName, NotifyPolicy]": st.dictionaries(
        st.sampled_from(get_args(CallbackName)), _NOTIFY, max_size=2
    ),
}


def _is_read_as(kind: Any) -> Callable[[Any], bool]:
    """Return whether a field's own type takes a value, such as `HTTP`, a word of our code, as a service's name."""
    adapter = TypeAdapter(kind)

    def is_read(value: Any) -> bool:
        try:
            adapter.validate_python(value)
        except ValidationError:
            return False
        return True

    return is_read


def every_field(kind: type[Any], drawn: dict[str, st.SearchStrategy[Any]] = _BY_FIELD) -> st.SearchStrategy[Any]:
    """Return a strategy over all fields. Raises KeyError: when a type has none here, so that no field is left out."""
    types = get_type_hints(kind, include_extras=True)
    by_type = {
        field.name: _BY_TYPE[str(field.type)].filter(_is_read_as(types[field.name]))
        for field in fields(kind)
        if field.name not in drawn
    }
    return st.builds(kind, **by_type, **{name: drawn[name] for name in drawn if name in types})


credentials: st.SearchStrategy[StreamCredentials] = st.one_of(
    st.builds(KeytabCredentials, _PRINCIPAL, st.none() | _PATH),
    st.builds(TicketCredentials, st.none() | _PRINCIPAL, st.none() | _PATH, st.none() | _PATH, st.booleans()),
    st.builds(ProxyUserCredentials, _SMALL, st.booleans()),
)
_OF_SPEC: dict[str, st.SearchStrategy[Any]] = {
    "name": _words(f"{ascii_lowercase}{digits}-_").map(lambda drawn: drawn.strip("-_") or "0"),
    "app_name": st.none() | _TEXT.filter(is_app_name),
    "credentials": credentials,
    "application": _PATH.map("{}.py".format),
    "checkpoints": st.lists(_SMALL.map("/{}".format), max_size=2, unique=True).map(tuple),
    "arguments": st.lists(_TEXT, max_size=3).filter(_are_without_literals).map(tuple),
    "conf": st.dictionaries(_WORD, _VALUE, max_size=3).map(_without_literals),
    "deploy": every_field(Deploy),
    "restart": every_field(RestartPolicy),
    "refresh": every_field(RefreshPolicy),
    "failure": every_field(FailurePolicy),
    "stop": every_field(StopPolicy),
    "submit": every_field(SubmitPolicy),
    "heartbeat": every_field(HeartbeatPolicy),
    "watch": every_field(WatchPolicy),
    "notify": _NOTIFY,
    "kafka": every_field(KafkaPolicy),
    "on_change": st.sampled_from(OnChange),
    "airflow": every_field(AirflowOptions),
    "engine": st.just(EngineName.SPARK),
}
_POLICIES = (
    *("restart", "refresh", "failure", "stop", "submit", "heartbeat", "watch", "notify", "kafka"),
    *("on_change", "airflow"),
)
_OF_FLINK = _OF_SPEC | {
    "engine": st.just(EngineName.FLINK),
    "application": _PATH.map("{}.jar".format),
    # Its folders lie apart.
    "checkpoints": _SMALL.map(lambda name: (f"/checkpoints/{name}",)),
    "conf": st.dictionaries(_WORD, _LINE, max_size=3).map(_without_literals),
    "deploy": every_field(FlinkDeploy),
    "kafka": st.just(KafkaPolicy()),
    "restart": st.builds(replace, every_field(RestartPolicy), for_new_taskmanagers=st.booleans()),
    "savepoints": every_field(Savepoints),
    "outputs": st.lists(_SMALL.map("/outputs/{}".format), max_size=2).map(tuple),
}
specs = every_field(StreamSpec, _OF_SPEC) | every_field(FlinkStreamSpec, _OF_FLINK)

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.timedeltas()
_ODD = st.one_of(
    _SCALARS,
    st.lists(_SCALARS, max_size=3),
    st.dictionaries(_SCALARS, _SCALARS, max_size=3),
    st.builds(RestartPolicy, plan_ratio=st.just(0.5), jitter_ratio=st.just(0.1), max_age=_SCALARS),
    st.builds(StopPolicy, silence=_SCALARS),
    st.builds(Deploy, queue=_SCALARS, jars=st.lists(_SCALARS, max_size=2), executors=_SCALARS),
    st.builds(KeytabCredentials, _SCALARS, _SCALARS),
)
# Any field may hold what it shouldn't: Python checks none of them.
anything = st.builds(
    lambda spec, odd: replace(spec, **odd), specs, st.dictionaries(st.sampled_from([*_OF_SPEC]), _ODD, max_size=2)
)


def of_a_claim(spec: StreamSpec) -> StreamSpec:
    """Return what a claim keeps of a declaration: nothing that concerns Airflow alone."""
    return replace(spec, airflow=AirflowOptions())


@given(specs)
def test_a_declaration_is_read_back_from_its_plain_data(spec: StreamSpec) -> None:
    assert StreamSpec.from_mapping(spec.to_mapping()) == spec


@given(anything)
def test_a_spec_that_passes_the_checks_is_read_back_from_its_plain_data_and_a_claim(built: StreamSpec) -> None:
    """Whatever Python put into its fields."""
    try:
        spec = built.checked()
    except InvalidInput:
        return
    plain = json.loads(json.dumps(spec.to_mapping()))
    assert StreamSpec.from_mapping(plain) == spec.checked() == spec
    assert read_spec(plain) == of_a_claim(spec)


@given(specs)
def test_a_declaration_passes_the_checks_unchanged(spec: StreamSpec) -> None:
    assert spec.checked() == spec


@given(specs)
def test_a_declaration_is_read_back_from_a_claim(spec: StreamSpec) -> None:
    assert read_spec(json.loads(json.dumps(spec.to_mapping()))) == of_a_claim(spec)


@given(st.one_of(st.integers(-100, 100), st.floats(), _durations(timedelta()).map(timedelta.total_seconds), _TEXT))
def test_any_duration_that_is_accepted_is_read_back(written: object) -> None:
    declaration = TICKET_SPEC.to_mapping() | {"stop": {"silence": written}}
    try:
        spec = StreamSpec.from_mapping(declaration)
    except InvalidInput:
        return
    assert spec.stop.silence >= timedelta()
    assert StreamSpec.from_mapping(spec.to_mapping()) == spec


@given(specs)
def test_a_declaration_differs_from_itself_in_nothing(spec: StreamSpec) -> None:
    assert change(fingerprint(spec), fingerprint(spec)) is Change.NONE
    assert differences(spec, spec) == ()


@given(specs, st.fixed_dictionaries({name: _OF_SPEC[name] for name in _POLICIES}))
def test_policies_alone_are_not_another_job(one: StreamSpec, policies: dict[str, Any]) -> None:
    calmer = replace(one, **policies)
    assert fingerprint(calmer) == fingerprint(one)
    assert differences(calmer, one) == ()


@given(specs, st.one_of(*(st.fixed_dictionaries({name: drawn}) for name, drawn in _OF_SPEC.items())))
def test_a_fingerprint_differs_when_and_only_when_a_field_of_the_job_does(
    one: StreamSpec, changed: dict[str, Any]
) -> None:
    """One field is drawn anew: two declarations that are drawn apart are never alike."""
    other = replace(one, **changed)
    assert (differences(one, other) == ()) == (fingerprint(one) == fingerprint(other))


def test_the_fingerprint_leaves_out_what_is_at_its_default() -> None:
    """Thus a field that a later version adds changes no digest. If a digest changes here, its version must change."""
    assert fingerprint(TICKET_SPEC) == fingerprint(replace(TICKET_SPEC, deploy=Deploy(jars=())))
    assert fingerprint(TICKET_SPEC) == "2:44654b4cf59af938"


def test_a_spec_without_checkpoints_keeps_its_fingerprint() -> None:
    assert fingerprint(replace(TICKET_SPEC, checkpoints=())) == "2:1ebbd7905caed929"


def test_a_fingerprint_of_another_version_tells_nothing() -> None:
    for another in ("", "e96577b7cfd827b7", "3:" + fingerprint(TICKET_SPEC)[2:]):
        assert change(fingerprint(TICKET_SPEC), another) is Change.UNKNOWN
    assert change(fingerprint(replace(TICKET_SPEC, arguments=("--fast",))), fingerprint(TICKET_SPEC)) is Change.CHANGED


def test_a_declaration_in_yaml_may_leave_every_policy_out() -> None:
    declaration = yaml.safe_load("{name: orders, credentials: {mode: ticket}, application: /j.py, checkpoints: none}")
    assert StreamSpec.from_mapping(declaration).watch == WatchPolicy()
