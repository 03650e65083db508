"""The realms that this process knows, and the krb5.conf that a child process gets."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock

_KRB5_CONFIG = "KRB5_CONFIG"
_SYSTEM = "/etc/krb5.conf"
_AMBIENT = os.environ.get(_KRB5_CONFIG)
_LOCK = Lock()


def know_realms_of(krb5_conf: str | None) -> None:
    """Add the realms of this krb5.conf to those that libkrb5 knows in this process; None adds nothing.

    libkrb5 takes a list of files from the environment and merges them: realms and hosts of several clusters live side
    by side. If two files contradict each other, the first counts: the one needed most recently.
    """
    if krb5_conf is None:
        return
    with _LOCK:
        known = os.environ.get(_KRB5_CONFIG, _SYSTEM if Path(_SYSTEM).exists() else "").split(":")
        others = [file for file in known if file and file != krb5_conf]
        os.environ[_KRB5_CONFIG] = ":".join([krb5_conf, *others])


def krb5_conf_of_a_child(krb5_conf: str | None) -> str | None:
    """Return one file, as Java merges none: the cluster's own, else this process's first; None: the system's."""
    return krb5_conf or _AMBIENT
