"""A Hub on loopback: real commits with parents and trees, and the protocol the client speaks.

Large files lie in a storage of their own, which is a second server, as they do for the real one.
"""

import socket
import struct
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from tests.loopback import POLL_S
from tests.publish import hub_cas
from tests.publish.hub_answers import READER, WRITER, Shelf
from tests.publish.hub_call import OTHER, Answer, Call, Refusal, route
from tests.publish.hub_repo import Commit, Repo

__all__ = ["ALTERED", "CUT", "HANG", "READER", "RESET", "WRITER", "Commit", "Fault", "Hub", "Repo"]

HANG, RESET, CUT, ALTERED = 0, -1, -2, -3
"""Instead of a status: no answer; a connection that breaks before the answer, or in the middle of
it; an answer with a wrong byte in the middle."""


class Fault(NamedTuple):
    """What happens to the next call of one step."""

    step: str
    status: int = HANG
    headers: dict[str, str] = {}  # noqa: RUF012 (never changed)
    after: bool = False
    """Whether the call has its effect first."""
    body: bytes = b"{}"


class Hub:
    """The server: its repositories, planned faults, and the calls so far."""

    def __init__(self) -> None:
        self.shelf = Shelf()
        self.faults: list[Fault] = []
        self.calls: list[str] = []
        """The step of each."""
        self.served: list[str] = []
        """The path of each file whose bytes were sent."""
        self.watch: Callable[[str, str], None] = lambda _step, _when: None
        """Told of each call "before" and "after" its effect, and when "half" its answer is sent."""
        self.answer: Callable[[str, Call], Answer] = self.shelf.answer
        self.over = threading.Event()
        self._guard = threading.Lock()
        self.server = _serving(_handler(self, route, self._answered))
        self.endpoint = self.shelf.endpoint = _endpoint(self.server)
        self.storage = self.shelf.storage
        self._storing = _serving(_handler(self, hub_cas.route, self.storage.answer))
        self.storage.endpoint = _endpoint(self._storing)

    def _answered(self, step: str, call: Call) -> Answer:
        return self.answer(step, call)  # tests put another in its place

    def close(self) -> None:
        self.over.set()
        self.shelf.jobs.close()
        for server in (self.server, self._storing):
            server.shutdown()
            server.server_close()

    def create(self, resource: str, tree: dict[str, bytes] | None = None) -> Repo:
        """Make "spaces/OWNER/NAME" with a first commit, as the real Hub does."""
        repo = self.shelf.repos[resource] = Repo(resource)
        repo.add(tree or {".gitattributes": b""}, "initial commit")
        return repo

    def planned(self, step: str) -> Fault | None:
        with self._guard:
            self.calls.append(step)
            for fault in self.faults:
                if fault.step == step:
                    self.faults.remove(fault)
                    return fault
        return None


def _serving(handler: type[BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(POLL_S,), daemon=True).start()
    return server


def _endpoint(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


def _handler(  # noqa: C901 (one class, that knows its hub)
    hub: Hub,
    route: Callable[[str], tuple[str, str, str, str, str]],
    answer_to: Callable[[str, Call], Answer],
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            content = b""
            while size := int(self.rfile.readline(), 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            return content

        def _serve(self) -> None:
            address = urlsplit(self.path)
            step, resource, name, revision, path = route(unquote(address.path))
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            query = parse_qs(address.query)
            byte_range = self.headers.get("Range", "")
            call = Call(token, resource, name, revision, path, query, self._body(), byte_range)
            if step == OTHER:
                self._send(404, {}, b"{}")
                return
            fault = hub.planned(step)
            hub.watch(step, "before")
            answer: Answer = (500, {}, b"{}")
            if fault is None or fault.after or fault.status in {CUT, ALTERED}:
                try:
                    answer = answer_to(step, call)
                except Refusal as refusal:
                    answer = refusal.answer
            hub.watch(step, "after")
            if fault is not None:
                if fault.status == HANG:
                    hub.over.wait()
                    return
                if fault.status == RESET:
                    self._break()
                    return
                if fault.status == CUT:
                    self._send(*answer, step=step, whole=False)
                    return
                answer = _altered(answer) if fault.status == ALTERED else _told(fault)
            self._send(*answer, step=step)
            if step == "resolve" and self.command == "GET" and answer[0] == HTTPStatus.OK:
                hub.served.append(path)

        def _break(self) -> None:
            """Reset the connection: what lies unread or unsent is thrown away."""
            at_once = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
            self.connection.close()

        def _send(
            self,
            status: int,
            headers: dict[str, str],
            content: bytes,
            step: str = "",
            *,
            whole: bool = True,
        ) -> None:
            all_headers = {"RateLimit": '"api";r=499;t=60', **headers}
            all_headers["Content-Length"] = str(len(content))
            try:
                self.send_response(status)
                for key, value in all_headers.items():
                    self.send_header(key, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content[: len(content) // 2])
                    hub.watch(step, "half")
                    if whole:
                        self.wfile.write(content[len(content) // 2 :])
            except OSError:
                pass  # whoever asked was killed

        do_GET = do_HEAD = do_POST = do_PUT = _serve  # noqa: N815 (names of http.server)

    return Handler


def _told(fault: Fault) -> Answer:
    return fault.status, fault.headers, fault.body


def _altered(answer: Answer) -> Answer:
    status, headers, content = answer
    middle = len(content) // 2
    return status, headers, content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
