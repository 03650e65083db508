"""WebHDFS as NameNodes, a DataNode and HttpFS speak it (NamenodeWebHdfsMethods, DatanodeWebHdfsMethods, HttpFSServer).

To add an operation, write a method of `_Operations` and name it in OPERATIONS, with the parameters that it may get.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_kstream.model.kerberos.tokens import DelegationToken
from tests.simulated.hadoop_writers import Written, url_string, writable
from tests.simulation.files import Entry, Files, Refused
from tests.simulation.virtual import EPOCH
from tests.simulation.wire import Reply, Request
from tests.simulation.yarn import dated

PREFIX = "/webhdfs/v1"
DATANODE = "http://dn1:9864"
_STATUS = {
    "FileNotFoundException": 404,
    "IllegalArgumentException": 400,
    "UnsupportedOperationException": 400,
    "RetriableException": 500,
}


@dataclass
class Namespace:
    """What both NameNodes share: the files, and how long tokens live."""

    now: Callable[[], float]
    files: Files = field(default_factory=Files)
    renew_interval: timedelta = timedelta(days=1)
    max_lifetime: timedelta = timedelta(days=7)
    active: NameNode | None = None

    def stamp(self) -> int:
        """Return the active NameNode's time in milliseconds: what it writes as modification time."""
        return int((EPOCH + self.now() + (self.active.skew if self.active else 0.0)) * 1000)

    @property
    def served(self) -> bool:
        """Tell whether a client that fails over and waits, as a driver's, reaches it now."""
        return self.active is not None and not self.active.down and self.active.frozen_until <= self.now()


@dataclass
class NameNode:
    """One of a pair. Each has a clock of its own, `skew` seconds ahead."""

    address: str
    namespace: Namespace
    skew: float = 0.0
    down: bool = False
    frozen_until: float = 0.0

    def answer(self, request: Request) -> Reply:
        if self.namespace.active is not self:
            reply = _refused("StandbyException", "Operation category READ is not supported in state standby")
        else:
            reply = _carried_out(_Operations(self.namespace, request), request)
        return dated(reply, self.namespace.now() + self.skew)


@dataclass
class DataNode:
    """The only DataNode. Its NameNode client fails over by itself, as long as one is active."""

    namespace: Namespace
    down: bool = False
    frozen_until: float = 0.0

    def answer(self, request: Request) -> Reply:
        if not self.namespace.served:
            return _refused("RetriableException", "no NameNode is active")
        operations = _Operations(self.namespace, request, redirects=False)
        return dated(_carried_out(operations, request), self.namespace.now())


@dataclass
class HttpFs:
    """HttpFS: the same operations behind one address, except that RENAME knows no options (FSOperations.FSRename)."""

    address: str
    namespace: Namespace
    skew: float = 0.0
    down: bool = False
    frozen_until: float = 0.0

    def answer(self, request: Request) -> Reply:
        if not self.namespace.served:
            return _refused("RetriableException", "no NameNode is active")
        if request.params.get("op") == "RENAME":
            reply = self._rename(request)
        elif request.params.get("op") == "CREATE" and "data" not in request.params:
            query = "&".join(f"{key}={value}" for key, value in {**request.params, "data": "true"}.items())
            reply = Reply(307, headers={"Location": f"{self.address}{request.path}?{query}"})
        else:
            reply = _carried_out(_Operations(self.namespace, request, redirects=False), request)
        return dated(reply, self.namespace.now() + self.skew)

    def _rename(self, request: Request) -> Reply:
        source, target = request.path.removeprefix(PREFIX), request.params["destination"]
        done = self.namespace.files.rename_as_once(source, target, self.namespace.stamp())
        return Reply(200, {"boolean": done})


@dataclass
class _Operations:
    """One request on the namespace."""

    namespace: Namespace
    request: Request
    redirects: bool = True

    @property
    def path(self) -> str:
        return self.request.path.removeprefix(PREFIX) or "/"

    @property
    def files(self) -> Files:
        return self.namespace.files

    def status(self) -> Reply:
        return Reply(200, {"FileStatus": _status("", self.files.get(self.path))})

    def right(self) -> Reply:
        """Everybody may do everything; a missing path is missing. The answer has no body (NamenodeWebHdfsMethods)."""
        self.files.get(self.path)
        return Reply(200)

    def listing(self) -> Reply:
        entry = self.files.get(self.path)
        children = {"": entry} if entry.children is None else entry.children
        after = self.request.params.get("startAfter", "")
        # The NameNode sorts by bytes.
        names = sorted((name for name in children if not after or name.encode() > after.encode()), key=str.encode)
        listed = [_status(name, children[name]) for name in names]
        page = {"partialListing": {"FileStatuses": {"FileStatus": listed}}, "remainingEntries": 0}
        return Reply(200, {"DirectoryListing": page})

    def home(self) -> Reply:
        return Reply(200, {"Path": "/user/streamer"})

    def content(self) -> Reply:
        entry = self.files.get(self.path)
        if entry.children is not None:
            raise Refused("FileNotFoundException", f"Path is not a file: {self.path}")
        return self._redirect() if self.redirects else Reply(200, entry.content)

    def create(self) -> Reply:
        params = self.request.params
        overwrite = params.get("overwrite", "true").lower() == "true"
        if self.redirects:
            return self._redirect()
        permission = params.get("permission", "644")
        self.files.write(
            self.path, self.request.body, self.namespace.stamp(), overwrite=overwrite, permission=permission
        )
        return Reply(201)

    def make_folder(self) -> Reply:
        self.files.make_folder(self.path, self.namespace.stamp(), self.request.params.get("permission", "755"))
        return Reply(200, {"boolean": True})

    def set_permission(self) -> Reply:
        self.files.get(self.path).permission = self.request.params["permission"]
        return Reply(200)

    def rename(self) -> Reply:
        target, options = self.request.params["destination"], self.request.params.get("renameoptions")
        stamp = self.namespace.stamp()
        if options is None:
            return Reply(200, {"boolean": self.files.rename_as_once(self.path, target, stamp)})
        if options not in {"NONE", "OVERWRITE"}:
            raise Refused("IllegalArgumentException", f"No enum constant Options.Rename.{options}")
        self.files.rename(self.path, target, stamp, overwrite=options == "OVERWRITE")
        return Reply(200)

    def delete(self) -> Reply:
        entry = self.files.find(self.path)
        if entry and entry.children and self.request.params.get("recursive", "false").lower() != "true":
            raise Refused("PathIsNotEmptyDirectoryException", f"{self.path} is non empty")
        return Reply(200, {"boolean": self.files.delete(self.path, self.namespace.stamp())})

    def new_token(self) -> Reply:
        issued = datetime.fromtimestamp(self.namespace.stamp() // 1000, UTC)
        ends = issued + self.namespace.max_lifetime
        renewer = self.request.params.get("renewer", "")
        token = writable(DelegationToken("streamer", renewer, "", issued, ends, 1, 1))
        text = url_string(Written("", "HDFS_DELEGATION_TOKEN", "nn:8020", token, b"password"))
        return Reply(200, {"Token": {"urlString": text}})

    def renew_token(self) -> Reply:
        return Reply(200, {"long": self.namespace.stamp() + int(self.namespace.renew_interval.total_seconds() * 1000)})

    def cancel_token(self) -> Reply:
        return Reply(200)

    def _redirect(self) -> Reply:
        query = "&".join(f"{key}={value}" for key, value in self.request.params.items())
        return Reply(307, headers={"Location": f"{DATANODE}{self.request.path}?{query}&namenoderpcaddress=simulated"})


@dataclass(frozen=True)
class Operation:
    """An operation: its HTTP method, what carries it out, and the parameters that it may get."""

    method: str
    carry_out: Callable[[_Operations], Reply]
    parameters: tuple[str, ...] = ()


_EVERYWHERE = ("op", "doas", "user.name", "namenoderpcaddress", "data")
OPERATIONS: Mapping[str, Operation] = {
    "GETFILESTATUS": Operation("GET", _Operations.status),
    # Each folder fits on its page.
    "LISTSTATUS_BATCH": Operation("GET", _Operations.listing, ("startAfter",)),
    "CHECKACCESS": Operation("GET", _Operations.right, ("fsaction",)),
    "GETHOMEDIRECTORY": Operation("GET", _Operations.home),
    "OPEN": Operation("GET", _Operations.content, ("offset", "length", "buffersize")),
    "CREATE": Operation(
        "PUT", _Operations.create, ("overwrite", "permission", "blocksize", "replication", "buffersize")
    ),
    "MKDIRS": Operation("PUT", _Operations.make_folder, ("permission",)),
    "SETPERMISSION": Operation("PUT", _Operations.set_permission, ("permission",)),
    "RENAME": Operation("PUT", _Operations.rename, ("destination", "renameoptions")),
    "DELETE": Operation("DELETE", _Operations.delete, ("recursive",)),
    "GETDELEGATIONTOKEN": Operation("GET", _Operations.new_token, ("renewer", "kind", "service")),
    "RENEWDELEGATIONTOKEN": Operation("PUT", _Operations.renew_token, ("token",)),
    "CANCELDELEGATIONTOKEN": Operation("PUT", _Operations.cancel_token, ("token",)),
}


def _carried_out(operations: _Operations, request: Request) -> Reply:
    operation = OPERATIONS.get(request.params.get("op", ""))
    if operation is None or operation.method != request.method or not request.path.startswith(PREFIX):
        raise request.unknown()
    request.require_known(*_EVERYWHERE, *operation.parameters)
    try:
        return operation.carry_out(operations)
    except Refused as refused:
        return _refused(refused.java, str(refused))


def _refused(java: str, message: str) -> Reply:
    exception = {"exception": java, "javaClassName": f"org.apache.hadoop.{java}", "message": message}
    return Reply(_STATUS.get(java, 403), {"RemoteException": exception})


def _status(name: str, entry: Entry) -> dict[str, Any]:
    return {
        "pathSuffix": name,
        "type": "FILE" if entry.children is None else "DIRECTORY",
        "length": len(entry.content),
        "owner": entry.owner,
        "group": "hadoop",
        "permission": entry.permission,
        "accessTime": 0,
        "modificationTime": entry.modified,
        "blockSize": 134217728,
        "replication": 1,
    }
