"""The ResourceManager's commands over Hadoop's RPC, for clusters whose web servers want no proof of who asks.

Many distributions leave HTTP authentication off when Kerberos is switched on. Such a server answers everybody as its
static user, and refuses all that changes anything (RMWebServices.initForWritableEndpoints). Its RPC speaks Kerberos.
Field numbers are those of applicationclient_protocol.proto, yarn_protos.proto and yarn_service_protos.proto.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.rpc.connection import RemoteError, Terms
from airflow_kstream.clients.rpc.failover import ActiveServer
from airflow_kstream.clients.rpc.java_exceptions import simple_name
from airflow_kstream.clients.rpc.sasl import protections
from airflow_kstream.model.errors import InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.formats.protobuf import Malformed, Message, encode
from airflow_kstream.model.kerberos.identity import Identity

_PROTOCOL = "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB"
_GRACEFUL_SHUTDOWN = 2
# QueueUserACLInfoProto: SUBMIT_APPLICATIONS, ADMINISTER_QUEUE or both; left out where the user has neither.
_ITS_ACLS = 2
_APPLICATION = re.compile(r"application_(\d+)_(\d+)", re.ASCII)
_CONTAINER = re.compile(r"container_(?:e(\d+)_)?(\d+)_(\d+)_(\d+)_(\d+)", re.ASCII)
# ContainerId: the number of restarts of the ResourceManager stands above the container's own.
_EPOCH_BITS = 40
# RPCUtil wraps what the service throws; the class within is the beginning of the message.
_WRAPPED = re.compile(r"([\w.$]+(?:Exception|Error))\b")


class ResourceManagerRpc:
    """The active ResourceManager's RPC as one identity. Not safe for several threads at once.

    Raises InvalidInput: when the conf folder names no address or principal. Raises Unavailable: when none is active.
    Raises CredentialError or Denied: when none lets us in, or refuses. Raises NotFound: when it doesn't know the
    application.

    Example::

        ResourceManagerRpc(HadoopConf("/etc/hadoop/conf"), identity).kill("application_1700000000000_0001", "why")
    """

    def __init__(self, conf: HadoopConf, identity: Identity) -> None:
        principal, wanted = conf.resourcemanager_principal, protections(conf.rpc_protection)
        terms = Terms(_PROTOCOL, principal, wanted, kind="ResourceManager")
        self._server = ActiveServer(conf.resourcemanager_rpcs(), identity, terms)

    @property
    def servers(self) -> str:
        return self._server.servers

    def prove(self) -> None:
        """Make sure that it lets us in, by a request for an application that no cluster has. It changes nothing."""
        try:
            self._call("ask for a report", "getApplicationReport", encode({1: _application("application_1_1")}))
        except NotFound:
            return

    def kill(self, application_id: str, diagnostics: str) -> None:
        """Ask for the application's end. It may come later: the caller confirms it."""
        request = encode({1: _application(application_id), 2: diagnostics})
        self._call(f"kill {application_id}", "forceKillApplication", request)

    def shut_down(self, container_id: str) -> None:
        """Let the container's NodeManager send it SIGTERM."""
        request = encode({1: _container(container_id), 2: _GRACEFUL_SHUTDOWN})
        self._call(f"send SIGTERM to {container_id}", "signalToContainer", request)

    def queue_rights(self) -> Mapping[str, bool]:
        """Return for each queue whether our user may submit to it. Hadoop 3.3 names its path, 3.2 its last word.

        To administer it is enough (RMAppManager). YARN answers so even where its ACLs are switched off.
        """
        tried = "ask which queues take our applications"
        answer = self._call(tried, "getQueueUserAcls", encode({}))
        rights: dict[str, bool] = {}
        try:
            for queue in answer.messages(1):
                name = queue.text(1)
                rights[name] = rights.get(name, False) or _ITS_ACLS in queue
        except Malformed as error:
            raise Unavailable(f"its answer makes no sense ({error})", tried=tried, server=self.servers) from error
        return rights

    def close(self) -> None:
        self._server.close()

    def _call(self, tried: str, method: str, request: bytes) -> Message:
        (answer,) = self._server.call(tried, method, [request])
        if isinstance(answer, RemoteError):
            raise self._refusal(answer, tried)
        return answer

    def _refusal(self, refusal: RemoteError, tried: str) -> KstreamError:
        """Return our error for its exception, or for the one that it wraps."""
        wrapped = _WRAPPED.match(refusal.message)
        if simple_name(refusal.java_class) == "YarnException" and wrapped:
            refusal = RemoteError(simple_name(wrapped[1]), refusal.message)
        return self._server.error(refusal, tried)


def _application(application_id: str) -> bytes:
    parts = _APPLICATION.fullmatch(application_id)
    if parts is None:
        raise InvalidInput(f"{application_id!r} is not an application's id")
    return encode({1: int(parts[2]), 2: int(parts[1])})


def _container(container_id: str) -> bytes:
    parts = _CONTAINER.fullmatch(container_id)
    if parts is None:
        raise InvalidInput(f"{container_id!r} is not a container's id")
    epoch, cluster, application, attempt, number = (int(part or 0) for part in parts.groups())
    of_attempt = encode({1: encode({1: application, 2: cluster}), 2: attempt})
    return encode({2: of_attempt, 3: epoch << _EPOCH_BITS | number})
