"""What a declaration says to Airflow, about its own tasks and about the notifier of its events.

It concerns neither the job nor its supervisor. Declarations of the shipped DAGs have no templates: their authors are
not to compute anything on a worker.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from airflow_kstream.model.declared import read
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import STRICT, AirflowName, AirflowTag, PlainData, Priority, must, whole
from airflow_kstream.model.secrets import secrets_in

_TEMPLATE = re.compile(r"\{\{|\{%|\{#")
# Airflow renders none of these with a task's own context: a notifier gets its event, or what its callback is called
# with. The executor's pod is rendered by nobody.
_OF_AIRFLOW = frozenset({"notify", "callbacks", "executor_config"})
# Of a long list the first few say enough.
_NAMED = 5

_CLASS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", re.ASCII)

ClassPath = Annotated[
    str,
    must(
        lambda text: _CLASS.fullmatch(text) is not None,
        "the dotted path of a class, such as package.module.Notifier",
        pattern=whole(_CLASS),
    ),
]


@dataclass(frozen=True)
class NotifyPolicy:
    """A notifier of Airflow, by its class, and the arguments that it gets.

    The arguments, `kwargs`, are Jinja templates where the notifier has them as such; `event` is the event. Its `words`
    quote what others wrote: `mrkdwn` is the same for Slack, and `html` for mail. They name connections and hold no
    secret: declarations lie in Git, in Airflow's database and on HDFS. Without a `notifier`, the one of Airflow's
    configuration (`[kstream] notifier`) tells the events.

    Example::

        NotifyPolicy(
            "airflow.providers.slack.notifications.slack.SlackNotifier",
            {"slack_conn_id": "alerts", "channel": "#streams", "text": "{{ event.mrkdwn }}"},
        )
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
    if places := sorted({place for place, key, text in texts_in(kwargs, f"{where}kwargs") if secrets_in(key, text)}):
        how = "give the id of a connection that holds it"
        raise InvalidInput(f"{', '.join(places)}: a secret in clear; {how}")


def texts_in(value: object, place: str, key: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield each text with its place and the key that it stands under.

    Example::

        list(texts_in({"to": ["a@b"]}, "kwargs"))  # [("kwargs.to.0", "to", "a@b")]
    """
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from texts_in(item, f"{place}.{name}", str(name))
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from texts_in(item, f"{place}.{number}", key)
    elif isinstance(value, str):
        yield place, key, value


NO_NOTIFIER = NotifyPolicy()
CallbackName = Literal["on_execute", "on_failure", "on_retry", "on_skipped", "on_success"]


@dataclass(frozen=True)
class AirflowOptions:
    """Options of the tasks of a declaration's DAGs; unset means Airflow's own default.

    `queue`, `pool` and `owner` are as for any task of Airflow's. A larger `priority` goes first, as Airflow's absolute
    priority weight. `tags` are added to those that the DAGs have anyway. `executor_config` is the executor's: for
    Kubernetes `{pod_override: {spec: ...}}`, a pod as in a manifest. `notify` tells the events that the tasks
    themselves find, of files, tickets and keytabs; those of a stream have the `notify` of its declaration. `callbacks`
    are notifiers that Airflow calls for a task, with the task's own context.

    An edit restarts no stream, and no claim keeps it.
    """

    __pydantic_config__ = STRICT

    queue: AirflowName | None = None
    pool: AirflowName | None = None
    priority: Priority | None = None
    owner: AirflowName | None = None
    tags: tuple[AirflowTag, ...] = ()
    executor_config: Mapping[str, PlainData] = field(default_factory=dict)
    notify: NotifyPolicy = NO_NOTIFIER
    callbacks: Mapping[CallbackName, NotifyPolicy] = field(default_factory=dict)

    @property
    def on_its_own_executor(self) -> bool:
        """Return whether the declaration chooses which workers or pods its tasks run on."""
        return bool(self.queue or self.executor_config)

    def shared_with(self, other: AirflowOptions) -> AirflowOptions:
        """Return what says where and whose the tasks are, where both say the same; not pool and priority.

        A pool that streams fill would keep their DAGs' neighbours out.
        """
        return AirflowOptions(
            queue=self.queue if self.queue == other.queue else None,
            owner=self.owner if self.owner == other.owner else None,
            tags=tuple(tag for tag in self.tags if tag in other.tags),
            executor_config=self.executor_config if self.executor_config == other.executor_config else {},
            notify=self.notify if self.notify == other.notify else NO_NOTIFIER,
            callbacks=self.callbacks if self.callbacks == other.callbacks else {},
        )


def notifiers_of(options: AirflowOptions) -> Iterator[tuple[str, NotifyPolicy]]:
    """Yield each notifier with the words that stand before its fields in a message."""
    yield "airflow.notify.", options.notify
    for name, notify in options.callbacks.items():
        yield f"airflow.callbacks.{name}.", notify


@dataclass(frozen=True)
class _Block:
    airflow: AirflowOptions = AirflowOptions()


def options_of(declaration: Mapping[str, Any]) -> AirflowOptions:
    """Read the block `airflow` of a declaration. Raises InvalidInput: when a field is wrong; it names each."""
    options = read(_Block, {"airflow": declaration["airflow"]} if "airflow" in declaration else {}).airflow
    require_notifiers(options)
    return options


def require_notifiers(options: AirflowOptions) -> None:
    """Raises InvalidInput: when a notifier's fields have none, or hold a secret; it names the field."""
    for where, notify in notifiers_of(options):
        require_notifier(notify, where)


def require_no_templates(declaration: Mapping[str, Any]) -> None:
    """Check that nothing of a declaration is a template, but in what notifiers get.

    Airflow would render it with all that a worker can look up, passwords of connections among it, into command lines
    and pages. Raises InvalidInput: when something is; it names the places.
    """
    places = list(_places({name: value for name, value in declaration.items() if name != "notify"}))
    if places:
        more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
        raise InvalidInput(
            f"{', '.join(places[:_NAMED])}{more}: a template, which is rendered in `notify` and `airflow.callbacks` "
            "alone. Write the value itself; a secret as {secret: conn:ID} in conf or deploy.environment; for what has "
            "to be computed, SparkStreamOperator in a DAG of your own takes templates"
        )


def is_template(text: str) -> bool:
    """Return whether Airflow's renderer would compute something in this text."""
    return _TEMPLATE.search(text) is not None


def _places(value: object, place: str = "") -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            here = f"{place}.{name}" if place else str(name)
            if place == "airflow" and name in _OF_AIRFLOW:
                continue
            if is_template(str(name)):
                yield f"a name in {place or 'the declaration'}"
            yield from _places(item, here)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _places(item, f"{place}.{number}")
    elif isinstance(value, str) and is_template(value):
        yield place
