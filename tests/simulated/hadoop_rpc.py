"""The protobuf runtime as an oracle of the wire format, and servers that are no NameNodes."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]

from airflow_kstream.clients.hdfs.namenode import NameNodeRpc
from airflow_kstream.model.kerberos.identity import Identity

NOBODY = Identity("nobody@NOWHERE.TEST", keytab="/nonexistent")


def _oracle() -> Any:
    """Return a message class of the protobuf runtime, with a field of each type that Hadoop's messages have."""
    field = descriptor_pb2.FieldDescriptorProto
    types = {
        "unsigned": field.TYPE_UINT64,
        "signed": field.TYPE_INT64,
        "zigzag": field.TYPE_SINT32,
        "flag": field.TYPE_BOOL,
        "text": field.TYPE_STRING,
        "data": field.TYPE_BYTES,
        "children": field.TYPE_MESSAGE,
        "fixed": field.TYPE_FIXED32,
        "double": field.TYPE_DOUBLE,
    }
    file = descriptor_pb2.FileDescriptorProto(name="oracle.proto", package="oracle")
    message = file.message_type.add(name="Every")
    for number, (name, kind) in enumerate(types.items(), 1):
        label = field.LABEL_REPEATED if name == "children" else field.LABEL_OPTIONAL
        message.field.add(
            name=name,
            number=number,
            type=kind,
            label=label,
            type_name=".oracle.Every" if name == "children" else None,
        )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("oracle.Every"))


Every = _oracle()


@contextmanager
def server_that_says(answer: bytes, *, and_hangs: bool = False) -> Iterator[str]:
    """Run a server that answers every connection with these bytes, and return its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        held: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    connected, _ = listening.accept()
                except OSError:
                    return
                connected.sendall(answer)
                if and_hangs:
                    held.append(connected)
                else:
                    connected.shutdown(socket.SHUT_WR)
                    held.append(connected)

        thread = Thread(target=serve)
        thread.start()
        try:
            yield "{}:{}".format(*listening.getsockname())
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connected in held:
                connected.close()


def namenode(*addresses: str, seconds: float = 30) -> NameNodeRpc:
    return NameNodeRpc(addresses, "nn/_HOST@NOWHERE.TEST", NOBODY, seconds=(seconds, seconds))
