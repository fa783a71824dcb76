"""Writes the hostile inputs and the table of what must be said of each.

    python -m tests.hostile.make            writes them
    python -m tests.hostile.make --check    fails if a file differs from what would be written

Inputs are numbered as in the list of hostile inputs that the issue names; those that are large,
links, pipes or folders are made by the tests and not kept.
"""

import json
import sys
from pathlib import Path
from typing import Any

from tests.hostile import cases_bytes, cases_text
from tests.hostile.case import Case
from tests.hostile.cases_values import ACCEPTED, REJECTED
from tests.paths import SUBMISSIONS
from tests.small import small

HERE = Path(__file__).resolve().parent
REJECT = {
    f"reject/{case.name}.json": case for case in (*cases_bytes.CASES, *cases_text.CASES, *REJECTED)
}
ACCEPT = {f"accept/{case.name}.json": case for case in ACCEPTED}
BY_FILE = REJECT | ACCEPT


def collision(name: str) -> bytes:
    return (json.dumps(small(name), indent=1) + "\n").encode()


def off_grid() -> bytes:
    """Change the last digit of one accuracy of a real row: no number of test sequences gives it."""
    text = (SUBMISSIONS / "splicebert-1024nt.json").read_text(encoding="utf-8")
    head, value, tail = text.partition('"Acc":0.8684034736138944')
    return f"{head}{value[:-4]}{9 - int(value[-4])}{value[-3:]}{tail}".encode()


# Ids that differ in more than letter case, so that every file system can hold both files.
OTHERS = {
    "collision/dnabert-2.json": collision("dnabert-2"),
    "collision/DNABERT_2.json": collision("DNABERT_2"),
    "alone/off-grid-accuracy.json": off_grid(),
}


def files() -> dict[str, bytes]:
    """Give the bytes of each committed file, the table included."""
    inputs = {name: case.data() for name, case in BY_FILE.items()} | OTHERS
    return inputs | {"expected.json": table().encode()}


def table() -> str:
    """Write what must be said of each file, one finding a line."""
    rows = {name: row(case) for name, case in BY_FILE.items()}
    return json.dumps(rows, indent=1, sort_keys=True) + "\n"


def row(case: Case) -> dict[str, Any]:
    findings = [
        {**said._asdict(), "line": place.line, "column": place.column}
        for said, place in zip(case.says, case.places(), strict=True)
    ]
    return {"input": case.number, "findings": findings, "also": list(case.also)}


def committed() -> set[str]:
    """List the files that are there."""
    folders = ("reject", "accept", "collision", "alone")
    found = {f"{folder}/{path.name}" for folder in folders for path in (HERE / folder).iterdir()}
    return found | {"expected.json"}


def main() -> int:
    """Write or compare."""
    wanted = files()
    if "--check" in sys.argv:
        stale = [
            n
            for n, raw in wanted.items()
            if not (HERE / n).is_file() or (HERE / n).read_bytes() != raw
        ]
        stale += sorted(committed() - set(wanted))
        if stale:
            sys.stderr.write(f"run python -m tests.hostile.make: {', '.join(stale)}\n")
        return 1 if stale else 0
    for name, raw in wanted.items():
        path = HERE / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(raw)
    for name in committed() - set(wanted):
        (HERE / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
