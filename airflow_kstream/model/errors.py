"""The one error tree.

KstreamError
├── InvalidInput            a spec, connection, path or option is wrong; refused before anything was touched
├── Unavailable             a server did not answer, or answered in a way that proves nothing; retrying may help
├── Denied                  the server answered and refused this principal; retrying will not help
├── NotFound                the server answered that it does not have it
├── Conflict                somebody else holds what we asked for (a claim, a lease, a checkpoint)
├── CredentialError         a keytab, ticket or token is missing, unreadable, expired or refused by the KDC
├── SubmissionFailed        spark-submit ended without an application
├── RestartAborted          a restart stopped before its point of no return; the old generation still runs
├── StreamEnded             the stream's own job came to an end
└── MiniclusterError              a part of the minicluster did not start or stop

Foreign exceptions are mapped to these at the edge of `clients`; nothing above has to know requests, gssapi or Hadoop.
"""

from __future__ import annotations

from typing import Any


class KstreamError(Exception):
    """Base of every error of this package.

    `tried` says what was attempted, `server` at which address, `principal` as whom. `retryable` is whether the
    same call can succeed later without anybody changing anything.
    """

    retryable = False

    def __init__(self, message: str, *, tried: str = "", server: str = "", principal: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.tried = tried
        self.server = server
        self.principal = principal

    def __str__(self) -> str:
        return f"{self.without_advice}. {'Retrying may help.' if self.retryable else 'Retrying will not help.'}"

    @property
    def without_advice(self) -> str:
        """What was tried, where, as whom and what came of it: for the message of another error, which has advice."""
        where = f" on {self.server}" if self.server else ""
        whom = f" as {self.principal}" if self.principal else ""
        context = f"{self.tried}{where}{whom}: " if self.tried else ""
        return context + self.message.rstrip(".")

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"error": str(self), "retryable": self.retryable}


class InvalidInput(KstreamError):
    """Names the field, what was given and what is allowed."""


class Unavailable(KstreamError):
    """No conclusion about the thing asked for may be drawn from this."""

    retryable = True


class Denied(KstreamError):
    """The principal lacks a right, or was not authenticated."""


class NotFound(KstreamError):
    """A statement of that server at that moment, not a proof that the thing never was."""


class Conflict(KstreamError):
    """Whoever gets this did not get the thing, and must not act as if it had."""


class CredentialError(KstreamError):
    """Says which file or principal, never its content."""


class SubmissionFailed(KstreamError):
    """Carries the tail of spark-submit's output; the caller looks for the tag before believing it."""

    retryable = True


class RestartAborted(KstreamError):
    """Preflight failed: nothing was stopped."""

    retryable = True


class StreamEnded(KstreamError):
    """Carries the ResourceManager's diagnostics."""


class MiniclusterError(KstreamError):
    """Names the daemon and the line of its log that says why."""
