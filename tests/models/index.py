"""A package index on this machine, with wheels made for the test."""

import base64
import hashlib
import io
import zipfile
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler

PLATFORM = "py3-none-any"


def wheel(name: str, version: str, files: Mapping[str, str], needs: str = "") -> tuple[str, bytes]:
    """Return file name and bytes of a wheel with these modules, which `needs` another."""
    required = f"Requires-Dist: {needs}\n" * bool(needs)
    info = f"{name}-{version}.dist-info"
    content = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{required}",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {PLATFORM}\n",
    }
    listed = []
    for path, text in content.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        listed.append(f"{path},sha256={digest.decode()},{len(text.encode())}")
    content[f"{info}/RECORD"] = "\n".join([*listed, f"{info}/RECORD,,", ""])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, text in content.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    return f"{name}-{version}-{PLATFORM}.whl", out.getvalue()


def lock(name: str, version: str, raw: bytes) -> str:
    """Return a lock with one package."""
    return f"{name}=={version} \\\n    --hash=sha256:{hashlib.sha256(raw).hexdigest()}\n"


def handler(
    wheels: Mapping[str, bytes], requests: list[str] | None = None
) -> type[BaseHTTPRequestHandler]:
    """Return the handler of an index with these wheels; `requests` gets the paths requested."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if requests is not None:
                requests.append(self.path)
            name = self.path.rstrip("/").rpartition("/")[2]
            if name in wheels:
                self._send(wheels[name], "application/octet-stream")
                return
            links = [
                f'<a href="/files/{wheel_name}">{wheel_name}</a>'
                for wheel_name in wheels
                if wheel_name.startswith(name)
            ]
            if not links:
                self.send_error(404)
                return
            self._send(f"<html><body>{''.join(links)}</body></html>".encode(), "text/html")

        def _send(self, content: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Keep the test's output clean."""

    return Handler
