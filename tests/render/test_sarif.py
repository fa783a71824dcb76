"""SARIF: the constraints of 2.1.0 on the parts that are used."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Report
from geneb_ci.common.finding import Finding
from geneb_ci.render.formats import finding_sentence, is_complete, render, sorted_findings
from geneb_ci.render.plain import visible
from geneb_ci.render.sarif import escape
from reference_harness.formats.text import well_formed
from tests.render.examples import finding, score
from tests.render.hostile import BRIEF, reports, texts

PARTS = json.loads((Path(__file__).parent / "sarif-parts.schema.json").read_text("utf-8"))
VALIDATOR = Draft202012Validator(PARTS)


def run_of(report: Report) -> Any:
    value = json.loads(render("sarif", report))
    assert list(VALIDATOR.iter_errors(value)) == []
    return value["runs"][0]


def uri(file: str) -> str:
    name = well_formed(file)
    return f"file:///{name.lstrip('/')}" if name.startswith("/") else name


@BRIEF
@given(report=reports())
def test_it_validates_and_names_every_place(report):
    run = run_of(report)
    rules = run["tool"]["driver"]["rules"]
    assert run["invocations"][0]["executionSuccessful"] == is_complete(report)
    for result, item in zip(run["results"], sorted_findings(report), strict=True):
        location = result["locations"][0]
        text = f"{finding_sentence(item)}. {item.fix}".rstrip()
        assert result["message"]["text"] == escape(text)
        assert result["level"] == item.severity
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == visible(item.rule)
        assert unquote(location["physicalLocation"]["artifactLocation"]["uri"]) == uri(item.file)
        assert location["physicalLocation"]["region"] == {
            "startLine": item.line,
            "startColumn": item.column,
        }
        names = [logical["fullyQualifiedName"] for logical in location.get("logicalLocations", ())]
        assert names == ([well_formed(item.pointer)] if item.pointer else [])


@given(text=texts)
def test_a_message_makes_no_link_and_no_gap(text):
    shown = escape(text)
    assert "](" not in shown.replace("\\\\", "").replace("\\]", "")
    assert shown.count("{") % 2 == shown.count("}") % 2 == 0


def test_every_rule_is_described():
    report = Report(files=["a.json"], rules=len(RULES))
    report.findings = [finding(rule.id, "a.json", "m") for rule in RULES]
    rules = run_of(report)["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == sorted(rule.id for rule in RULES)
    assert all("help" in rule and "fullDescription" in rule for rule in rules)


def prints(*items: Finding) -> dict[int, str]:
    results = run_of(Report(files=["a"], rules=1, findings=list(items)))["results"]
    return {
        (r["locations"][0]["physicalLocation"]["region"]["startColumn"]): r["partialFingerprints"][
            "primaryLocationLineHash"
        ]
        for r in results
    }


def test_a_fingerprint_outlives_an_edit_of_the_line():
    before = prints(score(1.7, 300))[300]
    moved = finding(
        "score-out-of-range",
        "submissions/GROVER.json",
        "MCC is 1.9",
        pointer="/results/full/H3K300ac/MCC",
        column=777,
    )
    assert prints(moved) == {777: before}


def test_fingerprints_in_one_line_differ():
    fingerprints = prints(*(score(2, column) for column in range(1, 9)))
    assert len(set(fingerprints.values())) == 8
    same = [finding("placeholder-in-card", "c.md", "x", line=line, column=line) for line in (1, 2)]
    assert [print_.split(":")[1] for print_ in prints(*same).values()] == ["1", "2"]


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("submissions/a b.json", "submissions/a%20b.json"),
        ("/home/a.json", "file:///home/a.json"),
        ("//evil/a.json", "file:///evil/a.json"),
        ("javascript:alert(1).json", "javascript%3Aalert%281%29.json"),
        ("a?b#c.json", "a%3Fb%23c.json"),
        ("é.json", "%C3%A9.json"),
    ],
)
def test_a_path_is_a_uri(file, expected):
    report = Report(files=[file], rules=1, findings=[finding("empty-file", file, "m")])
    physical_location = run_of(report)["results"][0]["locations"][0]["physicalLocation"]
    assert physical_location["artifactLocation"] == {"uri": expected}
