"""A stream that runs as a user of its own, `etl`, beside the connection's principal, which is a supervisor."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.plan import Report
from airflow_kstream.model.streams.stream import StreamSpec, TicketCredentials
from airflow_kstream.policy.streams.horizon.rotation import identity_of
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from airflow_kstream.supervise.streams.look.verdict import Verdict
from airflow_kstream.supervise.streams.look.watch import Watch
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER, SimHdfs, SimYarn, session_of


def spec_of_user(user: str) -> StreamSpec:
    """Return the stream's declaration as this user; that of the connection's principal names nobody."""
    mine = user == CLUSTER.watcher.principal.partition("@")[0]
    return SPEC if mine else replace(SPEC, credentials=TicketCredentials(f"{user}@EXAMPLE.COM", f"/{user}.keytab"))


class Tenant:
    """The stream, and who looks at it or acts on it: each in a session of its own, which knows nothing of others.

    HDFS and YARN give each the first part of its principal as its name, unless `hdfs_names` and `yarn_names` tell
    another: rules of auth_to_local map at every real site.
    """

    def __init__(self, life: Life, user: str = "etl") -> None:
        self.life, self.hdfs, self.yarn = life, life.hdfs, life.yarn
        self.spec = spec_of_user(user)
        self.stream = life.run.id
        self.lines: list[str] = []
        self.hdfs_names: dict[str, str] = {}
        self.yarn_names: dict[str, str] = {}

    def session(self, identity: Identity) -> ClusterSession:
        user = identity.do_as or identity.principal.partition("@")[0]
        there, here = self.hdfs_names.get(user, user), self.yarn_names.get(user, user)
        hdfs = replace(self.hdfs, whoami=there, at_request=lambda request, path: self.hdfs.at_request(request, path))
        return replace(session_of(hdfs, replace(self.yarn, whoami=here)), identity=identity)

    def acting(self, spec: StreamSpec | None = None) -> StreamRun:
        """Return the stream in the hands of its own user."""
        spec = spec or self.spec
        session = self.session(identity_of(spec, CLUSTER))
        hdfs, yarn = cast(SimHdfs, session.hdfs), cast(SimYarn, session.yarn)
        return StreamRun(session, spec, replace(self.life.engine, hdfs=hdfs, yarn=yarn))

    def looking(self, user: str = "streamer") -> StreamFolder:
        """Return its folder before the eyes of another user, by default the connection's principal."""
        mine = user == "streamer"
        return StreamFolder(self.session(CLUSTER.watcher if mine else Identity(f"{user}@EXAMPLE.COM")), self.stream)

    def watched(self, user: str = "streamer") -> Verdict:
        """Look at it as a triggerer does that logs in as this user."""
        session = self.looking(user).session
        return Watch(session, lambda spec: self.life.engine, again=True).round([self.stream.name])[self.stream.name]

    def reconcile(self, spec: StreamSpec | None = None, mode: Mode = Mode.ENSURE) -> Report:
        return Reconciler(self.acting(spec), tell=self.lines.append).run(mode)

    @property
    def copies(self) -> list[str]:
        """Return the paths of all copies of its declaration, and of their drafts."""
        folder = f"/{self.stream}/"
        return sorted(path for path in self.hdfs.files if f"{CLUSTER.state_dir}/declared." in path and folder in path)
