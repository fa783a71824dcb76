"""A web server for one folder, on this machine only."""

import http.server
from functools import partial
from pathlib import Path

from geneb_ci.build.page import POLICY
from geneb_ci.errors import UsageProblem

ADDRESS = "127.0.0.1"


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Files as they are, with the headers that the page is meant to be shown under."""

    server_version, sys_version = "geneb-ci", ""  # nobody needs to know which Python answers
    # Said here: what the machine's own table says of .js differs between systems.
    extensions_map = {  # noqa: RUF012 (the base class calls it its own)
        ".html": "text/html; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".css": "text/css; charset=utf-8",
        ".json": "application/json",
        ".md": "text/plain; charset=utf-8",
        ".txt": "text/plain; charset=utf-8",
        "": "application/octet-stream",
    }

    def send_head(self):  # type: ignore[no-untyped-def]  # noqa: ANN202 (a type of typeshed's own)
        """Answer only who asks for this machine: another name is a page elsewhere, led here."""
        name = self.headers.get("Host", "").partition(":")[0]
        if name not in {ADDRESS, "localhost"}:
            self.send_error(http.HTTPStatus.FORBIDDEN)
            return None
        try:
            return super().send_head()
        except ValueError:  # a path with a NUL is none
            self.send_error(http.HTTPStatus.NOT_FOUND)
            return None

    def list_directory(self, path):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, ARG002
        """Give no list of a folder."""
        self.send_error(http.HTTPStatus.NOT_FOUND)

    def end_headers(self) -> None:
        """Add what every answer says."""
        # What a page cannot say of itself is said here: no other page shows or reads it.
        self.send_header("Content-Security-Policy", f"{POLICY}; frame-ancestors 'none'")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Keep the terminal quiet."""


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Keep quiet: a browser that goes away in the middle of an answer is no fault."""


def server(folder: Path, port: int) -> http.server.ThreadingHTTPServer:
    """Give a server of a folder; it holds the port, but answers only in `serve_forever`.

    Raises UsageProblem when the port cannot be had.
    """
    try:
        return _Server((ADDRESS, port), partial(_Handler, directory=str(folder)))
    except (OSError, OverflowError) as error:
        raise UsageProblem(
            f"port {port} cannot be used: {error}",
            "choose another with --port, or 0 for a free one",
        ) from error
