"""The one error tree.

KstreamError
├── InvalidInput            a spec, connection, path or option is wrong; refused before anything was touched
├── Unavailable             a server did not answer, or answered in a way that proves nothing; retrying may help
├── Denied                  the server answered and refused this principal; retrying will not help
│   └── LogsClosed          an application's own view ACL doesn't name it
├── NotFound                the server answered that it does not have it
├── Conflict                somebody else holds what we want (a claim, a lease, a checkpoint)
│   └── TooEarly            it would do harm now, and none from a later moment on
├── CredentialError         a keytab, ticket or token is missing, unreadable, expired or refused by the KDC
├── SubmissionFailed        spark-submit ended without an application
├── RestartAborted          a restart stopped before its point of no return; the old generation still runs
├── StreamEnded             the stream's own job came to an end
└── MiniclusterError        a part of the minicluster did not start or stop

`clients` maps foreign exceptions to these at its edge, so that nothing above it has to know requests, gssapi or Hadoop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from airflow_kstream.model.printable import storable


class KstreamError(Exception):
    """Base of every error of this package.

    `tried` is the attempt, `server` the address it went to, `principal` the identity it used. `retryable` is True if
    the same call can succeed later although nobody changes anything: its kind says so, or `passing` does.
    """

    retryable = False

    def __init__(self, message: str, *, tried: str = "", server: str = "", principal: str = "") -> None:
        # It may quote what a job wrote, and Airflow's log of a task that fails can't hold all of that.
        self.message: str = storable(message)
        super().__init__(self.message)
        self.tried: str = storable(tried)
        self.server = server
        self.principal = principal

    def __str__(self) -> str:
        return f"{self.without_advice}. {'Retrying may help.' if self.retryable else 'Retrying will not help.'}"

    def passing(self, passes: bool = True) -> Self:
        """Return this error, marked as one that time alone ends, or that it does not."""
        self.retryable = passes
        return self

    @property
    def without_advice(self) -> str:
        """Return the attempt, server, principal and outcome, for use in another error that has advice of its own."""
        where = f" on {self.server}" if self.server else ""
        whom = f" as {self.principal}" if self.principal else ""
        context = f"{self.tried}{where}{whom}: " if self.tried else ""
        return context + self.message.rstrip(".")

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"error": str(self), "retryable": self.retryable}


class InvalidInput(KstreamError):
    """A refused input. The message names the field, the value given and the values allowed.

    `faults` are all that were found, one sentence each; of many, the message has the first few.
    """

    def __init__(self, message: str, *, faults: Sequence[str] = (), **context: str) -> None:
        super().__init__(message, **context)
        self.faults = tuple(faults) or (message,)


class Unavailable(KstreamError):
    """The lack of a meaningful answer. It allows no conclusion about the thing in question."""

    retryable = True


class Denied(KstreamError):
    """A refusal: the principal lacks a right, or was not authenticated."""


class LogsClosed(Denied):
    """A refusal by an application's own view ACL: it doesn't name who asks for the logs."""


class NotFound(KstreamError):
    """A statement of that server at that moment, not a proof that the thing never existed."""


class Conflict(KstreamError):
    """The loss of a thing to somebody else: the caller did not get it, and must not act as if it had."""


class TooEarly(Conflict):
    """A refusal to do harm, which the same call does not do from a later moment on. The message names the moment."""

    retryable = True


class CredentialError(KstreamError):
    """A credential that does not serve. The message names the file or principal, never its content."""


class SubmissionFailed(KstreamError):
    """A failed spark-submit, with what it said of its end, or why it can't be started."""

    retryable = True


class RestartAborted(KstreamError):
    """A failed preflight: nothing was stopped."""

    retryable = True


class StreamEnded(KstreamError):
    """The end of the stream's own job, with the ResourceManager's diagnostics."""


class MiniclusterError(KstreamError):
    """A failed daemon. The message names it and quotes the line of its log that gives the cause."""
