"""The state of a repository behind HTTP, with the headers that GitHub's answers have."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from time import time
from typing import Any

from tests.github.server import GitHubServer
from tests.loopback import loopback


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet, or each answer waits 40 ms for the client
    github: GitHubServer

    def handle_any(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(size) if size else b""
        token = self.headers.get("Authorization", "").removeprefix("token ").removeprefix("Bearer ")
        with self.github.lock:
            answer = self.github.answer(self.command, self.path, token, raw)
            left = max(0, self.github.limit - self.github.charged)
            now = formatdate(time() + self.github.skew, usegmt=True)
            reset = str(int(time() + self.github.skew) + 1800)
        if answer.status == 0:
            self.close_connection = True
            return
        body = b"" if answer.status == 204 else json.dumps(answer.body).encode()
        self.send_response_only(answer.status)
        self.send_header("Date", now)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-RateLimit-Limit", str(self.github.limit))
        self.send_header("X-RateLimit-Remaining", str(left))
        for name, value in ({"X-RateLimit-Reset": reset} | answer.headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815 (http.server's names)

    def log_message(self, *_arguments: Any) -> None:
        """Stay silent: the state keeps its own list."""


@contextmanager
def serving(git_hub_server: GitHubServer | None = None) -> Iterator[GitHubServer]:
    """Serve a repository, by default an empty one, on a free port of loopback.

    Raises AssertionError at the end where a request or an answer was not as GitHub publishes it.
    """
    state = git_hub_server or GitHubServer()
    handler = type("Handler", (_Handler,), {"github": state})
    with loopback(handler) as state.address:
        yield state
    assert state.excused or not state.faults_of_form, "\n".join(sorted({*state.faults_of_form}))
