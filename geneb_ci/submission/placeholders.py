"""Find placeholders of templates and of the documentation that were left in a text."""

import re

_PLACEHOLDER_OWNERS = "OWNER|ORG|ORGANI[SZ]ATION|USER|USERNAME|YOUR[-_]?(?:ORG|NAME|USER|USERNAME)"
_PLACEHOLDER_MODELS = "MODEL|NAME|REPO|REPOSITORY|YOUR[-_]?MODEL"
_PLACEHOLDER_NAME = re.compile(
    rf"\b(?:{_PLACEHOLDER_OWNERS})/(?:{_PLACEHOLDER_MODELS})\b|\byour[-_](?:org|name|user|username)/[\w.-]+|\bpath/to/\w+"
)
"""A name such as `OWNER/MODEL`; `org/model` in lower case may be a real name."""
_ZERO_DIGEST = re.compile(r"(?<![0-9A-Za-z])(?:0{40}|0{64})(?![0-9A-Za-z])")
"""A commit or SHA-256 of zeros only."""
_HTML_TAGS = (
    "sub|sup|img|div|span|details|summary|table|thead|tbody|center|code|pre|kbd|small|strong|"
    "font|picture|source|video|figure|blockquote"
)
_UNFILLED_TEXT = re.compile(
    rf"<(?!(?:{_HTML_TAGS})\b)[A-Za-z0-9][^<>\n:/@=]{{2,80}}>"
    r"|\b(?:TODO|TBD|FIXME|XXX)\b|\A\(e\.g\. "
)
"""A text such as `<architecture of the model>`, TODO, or an initial "(e.g. ". An address in angle
brackets, which has a colon, a slash or an @, is Markdown."""


def placeholder_name(text: str) -> str:
    """Return the first placeholder name or digest in a text; "" if there is none."""
    match = _PLACEHOLDER_NAME.search(text) or _ZERO_DIGEST.search(text)
    return match.group() if match else ""


def placeholder_in(text: str) -> str:
    """Return the first placeholder of any kind in a text of a card; "" if there is none."""
    match = _UNFILLED_TEXT.search(text)
    return match.group() if match else placeholder_name(text)
