"""The last renewal of a token, and what comes after it: a day of seconds needs a cluster of its own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import CredentialError
from airflow_kstream.supervise.tokens import files
from tests.live.brief_clusters import brief_cluster
from tests.live.streams import await_that
from tests.live.token_makers import access_as, chosen, issue, standing

pytestmark = pytest.mark.clusters

SECOND = timedelta(seconds=1)


@pytest.fixture
def fleeting(tmp_path: Path) -> Iterator[Minicluster]:
    """A minicluster with one NameNode whose tokens live for seconds."""
    with brief_cluster(tmp_path / "fleeting", 12 * SECOND, 18 * SECOND) as up:
        yield up


def test_a_tokens_last_renewal_ends_at_its_max_date(fleeting: Minicluster, tmp_path: Path) -> None:
    with access_as(fleeting, "streamer") as session:
        token = chosen(fleeting, issue(fleeting, tmp_path / "token"))
        await_that(lambda: files.renew(session, token) == token.identifier.max_date, "a renewal is the last one")
        await_that(lambda: session.hdfs.now() > token.identifier.max_date, "the token is past its max date")
        with pytest.raises(CredentialError, match=r"it reached its max date, 20.* UTC, beyond which nothing renews it"):
            files.renew(session, token)
        assert standing(fleeting, token.path).honoured is False
