"""What krb5.conf says in [libdefaults], as libkrb5's profile library reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_kstream.clients.kerberos.krb5_conf import libdefaults
from airflow_kstream.model.errors import InvalidInput

CONF = """
# A comment
[libdefaults]
  default_realm = EXAMPLE.COM
  dns_canonicalize_hostname=false
  clockskew = 120
  clockskew = 300
  EXAMPLE.COM = {
    clockskew = 1
  }
[realms]
  EXAMPLE.COM = {
    kdc = kdc.example.com
  }
  forwardable = true
"""


def test_the_first_of_several_values_counts_and_those_in_braces_are_others(tmp_path: Path) -> None:
    (file := tmp_path / "krb5.conf").write_text(CONF)
    assert libdefaults(str(file)) == {
        "default_realm": "EXAMPLE.COM",
        "dns_canonicalize_hostname": "false",
        "clockskew": "120",
    }


def test_included_files_and_folders_are_read_where_they_stand(tmp_path: Path) -> None:
    (folder := tmp_path / "krb5.conf.d").mkdir()
    (folder / "crypto-policies").write_text("[libdefaults]\nrdns = false\n")
    (folder / "ours.conf").write_text("[libdefaults]\nrdns = true\nclockskew = 60\n")
    (folder / "ours.conf.rpmsave").write_text("[libdefaults]\nforwardable = true\n")
    (file := tmp_path / "krb5.conf").write_text(f"includedir {folder}\n{CONF}")
    read = libdefaults(str(file))
    assert (read["rdns"], read["clockskew"], "forwardable" in read) == ("false", "60", False)


def test_a_file_that_can_t_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="can't be read"):
        libdefaults(str(tmp_path / "none"))
