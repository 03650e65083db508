"""The notifier that tells the events of a stream, as a declaration names it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import STRICT, PlainData, must
from airflow_kstream.model.secrets import secrets_in

_CLASS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", re.ASCII)


ClassPath = Annotated[
    str,
    must(
        lambda text: _CLASS.fullmatch(text) is not None, "the dotted path of a class, such as package.module.Notifier"
    ),
]


@dataclass(frozen=True)
class NotifyPolicy:
    """A notifier of Airflow, by its class, and the arguments that it gets.

        notifier: airflow.providers.slack.notifications.slack.SlackNotifier
        kwargs: {slack_conn_id: alerts, channel: "#streams", text: "{{ event.mrkdwn }}"}

    The arguments are Jinja templates where the notifier has them as such; `event` is the event. Its `words` quote what
    others wrote: `mrkdwn` is the same for Slack, and `html` for mail. They name connections
    and hold no secret: declarations lie in Git, in Airflow's database and on HDFS. Without a `notifier`, the one of
    Airflow's configuration (`[kstream] notifier`) tells the events.
    """

    __pydantic_config__ = STRICT

    notifier: ClassPath | None = None
    kwargs: Mapping[str, PlainData] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Return text that is equal for equal notifiers."""
        return json.dumps([self.notifier, self.kwargs], sort_keys=True)


def require_notifier(notify: NotifyPolicy, where: str = "") -> None:
    """Raises InvalidInput: when arguments have no notifier, or one holds a secret in clear. It names no secret."""
    if notify.kwargs and notify.notifier is None:
        raise InvalidInput(f"{where}kwargs is given, and {where}notifier is missing: the class that takes them")
    require_no_secret(notify.kwargs, where)


def require_no_secret(kwargs: Mapping[str, Any], where: str = "") -> None:
    """Raises InvalidInput: when an argument is or has a secret in clear."""
    if places := sorted({place for place, key, text in _texts(kwargs, f"{where}kwargs") if secrets_in(key, text)}):
        how = "give the id of a connection that holds it"
        raise InvalidInput(f"{', '.join(places)}: a secret in clear; {how}")


def _texts(value: object, place: str, key: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield each text with its place and the key that it stands under."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _texts(item, f"{place}.{name}", str(name))
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _texts(item, f"{place}.{number}", key)
    elif isinstance(value, str):
        yield place, key, value
