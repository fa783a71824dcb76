"""Find placeholders of templates and of the documentation that were left in a text."""

import re

_OWNERS = "OWNER|ORG|ORGANI[SZ]ATION|USER|USERNAME|YOUR[-_]?(?:ORG|NAME|USER|USERNAME)"
_MODELS = "MODEL|NAME|REPO|REPOSITORY|YOUR[-_]?MODEL"
_NAME = re.compile(
    rf"\b(?:{_OWNERS})/(?:{_MODELS})\b|\byour[-_](?:org|name|user|username)/[\w.-]+|\bpath/to/\w+"
)
"""Placeholder names such as `OWNER/MODEL`; `org/model` in lower case may be a real name."""
_ZEROS = re.compile(r"(?<![0-9A-Za-z])(?:0{40}|0{64})(?![0-9A-Za-z])")
"""Digests of zeros only."""
_TAGS = (
    "sub|sup|img|div|span|details|summary|table|thead|tbody|center|code|pre|kbd|small|strong|"
    "font|picture|source|video|figure|blockquote"
)
# A URL in angle brackets is Markdown, not a placeholder: it has a colon, a slash or an @.
_TEXT = re.compile(
    rf"<(?!(?:{_TAGS})\b)[A-Za-z0-9][^<>\n:/@=]{{2,80}}>|\b(?:TODO|TBD|FIXME|XXX)\b|\A\(e\.g\. "
)
"""Placeholder texts: `<architecture of the model>`, TODO, or an initial "(e.g. "."""


def placeholder_name(text: str) -> str:
    """Return the first placeholder name or digest in a text; "" without one."""
    match = _NAME.search(text) or _ZEROS.search(text)
    return match.group() if match else ""


def placeholder_in(text: str) -> str:
    """Return the first placeholder of any kind in a text of a card; "" without one."""
    match = _TEXT.search(text)
    return match.group() if match else placeholder_name(text)
