"""Files that a connection or a keytab's path names: if missing or no file, they are refused by name at once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from airflow_kstream.clients.kerberos import keytabs, tickets
from airflow_kstream.model.errors import CredentialError, InvalidInput
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.supervise.clusters.connection import cluster_of, connection_fields
from tests.unit.inputs.bad_clusters import GOOD


def opened(**change: Any) -> None:
    with cluster_of("prod", connection_fields("prod", GOOD | change)):
        pass


@pytest.mark.parametrize("field", ["krb5_conf", "tls_ca", "hadoop_conf_dir"])
def test_a_file_of_a_connection_that_is_not_there_is_named(field: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"connection prod: .*/missing (can't be read|is not a folder)"):
        opened(**{field: str(tmp_path / "missing")})


@pytest.mark.parametrize("field", ["krb5_conf", "tls_ca", "hadoop_conf_dir"])
def test_a_pipe_in_place_of_a_connections_file_is_not_waited_for(field: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match=r"/pipe is not a (regular file|folder)"):
        opened(**{field: str(tmp_path / "pipe")})


def test_a_folder_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"can't be read: Is a directory|not a regular file"):
        opened(tls_ca=str(tmp_path))


@pytest.mark.parametrize("path", ["pipe", "folder", "missing", "loop"])
def test_a_keytab_that_is_no_file_is_a_credential_error_at_once(path: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    keytab = str(tmp_path / path)
    with pytest.raises(CredentialError, match=path):
        keytabs.read(keytab)
    with pytest.raises(CredentialError, match=path):
        tickets.log_in(Identity("a@R", keytab=keytab), tmp_path / "tickets")
