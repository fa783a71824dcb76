"""The state of a repository behind HTTP, with the headers that GitHub's answers have."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.utils import formatdate
from http.client import RemoteDisconnected
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from itertools import count
from time import time
from typing import Any, NamedTuple

import pytest
from urllib3 import HTTPHeaderDict, HTTPResponse
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool

from tests.github.server import GitHubServer
from tests.loopback import loopback


class _Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


def _reply(
    github: GitHubServer, verb: str, target: str, authorization: str, raw: bytes
) -> _Reply | None:
    """Return what is sent for a request; None where the server hangs up."""
    token = authorization.removeprefix("token ").removeprefix("Bearer ")
    with github.lock:
        answer = github.answer(verb, target, token, raw)
        left = max(0, github.limit - github.charged)
        now = time() + github.skew
    if answer.status == 0:
        return None
    body = b"" if answer.status == 204 else json.dumps(answer.body).encode()
    general = {
        "Date": formatdate(now, usegmt=True),
        "Content-Type": "application/json; charset=utf-8",
        "Content-Length": str(len(body)),
        "X-RateLimit-Limit": str(github.limit),
        "X-RateLimit-Remaining": str(left),
        "X-RateLimit-Reset": str(int(now) + 1800),
    }
    return _Reply(answer.status, general | answer.headers, body)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet, or each answer waits 40 ms for the client
    github: GitHubServer

    def handle_any(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(size) if size else b""
        authorization = self.headers.get("Authorization", "")
        reply = _reply(self.github, self.command, self.path, authorization, raw)
        if reply is None:
            self.close_connection = True
            return
        self.send_response_only(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)
        self.wfile.flush()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815 (http.server's names)

    def log_message(self, *_arguments: Any) -> None:
        """Stay silent: the state keeps its own list."""


@contextmanager
def serving(given: GitHubServer | None = None) -> Iterator[GitHubServer]:
    """Serve a repository, by default an empty one, on a free port of loopback.

    Raises AssertionError at the end where a request or an answer was not as GitHub publishes it.
    """
    state = given or GitHubServer()
    handler = type("Handler", (_Handler,), {"github": state})
    with loopback(handler) as state.address:
        yield state
    _assert_as_published(state)


def _assert_as_published(state: GitHubServer) -> None:
    assert state.excused or not state.faults_of_form, "\n".join(sorted({*state.faults_of_form}))


_SERVED: dict[str, GitHubServer] = {}
"""Servers of this process by the host name that a client in it has for them."""
_NUMBERS = count(1)


class _Connection(HTTPConnection):
    """A connection of a client to a server in the same process: half the time of a socket."""

    _request: tuple[str, str, str, bytes]

    def request(  # type: ignore[override]
        self,
        method: str,
        url: str,
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        if self.host not in _SERVED:
            super().request(method, url, body, headers, **options)
            return
        raw = body.encode() if isinstance(body, str) else body or b""
        self._request = method, url, HTTPHeaderDict(headers or {}).get("Authorization", ""), raw

    def getresponse(self) -> HTTPResponse:  # type: ignore[override]
        if self.host not in _SERVED:
            return super().getresponse()
        method, url, authorization, raw = self._request
        reply = _reply(_SERVED[self.host], method, url, authorization, raw)
        if reply is None:
            raise RemoteDisconnected("Remote end closed connection without response")
        return HTTPResponse(
            body=BytesIO(reply.body),
            headers=HTTPHeaderDict(reply.headers),
            status=reply.status,
            version=11,
            preload_content=False,
            request_method=method,
            request_url=url,
        )


@contextmanager
def serving_here(given: GitHubServer | None = None) -> Iterator[GitHubServer]:
    """Serve a repository, as `serving` does, to clients of this process alone: without a socket."""
    state = given or GitHubServer()
    host = f"github-{next(_NUMBERS)}.localhost"
    state.address = f"http://{host}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(_SERVED, host, state)
        patch.setattr(HTTPConnectionPool, "ConnectionCls", _Connection)
        yield state
    _assert_as_published(state)
