"""Airflow's notifiers, by their class: checked where DAGs are parsed, made where an event happens.

A connection bounds which of them tell of its declarations: those that it allows, as last read in this process.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseNotifier

from airflow_kstream import settings
from airflow_kstream.clients.local.regular_files import real_path
from airflow_kstream.hooks.connection import fields_of, read_connection
from airflow_kstream.model.airflow_options import NotifyPolicy
from airflow_kstream.model.clusters.allow import Allow
from airflow_kstream.model.errors import InvalidInput, KstreamError
from airflow_kstream.policy.streams.restart.allowed import not_covered, notifier_needs, words

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)

_SHOWN = ("ds", "ts", "run_id", "task_instance_key_str")
_OF_AN_INSTANCE = ("dag_id", "task_id", "run_id", "map_index", "try_number", "max_tries", "log_url", "hostname")
_SHOWN_OF = {
    "ti": _OF_AN_INSTANCE,
    "task_instance": _OF_AN_INSTANCE,
    "task": ("task_id", "owner"),
    "dag_run": ("dag_id", "run_id", "logical_date", "run_type"),
}

_bounds: dict[str, Allow | None] = {}
_unread: set[str] = set()
_refused: set[tuple[str, str]] = set()


def configured(declared: NotifyPolicy) -> NotifyPolicy:
    """Return the declared notifier, or the one of `[kstream] notifier` where the declaration names none.

    Raises InvalidInput: when a setting is wrong.
    """
    return declared if declared.notifier else settings.notifier()


def require_usable(notify: NotifyPolicy, where: str) -> None:
    """Import the notifier's class and compare its parameters with the arguments; make none.

    Raises InvalidInput: when this process can't import it, it is not a notifier, or it does not take the arguments.
    """
    if notify.notifier is None:
        return
    kind = _class_of(notify.notifier, where)
    try:
        inspect.signature(kind).bind(**notify.kwargs)
    except TypeError as error:
        raise InvalidInput(f"{where}kwargs of {notify.notifier}: {error}") from error


def notify_now(notify: NotifyPolicy, context: Mapping[str, Any]) -> None:
    """Let a new notifier tell the event of the context, in this thread. Blocks; raises whatever the notifier raises.

    A new one each time, because rendering its templates changes it. One that can only `async_notify` gets a loop of its
    own: Airflow's questions go from there to the loop of the triggerer.
    """
    if notify.notifier is None:
        return
    kind = _class_of(notify.notifier, "")
    notifier = kind(**notify.kwargs)
    if kind.notify is not BaseNotifier.notify:
        notifier({**context})
        return

    async def told() -> None:
        notifier.context = {**context}  # type: ignore[typeddict-item]
        await notifier

    asyncio.run(told())


def _class_of(path: str, where: str) -> type[BaseNotifier]:
    module, _, name = path.rpartition(".")
    if "__main__" in module.split("."):
        # The author of a declaration would run it, with the rights of the process that reads declarations.
        raise InvalidInput(f"{where}notifier is {path!r}; allowed is a class of a library, and `__main__` is a program")
    try:
        kind = getattr(import_module(module), name)
    except (Exception, SystemExit) as error:  # A module may raise anything while it is imported.
        raise InvalidInput(f"{where}notifier is {path!r}, which can't be imported here: {error}") from error
    if not (isinstance(kind, type) and issubclass(kind, BaseNotifier)):
        raise InvalidInput(f"{where}notifier is {path!r}; allowed is a class derived from Airflow's BaseNotifier")
    return kind


def learn(connection: str, allow: Allow | None) -> None:
    """Take what was read of a connection."""
    _bounds[connection] = allow
    _unread.discard(connection)


def unread(connection: str) -> None:
    """Take that a connection is about to be read: until it was once, it allows nothing."""
    if connection not in _bounds:
        _unread.add(connection)


def look_at(connection: str) -> None:
    """Read a connection for its bound; where it can't be read, what was read before holds."""
    unread(connection)
    try:
        learn(connection, fields_of(read_connection(connection)).allow)
    except KstreamError as error:
        log.warning("Which notifiers connection %s allows can't be read: %s", connection, error)


def within(connection: str, declared: NotifyPolicy) -> NotifyPolicy:
    """Return the declared notifier if the connection allows it, else none, so that the configured one tells.

    One that is not allowed is neither imported nor made, and an error in the log, once in a process.
    """
    if connection in _unread:
        return NotifyPolicy()
    allow = _bounds.get(connection)
    if declared.notifier is None or allow is None:
        return declared
    return _allowed(connection, declared, not_covered(allow, notifier_needs(declared), real_path))


def within_at_once(connection: str, declared: NotifyPolicy) -> NotifyPolicy:
    """Return the same as `within`, but for files: where they lead is a question for the disk, and this is for an event
    loop. So `judged` has the last word, in a thread.
    """
    if connection in _unread:
        return NotifyPolicy()
    allow = _bounds.get(connection)
    if declared.notifier is None or allow is None:
        return declared
    return _allowed(connection, declared, not_covered(allow, replace(notifier_needs(declared), local_files=())))


def judged(connection: str, notify: NotifyPolicy) -> NotifyPolicy:
    """Return the notifier itself if it is the configured one or `within` the connection's bound, else the configured.

    It asks the disk, so never in an event loop.
    """
    default = NotifyPolicy()
    with suppress(InvalidInput):
        default = settings.notifier()
    if notify == default:
        return notify
    allowed = within(connection, notify)
    return allowed if allowed.notifier else default


def _allowed(connection: str, declared: NotifyPolicy, missing: Allow) -> NotifyPolicy:
    if not missing:
        return declared
    if (connection, declared.key) not in _refused:
        _refused.add((connection, declared.key))
        log.error(
            "The notifier %s tells nothing of what is declared there; that of [kstream] notifier tells the events of "
            "streams and clusters: %s",
            declared.notifier,
            words(missing, connection),
        )
    return NotifyPolicy()


def callback(connection: str, notify: NotifyPolicy, where: str) -> BaseNotifier:
    """Return the notifier of a declaration as a callback of Airflow.

    Raises InvalidInput: as `require_usable`, and when there is none.
    """
    if notify.notifier is None:
        raise InvalidInput(f"{where}notifier is missing: the class that Airflow calls")
    require_usable(notify, where)
    return DeclaredCallback(connection, notify)


class DeclaredCallback(BaseNotifier):
    """A notifier that a declaration names as a callback of its tasks: made when Airflow calls it, if it is allowed.

    Example::

        mail = NotifyPolicy("airflow.providers.smtp.notifications.smtp.SmtpNotifier", {"to": "streams@example.com"})
        EmptyOperator(task_id="job", on_failure_callback=[DeclaredCallback("prod", mail)])

    :param connection: the `kstream` connection of the declaration.
    :param declared: the notifier. Its own templates are rendered with the task's context or, where the connection
        has an `allow`, with what `shown_to_templates` leaves of it.
    """

    def __init__(self, connection: str, declared: NotifyPolicy) -> None:
        super().__init__()
        self.connection = connection
        self.declared = declared

    def notify(self, context: Context) -> None:
        """Let it tell."""
        look_at(self.connection)
        bounded = _bounds.get(self.connection) is not None
        notify_now(within(self.connection, self.declared), shown_to_templates(context) if bounded else {**context})


def shown_to_templates(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the templates of a bounded declaration may show: of which task, in which run, and what went wrong.

    The rest of a task's context leads to every connection and Variable (`conn`, `var`, and the task instance's own
    `get_template_context`).
    """
    shown = {name: context[name] for name in _SHOWN if isinstance(context.get(name), str)}
    shown |= {name: str(context[name]) for name in ("exception", "reason") if context.get(name) is not None}
    return shown | {name: _plain(context.get(name), fields) for name, fields in _SHOWN_OF.items()}


def _plain(one: object, names: Sequence[str]) -> SimpleNamespace:
    """Return these fields alone, those that lead no further."""
    fields = {name: getattr(one, name, None) for name in names}
    return SimpleNamespace(**{name: value for name, value in fields.items() if isinstance(value, str | int | datetime)})
