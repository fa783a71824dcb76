"""The parts of a judgement: the bytes of a file, and a rule that crashes."""

import base64
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from geneb_ci.check.change import REGULAR, Blob, Change, ChangeFault
from geneb_ci.check.registry import BY_ID
from geneb_ci.check.rule import ChangeRule
from geneb_ci.common.finding import Finding, Severity
from geneb_ci.github.api import GitHub
from geneb_ci.github.connection import Reply
from geneb_ci.github.errors import UnexpectedReply
from geneb_ci.github.trees import read_blob
from geneb_ci.github.verdict.checker import LISTED_FINDINGS_MAX, change_findings
from reference_harness.formats.files import blob_id

if TYPE_CHECKING:
    from geneb_ci.github.connection import Connection

RAW = bytes(range(200))
BLOB = Blob(REGULAR, blob_id(RAW), len(RAW))
LETTERS = base64.b64encode(RAW).decode()


def read(content: str, encoding: str = "base64") -> object:
    """Read a file of which GitHub sends this."""

    body = {"sha": BLOB.sha, "encoding": encoding, "content": content}
    connection = SimpleNamespace(get=lambda _path: Reply(body))
    return read_blob(GitHub(cast("Connection", connection)), BLOB)


def test_a_file_is_its_base64_in_lines():
    assert read(base64.encodebytes(RAW).decode()) == RAW


NOT_BASE64 = "the content that GitHub sent is not base64"


@pytest.mark.parametrize(
    ("content", "encoding", "message"),
    [
        (f"!{LETTERS}", "base64", NOT_BASE64),
        (f"{LETTERS[:8]} {LETTERS[8:]}", "base64", NOT_BASE64),
        (LETTERS[:-1], "base64", NOT_BASE64),
        (LETTERS, "utf-8", "unexpected answer of GitHub, at encoding: Input should be 'base64'"),
        ("", "base64", f"GitHub sent bytes with the id {blob_id(b'')}"),
    ],
)
def test_anything_else_is_refused(content, encoding, message):
    with pytest.raises(UnexpectedReply) as refusal:
        read(content, encoding)
    assert refusal.value.message.removeprefix("the ") == f"blob {BLOB.sha}: {message}"


def rule(name: str, faults: int) -> ChangeRule:
    """Return a rule that finds so many faults, or crashes where that is below 0."""

    def check(_: Change) -> Iterator[ChangeFault]:
        if faults < 0:
            raise ZeroDivisionError("of nothing")
        for number in range(faults):
            yield ChangeFault(name, f"{number:02}", "m", "f", "e")

    return ChangeRule(name, Severity.ERROR, "what", "why", "fix", check)


def finding_of(name: str, file: str, message: str, what: str, expected: str) -> Finding:
    return Finding(name, Severity.ERROR, message, file, "", 1, 1, what, expected, "fix")


def test_a_rule_that_crashes_is_a_finding_and_hides_no_other():
    crash = Finding(
        "check-crashed",
        BY_ID["check-crashed"].severity,
        'the rule b crashed: ZeroDivisionError: "of nothing"',
        "",
        "",
        1,
        1,
        "b",
        "",
        BY_ID["check-crashed"].fix,
    )
    assert change_findings(Change(()), [rule("a", 1), rule("b", -1), rule("c", 1)]) == [
        crash,
        finding_of("a", "00", "m", "f", "e"),
        finding_of("c", "00", "m", "f", "e"),
    ]


def test_more_paths_than_are_listed_are_counted():
    listed = [
        finding_of("a", f"{number:02}", "m", "f", "e") for number in range(LISTED_FINDINGS_MAX)
    ]
    more = finding_of(
        "a", "", "2 more findings of a are not listed", f"{LISTED_FINDINGS_MAX + 2} paths", "none"
    )
    assert change_findings(Change(()), [rule("a", LISTED_FINDINGS_MAX)]) == listed
    assert change_findings(Change(()), [rule("a", LISTED_FINDINGS_MAX + 2)]) == [more, *listed]
