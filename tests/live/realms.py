"""A KDC without a cluster: as it should be, with a wrong clock, away, and silent."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Event, Thread
from unittest import mock

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


class SilentKdc(ThreadingTCPServer):
    """A KDC that takes every request and answers none. libkrb5 waits for 25 s, or until it has hung up on all."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Unanswered)
        self.port = self.server_address[1]
        self.asked: list[bytes] = []
        self.hung_up = Event()


class _Unanswered(BaseRequestHandler):
    server: SilentKdc

    def handle(self) -> None:
        self.server.asked.append(self.request.recv(1 << 16))
        self.server.hung_up.wait(60)


@contextmanager
def realm(folder: Path) -> Iterator[Kdc]:
    """Run a realm; a process uses it if its KRB5_CONFIG names the realm's `krb5_conf`."""
    plan = MiniclusterConfig(folder)
    folders = Folders(plan.root)
    folders.create()
    kdc = Kdc(plan, folders, free_ports(["kdc"])["kdc"])
    kdc.create()
    with serving(kdc.command(), kdc.environment(), kdc.port):
        yield kdc


@contextmanager
def shifted(kdc: Kdc, seconds: int, folder: Path) -> Iterator[None]:
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
    environment |= {variable: str(_elsewhere(kdc, file, port, folder)) for variable, file in files.items()}
    with using(environment["KRB5_CONFIG"]), serving(kdc.command(), environment, port):
        yield


@contextmanager
def without_kdc(kdc: Kdc, folder: Path) -> Iterator[None]:
    """Make this process look for the realm's KDC where nothing listens."""
    with using(str(_elsewhere(kdc, kdc.folders.krb5_conf, 1, folder))):
        yield


@contextmanager
def silent_realm(kdc: Kdc, name: str, folder: Path) -> Iterator[SilentKdc]:
    """Make this process know another realm beside the one that responds, with a silent KDC."""
    with SilentKdc() as silent:
        conf = folder / "silent.conf"
        conf.write_text(f"[realms]\n  {name} = {{\n    kdc = 127.0.0.1:{silent.port}\n  }}\n")
        serving = Thread(target=silent.serve_forever, args=(0.05,))
        serving.start()
        try:
            with using(f"{kdc.folders.krb5_conf}:{conf}"):
                yield silent
        finally:
            silent.hung_up.set()
            silent.shutdown()
            serving.join()


def using(krb5_conf: str) -> AbstractContextManager[object]:
    """Make libkrb5 in this process, and in programs that it starts, read this file."""
    return mock.patch.dict(os.environ, KRB5_CONFIG=krb5_conf)


def _elsewhere(kdc: Kdc, file: Path, port: int, folder: Path) -> Path:
    """Copy a file of the KDC's configuration, in which it has another port."""
    copy = folder / file.name
    copy.write_text(file.read_text().replace(f"127.0.0.1:{kdc.port}", f"127.0.0.1:{port}"))
    return copy


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
