"""The wire format against the protobuf runtime itself, and servers that are no NameNodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.rpc.sasl import Protection, protections
from airflow_kstream.model.errors import InvalidInput, Unavailable
from airflow_kstream.model.formats.protobuf import (
    Malformed,
    Message,
    encode,
    varint,
)
from tests.simulated.hadoop_rpc import Every, namenode, server_that_says


def test_the_protobuf_runtime_sends_no_name_that_is_no_unicode() -> None:
    """HDFS allows such names, which is why this package reads the wire format itself."""
    assert Every.FromString(encode({5: b"\xff"})).text == b"\xff"
    for name in (b"\xff", "\udcff"):
        with pytest.raises(UnicodeError):
            Every(text=name)


def test_a_number_that_never_ends_is_refused_by_its_place() -> None:
    with pytest.raises(Malformed, match=r"byte 1: .* more than 10 bytes"):
        Message(varint(1 << 3) + b"\xff" * 20)


def test_a_web_server_is_recognized_as_no_namenode() -> None:
    with (
        server_that_says(b"HTTP/1.1 400 Bad Request\r\n\r\n") as web,
        pytest.raises(Unavailable, match=rf"{web}: the server does not speak Hadoop RPC"),
    ):
        namenode(web).closed(["/file"])


def test_a_server_that_never_answers_is_given_up_and_the_next_one_asked() -> None:
    with (
        server_that_says(b"", and_hangs=True) as mute,
        pytest.raises(Unavailable, match=rf"{mute}: it does not answer in time; 127.0.0.1:1: Connection refused"),
    ):
        namenode(mute, "127.0.0.1:1", seconds=0.3).closed(["/file"])


def test_the_protections_are_those_of_hadoop_in_the_order_of_preference() -> None:
    assert protections("privacy, integrity") == (Protection.PRIVACY, Protection.INTEGRITY)
    with pytest.raises(InvalidInput, match="authentication, integrity, privacy"):
        protections("strong")


@pytest.mark.parametrize("address", ["namenode", "namenode:", "hdfs://namenode:8020/"])
def test_an_address_without_a_port_is_refused_before_anything_is_asked(address: str) -> None:
    with pytest.raises(InvalidInput, match="host:port"):
        namenode(address)


@pytest.mark.parametrize("path", ["relative", "", "/half \ud83d of a character"])
def test_a_path_that_the_namenode_could_not_take_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput, match="path"):
        namenode("127.0.0.1:1").closed([path])


def conf(folder: Path, **properties: str) -> HadoopConf:
    rows = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in properties.items())
    (folder / "core-site.xml").write_text(f"<configuration>{''.join(rows)}</configuration>")
    return HadoopConf(str(folder))


def test_the_rpc_addresses_are_those_of_the_default_filesystem(tmp_path: Path) -> None:
    rpc = "dfs.namenode.rpc-address"
    both = {f"{rpc}.ns.a": "one:8020", f"{rpc}.ns.b": "two:9000", f"{rpc}.other.a": "three:8020"}
    pair = {"fs.defaultFS": "hdfs://ns", "dfs.ha.namenodes.ns": "a, b", "dfs.ha.namenodes.other": "a"}
    assert conf(tmp_path, **pair, **both).namenode_rpcs() == ("one:8020", "two:9000")
    assert conf(tmp_path, **{"fs.defaultFS": "hdfs://ns", f"{rpc}.ns": "one:1"}).namenode_rpcs() == ("one:1",)
    assert conf(tmp_path, **{"fs.defaultFS": "hdfs://one:9000/"}).namenode_rpcs() == ("one:9000",)
    assert conf(tmp_path, **{"fs.defaultFS": "hdfs://one"}).namenode_rpcs() == ("one:8020",)
    with pytest.raises(InvalidInput, match="viewfs://all"):
        conf(tmp_path, **{"fs.defaultFS": "viewfs://all"}).namenode_rpcs()
