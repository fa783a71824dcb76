"""HTTP connections to servers that may be slow, send endless answers or redirect."""

import http.client
import io
import socket
import time
import urllib.error
import urllib.request
from typing import IO, Any

from geneb_ci.common.addresses import AllowedServers

BYTES_PER_SECOND_MIN, PACE_SECONDS = 1000, 60
"""Minimum pace of a server, and the period over which the pace is measured; a slower connection is
closed. A modem was seven times as fast."""
OVERHEAD_BYTES_MAX = 1 << 20
"""Maximum bytes of headers, chunk lengths and the like beyond the bytes of the file received so
far; servers send a few kB."""
ADDRESS_CHARACTERS_MAX = 200
"""Maximum characters of an address in a message."""


class _StreamWithMinimumPace(io.RawIOBase):
    """The bytes of an answer, headers included, from a server that keeps a minimum pace.

    Only the time inside reads counts, not what the reader does between two of them.
    """

    def __init__(self, stream: io.RawIOBase) -> None:
        self.stream, self.seconds_waited, self.bytes_received = stream, 0.0, 0

    def readable(self) -> bool:
        """Return True, as `io` requires of a stream that can be read."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read what has arrived. Raises TimeoutError below the minimum pace."""
        started = time.monotonic()
        count: int | None = self.stream.readinto(buffer)
        self.seconds_waited += time.monotonic() - started
        self.bytes_received += count or 0
        if self.seconds_waited > PACE_SECONDS:
            if count and self.bytes_received < BYTES_PER_SECOND_MIN * self.seconds_waited:
                pace = f"{BYTES_PER_SECOND_MIN:,} bytes per second"
                raise TimeoutError(f"the server sends fewer than {pace}")
            self.seconds_waited, self.bytes_received = 0.0, 0
        return count

    def close(self) -> None:
        """Close the connection."""
        self.stream.close()
        super().close()


class _BoundedReader(io.BufferedReader):
    """An answer of a server, with a limit on the bytes that are not part of the file.

    http.client reads these by lines, and has no limit on the number of interim answers (100), of
    trailer lines, or on the extension of a chunk's length. The file itself is never read by lines.
    """

    def __init__(self, stream: io.RawIOBase) -> None:
        super().__init__(stream)
        self.overhead_left = OVERHEAD_BYTES_MAX

    def readline(self, size: int | None = -1, /) -> bytes:
        """Read a line that is not part of the file. Raises HTTPException above the limit."""
        line = super().readline(size)
        self.overhead_left -= len(line)
        if self.overhead_left < 0:
            raise http.client.HTTPException(
                f"more than {OVERHEAD_BYTES_MAX:,} bytes of the answer are not part of the file"
            )
        return line

    def read(self, size: int | None = -1, /) -> bytes:
        """Read bytes of the file, and allow as many more that are not part of it."""
        received = super().read(size)
        self.overhead_left += len(received)
        return received

    def read1(self, size: int = -1, /) -> bytes:
        """Read bytes of the file, and allow as many more that are not part of it."""
        received = super().read1(size)
        self.overhead_left += len(received)
        return received

    def readinto(self, buffer: Any, /) -> int:
        """Read bytes of the file, and allow as many more that are not part of it."""
        count = super().readinto(buffer)
        self.overhead_left += count
        return count


class _LimitedResponse(http.client.HTTPResponse):
    """An answer of a server, with a minimum pace and a maximum overhead."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = _BoundedReader(_StreamWithMinimumPace(self.fp.detach()))


class _HttpConnection(http.client.HTTPConnection):
    """A connection over http whose answers are limited."""

    response_class = _LimitedResponse


class _HttpsConnection(http.client.HTTPSConnection):
    """A connection over https whose answers are limited."""

    response_class = _LimitedResponse


class _ProxyHandler(urllib.request.ProxyHandler):
    """Handler for the proxies of the environment, which marks requests that go through a proxy."""

    def proxy_open(self, req: urllib.request.Request, proxy: str, type: str) -> Any:  # noqa: A002
        """Send a request through a proxy, unless its host is exempt."""
        server_host = req.host
        response = super().proxy_open(req, proxy, type)
        if response is None and req.host != server_host:
            req.uses_proxy = True  # type: ignore[attr-defined]
        return response


class _AllowedServersHandler(urllib.request.HTTPSHandler, urllib.request.HTTPHandler):
    """Handler that connects to the allowed servers, and to the proxy that the user set."""

    def __init__(self, allowed_servers: AllowedServers) -> None:
        super().__init__()
        self._allowed_servers = allowed_servers

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Send a request over http."""
        return self._open(_HttpConnection, req)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Send a request over https."""
        return self._open(_HttpsConnection, req)

    def _open(
        self,
        connection_class: type[_HttpConnection | _HttpsConnection],
        req: urllib.request.Request,
    ) -> http.client.HTTPResponse:
        """Send a request over a connection to an allowed server, or to the proxy."""
        uses_proxy = getattr(req, "uses_proxy", False)
        if uses_proxy:  # where a proxy connects to is not visible here
            self._allowed_servers.may_be_local = False

        def connection(host: str, **options: Any) -> http.client.HTTPConnection:
            new_connection = connection_class(host, **options)
            if not uses_proxy:
                new_connection._create_connection = self._allowed_servers.connect  # type: ignore[union-attr]  # noqa: SLF001 (urllib has no other way)
            return new_connection

        return self.do_open(connection, req)


def opener(allowed_servers: AllowedServers) -> urllib.request.OpenerDirector:
    """Return an opener for the allowed servers. It raises TimeoutError below the minimum pace."""
    return urllib.request.build_opener(
        _ProxyHandler, _AllowedServersHandler(allowed_servers), _RedirectHandler(allowed_servers)
    )


class _RedirectHandler(urllib.request.HTTPRedirectHandler):
    """Handler that follows redirects only to https, or from this machine to this machine."""

    def __init__(self, allowed_servers: AllowedServers) -> None:
        self._allowed_servers = allowed_servers

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """Return the request for a redirect. Raises URLError if its address is not allowed."""
        if not self._allowed_servers.allows(newurl, req.full_url):
            fp.close()
            raise urllib.error.URLError(
                f"redirected to {newurl[:ADDRESS_CHARACTERS_MAX]!r}, which is not an "
                "https address of a public server"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)
