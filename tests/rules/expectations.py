"""What is expected of each fixture: `expected/<family>.json`, one finding a line.

A case is a rule and a verdict, such as `missing-task/fail`. Its expectation has all findings, and a
digest of the input, so that a change to a shared helper cannot change an input unnoticed.
"""

import json
from pathlib import Path
from typing import NamedTuple

from tests.rules.fixtures import FAMILIES
from tests.rules.place import Row, digest, rows_found

FOLDER = Path(__file__).with_name("expected")
VERDICTS = ("fail", "pass")


class Expectation(NamedTuple):
    """The digest of an input, and all findings of it."""

    input: str
    findings: list[Row]


NOTHING = Expectation("", [])
"""What is expected of a case that has no entry."""
Table = dict[str, dict[str, Expectation]]
"""Expectations by family, then by case, in the order of the fixtures."""


def computed() -> Table:
    """Return what the code finds in every fixture today."""
    return {
        family: {
            f"{rule}/{verdict}": Expectation(digest(fixture), rows_found(fixture))
            for rule, pair in pairs.items()
            for verdict, fixture in zip(VERDICTS, pair, strict=True)
        }
        for family, pairs in FAMILIES.items()
    }


def read(folder: Path = FOLDER) -> Table:
    """Return the expectations that are written down."""
    return {
        path.stem: {
            case: Expectation(**expectation)
            for case, expectation in json.loads(path.read_text(encoding="utf-8")).items()
        }
        for path in sorted(folder.glob("*.json"))
    }


def text_of(cases: dict[str, Expectation]) -> str:
    """Return the text of one family's file."""
    entries = []
    for case, (digits, findings) in cases.items():
        rows = ",".join(f"\n  {json.dumps(row)}" for row in findings)
        end = "\n " if findings else ""
        entries.append(f' "{case}": {{"input": "{digits}", "findings": [{rows}{end}]}}')
    return "{\n" + ",\n".join(entries) + "\n}\n"


def write(table: Table, folder: Path = FOLDER) -> None:
    """Write the file of each family, and remove those of families without cases."""
    for family, cases in table.items():
        path = folder / f"{family}.json"
        if cases:
            path.write_text(text_of(cases), encoding="utf-8", newline="\n")
        else:
            path.unlink(missing_ok=True)
