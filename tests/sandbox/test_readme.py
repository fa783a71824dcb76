"""The README of the sandbox against the code: its limits, levels, modules and numbers."""

import dataclasses
import re

from geneb_ci.sandbox import levels, limits, run, seccomp
from tests.paths import ROOT, outside_rows

FOLDER = ROOT / "geneb_ci/sandbox"
TEXT = (FOLDER / "README.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return TEXT.split(f"## {title}\n")[1].split("\n## ")[0]


def test_it_lists_every_module():
    modules = {path.name for path in FOLDER.glob("*.py")} - {"__init__.py"}
    assert set(re.findall(r"`(\w+\.py)`", section("Modules"))) == modules


def test_it_lists_every_limit_with_its_default():
    rows = [row for row in section("Where each limit is").splitlines() if row.startswith("|")]
    for field in dataclasses.fields(limits.Limits):
        (row,) = [line for line in rows if f"`{field.name}`" in line.split("|")[1]]
        assert f"{field.default:,}" in row or str(field.default) in row


def test_it_lists_every_level():
    rows = re.findall(r"^\| (\d) \|", section("Levels"), re.MULTILINE)
    assert [int(row) for row in rows] == list(levels.LEVELS)


def test_its_numbers_are_those_of_the_code():
    assert f"attempts {len(run.ESCAPE_NAMES)} escapes" in section("What it promises")
    counts = {
        machine: sum(
            getattr(numbers, machine) is not None for numbers in seccomp.REFUSED_CALLS.values()
        )
        for machine in seccomp.AUDIT_NUMBER_BY_MACHINE
    }
    assert "{x86_64} refused on x86_64, {aarch64} on aarch64".format(**counts) in TEXT


def test_each_file_it_links_or_names_exists():
    for link in re.findall(r"\]\((\.\./[^)]*)\)", TEXT):
        assert (FOLDER / link).exists()
    for test in re.findall(r"`(tests/[^`]*)`", TEXT):
        assert outside_rows(test).exists()
