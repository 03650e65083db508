"""A web server on loopback for the tests of one client, which says what its handler says."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ssl import SSLContext


class Quiet(BaseHTTPRequestHandler):
    """A handler that logs nothing."""

    # A head and a body are two packets; the second one would wait 40 ms for the other side's acknowledgment.
    disable_nagle_algorithm = True

    def log_message(self, format: str, *arguments: object) -> None:
        """Tests are silent."""


@contextmanager
def served(handler: type[Quiet], tls: SSLContext | None = None) -> Iterator[str]:
    """Serve with this handler, and yield `host:port`."""
    web = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if tls:
        web.socket = tls.wrap_socket(web.socket, server_side=True)
    thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"127.0.0.1:{web.server_port}"
    finally:
        web.shutdown()
        thread.join()
        web.server_close()
