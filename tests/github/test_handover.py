"""The verdict between the two jobs: its writer fits it, its reader believes nothing."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from geneb_ci.check.registry import ALL
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.finding import Finding, Severity
from geneb_ci.github.comment import verdict_comment
from geneb_ci.github.errors import Tampered
from geneb_ci.github.one_line import LINE_BYTES_MAX
from geneb_ci.github.verdict.model import (
    LISTED_PER_RULE_MAX,
    PullVerdict,
    Verdicts,
    counts_by_rule,
    listed_findings,
    outcome_of,
)
from geneb_ci.github.verdict.verdict_line import decode, encode
from tests.each import each
from tests.github.conftest import ADDRESS
from tests.github.text import calm
from tests.paths import ROOT
from tests.render.hostile import texts

REPOSITORY = "org/board"
rules = st.sampled_from(ALL)


@st.composite
def made_up_findings(draw: st.DrawFn) -> Finding:
    rule = draw(rules)
    return Finding(
        rule.id,
        rule.severity,
        draw(texts),
        draw(texts),
        draw(texts),
        draw(st.integers(1, 10**6)),
        draw(st.integers(1, 10**6)),
        draw(texts),
        draw(texts),
        draw(st.one_of(texts, st.just(rule.fix))),
        draw(st.floats(0, 10)),
    )


def pull_of(
    findings: list[Finding], number: int = 1, model: str = "model", **options: Any
) -> PullVerdict:
    """Return a verdict on a pull request with these findings."""
    places = counts_by_rule(findings)
    digest = {"path": "submissions/model.json", "blob": "1" * 40, "sha256": "2" * 64}
    value = {
        "number": number,
        "head_sha": "a" * 40,
        "base_sha": "b" * 40,
        "outcome": outcome_of(places, is_checked=True).value,
        "model": model,
        "level": "self-reported",
        "is_edit": False,
        "files": [digest],
        "places": places,
        "weight": 0.0,
        "findings": [f.model_dump() for f in listed_findings(findings)],
        "comparison": {
            "regime": "full",
            "metric": "MCC",
            "models": ["model", "other"],
            "best": "other",
            "categories": [{"category": "Promoters", "scores": [0.5, 0.25]}],
        },
        "standings": [
            {
                "regime": "full",
                "score": 0.5,
                "rank": 2,
                "rows": 3,
                "before": 3,
                "decided": {
                    "rank_low": 1,
                    "rank_high": 3,
                    "better_than": 0,
                    "worse_than": 0,
                    "best_in": 2,
                    "categories": 13,
                },
            }
        ],
        "neighbour": {"model": "other", "near": 1, "cells": 9, "limit": 8},
        "audit": {
            "drawn": 13,
            "tasks": 100,
            "sequences": 60_000,
            "fabricated": 20,
            "detection": 0.956,
        },
    } | options
    return PullVerdict.model_validate_json(json.dumps(value))


def verdict_of(*pulls: PullVerdict, **options: Any) -> Verdicts:
    values = {
        "format_version": "1.0",
        "repository": REPOSITORY,
        "tool_version": "0.1.0",
        "pulls": list(pulls),
        "waiting": 0,
    }
    return Verdicts.model_validate(values | options)


@example(findings=[Finding(ALL[0].id, ALL[0].severity, *("\u2800",) * 3, 1, 1, *("\u3164",) * 3)])
@given(findings=st.lists(made_up_findings(), max_size=5))
def test_hostile_text_comes_through_as_it_was_and_commands_nothing(findings):
    verdict = verdict_of(pull_of(findings))
    line = encode(verdict)
    assert line.isascii()
    assert "\n" not in line
    assert calm(line)
    assert decode(line, REPOSITORY) == verdict


def many(count: int, text: str = "x") -> list[Finding]:
    return [
        Finding("missing-task", Severity.ERROR, text, "f.json", f"/{n}", 1, 1, text, text, text)
        for n in range(count)
    ]


@pytest.mark.parametrize("text", ["x" * 600, "\u2603" * 600, "@" * 600, "`" * 599, "##[" * 200])
def test_a_flood_of_findings_is_cut_and_counted(text):
    pulls = [pull_of(many(300, text), number) for number in range(1, 5)]
    line = encode(verdict_of(*pulls))
    assert len(line) <= LINE_BYTES_MAX
    for pull in decode(line, REPOSITORY).pulls:
        assert pull.places == {"missing-task": 300}
        listed = len(pull.findings)
        assert 0 < listed <= LISTED_PER_RULE_MAX
        comment_text = verdict_comment(pull, ADDRESS)
        assert f"### Error: `missing-task`, 300 places, the first {listed}\n" in comment_text
        assert (
            f"**{300 - listed} more** are not listed here; `geneb-ci check` lists them all."
            in comment_text
        )


def test_every_rule_at_once_in_the_longest_words_fits_a_verdict():
    """However few findings are left, every rule is counted."""
    long = "\u2603" * 600
    flood = [
        Finding(rule.id, rule.severity, long, long, long, 1, 1, long, long, long) for rule in ALL
    ] * 7
    places = {rule.id: 7 for rule in ALL}
    line = encode(verdict_of(*(pull_of(flood, number) for number in range(1, 5))))
    assert len(line) <= LINE_BYTES_MAX
    for pull in decode(line, REPOSITORY).pulls:
        assert pull.places == places
        assert len({finding.rule for finding in pull.findings}) == len(pull.findings)


def change(path: tuple[str | int, ...], value: Any) -> Callable[[Any], None]:
    def apply(document: Any) -> None:
        *parents, last = path
        for key in parents:
            document = document[key]
        document[last] = value

    return apply


FIRST = ("pulls", 0)
FINDING = (*FIRST, "findings", 0)


@each(
    ("apply", "message"),
    [
        (
            change((*FIRST, "outcome"), "passed"),
            "the verdict on #1 is passed, but its findings give ",
        ),
        (
            change((*FIRST, "places"), {}),
            "the verdict on #1 lists missing-task (error), but counts no such finding",
        ),
        (change((*FIRST, "places", "missing-task"), 0), "at pulls/0/places/missing-task"),
        (change((*FIRST, "places", "no-such-rule"), 1), "names an unknown rule: no-such-rule"),
        (
            change((*FIRST, "places"), {"missing-task": 1, "foreign-file": 1}),
            "the verdict on #1 is changes-needed, but its findings give needs-maintainer",
        ),
        (change((*FIRST, "outcome"), "approved"), "does not fit its schema at pulls/0/outcome"),
        (
            change((*FINDING, "rule"), "no-such-rule"),
            "the verdict on #1 lists no-such-rule (error)",
        ),
        (
            change((*FINDING, "severity"), "note"),
            "the verdict on #1 lists missing-task (note), but counts no such finding",
        ),
        (change((*FINDING, "message"), "a\nb"), "at pulls/0/findings/0/message"),
        (change((*FINDING, "message"), "x" * 601), "at pulls/0/findings/0/message"),
        (change((*FIRST, "head_sha"), "main"), "at pulls/0/head_sha"),
        (change((*FIRST, "head_sha"), "a" * 40 + "\n"), "at pulls/0/head_sha"),
        (change((*FIRST, "number"), "1"), "at pulls/0/number"),
        (change((*FIRST, "number"), value=True), "at pulls/0/number"),
        (change((*FIRST, "model"), "../x"), "at pulls/0/model"),
        (change((*FIRST, "weight"), -1.0), "at pulls/0/weight"),
        (change((*FIRST, "labels"), ["approved"]), "at pulls/0/labels"),
        (
            change(("repository",), "org/other"),
            "the verdict is about org/other, not about org/board",
        ),
        (change(("format_version",), "2.0"), "at format_version"),
        (change(("pulls",), [1] * 5), "at pulls"),
    ],
)
def test_a_verdict_that_was_tampered_with_is_refused(apply, message):
    document = json.loads(encode(verdict_of(pull_of(many(1)))))
    apply(document)
    with pytest.raises(Tampered) as caught:
        decode(json.dumps(document), REPOSITORY)
    assert message in caught.value.message


def test_more_findings_than_are_counted_are_refused():
    document = json.loads(encode(verdict_of(pull_of(many(1)))))
    document["pulls"][0]["findings"] *= 2
    with pytest.raises(
        Tampered, match="the verdict on #1 lists 2 findings of missing-task, but counts 1"
    ):
        decode(json.dumps(document), REPOSITORY)


def test_one_pull_request_twice_is_refused():
    document = json.loads(encode(verdict_of(pull_of(many(1)))))
    document["pulls"] *= 2
    with pytest.raises(Tampered, match="has a duplicate pull request"):
        decode(json.dumps(document), REPOSITORY)


def test_a_pass_without_a_file_is_refused():
    document = json.loads(encode(verdict_of(pull_of([]))))
    assert document["pulls"][0]["outcome"] == "passed"
    document["pulls"][0]["files"] = []
    with pytest.raises(Tampered, match="its findings give needs-maintainer"):
        decode(json.dumps(document), REPOSITORY)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", "the verdict is not JSON"),
        ("[" * 1000, "the verdict is not JSON"),
        ('{"a": NaN}', "the verdict is not JSON"),
        ('{"a": 1, "a": 2}', "the verdict is not JSON"),
        ("[]", "does not fit its schema at "),
        (" " * 130_000 + "{}", "has 130,002 bytes; the limit is 120,000"),
        ("\udcff" * 50_000, "has 150,000 bytes"),
    ],
)
def test_what_is_no_verdict_is_refused(text, message):
    with pytest.raises(Tampered) as caught:
        decode(text, REPOSITORY)
    assert message in caught.value.message


@pytest.mark.parametrize("text", ["", "  \n"])
def test_no_verdict_is_a_mistake_of_the_caller(text):
    with pytest.raises(UsageProblem, match="variable VERDICT is empty"):
        decode(text, REPOSITORY)


def test_the_schema_says_what_the_models_say():
    schema = json.loads((ROOT / "schemas/verdict-1.0.schema.json").read_bytes())
    validator = Draft202012Validator(schema)
    document = json.loads(encode(verdict_of(pull_of(many(2)))))
    assert list(validator.iter_errors(document)) == []
    wrong = copy.deepcopy(document)
    wrong["pulls"][0]["head_sha"] = "main"
    assert [error.json_path for error in validator.iter_errors(wrong)] == ["$.pulls[0].head_sha"]
