"""A server on this machine, for clients that are real."""

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer

import pytest

from geneb_ci.common import addresses

POLL_S = 0.01  # how often it looks whether it is to end


@contextlib.contextmanager
def answering(server: HTTPServer) -> Iterator[str]:
    """Let a server answer in a thread until the block ends; yield its address."""
    thread = threading.Thread(target=server.serve_forever, args=(POLL_S,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def loopback(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve on a free port until the block ends; yield the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    with answering(server) as address:
        yield address


@pytest.fixture
def as_public(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a server on this machine stand for a public one."""
    monkeypatch.setattr(addresses, "IP_ADDRESSES_OF_TESTS", frozenset({"127.0.0.1"}))
