"""The folders and files of a minicluster."""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from airflow_kstream.model.errors import MiniclusterError


@dataclass(frozen=True)
class Folders:
    """The paths below `root`; `run` and `containers` are the working folders of the minicluster's processes."""

    root: Path

    @property
    def record(self) -> Path:
        return self.root / "minicluster.json"

    @property
    def krb5_conf(self) -> Path:
        return self.root / "krb5.conf"

    @property
    def kdc(self) -> Path:
        return self.root / "kdc"

    @property
    def keytabs(self) -> Path:
        return self.root / "keytabs"

    @property
    def service_keytab(self) -> Path:
        return self.kdc / "services.keytab"

    @property
    def http_secret(self) -> Path:
        return self.kdc / "http-secret"

    @property
    def tickets(self) -> Path:
        return self.root / "tickets"

    @property
    def homes(self) -> Path:
        return self.root / "homes"

    @property
    def client_conf(self) -> Path:
        return self.root / "conf"

    @property
    def daemon_conf(self) -> Path:
        return self.root / "conf-daemons"

    @property
    def tls(self) -> Path:
        return self.root / "tls"

    @property
    def ca(self) -> Path:
        return self.tls / "ca.pem"

    @property
    def truststore(self) -> Path:
        return self.tls / "ca.p12"

    @property
    def keystore(self) -> Path:
        return self.tls / "localhost.p12"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    @property
    def hadoop_classes(self) -> Path:
        return self.root / "classes/hadoop"

    @property
    def kafka_classes(self) -> Path:
        return self.root / "classes/kafka"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def temporary(self) -> Path:
        """Return what Java's programs take for /tmp: Jetty unpacks web applications there, and a kill leaves them."""
        return self.root / "tmp"

    @property
    def data(self) -> Path:
        return self.root / "data"

    def blocks(self, datanode: str) -> Path:
        """Return where a DataNode keeps its replicas."""
        return self.data / datanode

    @property
    def containers(self) -> Path:
        return self.data / "containers"

    @property
    def _private(self) -> tuple[Path, ...]:
        return (self.kdc, self.keytabs, self.tickets, self.homes)

    @property
    def _shared(self) -> tuple[Path, ...]:
        classes = (self.hadoop_classes, self.kafka_classes)
        return (self.client_conf, self.daemon_conf, self.tls, self.logs, self.run, self.data, self.temporary, *classes)

    def make_private(self) -> bool:
        """Make the root if it is missing, and close it to other users: YARN's store in it holds keys and tokens.

        Returns True if it was open. Raises MiniclusterError: when it is another user's, or holds other things.
        """
        return made_private(self.root, ours=self.record.exists())

    def create(self) -> None:
        """Create the folders empty; those with keys and tickets are closed to other users."""
        for folder in (*self._private, *self._shared):
            shutil.rmtree(folder, ignore_errors=True)
        for folder in self._shared:
            folder.mkdir(parents=True)
        for folder in self._private:
            folder.mkdir(mode=0o700)


def made_private(folder: Path, *, ours: bool) -> bool:
    """Make a folder if it is missing, and close it to other users. `ours` is whether what it holds is of this program.

    Returns True if it was open. Raises MiniclusterError: when it is another user's, or is open and holds other things.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.getuid():
        raise MiniclusterError(f"{folder} belongs to another user: choose a folder of your own")
    was_open = bool(stat.S_IMODE(found.st_mode) & 0o077)
    if was_open and any(folder.iterdir()) and not ours:
        raise MiniclusterError(f"{folder} is open to other users and holds other things: choose an empty folder")
    if was_open:
        folder.chmod(0o700)
    return was_open
