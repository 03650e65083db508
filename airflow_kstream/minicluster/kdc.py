"""The minicluster's own MIT KDC: realm, database, keys and tickets. The system's Kerberos is left untouched."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from airflow_kstream.minicluster.config import MiniclusterConfig
from airflow_kstream.minicluster.folders import Folders
from airflow_kstream.minicluster.tools import tool
from airflow_kstream.model.errors import MiniclusterError

SERVICES = tuple(f"{service}/localhost" for service in ("nn", "dn", "jn", "rm", "nm", "kafka", "httpfs", "HTTP"))
USERS = ("hdfs", "supervisor", "streamer", "streamer/edge.kstream.test", "gateway", "watcher")

# Canonical names come from DNS by default, which a loopback cluster must not use. Since localhost belongs to no realm,
# a client asks the KDC of its own: so one process can use two miniclusters.
_KRB5_CONF = """\
[libdefaults]
  default_realm = {realm}
  dns_lookup_realm = false
  dns_lookup_kdc = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
  forwardable = true
  ticket_lifetime = {ticket_lifetime}
  renew_lifetime = {ticket_renew}
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
[domain_realm]
  .kstream.test = {realm}
"""
_KDC_CONF = """\
[kdcdefaults]
  kdc_listen = ""
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {realm} = {{
    database_name = {folder}/principal
    key_stash_file = {folder}/stash
    acl_file = {folder}/kadm5.acl
    kdc_listen = ""
    kdc_tcp_listen = 127.0.0.1:{port}
    max_life = {ticket_lifetime}
    max_renewable_life = {ticket_renew}
    supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
  }}
[logging]
  kdc = FILE:{log}
  admin_server = FILE:{log}
  default = FILE:{log}
"""


@dataclass(frozen=True)
class Kdc:
    plan: MiniclusterConfig
    folders: Folders
    port: int

    def environment(self) -> dict[str, str]:
        """Return the environment of the KDC's own programs."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "KRB5_CONFIG": str(self.folders.krb5_conf),
            "KRB5_KDC_PROFILE": str(self.folders.kdc / "kdc.conf"),
        }

    def command(self) -> list[str]:
        return [tool("krb5kdc"), "-n", "-r", self.plan.realm]

    def create(self) -> None:
        """Create the realm's database, with the principals and keytabs of services and users."""
        self._write_configuration()
        password = secrets.token_urlsafe(24)
        self._run([tool("kdb5_util"), "create", "-s", "-r", self.plan.realm], f"{password}\n{password}\n")
        services = [f"ktadd -norandkey -k {self.folders.service_keytab} {name}" for name in SERVICES]
        self.administer([*_additions((*SERVICES, *USERS)), *services, *self._keytab_lines(USERS)])
        self._require_keytabs(USERS)

    def add(self, *names: str) -> None:
        """Add principals, each with a random key and a keytab. Raises MiniclusterError: when the KDC refuses one."""
        self.administer([*_additions(names), *self._keytab_lines(names)])
        self._require_keytabs(names)

    def rotate(self, name: str) -> None:
        """Give the principal a new key; its keytab holds only that one. Tickets stay valid until they expire."""
        successor = self.keytab(name).with_suffix(".next")
        self.administer([f"ktadd -k {successor} {name}"])
        successor.replace(self.keytab(name))

    def change_key(self, name: str, *options: str) -> None:
        """Change the key in the KDC only: the keytab stays behind, as after an unannounced rotation.

        `options` are those of kadmin's `cpw`: -keepold, -e aes128-cts-hmac-sha1-96:normal ...
        """
        self.administer([f"cpw -randkey {' '.join(options)} {name}"])

    def export(self, name: str) -> None:
        """Replace the principal's keytab, atomically, with one that holds only its present key."""
        successor = self.keytab(name).with_suffix(".next")
        self.administer([f"ktadd -norandkey -k {successor} {name}"])
        successor.replace(self.keytab(name))

    def keytab(self, name: str) -> Path:
        return self.folders.keytabs / f"{name.replace('/', '_')}.keytab"

    def principal(self, name: str) -> str:
        return f"{name}@{self.plan.realm}"

    def ticket(self, name: str) -> Path:
        """Return a new ticket cache with a fresh ticket, mode 0600."""
        cache = self.folders.tickets / f"{name.replace('/', '_')}-{secrets.token_hex(6)}"
        environment = {**self.environment(), "KRB5CCNAME": f"FILE:{cache}"}
        command = [tool("kinit"), "-k", "-t", str(self.keytab(name)), self.principal(name)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise MiniclusterError(f"kinit as {self.principal(name)}: {done.stderr.strip()}")
        return cache

    def limit_life(self, name: str, life: timedelta, renewable: timedelta | None = None) -> None:
        """Limit the life of the principal's future tickets; `renewable` is how long renewals can extend them."""
        options = f'-maxlife "{life.total_seconds():.0f} seconds"'
        if renewable is not None:
            options += f' -maxrenewlife "{renewable.total_seconds():.0f} seconds"'
        self.administer([f"modprinc {options} {name}"])

    def _write_configuration(self) -> None:
        values = {
            "realm": self.plan.realm,
            "port": self.port,
            "folder": self.folders.kdc,
            "log": self.folders.log("kdc"),
            "ticket_lifetime": f"{self.plan.ticket_lifetime.total_seconds():.0f}s",
            "ticket_renew": f"{self.plan.ticket_renew.total_seconds():.0f}s",
        }
        self.folders.krb5_conf.write_text(_KRB5_CONF.format(**values))
        (self.folders.kdc / "kdc.conf").write_text(_KDC_CONF.format(**values))

    def _keytab_lines(self, names: Iterable[str]) -> list[str]:
        return [f"ktadd -norandkey -k {self.keytab(name)} {name}" for name in names]

    def administer(self, lines: Iterable[str]) -> None:
        """Give kadmin these commands. One that fails raises nothing: kadmin.local exits with 0 all the same."""
        self._run([tool("kadmin.local"), "-r", self.plan.realm], "\n".join(lines) + "\n")

    def _run(self, command: list[str], text: str) -> None:
        done = subprocess.run(
            command, input=text, env=self.environment(), umask=0o077, capture_output=True, text=True, cwd="/"
        )
        if done.returncode:
            raise MiniclusterError(f"{Path(command[0]).name}: {done.stderr.strip().splitlines()[-1]}")

    def _require_keytabs(self, names: Iterable[str]) -> None:
        # kadmin.local exits with 0 even if the commands on its standard input failed.
        missing = [name for name in names if not self.keytab(name).exists()]
        if missing:
            raise MiniclusterError(f"kadmin.local made no keytab for {', '.join(missing)}")


def _additions(names: Iterable[str]) -> list[str]:
    return [f"addprinc -randkey {name}" for name in names]
