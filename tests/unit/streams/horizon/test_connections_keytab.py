"""A job with a keytab can have the connection's, which may be base64 in the connection: no file on any worker."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.kerberos.keytab import KeyVersion
from airflow_kstream.model.streams.stream import KeytabCredentials, StreamSpec
from airflow_kstream.model.streams.submission import SparkDefaults, SubmissionOrder
from airflow_kstream.policy.streams.horizon.rotation import identity_of, keytab_of
from airflow_kstream.policy.streams.spark.spark_stream import Helpers, stream_submission
from airflow_kstream.supervise.clusters.connection import ConnectionFields, cluster_of
from airflow_kstream.supervise.streams.look.observe import key_at_hand
from tests.simulated.keytabs import Key, keytab_bytes
from tests.simulated.servers import CLUSTER
from tests.simulated.values import changed
from tests.simulated.yarn import START, claim_of

YAML = (
    "{name: orders, credentials: {mode: keytab, principal: streamer@EXAMPLE.COM}, "
    "application: /j.py, checkpoints: [/c]}"
)
SPEC = StreamSpec.from_yaml(YAML)
HELPERS = Helpers("/helper.py", "/tokens.py", "/launcher.py")
FIELDS = ConnectionFields(
    principal="streamer@EXAMPLE.COM",
    keytab=base64.b64encode(b"\x05\x02 keys").decode(),
    resourcemanagers="http://rm:8088",
    namenodes="http://nn:9870",
    default_fs="hdfs://simulated",
    state_dir="/kstream",
)


def test_the_keytab_in_the_connection_is_handed_to_spark_as_a_private_file() -> None:
    with cluster_of("prod", FIELDS) as cluster:
        path = identity_of(SPEC, cluster).keytab
        assert path is not None
        assert Path(path).read_bytes() == b"\x05\x02 keys"
        assert Path(path).stat().st_mode & 0o777 == 0o600
        argv = stream_submission(SubmissionOrder(cluster, SPEC, 1, "nonce"), SparkDefaults(), HELPERS).argv()
        assert f"--principal streamer@EXAMPLE.COM --keytab {path} " in " ".join(argv)
        assert FIELDS.keytab not in argv
    assert not Path(path).exists()


def test_a_declared_keytab_wins_over_the_connections() -> None:
    declared = replace(SPEC, credentials=KeytabCredentials("streamer@EXAMPLE.COM", "/etc/own.keytab"))
    with cluster_of("prod", FIELDS) as cluster:
        assert identity_of(declared, cluster).keytab == keytab_of(declared, cluster) == "/etc/own.keytab"


@pytest.mark.parametrize(
    "watcher",
    [
        # Nobody acts as the stream with another's key, nor with a ticket that ends.
        Identity("watcher@EXAMPLE.COM", keytab="/etc/watcher.keytab"),
        Identity("streamer@EXAMPLE.COM", ticket_cache="/tmp/krb5cc_1"),
    ],
)
def test_a_connection_without_a_keytab_of_this_principal_is_refused(watcher: Identity) -> None:
    cluster = replace(CLUSTER, watcher=watcher)
    assert keytab_of(SPEC, cluster) is None
    with pytest.raises(InvalidInput, match=r"streamer@EXAMPLE\.COM needs a keytab; the connection has none of it"):
        identity_of(SPEC, cluster)
    with pytest.raises(InvalidInput, match="needs a keytab"):
        stream_submission(SubmissionOrder(cluster, SPEC, 1, "nonce"), SparkDefaults(), HELPERS)


def test_a_new_keytab_in_the_connection_is_a_rotation() -> None:
    """Its horizon is that of a rotated file: the running job has a copy of the old key."""
    old, new = (keytab_bytes(Key(kvno=kvno)) for kvno in (3, 4))
    principal = "streamer@KSTREAM.TEST"
    spec = replace(SPEC, credentials=KeytabCredentials(principal))
    fields = [replace(FIELDS, principal=principal, keytab=base64.b64encode(keytab).decode()) for keytab in (old, new)]
    with cluster_of("prod", fields[0]) as before, cluster_of("prod", fields[1]) as after:
        submitted = changed(claim_of(spec, 1, START), key=KeyVersion(3, "old"))
        seen = [key_at_hand(spec, submitted, cluster) for cluster in (before, after)]
    assert [key.kvno if key else None for key in seen] == [3, 4]
