"""bad-url: the link is not a plain https URL."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "bad-url"
# Host names only: 10.0.0.1, 0x7f.1 and [::1] are machines in the reader's own network.
_HOST = re.compile(r"([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}")


def check(context: Context) -> Iterator[Fault]:
    """Report a URL that is not safe to link to; an empty one is allowed."""
    url = context.text("meta", "url")
    reason = url and _objection(url)
    if reason:
        yield Fault(
            ID, ("meta", "url"), f"url {quoted(url)} {reason}", quoted(url), "https://host/path"
        )


def _objection(url: str) -> str:
    """Return what is wrong with a URL, or ""."""
    if not url.isascii() or not url.isprintable() or any(c in url for c in ' \\<>"`{}|^'):
        return "has characters that are not allowed in a URL"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"cannot be parsed: {error}"
    host = parts.hostname or ""
    objections = {
        "does not begin with https://": parts.scheme != "https",
        "has a user name before the host, which can be mistaken for the host": "@" in parts.netloc,
        "names a port": port is not None,
        "has a host in punycode, which can look like another": any(
            label.startswith("xn--") for label in host.split(".")
        ),
        "has no host name": _HOST.fullmatch(host) is None,
    }
    return next((reason for reason, holds in objections.items() if holds), "")


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="The link is not a plain https URL.",
    why=(
        "The board links to it: a script, a look-alike host or a user name before an @ would send "
        "readers to another site."
    ),
    fix=(
        "Link to the weights or the paper, such as https://huggingface.co/org/model, or leave "
        '"url" empty.'
    ),
    check=check,
)
