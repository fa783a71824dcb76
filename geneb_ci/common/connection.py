"""Connections to servers that may be slow, endless or lead elsewhere."""

import http.client
import io
import socket
import time
import urllib.error
import urllib.request
from typing import IO, Any

from geneb_ci.common.addresses import AllowedServers

SLOWEST, PACE = 1000, 60
"""Bytes a second below which a server counts as gone, over so many seconds: a modem was seven times
as fast."""
OVERHEAD_MAX = 1 << 20
"""Bytes of headers, lengths of chunks and the like beyond those of the file so far; servers send a
few kB of them."""
ADDRESS_MAX = 200  # characters of a server's address that a message shows


class _PacedStream(io.RawIOBase):
    """The bytes of an answer, header included, at no less than a least pace.

    What the reader does between two reads, such as unpacking or writing, is not the server's time.
    """

    def __init__(self, source: io.RawIOBase) -> None:
        self.source, self.waited, self.came = source, 0.0, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read what has come. Raises TimeoutError where that trickles or nothing comes."""
        before = time.monotonic()
        count: int | None = self.source.readinto(buffer)
        self.waited += time.monotonic() - before
        self.came += count or 0
        if self.waited > PACE:
            if count and self.came < SLOWEST * self.waited:
                raise TimeoutError(f"it sends fewer than {SLOWEST:,} bytes a second")
            self.waited, self.came = 0.0, 0
        return count

    def close(self) -> None:
        self.source.close()
        super().close()


class _BoundedReader(io.BufferedReader):
    """An answer in which little stands around the file.

    http.client has no limit on answers that only announce another one, on the lines after the last
    chunk, nor on what a line says beside the length of its chunk: any of them may have no end. It
    reads these by lines; whoever wants a file by lines has to cut it up.
    """

    def __init__(self, source: io.RawIOBase) -> None:
        super().__init__(source)
        self.allowed = OVERHEAD_MAX

    def readline(self, size: int | None = -1, /) -> bytes:
        """Read a line of what stands around the file. Raises HTTPException for too much of it."""
        line = super().readline(size)
        self.allowed -= len(line)
        if self.allowed < 0:
            raise http.client.HTTPException(
                f"more than {OVERHEAD_MAX:,} bytes of the answer are not part of the file"
            )
        return line

    def read(self, size: int | None = -1, /) -> bytes:
        """Read bytes of the file."""
        data = super().read(size)
        self.allowed += len(data)
        return data

    def read1(self, size: int = -1, /) -> bytes:
        """Read bytes of the file."""
        data = super().read1(size)
        self.allowed += len(data)
        return data

    def readinto(self, buffer: Any, /) -> int:
        """Read bytes of the file."""
        count = super().readinto(buffer)
        self.allowed += count
        return count


class _PacedResponse(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = _BoundedReader(_PacedStream(self.fp.detach()))


class _Http(http.client.HTTPConnection):
    response_class = _PacedResponse


class _Https(http.client.HTTPSConnection):
    response_class = _PacedResponse


class _Proxies(urllib.request.ProxyHandler):
    """The proxies of the environment; marks a request that goes through one."""

    def proxy_open(self, req: urllib.request.Request, proxy: str, type: str) -> Any:  # noqa: A002
        """Send a request through a proxy, unless its host is exempt."""
        before = req.host
        response = super().proxy_open(req, proxy, type)
        if response is None and req.host != before:
            req.by_proxy = True  # type: ignore[attr-defined]
        return response


class _CheckedHandler(urllib.request.HTTPSHandler, urllib.request.HTTPHandler):
    """Connects to where it may, and to the proxy that the user set."""

    def __init__(self, reach: AllowedServers) -> None:
        super().__init__()
        self._reach = reach

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self._open(_Http, req)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self._open(_Https, req)

    def _open(
        self, kind: type[_Http | _Https], req: urllib.request.Request
    ) -> http.client.HTTPResponse:
        by_proxy = getattr(req, "by_proxy", False)
        if by_proxy:
            self._reach.may_be_local = False  # nobody here sees where a proxy leads

        def connection(host: str, **options: Any) -> http.client.HTTPConnection:
            new = kind(host, **options)
            if not by_proxy:
                new._create_connection = self._reach.connect  # type: ignore[union-attr]  # noqa: SLF001 (urllib has no other place for it)
            return new

        return self.do_open(connection, req)


def opener(reach: AllowedServers) -> urllib.request.OpenerDirector:
    """Return an opener of addresses; a server that trickles, or falls silent, is a TimeoutError."""
    return urllib.request.build_opener(_Proxies, _CheckedHandler(reach), _SafeRedirects(reach))


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to https alone, or, on this machine, from this machine."""

    def __init__(self, reach: AllowedServers) -> None:
        self._reach = reach

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """Return the request of a redirect. Raises URLError for one that may not be asked."""
        if not self._reach.allows(newurl, req.full_url):
            fp.close()
            raise urllib.error.URLError(
                f"redirected to {newurl[:ADDRESS_MAX]!r}, which is not an https address of a "
                "public server"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)
