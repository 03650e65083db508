"""After all other tests, no key and no token's password is outside of its own place."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import OWN
from tests.run_folder import memory_of
from tests.secrets.known import keys_of
from tests.secrets.search import where_any_is
from tests.secrets.watch import Sightings

# Where keys and tokens live: the KDC's database, the keytabs, HDFS's blocks and journal, YARN's running containers.
_AT_HOME = ("keytabs", "kdc", "data")
# Hadoop's servers log the addresses of WebHDFS requests, with the tokens in them, at INFO: datanode.webhdfs those that
# the NameNode made for a redirect, http.requests.namenode those that were renewed or cancelled. Their readers can
# read HDFS anyway; ours are cancelled right after their use. So does http.requests.kms, where YARN renews tokens in the
# one way that a KMS knows (DelegationTokenAuthenticator); ours that is renewed there is cancelled at once.
_HADOOPS_OWN = ("/logs/datanode.log", "/logs/nn1.log", "/logs/nn2.log", "/logs/kms.log")
# Files that the tests about such files wrote themselves.
_OF_TESTS = ("/test_",)


@pytest.fixture(scope="module")
def sightings() -> Sightings:
    """What all workers of the run saw."""
    files = [*(OWN.run / "known").glob("*.json")]
    assert files, "there is no run to search: `./kstream test` runs this after all other tests"
    return Sightings.read(files)


@pytest.fixture(scope="module")
def secrets(sightings: Sightings) -> frozenset[bytes]:
    """The secrets of all principals and all tokens of the whole run."""
    return frozenset(sightings.secrets)


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder for what is looked for, outside of the places where it is looked for."""
    with tempfile.TemporaryDirectory(prefix="searching-", dir=OWN.run) as own:
        yield Path(own)


def test_what_is_looked_for_are_the_secrets_that_were_used(secrets: frozenset[bytes]) -> None:
    keytabs = [*OWN.run.glob("pytest/**/minicluster?/keytabs/streamer.keytab")]
    assert keytabs
    for keytab in keytabs:
        assert keys_of(keytab)
        assert keys_of(keytab) <= secrets
    assert len(secrets) > 20


@pytest.mark.parametrize("written", [bytes, bytes.hex, base64.b64encode, base64.urlsafe_b64encode])
def test_the_search_finds_what_was_written(
    secrets: frozenset[bytes], tmp_path: Path, scratch: Path, written: object
) -> None:
    secret = max(secrets, key=len)
    for shift in range(3):
        line = written(b"x" * shift + secret + b"and more")  # type: ignore[operator]
        (tmp_path / f"log-{shift}").write_bytes(b"INFO " + (line.encode() if isinstance(line, str) else line) + b"\n")
    (tmp_path / "innocent").write_text("INFO nothing\n")
    assert where_any_is(secrets, [tmp_path], scratch) == [str(tmp_path / f"log-{shift}") for shift in range(3)]


def test_no_file_of_the_run_holds_a_secret(secrets: frozenset[bytes], scratch: Path) -> None:
    """Logs of tasks, containers and servers; Airflow's database with XComs, rendered fields and triggers; its API's
    answers; and what is left in temporary folders.
    """
    places = [OWN.run / "pytest", memory_of(OWN.run), *OWN.run.glob("*/tmp"), *OWN.run.glob("*/airflow")]
    found = where_any_is(secrets, places, scratch, not_below=_AT_HOME)
    assert not [path for path in found if not path.endswith(_HADOOPS_OWN) and not any(own in path for own in _OF_TESTS)]


def test_no_command_line_held_a_secret(secrets: frozenset[bytes], sightings: Sightings, scratch: Path) -> None:
    folder = scratch / "commands"
    folder.mkdir()
    (folder / "lines").write_text("\n".join(sorted(sightings.command_lines)))
    assert len(sightings.command_lines) > 5
    assert not where_any_is(secrets, [folder], scratch)
