"""Which notifiers may tell of a connection's declarations: those that it allows, as last read in this process."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseNotifier

from airflow_kstream.clients.local.regular_files import real_path
from airflow_kstream.hooks.cluster import fields_of, read_connection
from airflow_kstream.model.airflow_options import NotifyPolicy
from airflow_kstream.model.clusters.allow import Allow
from airflow_kstream.model.errors import InvalidInput, KstreamError
from airflow_kstream.notifications.notifier import notify_now, require_usable
from airflow_kstream.policy.streams.restart.allowed import not_covered, notifier_needs

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)

_SHOWN = ("ds", "ts", "run_id", "task_instance_key_str")
_SHOWN_OF_A_TASK = (
    "dag_id",
    "task_id",
    "run_id",
    "map_index",
    "try_number",
    "max_tries",
    "log_url",
    "hostname",
    "state",
)

_bounds: dict[str, Allow | None] = {}
_unread: set[str] = set()
_refused: set[tuple[str, str]] = set()


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
    missing = not_covered(allow, notifier_needs(declared), real_path)
    if not missing:
        return declared
    if (connection, declared.notifier) not in _refused:
        _refused.add((connection, declared.notifier))
        words = (
            "Connection %s does not allow the notifier %s, so it tells nothing of what is declared there; that of "
            "[kstream] notifier tells the events of streams and clusters. Who may edit the connection can add this to "
            "its allow: %s"
        )
        log.error(words, connection, declared.notifier, json.dumps(missing.to_json()))
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
        has an `allow`, with what `told_of` leaves of it.
    """

    def __init__(self, connection: str, declared: NotifyPolicy) -> None:
        super().__init__()
        self.connection = connection
        self.declared = declared

    def notify(self, context: Context) -> None:
        """Let it tell."""
        look_at(self.connection)
        bounded = _bounds.get(self.connection) is not None
        notify_now(within(self.connection, self.declared), told_of(context) if bounded else {**context})


def told_of(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the templates of a bounded declaration may show: of which task, in which run, and what went wrong.

    The rest of a task's context leads to every connection and Variable (`conn`, `var`, and the task instance's own
    `get_template_context`).
    """
    shown = {name: context[name] for name in _SHOWN if isinstance(context.get(name), str)}
    shown |= {name: str(context[name]) for name in ("exception", "reason") if context.get(name) is not None}
    instance = context.get("ti")
    fields = {name: getattr(instance, name, None) for name in _SHOWN_OF_A_TASK}
    ti = SimpleNamespace(**{name: value for name, value in fields.items() if isinstance(value, str | int)})
    return {**shown, "ti": ti, "task_instance": ti}
