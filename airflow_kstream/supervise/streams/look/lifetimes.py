"""The lives of a stream's last generations, read from its folder."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress

from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.streams.contract import claims, stop_marker
from airflow_kstream.model.streams.generation import Claim, StreamId
from airflow_kstream.model.streams.generation_facts import Life
from airflow_kstream.policy.streams.ends.lifetimes import lives
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.formats import read_stop
from airflow_kstream.supervise.streams.folder.past_ends import past_ends
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder

log = logging.getLogger(__name__)

# Each costs two requests.
_MOST = 12


def lives_of(session: ClusterSession, stream: StreamId) -> tuple[Life, ...]:
    """Return the last generations, oldest first, as far as they can be read: it is for people, and fails nothing."""
    folder = StreamFolder(session, stream)
    try:
        names = folder.names()
        numbers = claims(names)[-_MOST:]
        stops = {
            number: read_stop(folder.text(stop_marker(number))) for number in numbers if stop_marker(number) in names
        }
        return lives(tuple(_claims(folder, numbers)), past_ends(folder, names), stops)
    except KstreamError as error:
        log.warning("The past generations of %s can't be read: %s", stream.name, error)
        return ()


def _claims(folder: StreamFolder, numbers: tuple[int, ...]) -> Iterator[Claim]:
    for number in numbers:
        # A newer version's, or one that was tidied away since.
        with suppress(KstreamError):
            yield folder.claim_of(number)
