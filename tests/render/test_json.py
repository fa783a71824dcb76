"""JSON: a frozen shape, its schema, and values that read back as they were."""

import dataclasses
import json
from typing import Any

from hypothesis import given
from jsonschema import Draft202012Validator

from geneb_ci import __version__
from geneb_ci.common.finding import Finding
from geneb_ci.render.findings_json import FindingV1, findings_schema
from geneb_ci.render.formats import counts_by_severity, render, sorted_findings, verdict_of
from reference_harness.formats.text import well_formed
from tests.render import examples
from tests.render.hostile import BRIEF, reports

VALIDATOR = Draft202012Validator(findings_schema())


COUNTED = "unlisted"
"""The field that is part of the counts alone."""


def test_every_field_of_a_finding_is_in_the_shape():
    fields = [f.name for f in dataclasses.fields(Finding)]
    assert [*(f.name for f in dataclasses.fields(FindingV1)), COUNTED] == fields


def plain(value: Any) -> Any:
    """What JSON makes of a value: lone surrogates have become escapes."""
    if isinstance(value, dict):
        return {plain(key): plain(member) for key, member in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return well_formed(value) if isinstance(value, str) else value


@BRIEF
@given(report=reports())
def test_it_reads_back_and_validates(report):
    output = render("json", report)
    value = json.loads(output)
    assert value == plain(
        {
            "format_version": "1.0",
            "tool": {"name": "geneb-ci", "version": __version__},
            "verdict": str(verdict_of(report)),
            "files": len(report.files),
            "rules": report.rules,
            "counts": {
                str(severity): number for severity, number in counts_by_severity(report).items()
            },
            "benchmarks": [
                {"name": name, "sha256": sha} for name, sha in sorted(report.benchmarks.items())
            ],
            "findings": [
                {k: v for k, v in dataclasses.asdict(finding).items() if k != COUNTED}
                for finding in sorted_findings(report)
            ],
            "unreadable": [
                {"message": error.message, "fix": error.fix} for error in report.unreadable
            ],
            "skipped": [],
        }
    )
    assert list(VALIDATOR.iter_errors(value)) == []
    assert output.isascii()


def test_what_was_skipped_is_an_addition_that_older_reports_lack():
    value = json.loads(render("json", examples.alone()))
    assert list(VALIDATOR.iter_errors(value)) == []
    del value["skipped"]
    assert list(VALIDATOR.iter_errors(value)) == []
