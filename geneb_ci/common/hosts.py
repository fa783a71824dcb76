"""Which addresses a stranger may name, by their text; `addresses` checks where they lead."""

import re
from urllib.parse import urlsplit

LOOPBACK = ("http://127.0.0.1:", "http://localhost:")
"""This machine, which only its own user can name."""
PUBLIC_ADDRESS = re.compile(
    r"https://(?!([^/:]*\.)?(?i:localhost)[:/])(?![^/:]*\.([0-9]+|0[xX][0-9A-Fa-f]*)[:/])"
    r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(:[0-9]{1,5})?/[^?#\s@\\]*"
)
"""An address that a submission may name: a server with a name, not a number in any spelling that a
system reads as one (10.1, 0x7f.1, 0177.0.0x1), as those of a private network have; no query or
fragment, which could mean something to the program that fetches it."""


def is_public(address: str) -> bool:
    """Whether an address is of a server with a name, whatever is asked of it."""
    try:
        parts = urlsplit(address)
    except ValueError:  # a bracket that is not closed, or characters that mean others
        return False
    return PUBLIC_ADDRESS.fullmatch(f"{parts.scheme}://{parts.netloc}/") is not None
