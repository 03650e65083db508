"""A KDC without a cluster, and one whose clock is wrong."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from airflow_kstream.minicluster.config import MiniclusterConfig
from airflow_kstream.minicluster.folders import Folders
from airflow_kstream.minicluster.kdc import Kdc
from airflow_kstream.minicluster.ports import free_ports
from tests.live.streams import await_that

_SHIFTED = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long shift(void) { return atol(getenv("KSTREAM_CLOCK_SHIFT")); }
time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return out ? (*out = now.tv_sec) : now.tv_sec;
}
int gettimeofday(struct timeval *now, void *zone) {
    int (*real)(struct timeval *, void *) = dlsym(RTLD_NEXT, "gettimeofday");
    int failed = real(now, zone);
    now->tv_sec += shift();
    return failed;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);
    if (clock == CLOCK_REALTIME) now->tv_sec += shift();
    return failed;
}
"""


@contextmanager
def realm(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kdc]:
    """Run a realm of its own that this process uses."""
    plan = MiniclusterConfig(folder)
    folders = Folders(plan.root)
    folders.create()
    kdc = Kdc(plan, folders, free_ports(["kdc"])["kdc"])
    kdc.create()
    monkeypatch.setenv("KRB5_CONFIG", str(folders.krb5_conf))
    with serving(kdc.command(), kdc.environment(), kdc.port):
        yield kdc


@contextmanager
def shifted(kdc: Kdc, seconds: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make this process use another KDC on the realm's database, whose clock is ahead by `seconds`."""
    library = folder / "shifted.so"
    source = folder / "shifted.c"
    source.write_text(_SHIFTED)
    try:
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    except FileNotFoundError:
        pytest.fail("gcc is needed to shift a KDC's clock: apt-get install gcc libc6-dev")
    port = free_ports(["kdc"])["kdc"]
    files = {"KRB5_CONFIG": kdc.folders.krb5_conf, "KRB5_KDC_PROFILE": kdc.folders.kdc / "kdc.conf"}
    environment = {**kdc.environment(), "LD_PRELOAD": str(library), "KSTREAM_CLOCK_SHIFT": str(seconds)}
    for variable, file in files.items():
        copy = folder / file.name
        copy.write_text(file.read_text().replace(f"127.0.0.1:{kdc.port}", f"127.0.0.1:{port}"))
        environment[variable] = str(copy)
    monkeypatch.setenv("KRB5_CONFIG", environment["KRB5_CONFIG"])
    with serving(kdc.command(), environment, port):
        yield


@contextmanager
def serving(command: list[str], environment: Mapping[str, str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, env=dict(environment), cwd="/", stdout=subprocess.DEVNULL)
    try:
        await_that(lambda: _listens(port), "the KDC listens")
        yield process
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
