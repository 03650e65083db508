"""A folder of ours that others could write in is closed by our next claim, without what they left there.

Simulated servers: each request of the closing can be the last of its process, and somebody looks at every moment.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from airflow_kstream.model.clusters.authors import CLOSING
from airflow_kstream.model.errors import Denied, Unavailable
from airflow_kstream.model.streams.contract import accepted_marker, claim_file, stop_marker
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.policy.streams.restart.reconcile import Mode
from tests.simulated.life import Life
from tests.simulated.tenants import Tenant

THEIRS = (claim_file(2), accepted_marker(2), stop_marker(1), "notes.txt", "gen-000007/inside")
# More than a closing sends.
REQUESTS = 40


@pytest.fixture(params=["etl", "streamer"])
def opened(request: pytest.FixtureRequest, life: Life, served: None) -> Tenant:
    """A stream that runs as a user of its own or as a supervisor, in a folder that everybody wrote in."""
    tenant = Tenant(life, request.param)
    tenant.reconcile()
    tenant.hdfs.modes[tenant.stream.folder] = "777"
    with tenant.hdfs.as_user("mallory"):
        tenant.hdfs.make_folder(f"{tenant.stream.folder}/gen-000007", "755")
        for name in THEIRS:
            tenant.hdfs.write(f"{tenant.stream.folder}/{name}", "evil")
    return tenant


def close(tenant: Tenant) -> None:
    tenant.acting().folder.require_exclusive_claims()


def counted(tenant: Tenant) -> set[str]:
    """Return whose files count for anybody: the one who acts, a supervisor, and a person who may only look."""
    folders = [tenant.acting().folder, *(tenant.looking(user) for user in ("streamer", "ann"))]
    return {owner for folder in folders for owner in folder.authored().counted.values()}


class Requests:
    """The requests of one process to the stream's folder: the last one happens or not, and no other follows."""

    def __init__(self, tenant: Tenant, last: int = 10**6) -> None:
        self._tenant, self._last, self.sent = tenant, last, 0

    def __enter__(self) -> Requests:
        self._tenant.hdfs.at_request = self._count
        return self

    def __exit__(self, *error: object) -> None:
        self._tenant.hdfs.at_request = lambda request, path: None

    def _count(self, request: str, path: str) -> None:
        if self.sent >= self._last:
            raise Unavailable("the process was killed")
        self.sent += 1


def requests_of_a_closing(tenant: Tenant) -> int:
    with Requests(tenant) as all_of_them:
        close(tenant)
    return all_of_them.sent


def test_it_is_closed_without_what_strangers_left(opened: Tenant) -> None:
    ours = dict(opened.acting().folder.authored().counted)
    close(opened)
    assert opened.hdfs.modes[opened.stream.folder] == "755"
    assert dict(opened.acting().folder.authored().counted) == ours
    assert not any("mallory" in owner for path, owner in opened.hdfs.owners.items() if opened.stream.folder in path)


@pytest.mark.parametrize("last", range(REQUESTS))
def test_wherever_it_is_interrupted_no_file_of_a_stranger_ever_counts(opened: Tenant, last: int) -> None:
    with Requests(opened, last) as process, suppress(Unavailable):
        close(opened)
    assert "mallory" not in counted(opened), process.sent
    close(opened)
    assert counted(opened) <= {"etl", "streamer"}
    names = opened.hdfs.names(opened.stream.folder)
    assert CLOSING not in names
    assert not {*THEIRS} & names


def test_at_no_moment_of_a_closing_does_a_strangers_file_count(opened: Tenant) -> None:
    looks: list[set[str]] = []

    def look(request: str, path: str) -> None:
        opened.hdfs.at_request = lambda request, path: None
        looks.append(counted(opened))
        opened.hdfs.at_request = look

    opened.hdfs.at_request = look
    close(opened)
    assert 10 < len(looks) < REQUESTS
    assert not any("mallory" in look for look in looks)


@pytest.mark.parametrize("at", range(REQUESTS))
def test_of_two_supervisors_that_close_it_at_once_none_lets_them_count(opened: Tenant, at: int) -> None:
    sent: list[str] = []

    def another(request: str, path: str) -> None:
        sent.append(path)
        opened.hdfs.at_request = lambda request, path: None
        if len(sent) == at:
            close(opened)
        assert "mallory" not in counted(opened)
        opened.hdfs.at_request = another

    opened.hdfs.at_request = another
    close(opened)
    opened.hdfs.at_request = lambda request, path: None
    assert "mallory" not in counted(opened)
    close(opened)
    assert CLOSING not in opened.hdfs.names(opened.stream.folder)


def test_a_supervisor_that_comes_late_takes_no_marker_of_another_one_away(opened: Tenant) -> None:
    """The other one has closed the folder and died, and strangers' files still lie there."""
    asked: list[str] = []

    def dies_once_it_is_closed(request: str, path: str) -> None:
        if "close" in asked:
            raise Unavailable("the process was killed")
        asked.append(request)

    def late(request: str, path: str) -> None:
        begins = path.endswith(CLOSING) and request in {"write", "delete"} and not asked
        opened.hdfs.at_request = dies_once_it_is_closed if begins else lambda request, path: None
        if begins:
            with suppress(Unavailable):
                close(opened)
        opened.hdfs.at_request = lambda request, path: None
        assert "mallory" not in counted(opened)
        opened.hdfs.at_request = late

    opened.hdfs.at_request = late
    close(opened)
    assert "close" in asked
    opened.hdfs.at_request = lambda request, path: None
    assert not {CLOSING, *THEIRS} & opened.hdfs.names(opened.stream.folder)


@pytest.mark.parametrize("kind", ["a file", "a folder"])
def test_a_strangers_own_marker_saves_none_of_the_files(opened: Tenant, kind: str) -> None:
    with opened.hdfs.as_user("mallory"):
        marker = f"{opened.stream.folder}/{CLOSING}"
        opened.hdfs.write(marker if kind == "a file" else f"{marker}/inside", "evil")
    close(opened)
    assert counted(opened) <= {"etl", "streamer"}
    assert not {CLOSING, *THEIRS} & opened.hdfs.names(opened.stream.folder)


def test_a_strangers_folder_that_cannot_be_emptied_gets_another_name(opened: Tenant) -> None:
    def refused(request: str, path: str) -> None:
        if request == "delete" and path.endswith("/gen-000007"):
            raise Denied("it holds files of another user", tried=f"delete {path}")

    opened.hdfs.at_request = refused
    close(opened)
    names = opened.hdfs.names(opened.stream.folder)
    assert not {*THEIRS, "gen-000007"} & names
    assert [name for name in names if name.startswith(".strange-")]
    assert CLOSING not in names


def test_a_closing_that_nobody_finished_is_finished_by_the_next_claim(opened: Tenant) -> None:
    half = requests_of_a_closing(opened) // 2
    opened.hdfs.modes[opened.stream.folder] = "777"
    with opened.hdfs.as_user("mallory"):
        opened.hdfs.write(f"{opened.stream.folder}/{claim_file(2)}", "evil")
    with Requests(opened, half), suppress(Unavailable):
        close(opened)
    opened.life.clock.ahead += opened.spec.submit.ttl
    opened.yarn.end("application_1_0001")
    report = opened.reconcile(mode=Mode.ENSURE)
    assert report.phase is Phase.RUNNING
    assert opened.hdfs.owners[f"{opened.stream.folder}/{claim_file(report.generation)}"] != "mallory"
    assert CLOSING not in opened.hdfs.names(opened.stream.folder)


def test_a_login_that_is_not_the_streams_closes_nothing(opened: Tenant) -> None:
    """A principal that merely owns the folder can't tell whose files are a stranger's."""
    opened.hdfs.owners[opened.stream.folder] = "ann"
    looks = opened.looking("ann")
    with suppress(Denied):
        looks.require_exclusive_claims()
    assert opened.hdfs.modes[opened.stream.folder] == "777"
    assert "mallory" not in {*opened.acting().folder.authored().counted.values()}
