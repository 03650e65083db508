"""The `[kstream]` section of Airflow's configuration. get_provider_info.py describes each option and its default."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowConfigException

from airflow_kstream.model.airflow_options import NotifyPolicy, require_notifier
from airflow_kstream.model.declared import read
from airflow_kstream.model.durations import parse_duration
from airflow_kstream.model.errors import InvalidInput

_SECTION = "kstream"
_NUMBERS = "allowed is a whole number that is not negative"


def folder(option: str) -> Path | None:
    """Return the folder that the option names, None if it is empty.

    Raises InvalidInput: when the folder does not exist.
    """
    named = conf.get(_SECTION, option)
    if not named:
        return None
    if not Path(named).is_dir():
        raise InvalidInput(f"[{_SECTION}] {option} is {named!r}; there is no such folder")
    return Path(named)


def text(option: str) -> str:
    """Return the option's text, empty if it is not set."""
    return str(conf.get(_SECTION, option) or "")


def duration(option: str) -> timedelta:
    """Read a duration. Raises InvalidInput: when the option is not a duration of more than 0."""
    try:
        interval = parse_duration(conf.get(_SECTION, option))
    except InvalidInput as error:
        raise InvalidInput(f"[{_SECTION}] {option}: {error.message}") from error
    if not interval:
        raise InvalidInput(f"[{_SECTION}] {option} is {interval}; allowed is more than 0")
    return interval


def switch(option: str) -> bool:
    """Read True or False. Raises InvalidInput: when the option is neither."""
    try:
        return bool(conf.getboolean(_SECTION, option))
    except (AirflowConfigException, ValueError) as error:
        raise InvalidInput(
            f"[{_SECTION}] {option} is {conf.get(_SECTION, option)!r}; allowed is True or False"
        ) from error


def whole_number(option: str) -> int:
    """Read a count. Raises InvalidInput: when the option is not a whole number, or is negative."""
    try:
        number = int(conf.getint(_SECTION, option))
    except AirflowConfigException as error:
        raise InvalidInput(f"[{_SECTION}] {option} is {conf.get(_SECTION, option)!r}; {_NUMBERS}") from error
    if number < 0:
        raise InvalidInput(f"[{_SECTION}] {option} is {number}; {_NUMBERS}")
    return number


def notifier() -> NotifyPolicy:
    """Read the notifier for all events. Raises InvalidInput: when a field is wrong or holds a secret in clear."""
    try:
        kwargs = json.loads(text("notifier_kwargs") or "{}")
    except ValueError as error:
        raise InvalidInput(f"[{_SECTION}] notifier_kwargs is not JSON: {error}") from error
    try:
        notify = read(NotifyPolicy, {"notifier": text("notifier") or None, "kwargs": kwargs})
        require_notifier(notify)
    except InvalidInput as error:
        raise InvalidInput(f"[{_SECTION}] {error.message.replace('kwargs', 'notifier_kwargs')}") from error
    return notify
