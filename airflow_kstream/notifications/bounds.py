"""Which notifiers may tell of a connection's declarations: those that it allows, as last read in this process."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow.sdk import BaseNotifier

from airflow_kstream.hooks.cluster import fields_of, read_connection
from airflow_kstream.model.airflow_options import NotifyPolicy
from airflow_kstream.model.clusters.allow import Allow, covers
from airflow_kstream.model.errors import InvalidInput, KstreamError
from airflow_kstream.notifications.notifier import notify_now, require_usable

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)

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
    if declared.notifier is None or allow is None or covers(allow.notifiers, declared.notifier):
        return declared
    if (connection, declared.notifier) not in _refused:
        _refused.add((connection, declared.notifier))
        words = (
            "Connection %s does not allow the notifier %s, so it tells nothing of what is declared there; that of "
            "[kstream] notifier tells the events of streams and clusters. Who may edit the connection can add it to "
            'the "notifiers" of its allow'
        )
        log.error(words, connection, declared.notifier)
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
    :param declared: the notifier. Its own templates are rendered with the task's context.
    """

    def __init__(self, connection: str, declared: NotifyPolicy) -> None:
        super().__init__()
        self.connection = connection
        self.declared = declared

    def notify(self, context: Context) -> None:
        """Let it tell."""
        look_at(self.connection)
        notify_now(within(self.connection, self.declared), {**context})
