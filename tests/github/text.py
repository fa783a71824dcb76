"""What no output of ours may hold, whoever wrote what is in it."""

import re

CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
# GitHub reads mentions and references after Markdown is done, but never within a code span.
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_MARKER = re.compile(r"\A<!-- geneb-ci:verdict:1 [A-Za-z0-9+/=]+ -->\n")
# Links of ours, to the page of rules and nowhere else.
_RULE = re.compile(r"\[([a-z0-9-]+)\]\(\.\./blob/HEAD/RULES\.md#\1\)")
LIVE = re.compile(r"[@#]\w|<[A-Za-z!/?]|\]\(|!\[|https?://|www\.|GH-\d|\b[0-9a-f]{40}\b")
_PING = re.compile(r"[@#]\w|!\[|\]\(")


def commands(text: str) -> list[str]:
    """Return the lines that a runner of GitHub Actions would take for a command."""
    return [line for line in text.split("\n") if line.lstrip().startswith("::") or "##[" in line]


def outside_code(text: str) -> str:
    """Return the text of a comment without its marker line and its code spans, span by span."""
    rest = _RULE.sub(r"\1", _MARKER.sub("", text))
    return "\n".join(_SPAN.sub("", line) for line in rest.split("\n"))


def calm(text: str) -> bool:
    """Whether a text commands no runner, moves no terminal, and pings nobody."""
    assert commands(text) == []
    assert CONTROL.search(text) is None
    if _MARKER.match(text):
        rest = outside_code(text)
        assert LIVE.search(rest) is None, rest
        assert _PING.search(_RULE.sub("", _MARKER.sub("", text))) is None
    return True
