"""Check the text of addresses in a submission; `addresses` checks the servers."""

import re
from urllib.parse import urlsplit

LOOPBACK = ("http://127.0.0.1:", "http://localhost:")
"""Beginnings of addresses of this machine, which only its user may name."""
PUBLIC_ADDRESS = re.compile(
    r"https://(?!([^/:]*\.)?(?i:localhost)[:/])(?![^/:]*\.([0-9]+|0[xX][0-9A-Fa-f]*)[:/])"
    r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(:[0-9]{1,5})?/[^?#\s@\\]*"
)
"""An address that a submission may give. Its host is a name, not an IP address in any spelling that
a system accepts (10.1, 0x7f.1, 0177.0.0x1). It has no query and no fragment, which could have a
meaning for the program that downloads it."""


def is_public(address: str) -> bool:
    """Whether the host of an https address is a name; path and query are not checked."""
    try:
        url = urlsplit(address)
    except ValueError:  # an unclosed bracket, or characters that normalise to others
        return False
    return PUBLIC_ADDRESS.fullmatch(f"{url.scheme}://{url.netloc}/") is not None
