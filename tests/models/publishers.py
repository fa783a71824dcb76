"""Zenodo, Drive, Dataverse and a plain server on this machine, as far as a download meets them."""

import io
import re
import tarfile
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit


def tar_gz(members: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    """Return a tar.gz archive of files, and of symbolic links."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
    return out.getvalue()


@dataclass
class Shelf:
    """Files that imitated servers of publishers send, and the requests that they received."""

    files: dict[str, bytes] = field(default_factory=dict)
    """Path of a request, as `_key` gives it, to content."""
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    """Path and Range of each request."""
    break_after: int | None = None
    """Bytes after which the next answer breaks off."""
    web_page: bool = False
    """Whether every answer is a web page, as Drive sends above its limit."""
    deaf: bool = False
    """Whether a range is answered with the whole file, and called a part of it."""
    redirect: str = ""
    """Where every request is sent on to."""

    def handler(self) -> type[BaseHTTPRequestHandler]:
        """Return the handler of a server with this shelf."""
        shelf = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                expected = self.headers.get("Range")
                shelf.requests.append((self.path, expected))
                content = shelf.files.get(_key(self.path))
                if shelf.redirect:
                    self.send_response(302)
                    self.send_header("Location", shelf.redirect)
                    self.end_headers()
                    return
                if content is None:
                    self.send_error(404)
                    return
                start = int(re.sub(r"\D", "", expected)) if expected else 0
                if start >= len(content) > 0:
                    self.send_error(416)
                    return
                self.send_response(206 if start else 200)
                start = 0 if shelf.deaf else start
                kind = "text/html" if shelf.web_page else "application/octet-stream"
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content) - start))
                self.end_headers()
                body = content[start:]
                if shelf.break_after is not None:
                    body, shelf.break_after = body[: shelf.break_after], None
                    self.close_connection = True
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Keep the test's output clean."""

        return Handler


def _key(path: str) -> str:
    """Return what a path asks for: the number of a file on Drive, else the path itself."""
    parts = urlsplit(path)
    number = parse_qs(parts.query).get("id")
    return f"/{number[0]}" if number else parts.path
