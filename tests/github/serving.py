"""The state of a repository behind HTTP, with the headers that GitHub's answers have.

Where tests gate a change, a client in this process has most answers without HTTP, which takes ten
times as long; whatever it may retry, wait for or be redirected by is sent over loopback all the
same. By night, all is sent over loopback.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from time import time
from typing import Any

import pytest
from github.Requester import Requester

from tests.examples import gate_a_change
from tests.github.refusals import Answer
from tests.github.server import GitHubServer
from tests.loopback import loopback

PLAIN_STATUSES = frozenset({200, 201, 204, 404, 422})
"""Those that a client of HTTP hands over as they are."""


def _headers(state: GitHubServer, answer: Answer) -> dict[str, str]:
    """Return the headers that GitHub's answers have, with those of this answer."""
    now = time() + state.skew
    return {
        "Date": formatdate(now, usegmt=True),
        "Content-Type": "application/json; charset=utf-8",
        "X-RateLimit-Limit": str(state.limit),
        "X-RateLimit-Remaining": str(max(0, state.limit - state.charged)),
        "X-RateLimit-Reset": str(int(now) + 1800),
    } | answer.headers


def _token(authorisation: str) -> str:
    return authorisation.removeprefix("token ").removeprefix("Bearer ")


def _body(answer: Answer) -> str:
    return "" if answer.status == 204 else json.dumps(answer.body)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet, or each answer waits 40 ms for the client
    github: GitHubServer

    def handle_any(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(size) if size else b""
        token = _token(self.headers.get("Authorization", ""))
        with self.github.lock:
            answer = self.github.answer_once((self.command, self.path, token, raw))
            headers = _headers(self.github, answer)
        if answer.status == 0:
            self.close_connection = True
            return
        body = _body(answer).encode()
        self.send_response_only(answer.status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815 (http.server's names)

    def log_message(self, *_arguments: Any) -> None:
        """Stay silent: the state keeps its own list."""


def _answer_here(state: GitHubServer, patch: pytest.MonkeyPatch) -> None:
    """Let PyGithub ask the state itself; where the answer is not plain, get it over HTTP."""
    over_http, process = Requester.requestJson, os.getpid()

    def answered(
        requester: Requester,
        verb: str,
        url: str,
        parameters: dict[str, Any],
        headers: dict[str, Any],
        document: Any = None,
    ) -> tuple[int, dict[str, Any], str]:
        if requester.base_url != state.address or os.getpid() != process:
            return over_http(requester, verb, url, parameters, headers, document)
        sent: dict[str, str] = {}
        if requester.auth is not None:
            requester.auth.authentication(sent)
        target = Requester.add_parameters_to_url(url.removeprefix(state.address), parameters)
        raw = b"" if document is None else json.dumps(document).encode()
        request = (verb, target, _token(sent.get("Authorization", "")), raw)
        with state.lock:
            answer = state.answer(*request)
            if answer.status in PLAIN_STATUSES:
                named = _headers(state, answer)
                values_by_name = {name.lower(): value for name, value in named.items()}
                return answer.status, values_by_name, _body(answer)
            state.prepared = (request, answer)
        return over_http(requester, verb, url, parameters, headers, document)

    patch.setattr(Requester, "requestJson", answered)


@contextmanager
def serving(git_hub_server: GitHubServer | None = None) -> Iterator[GitHubServer]:
    """Serve a repository, by default an empty one, on a free port of loopback.

    Raises AssertionError at the end where a request or an answer was not as GitHub publishes it.
    """
    state = git_hub_server or GitHubServer()
    handler = type("Handler", (_Handler,), {"github": state})
    with loopback(handler) as state.address, pytest.MonkeyPatch.context() as patch:
        if gate_a_change():
            _answer_here(state, patch)
        yield state
    assert state.excused or not state.faults_of_form, "\n".join(sorted({*state.faults_of_form}))
