"""A Hub on loopback: real commits with parents and trees, and the protocol the client speaks."""

import threading
from collections.abc import Callable  # noqa: TC003 (one name costs nothing)
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from tests.loopback import POLL_S
from tests.publish.hub_answers import READER, WRITER, Shelf
from tests.publish.hub_call import OTHER, Answer, Call, Refusal, route
from tests.publish.hub_repo import Commit, Repo

__all__ = ["READER", "WRITER", "Commit", "Fault", "Hub", "Repo"]


class Fault(NamedTuple):
    """What happens to the next call of one step."""

    step: str
    status: int = 0
    """0: no answer at all."""
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
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.shelf.endpoint = self.endpoint
        threading.Thread(target=self.server.serve_forever, args=(POLL_S,), daemon=True).start()

    def close(self) -> None:
        self.over.set()
        self.server.shutdown()
        self.server.server_close()

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


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:  # noqa: C901 (one class, that knows its hub)
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
            call = Call(token, resource, name, revision, path, query, self._body())
            if step == OTHER:
                self._send(404, {}, b"{}")
                return
            fault = hub.planned(step)
            hub.watch(step, "before")
            answer: Answer = (500, {}, b"{}")
            if fault is None or fault.after:
                try:
                    answer = hub.answer(step, call)
                except Refusal as refusal:
                    answer = refusal.answer
            hub.watch(step, "after")
            if fault is not None:
                if not fault.status:
                    hub.over.wait()
                    return
                answer = (fault.status, fault.headers, fault.body)
            self._send(*answer, step=step)
            if step == "resolve" and self.command == "GET" and answer[0] == HTTPStatus.OK:
                hub.served.append(path)

        def _send(
            self, status: int, headers: dict[str, str], content: bytes, step: str = ""
        ) -> None:
            told = {"RateLimit": '"api";r=499;t=60', **headers}
            told["Content-Length"] = str(len(content))
            try:
                self.send_response(status)
                for key, value in told.items():
                    self.send_header(key, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content[: len(content) // 2])
                    hub.watch(step, "half")
                    self.wfile.write(content[len(content) // 2 :])
            except OSError:
                pass  # whoever asked was killed

        do_GET = do_HEAD = do_POST = do_PUT = _serve  # noqa: N815 (names of http.server)

    return Handler
