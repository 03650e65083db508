"""Whose are the applications that carry a stream's tags? Anybody can set a tag, in any declaration."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import NotFound, Unavailable
from airflow_kstream.model.streams.contract import claim_file, newest_claim
from airflow_kstream.model.streams.generation import Claim, StreamId

if TYPE_CHECKING:
    from airflow_kstream.supervise.clusters.session import ClusterSession


Numbered = list[tuple[int, Application]]


@dataclass(frozen=True)
class TaggedApplications:
    """The applications that carry the tags of `stream`. `owners` are the files of its folder that count, with their
    owners.

    The supervisor claims and submits a generation as one principal, so that YARN's user of the application is HDFS's
    owner of the claim, both by the rules of hadoop.security.auth_to_local. Without any claim, the stream's principal
    is the session's own. Another user's application is a stranger: to be reported, never to be acted upon.
    """

    stream: StreamId
    owners: Mapping[str, str]

    @cached_property
    def _newest(self) -> int:
        """Return the highest claimed generation, 0 if there is none; it is needed for each application."""
        return newest_claim(self.owners)

    def split(
        self, session: ClusterSession, applications: Collection[Application]
    ) -> tuple[Numbered, list[Application]]:
        """Return our applications with their generations, and the strangers.

        Raises Unavailable: when the newest generation may run as a user whose name we can't tell.
        """
        numbers = ((self.stream.generation_of(app.tags), app) for app in applications)
        tagged = [(number, app) for number, app in numbers if number is not None]
        ours = [(number, app) for number, app in tagged if self.is_ours(session, number, app)]
        strangers = [(number, app) for number, app in tagged if (number, app) not in ours]
        newest = self._newest
        if newest and all(number != newest for number, _ in ours):
            self._refuse_to_guess(session, [app for number, app in strangers if number == newest and app.alive])
        return ours, [app for _, app in strangers]

    def is_ours(self, session: ClusterSession, number: int, app: Application) -> bool:
        """Return whether YARN's user of this generation's application is the owner of its claim."""
        owner = self._owner(session, number)
        if not owner or app.user in {owner, ""}:
            return True
        # YARN's rules may differ from HDFS's. Only asked when there is a stranger.
        if session.copies.yarn_user(self.stream, owner) == app.user:
            return True
        return session.yarn.user() == app.user and session.state.user == owner

    def is_adopted(self, session: ClusterSession, number: int, app: Application) -> bool:
        """Return whether the application that this generation's claim names is the claim's owner's, too, or a
        supervisor said whose it is when it was adopted."""
        if self.is_ours(session, number, app):
            return True
        return session.copies.user_of_adopted(self.stream, app.id) == app.user

    def is_strangers(self, session: ClusterSession, number: int, app: Application) -> bool:
        """Return whether this application is surely another user's: YARN's name for the claim's owner is known, too."""
        if self.is_adopted(session, number, app):
            return False
        owner = self._owner(session, number)
        own = session.yarn.user() if session.state.user == owner else None
        return bool(own or session.copies.yarn_user(self.stream, owner))

    def _owner(self, session: ClusterSession, number: int) -> str:
        """Return the owner of the generation's claim or, if it is gone or was never made, of the newest claim."""
        claims = (claim_file(number), claim_file(self._newest))
        return next((self.owners[name] for name in claims if name in self.owners), "") or session.state.user

    def _refuse_to_guess(self, session: ClusterSession, living: list[Application]) -> None:
        if not living or session.yarn.user() is not None:
            return
        app = living[0]
        raise Unavailable(
            f"{app.id} carries the tag of the newest generation and runs as {app.user}, not as the owner of its claim; "
            "and this ResourceManager doesn't tell whether that is another user or its own name for the same one. "
            f"If it is another user's, `yarn application -kill {app.id}` makes way; if it is the stream's own, give "
            "YARN the same rules of hadoop.security.auth_to_local as HDFS",
            tried=f"look at stream {self.stream.name}",
            server=session.yarn.active(),
            principal=str(session.identity),
        )


def running_application(
    session: ClusterSession, stream: StreamId, claim: Claim, listed: Sequence[Application]
) -> Application | None:
    """Return the application of a claimed generation that lives, by its tag or, if it was adopted, by its id."""
    tag = stream.generation_tag(claim.generation)
    alive = [app for app in listed if tag in app.tags and app.alive]
    if not alive and claim.adoption.application:
        with suppress(NotFound):
            alive = [app for app in [session.yarn.application(claim.adoption.application)] if app.alive]
    return max(alive, key=lambda app: app.order, default=None)
