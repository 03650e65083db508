"""What is read of a declaration before it is rendered: its fields, notifier and asset."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import Asset, XComArg
from airflow.sdk.definitions._internal.mixins import ResolveMixin

from airflow_kstream.assets import stream_asset
from airflow_kstream.model.airflow_options import require_no_secret
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import is_stream_name
from airflow_kstream.model.streams.stream import StreamSpec, require_named_after
from airflow_kstream.model.templates import is_template, require_no_templates
from airflow_kstream.model.yaml_text import read_mapping
from airflow_kstream.notifications.notifier import require_usable


def declared(declaration: Path, text: str) -> dict[str, Any]:
    """Return the fields of a file that declares a stream. Raises InvalidInput: when any of it is wrong, or a template.

    The operator's own templates are for authors of DAGs, who can run code on a worker anyway.
    """
    fields = read_mapping(text)
    require_no_templates(fields)
    spec = StreamSpec.from_mapping(fields)
    require_named_after(spec.name, declaration.stem)
    require_usable(spec.notify, "notify.")
    return fields


def apart(
    stream: Mapping[str, Any] | XComArg | str,
) -> tuple[Mapping[str, Any] | XComArg | str, Mapping[str, Any]]:
    """Return the declaration without its notifier, and that: its templates are rendered with an event, not here.

    Raises InvalidInput: when an argument of the notifier is a secret in clear.
    """
    if not isinstance(stream, Mapping) or "notify" not in stream:
        return stream, {}
    notify = stream["notify"]
    require_no_secret(_mapping(_mapping(notify).get("kwargs")), "notify.")
    return {name: value for name, value in stream.items() if name != "notify"}, {"notify": notify}


def assets_of(stream: object, cluster_conn_id: str) -> list[Asset]:
    """Return the asset of the stream; none where only the rendered task knows it."""
    if "{{" in cluster_conn_id:
        return []
    return [stream_asset(cluster_conn_id, name)] if (name := name_in(stream)) else []


def name_in(stream: object) -> str:
    """Return the name that a mapping declares; empty if it is none that a stream can have, or not known yet."""
    name = stream.get("name") if isinstance(stream, Mapping) else None
    return name if isinstance(name, str) and is_stream_name(name) else ""


def refusal_of(stream: object, notify: Mapping[str, Any]) -> str:
    """Return why a mapping is refused where its DAG is parsed; empty if it isn't, or only the rendered task knows."""
    if not isinstance(stream, Mapping) or not _is_plain(stream):
        return ""
    try:
        StreamSpec.from_mapping({**stream, **notify})
    except InvalidInput as error:
        return error.message
    return ""


def _is_plain(value: object) -> bool:
    """Return whether nothing of a value is rendered before its task runs, such as a template or an XCom."""
    if isinstance(value, Mapping):
        return all(_is_plain(item) for each in value.items() for item in each)
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, str):
        return not is_template(value)
    return not isinstance(value, ResolveMixin)


def _mapping(value: object) -> dict[str, Any]:
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else {}
