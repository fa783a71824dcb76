"""A relay of the beacon on this machine, which answers as it is told to."""

import contextlib
import http.server
import time
from collections.abc import Callable, Iterator

from tests.loopback import loopback

Answer = Callable[[http.server.BaseHTTPRequestHandler], None]


@contextlib.contextmanager
def relay(*answers: Answer) -> Iterator[tuple[str, list[str]]]:
    """Serve: one answer a request, the last one for all that follow. Gives address and requests."""
    requests: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            with contextlib.suppress(ConnectionError):
                answers[min(len(requests), len(answers)) - 1](self)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    with loopback(Handler) as address:
        yield address, requests


def says(body: str | bytes, code: int = 200) -> Answer:
    """Answer with a body."""
    raw = body.encode() if isinstance(body, str) else body

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        handler.send_header("Content-Length", str(len(raw)))
        handler.end_headers()
        handler.wfile.write(raw)

    return answer


def drips(body: str, every: float) -> Answer:
    """Answer one byte at a time."""

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        for byte in body.encode():
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()
            time.sleep(every)

    return answer


def hangs_up(handler: http.server.BaseHTTPRequestHandler) -> None:
    """Close the connection without a word."""
    handler.connection.close()
