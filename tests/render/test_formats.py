"""The registry: one signature, and no format pays for another's imports."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker, FileResult, Report
from geneb_ci.cli.check import check_command
from geneb_ci.common.errors import UsageProblem
from geneb_ci.render.formats import (
    FORMATS,
    FULL_TEXT,
    Renderer,
    counts_by_severity,
    render,
    renderer,
)
from tests.house.tracked import python_files
from tests.paths import outside_rows


@pytest.mark.parametrize("name", FORMATS)
def test_one_signature(name):
    expected = inspect.signature(Renderer.__call__)
    own = inspect.signature(renderer(name))
    assert list(own.parameters.values()) == list(expected.parameters.values())[1:]


def test_an_unknown_name():
    with pytest.raises(UsageProblem) as caught:
        render("html", Report())
    assert (caught.value.message, caught.value.fix) == (
        "'html' is not a format",
        f"use one of {', '.join(FORMATS)}",
    )


def test_only_text_imports_rich():
    """One after another in one process: the first that imports it is named first."""
    names = [name for name in FORMATS if name not in {"text", FULL_TEXT}]
    program = (
        "import sys\nfrom geneb_ci.check.runner import Report\n"
        "from geneb_ci.render.formats import render\n"
        f"for name in {names!r}:\n"
        "    render(name, Report())\n"
        "    if 'rich' in sys.modules:\n        print(name)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert (len(names) >= 5, result.stdout, result.stderr) == (True, "", "")


def test_a_real_run_in_every_format(tmp_path):
    """Findings and frames as the runner makes them, from a file with faults of many kinds."""
    path = tmp_path / "::error::x.json"
    path.write_text('{"schema_version":"1.0","model_id":"\u202e@team","a":[NaN],"a":1}', "utf-8")
    report = Report(rules=len(RULES))
    for result in Checker(RULES).run([path]):
        assert isinstance(result, FileResult)
        report.add(result)
    assert len(report.excerpts) == len(report.findings) == sum(counts_by_severity(report).values())
    for name in FORMATS:
        assert render(name, report).count("duplicate-key") >= 1


def test_every_module_that_renders_a_report_is_a_format():
    modules = {
        path.stem
        for path in python_files("geneb_ci")
        if path.parts[1] == "render" and path.name != "formats.py"
        if re.search(
            r"^def render\(report: Report", outside_rows(path).read_text("utf-8"), re.MULTILINE
        )
    }
    assert modules == {value.module for value in FORMATS.values()}


@pytest.mark.parametrize("name", FORMATS)
def test_what_a_format_escapes_is_tested_on_hostile_reports(name):
    """test_hostile.py reads no format: what is a command or a formula there, its own test knows."""
    tests = [path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py")]
    own = [text for text in tests if f'render("{name}", ' in text and "reports()" in text]
    assert own, f"write tests/render/test_{name}.py, with the reports of tests/render/hostile.py"


def test_the_help_of_check_says_what_each_format_is_for():
    [option] = [parameter for parameter in check_command.params if parameter.name == "formats"]
    assert isinstance(option, click.Option)
    assert all(
        f"{name}: {member.description}" in str(option.help) for name, member in FORMATS.items()
    )
