"""A verdict as a line: a runner takes nothing in it for a command, and it is never too long."""

import base64
import json
import zlib

import pytest

from geneb_ci.github import one_line
from geneb_ci.github.errors import Tampered
from geneb_ci.github.one_line import PACKED_PREFIX
from geneb_ci.github.verdict.verdict_line import _shortest, decode, encode
from tests.github.test_handover import REPOSITORY, many, pull_of, verdict_of


def test_a_command_to_the_runner_is_escaped_and_read_back():
    pull = pull_of(many(1))
    (finding,) = pull.findings
    hostile = finding.model_copy(update={"message": "##[error] and ##[x"})
    made = verdict_of(pull.model_copy(update={"findings": [hostile]}))
    line = encode(made)
    assert line == json.dumps(made.model_dump(mode="json")).replace("##[", "\\u0023#[")
    assert "\\u0023#[error] and \\u0023#[x" in line
    assert decode(line, REPOSITORY) == made


def test_a_verdict_that_does_not_fit_without_findings_is_a_bug(monkeypatch):
    made = verdict_of(pull_of(many(8)))
    monkeypatch.setattr(one_line, "LINE_BYTES_MAX", 0)
    bare = verdict_of(pull_of(many(8)).model_copy(update={"findings": []}))
    size = len(_shortest(bare))
    monkeypatch.setattr(one_line, "LINE_BYTES_MAX", size)
    assert encode(made).startswith(PACKED_PREFIX)
    assert decode(encode(made), REPOSITORY) == bare
    monkeypatch.setattr(one_line, "LINE_BYTES_MAX", size - 1)
    with pytest.raises(AssertionError, match=r"^1$"):
        encode(made)


def test_pull_requests_that_do_not_fit_are_left_for_the_next_run(monkeypatch):
    pulls = [pull_of([], number, f"model-{number}") for number in range(1, 31)]
    made = verdict_of(*pulls)
    monkeypatch.setattr(one_line, "LINE_BYTES_MAX", len(one_line.packed_text(made)) * 3 // 4)
    left = decode(encode(made), REPOSITORY)
    assert left.pulls == pulls[: len(left.pulls)]
    assert 0 < len(left.pulls) < 30
    assert left.waiting == made.waiting + 30 - len(left.pulls)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"noise", "not compressed JSON"),
        (zlib.compress(b"{}")[:-1], "not complete"),
        (zlib.compress(b" " * 5_000_000), "unpacks to more than 4,000,000 bytes"),
        (zlib.compress("{\u00e9}".encode()), "not compressed JSON"),
    ],
    ids=["noise", "cut", "bomb", "not-ascii"],
)
def test_what_is_compressed_wrongly_is_refused(text, message):
    with pytest.raises(Tampered, match=message):
        decode(PACKED_PREFIX + base64.b64encode(text).decode(), REPOSITORY)
