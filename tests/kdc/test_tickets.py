"""Tickets of a real KDC: acquired whole, renewed, inspected."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import krb5
import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.minicluster.kdc import Kdc
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import CredentialError, Unavailable
from airflow_kstream.model.kerberos.identity import CacheKind, Identity
from airflow_kstream.model.kerberos.ticket import Ticket
from tests.kdc.logins import login
from tests.live.realms import without_kdc
from tests.live.streams import await_that
from tests.simulated.strange_servers import HTML, Answer, serving

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)


def kinit(identity: Identity, cache: Path, *options: str) -> None:
    """Get a ticket as a person does, with a lifetime and flags of its own."""
    argv = ["kinit", *options, "-k", "-t", str(identity.keytab), "-c", f"FILE:{cache}", identity.principal]
    cache.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(argv, check=True, capture_output=True)


def not_renewable(identity: Identity, cache: Path) -> None:
    """Get a ticket that is not renewable, which kinit can't request if krb5.conf requests renewable ones."""
    context = krb5.init_context()
    owner = krb5.parse_name_flags(context, identity.principal.encode())
    options = krb5.get_init_creds_opt_alloc(context)
    krb5.get_init_creds_opt_set_renew_life(options, 0)
    keys = krb5.kt_resolve(context, f"FILE:{identity.keytab}".encode())
    tickets.write_cache(
        context, f"FILE:{cache}", owner, iter([krb5.get_init_creds_keytab(context, owner, options, keys)])
    )


def test_a_ticket_has_the_requested_lifetime_and_flags(edge: Identity, cache: Path) -> None:
    before = datetime.now(UTC)
    kinit(edge, cache, "-l", "5m", "-r", "20m", "-F")
    left = tickets.acquire(Identity(edge.principal, ticket_cache=str(cache)), cache.with_name("copy"))
    took = datetime.now(UTC) - before
    source = tickets.inspect(str(cache))
    assert source.principal == edge.principal
    assert source.granting is not None
    # The ends are counted from when we asked, the start from when the KDC answered; both in whole seconds.
    assert 5 * MINUTE - took - SECOND < left <= 5 * MINUTE
    assert 5 * MINUTE - took - SECOND < source.granting.life <= 5 * MINUTE + SECOND
    assert source.granting.renew_until == source.granting.expiry + 15 * MINUTE
    assert "renewable" in source.granting.flags
    assert "forwardable" not in source.granting.flags
    assert (source.granting.kvno, source.granting.enctype) == (1, "aes256-cts-hmac-sha1-96")


def test_a_ticket_is_written_whole_private_and_for_the_right_principal(kdc: Kdc, tmp_path: Path) -> None:
    edge, cache = login(kdc, "streamer/edge.kstream.test"), tmp_path / "folder" / "cache"
    assert tickets.acquire(edge, cache) > MINUTE
    assert [stat.S_IMODE(path.stat().st_mode) for path in (cache.parent, cache)] == [0o700, 0o600]
    assert [file.name for file in cache.parent.iterdir()] == ["cache"]
    granting = tickets.inspect(str(cache)).granting
    assert granting
    assert granting.client == edge.principal
    assert tickets.acquire(Identity(edge.principal, ticket_cache=str(cache)), tmp_path / "copy") > MINUTE
    assert tickets.inspect(str(tmp_path / "copy")).granting == granting


def test_a_failed_login_leaves_the_old_ticket_as_it_was(kdc: Kdc, edge: Identity, cache: Path) -> None:
    before = cache.read_bytes()
    with pytest.raises(CredentialError, match="there is no such file"):
        tickets.acquire(replace(edge, keytab=f"{cache}.keytab"), cache)
    with pytest.raises(CredentialError, match=r"nobody@KSTREAM\.TEST"):
        tickets.acquire(replace(edge, principal=kdc.principal("nobody")), cache)
    assert cache.read_bytes() == before


def test_a_login_with_a_rotated_keytab_explains_what_most_likely_happened(kdc: Kdc, tmp_path: Path) -> None:
    kdc.add("with-an-old-keytab")
    old = shutil.copy(kdc.keytab("with-an-old-keytab"), tmp_path / "old.keytab")
    kdc.rotate("with-an-old-keytab")
    behind = Identity(kdc.principal("with-an-old-keytab"), keytab=str(old))
    with pytest.raises(CredentialError, match="newer key than the keytab"):
        tickets.acquire(behind, tmp_path / "cache")
    asks_for_a_login = Answer(401, HTML, "text/html", {"WWW-Authenticate": "Negotiate"})
    with serving({"": asks_for_a_login}) as server, pytest.raises(CredentialError, match="newer key than the keytab"):
        Hdfs((server.address,), behind, Tls()).status("/")


_WRITER = """
import sys
from pathlib import Path
from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.model.kerberos.identity import Identity
for _ in range(20):
    tickets.acquire(Identity(sys.argv[1], keytab=sys.argv[2]), Path(sys.argv[3]))
"""


def test_concurrent_writers_of_a_cache_succeed_and_no_reader_sees_a_torn_one(edge: Identity, cache: Path) -> None:
    command = [sys.executable, "-c", _WRITER, edge.principal, str(edge.keytab), str(cache)]
    writers = [subprocess.Popen(command) for _ in range(2)]
    reads = 0
    with ThreadPoolExecutor(4) as pool:
        threads = [pool.submit(lambda: [tickets.acquire(edge, cache) for _ in range(20)]) for _ in range(2)]
        while any(writer.poll() is None for writer in writers) or not all(thread.done() for thread in threads):
            granting = tickets.inspect(str(cache)).granting
            assert granting is not None
            reads += 1
        for thread in threads:
            thread.result()
    assert [writer.returncode for writer in writers] == [0, 0]
    assert reads > 20
    assert [file.name for file in cache.parent.iterdir()] == [cache.name]


def test_what_killed_processes_left_is_swept_and_what_others_write_now_is_not(edge: Identity, cache: Path) -> None:
    old, young = (cache.with_name(f".{cache.name}.{name}.tmp") for name in ("old", "young"))
    for left in (old, young):
        left.touch()
    hour_ago = time.time() - 3600
    os.utime(old, (hour_ago, hour_ago))
    tickets.acquire(edge, cache)
    assert (old.exists(), young.exists()) == (False, True)


_WITHOUT_ROOM = """
import resource, sys
from pathlib import Path
from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.kerberos.identity import Identity
resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
try:
    tickets.acquire(Identity(sys.argv[1], keytab=sys.argv[2]), Path(sys.argv[3]))
except KstreamError as error:
    print(type(error).__name__, error)
"""


def test_a_cache_for_which_there_is_no_room_stays_as_it_was(edge: Identity, cache: Path) -> None:
    """libkrb5 says "I/O operation failed"; the error must contain the system's own words."""
    before = cache.read_bytes()
    command = [sys.executable, "-c", _WITHOUT_ROOM, edge.principal, str(edge.keytab), str(cache)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"can't write to the folder {cache.parent}: File too large" in printed
    assert cache.read_bytes() == before
    assert [file.name for file in cache.parent.iterdir()] == [cache.name]


def test_a_folder_that_takes_no_file_is_named(edge: Identity) -> None:
    with pytest.raises(
        CredentialError, match=r"write the ticket cache /proc/self/tickets .*can't write to the folder /proc/self:"
    ):
        tickets.acquire(edge, Path("/proc/self/tickets"))


def test_a_renewal_needs_no_keytab_and_keeps_the_end_of_renewals(edge: Identity, cache: Path) -> None:
    kinit(edge, cache, "-l", "5m", "-r", "20m")
    before = tickets.inspect(str(cache)).granting
    assert before is not None
    await_that(lambda: datetime.now(UTC) > before.start + SECOND, "a second passes")
    renewed = tickets.renew(before, cache)
    assert renewed == tickets.inspect(str(cache)).granting
    assert renewed.expiry > before.expiry
    assert renewed.life == before.life
    assert renewed.renew_until == before.renew_until


def held(identity: Identity, cache: Path) -> Ticket:
    return tickets.granting_ticket(cache, identity.principal, f"read {cache}")


def test_what_can_not_be_renewed_says_why_and_stays_as_it_was(kdc: Kdc, edge: Identity, cache: Path) -> None:
    not_renewable(edge, cache)
    before = cache.read_bytes()
    with pytest.raises(CredentialError, match=r"it is not renewable: .*kinit -r.*or give a keytab"):
        tickets.renew(held(edge, cache), cache)
    with pytest.raises(CredentialError, match=r"it is a cache of streamer@"):
        held(replace(edge, principal=kdc.principal("watcher")), cache)
    with pytest.raises(CredentialError, match="there is no such file"):
        held(edge, cache.with_name("gone"))
    assert cache.read_bytes() == before


def test_a_folder_of_caches_is_its_primary_one_and_all_its_members(kdc: Kdc, tmp_path: Path) -> None:
    """kinit writes such a cache; the settings that it keeps in there are no tickets."""
    environment = {**os.environ, "KRB5CCNAME": f"DIR:{tmp_path}/many"}
    (tmp_path / "many").mkdir(0o700)
    for name in ("streamer", "watcher"):
        kinit = ["kinit", "-k", "-t", str(kdc.keytab(name)), kdc.principal(name)]
        subprocess.run(kinit, check=True, env=environment)
    caches = [tickets.inspect(name) for name in tickets.members(f"DIR:{tmp_path}/many")]
    assert {member.principal for member in caches} == {kdc.principal("streamer"), kdc.principal("watcher")}
    assert {len(member.tickets) for member in caches} == {1}
    primary = tickets.inspect(f"DIR:{tmp_path}/many")
    assert primary.kind is CacheKind.DIR
    assert primary.principal in {member.principal for member in caches}
    tickets.acquire(Identity(primary.principal, ticket_cache=f"DIR:{tmp_path}/many"), tmp_path / "copy")
    assert tickets.inspect(str(tmp_path / "copy")).granting == primary.granting


def test_a_kdc_that_is_away_is_unavailable_and_a_refusal_is_not(
    kdc: Kdc, edge: Identity, cache: Path, tmp_path: Path
) -> None:
    with without_kdc(kdc, tmp_path):
        with pytest.raises(Unavailable, match="Cannot contact any KDC"):
            tickets.acquire(edge, cache)
        with pytest.raises(Unavailable, match="Cannot contact any KDC"):
            tickets.renew(held(edge, cache), cache)
