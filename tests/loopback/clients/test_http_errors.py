"""Failures below an HTTP request, as our errors: temporary ones are retryable, and our own bugs blame no server."""

from __future__ import annotations

import errno
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
import requests

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.http import http_errors, hushed, keep_tokens_out_of_logs
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import InvalidInput, Unavailable
from airflow_kstream.model.kerberos.identity import Identity

NOBODY = Identity("nobody@NOWHERE.TEST", keytab="/nonexistent")


@contextmanager
def server_that_answers(*, status: int = 200, content: object) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOSPC])
def test_trouble_of_this_host_passes_and_is_no_ca_file(number: int) -> None:
    with pytest.raises(Unavailable, match="this host") as caught, http_errors("ask", "a server", NOBODY):
        raise OSError(number, "Too many of something")
    assert "CA file" not in str(caught.value)


def test_a_ca_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="CA file") as caught, http_errors("ask", "a server", NOBODY):
        requests.get("https://127.0.0.1:1", verify=str(tmp_path / "none.pem"), timeout=5)
    assert "none.pem" in str(caught.value)


def test_a_bug_of_ours_is_not_taken_for_a_server_that_is_away() -> None:
    with pytest.raises(KeyError), http_errors("ask", "a server", NOBODY):
        raise KeyError("a name that we mistyped")


@pytest.mark.parametrize("content", [{}, {"FileStatus": {}}, [], {"FileStatuses": {"FileStatus": [{}]}}])
def test_json_of_another_shape_than_webhdfs_proves_nothing(content: object) -> None:
    with server_that_answers(content=content) as address:
        hdfs = Hdfs((address,), NOBODY, Tls())
        for ask in (hdfs.status, hdfs.list):
            with pytest.raises(Unavailable, match="makes no sense"):
                ask("/a")
        hdfs.close()


def test_importing_the_clients_changes_no_other_packages_log_levels() -> None:
    script = """
import logging
names = ("urllib3.connectionpool", "hdfs.client", "requests_kerberos", "hdfs", "urllib3")
import airflow_kstream.clients.http, airflow_kstream.clients.hdfs.leases
print([logging.getLogger(name).level for name in names])
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout == "[0, 0, 0, 0, 0]\n"


def test_tokens_in_addresses_reach_no_log_at_any_level(caplog: pytest.LogCaptureFixture) -> None:
    keep_tokens_out_of_logs()
    with caplog.at_level(logging.DEBUG), server_that_answers(content={}) as address:
        requests.get(f"{address}/webhdfs/v1/?op=OPEN&delegation=secretsecret&token=another&offset=1", timeout=5)
    assert "op=OPEN&delegation=***&token=***&offset=1" in caplog.text
    assert "secretsecret" not in caplog.text


def test_the_hdfs_client_is_hushed_for_our_calls_alone(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("hdfs.client")
    with caplog.at_level(logging.INFO):
        with hushed():
            log.info("a call of ours")
            log.warning("a warning")
        log.info("a call of somebody else")
    assert [record.message for record in caplog.records] == ["a warning", "a call of somebody else"]
