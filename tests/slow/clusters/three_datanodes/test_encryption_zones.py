"""A job in an encryption zone: it needs tokens of its KMS as well, and a push brings them, too."""

from __future__ import annotations

from datetime import timedelta
from getpass import getuser

import pytest

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.hdfs.native import NativeReads
from airflow_kstream.clients.hdfs.tokens import cancel_by_identifier
from airflow_kstream.clients.kms import Kms
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.kerberos.tokens import KMS_TOKEN, url_form
from airflow_kstream.model.streams.stream import TicketCredentials
from airflow_kstream.supervise.streams.restart.token_pushes import ways_in_clear
from tests.live.streams import PUSHABLE_BY_HAND, await_that, look, rate_stream
from tests.live.token_pushes import committed, launch_identifiers, push, refreshed, require_pushable_by_hand
from tests.slow.clusters.three_datanodes.conftest import KEY

pytestmark = pytest.mark.clusters

ZONE = f"/user/{getuser()}/zone"
SPEC = rate_stream(
    "zone",
    TicketCredentials(refresh=True),
    arguments=(ZONE,),
    checkpoints=(f"{ZONE}/checkpoint",),
    conf=PUSHABLE_BY_HAND,
)


@pytest.fixture
def with_keys(three: Minicluster) -> Minicluster:
    """The cluster with a zone that the stream writes to."""
    assert three.hdfs("dfs", "-mkdir", ZONE, as_="streamer").returncode == 0
    zone = three.hdfs("crypto", "-createZone", "-keyName", KEY, "-path", ZONE)
    assert zone.returncode == 0, zone.stderr
    return three


def test_a_job_in_an_encryption_zone_outlives_the_tokens_of_its_launch(with_keys: Minicluster) -> None:
    with refreshed(with_keys, SPEC, "streamer") as supervisor:
        session, conf = supervisor.session, HadoopConf(str(supervisor.session.cluster.hadoop_conf_dir))
        seen = look(session, SPEC)
        assert seen.current
        assert seen.claim
        assert [str(token) for token in seen.claim.credentials.tokens or ()] == [
            "HDFS_DELEGATION_TOKEN of ha-hdfs:kstream",
            f"kms-dt of {conf.key_provider}",
        ]
        assert "the KMS that makes them has no TLS" in ways_in_clear(session.cluster)
        launched = launch_identifiers(with_keys, seen.current.id)
        assert "executors use them" in push(supervisor)
        kms = Kms(conf.key_provider, session.identity, session.cluster.tls)
        for kind, identifier in launched:
            if kind == KMS_TOKEN:
                kms.cancel(identifier)
            else:
                cancel_by_identifier(conf, session.cluster.default_fs, session.identity, identifier)
        with_keys.failover()
        # Logs in a zone are read natively, too.
        native = NativeReads(session.cluster, session.identity)
        assert native.read_part(f"{ZONE}/checkpoint/metadata", 0, 10).startswith(b'{"id"')
        (commit,) = committed(session, SPEC)
        await_that(lambda: committed(session, SPEC)[0] > commit + 3, "it commits on")
        require_pushable_by_hand(supervisor, seen.current.id, conf.key_provider)
        require_unlogged(with_keys, kms)
        after = look(session, SPEC)
        assert after.current
        assert after.current.id == seen.current.id


def require_unlogged(minicluster: Minicluster, kms: Kms) -> None:
    """Make a token, and find it nowhere in the KMS's request log. The one in it, which told its life, is cancelled."""
    fresh, log = kms.mint(), minicluster.log("kms")

    def is_cancelled() -> bool:
        _, renewed, afterwards = log.read_text(errors="replace").rpartition("op=RENEWDELEGATIONTOKEN&token=")
        return bool(renewed) and "op=CANCELDELEGATIONTOKEN" in afterwards

    # The KMS logs a request after it has answered it.
    await_that(is_cancelled, "the token that told its life is cancelled")
    written = url_form(KMS_TOKEN, kms.address, fresh.identifier, fresh.password).reveal().decode()
    assert written not in log.read_text(errors="replace")
    assert timedelta() < fresh.until - fresh.read.issued <= fresh.read.max_date - fresh.read.issued
