"""A verdict as a line: a runner takes nothing in it for a command, and it is never too long."""

import json

import pytest

from geneb_ci.github import verdict
from geneb_ci.github.verdict import decode, encode
from tests.github.test_envelope import REPOSITORY, many, pull_of, verdict_of


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
    size = len(encode(verdict_of(pull_of(many(8)).model_copy(update={"findings": []}))))
    monkeypatch.setattr(verdict, "BYTES_MAX", size)
    assert [len(pull["findings"]) for pull in json.loads(encode(made))["pulls"]] == [0]
    monkeypatch.setattr(verdict, "BYTES_MAX", size - 1)
    with pytest.raises(AssertionError, match=f"^{size}$"):
        encode(made)
