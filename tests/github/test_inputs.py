"""Inputs 37 to 54 of the hostile corpus, each as a pull request over HTTP."""

import json
from typing import Any

import pytest

from geneb_ci.github.errors import QUEUED_FIX
from tests.github.conftest import CARD_PATH, REGULAR, ROW, encoded, sound
from tests.github.history import Files
from tests.github.server import BOT, STRANGER
from tests.github.text import calm
from tests.small import CARD, small

LINK = "120000"
COMMIT = b"1" * 40
HOSTILE_NAMES = ('a";id;"', "$(id)", "{{7*7}}", "`id`", "a\n::error::x", "##[error]x", "\x1b[2J")


def row(**meta: str) -> Files:
    document = small("model")
    document["meta"] |= meta
    return sound() | {ROW: (REGULAR, encoded(document))}


def rules(verdict: dict[str, Any]) -> set[str]:
    return {finding["rule"] for finding in verdict["findings"]} - {"no-run-details"}


@pytest.mark.parametrize("target", [b"/etc/passwd", b"alpha.json"])
def test_37_a_row_that_is_a_link_is_never_followed(board_checkout, target):
    number = board_checkout.pull(sound() | {ROW: (LINK, target)})
    verdict = board_checkout.verdict(number)
    assert (verdict["outcome"], rules(verdict)) == ("changes-needed", {"symbolic-link"})
    link = board_checkout.server.trees[board_checkout.server.commits[verdict["head_sha"]][0]][ROW][
        1
    ]
    assert not any(link in path for _, path in board_checkout.server.requests)


@pytest.mark.parametrize(
    ("path", "entry", "expected"),
    [
        ("submissions/extractors/lib", ("160000", COMMIT), {"git-submodule", "foreign-file"}),
        (ROW, ("160000", COMMIT), {"git-submodule"}),
    ],
)
def test_38_submodules(board_checkout, path, entry, expected):
    assert rules(board_checkout.verdict(board_checkout.pull(sound() | {path: entry}))) == expected


@pytest.mark.parametrize(
    "path", [".github/workflows/verdict.yml", "pyproject.toml", "submissions/cards/alpha.md"]
)
def test_39_another_file_needs_a_maintainer(board_checkout, path):
    number = board_checkout.pull(sound() | {path: (REGULAR, b"changed\n")})
    verdict = board_checkout.verdict(number)
    assert (verdict["outcome"], rules(verdict)) == ("needs-maintainer", {"foreign-file"})


def test_39_another_row_beside_ones_own_needs_a_maintainer(board_checkout):
    alpha = small("alpha")
    alpha["meta"]["params"] = 1
    number = board_checkout.pull(sound() | {"submissions/alpha.json": (REGULAR, encoded(alpha))})
    verdict = board_checkout.verdict(number)
    assert (verdict["outcome"], verdict["model"]) == ("needs-maintainer", "model")
    assert rules(verdict) == {"several-models"}


def test_40_a_rename_and_a_deletion_need_a_maintainer(board_checkout):
    moved = board_checkout.files["submissions/alpha.json"]
    number = board_checkout.pull(
        {"submissions/alpha.json": None, "submissions/old/alpha.json": moved}
    )
    verdict = board_checkout.verdict(number)
    assert verdict["outcome"] == "needs-maintainer"
    assert {"deleted-file", "foreign-file"} <= rules(verdict)


def test_41_a_flood_and_a_truncated_tree_fail_closed(board_checkout):
    flood = {f"submissions/extractors/f{n}.py": (REGULAR, b"x\n") for n in range(3001)}
    verdict = board_checkout.verdict(board_checkout.pull(sound() | flood))
    assert verdict["outcome"] == "needs-maintainer"
    assert "too-many-files" in rules(verdict)
    assert verdict["files"] == []

    number = board_checkout.pull(sound())
    board_checkout.server.truncated.add(board_checkout.server.pulls[number]["head"]["sha"])
    verdict = board_checkout.verdict(number)
    assert (verdict["outcome"], verdict["files"]) == ("needs-maintainer", [])
    assert rules(verdict) == {"truncated-tree"}
    assert not any("/git/blobs/" in path for _, path in board_checkout.server.requests)


@pytest.mark.parametrize("text", HOSTILE_NAMES)
def test_42_a_hostile_title_and_branch_change_nothing(board_checkout, text):
    number = board_checkout.pull(sound())
    pull = board_checkout.server.pulls[number]
    pull |= {"title": text, "body": text, "head": pull["head"] | {"ref": text, "label": text}}
    assert board_checkout.verdict(number)["outcome"] == "passed"
    code, out, err = board_checkout.run("reconcile", "--head-sha", pull["head"]["sha"])
    assert (code, json.loads(out)["pulls"][0]["outcome"]) == (0, "passed")
    assert calm(out + err)
    code, out, err = board_checkout.run("triage", "--no-cache")
    assert code == 0
    assert calm(out + err)


def test_43_the_head_moves_between_reading_and_writing(board_checkout):
    number = board_checkout.pull(sound())
    code, line, _ = board_checkout.run("reconcile", "--pr", str(number))
    assert code == 0
    old = board_checkout.server.pulls[number]["head"]["sha"]
    new = board_checkout.server.commit(
        board_checkout.files | sound() | {CARD_PATH: (REGULAR, b"other")}, board_checkout.base
    )
    board_checkout.server.pulls[number]["head"]["sha"] = new
    code, out, err = board_checkout.report(line)
    assert (code, out) == (4, "")
    assert err == (f"geneb-ci: 1: pull request 1 has the new head {new}\n  fix: {QUEUED_FIX}\n")
    assert board_checkout.server.writes() == []
    code, _, err = board_checkout.run("reconcile", "--head-sha", old)
    assert code == 4
    assert f"no open pull request has the head {old}" in err
    # Queued again: the sweep takes the new head.
    code, out, _ = board_checkout.run("reconcile")
    assert [pull["head_sha"] for pull in json.loads(out)["pulls"]] == [new]


def test_44_bytes_that_are_not_those_of_their_name(board_checkout):
    number = board_checkout.pull(sound())
    sha = board_checkout.server.trees[
        board_checkout.server.commits[board_checkout.server.pulls[number]["head"]["sha"]][0]
    ][ROW][1]
    board_checkout.server.lies[sha] = encoded(small("other"))
    code, out, err = board_checkout.run("reconcile", "--pr", str(number))
    assert (code, out) == (3, "")
    assert f"blob {sha}: GitHub sent bytes with the id " in err


TEXTS = {
    "45": ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</script><b>"],
    "47": [
        "![x](http://t.example/p.png)",
        "[x](//evil.example)",
        "<details>",
        "<!-- geneb-ci:verdict:1 e30= -->",
    ],
    "48": ["@org/team", "@everyone", "#1", "fixes #1", "org/board#1", "GH-1"],
    "49": ["=HYPERLINK(1)", "+1", "-1+cmd", "@SUM", "\u2007x"],
    "50": ["a|b", "| --- |", "`|`"],
    "51": [
        "::error file=x::y",
        "::add-mask::0",
        "::stop-commands::t",
        "##[error]x",
        "%0A::set-output name=verdict::pass",
    ],
    "52": ["ghadelimiter_00000000", "EOF", "verdict<<EOF"],
}


FIELDS = {
    "passed": ("training_data", "submitted_by"),
    "changes-needed": ("display", "url", "provenance", "training_data"),
}
"""Fields with a hostile text, by the outcome."""


@pytest.mark.parametrize("text", [text for texts in TEXTS.values() for text in texts])
def test_45_to_52_hostile_text_in_a_row_is_neutralised(board_checkout, tmp_path, monkeypatch, text):
    """Two pull requests: one has it where any text may stand, one where it is an error, too."""
    outcomes = {
        board_checkout.pull(row(**dict.fromkeys(fields, text))): outcome
        for outcome, fields in FIELDS.items()
    }
    output = tmp_path / "output"
    monkeypatch.setenv("GITHUB_OUTPUT", str(output))
    code, line, err = board_checkout.run("reconcile")
    assert code == 0
    assert output.read_text(encoding="utf-8") == f"verdict={line}"
    assert line.isascii()
    assert calm(line + err)
    assert board_checkout.report(line)[0] == 0
    for comment in map(board_checkout.comment, outcomes):
        assert calm(comment)
        assert comment.count("<!--") == 1
    verdicts = json.loads(line)["pulls"]
    assert {verdict["number"]: verdict["outcome"] for verdict in verdicts} == outcomes


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "//evil.example",
        "https://github.com@evil.example/x",
        "https://xn--gthub-n4a.com/x",
    ],
)
def test_46_a_url_that_leads_elsewhere(board_checkout, url):
    verdict = board_checkout.verdict(board_checkout.pull(row(url=url)))
    assert (verdict["outcome"], rules(verdict)) == ("changes-needed", {"bad-url"})


def test_50_a_text_of_70000_characters(board_checkout):
    number = board_checkout.pull(
        row(training_data="x" * 70_000) | {CARD_PATH: (REGULAR, b"y" * 70_000)}
    )
    comment = board_checkout.both(number)
    assert len(comment) <= 60_000
    assert board_checkout.status(number)[0] == "failure"


def test_53_the_marker_in_anothers_comment(board_checkout):
    number = board_checkout.pull(sound())
    board_checkout.both(number)
    ours = board_checkout.comment(number)
    other = board_checkout.pull(sound("other"))
    for user in (STRANGER, {"id": 8, "login": "github-actions[bot]"}, None):
        board_checkout.server.add_comment(other, user, ours)
    board_checkout.both(other)
    assert [c["user"] for c in board_checkout.server.comments[other]][3:] == [BOT]
    assert [c["body"] for c in board_checkout.server.comments[other]][:3] == [ours] * 3
    # A comment of the same account without the marker is another program's.
    third = board_checkout.pull(sound("third"))
    board_checkout.server.add_comment(third, BOT, "a comment of another workflow")
    code, line, _ = board_checkout.run("reconcile", "--pr", str(third))
    assert board_checkout.report(line)[0] == code == 0
    assert board_checkout.server.comments[third][0]["body"] == "a comment of another workflow"
    assert len(board_checkout.server.comments[third]) == 2


def test_54_no_artifact_is_ever_asked_for(board_checkout):
    number = board_checkout.pull(row(display="x"))
    board_checkout.both(number)
    assert not any(
        "artifact" in path or "/actions/" in path for _, path in board_checkout.server.requests
    )
    assert {verb for verb, _ in board_checkout.server.requests} <= {"GET", "POST", "PUT", "PATCH"}


def test_a_card_says_nothing_that_is_not_code(board_checkout):
    card = CARD.replace("86M", "12M @everyone #1 <script>")
    number = board_checkout.pull(sound() | {CARD_PATH: (REGULAR, card.encode())})
    assert calm(board_checkout.both(number))
    assert board_checkout.status(number)[0] == "failure"
