"""Writes the fixtures of the rules, and beside each what is found in it.

    python -m tests.rules.make            writes them
    python -m tests.rules.make --check    fails if a file differs from what would be written

Read the difference of an expected.json before you commit it: it is what contributors will read.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from tests.rules.fixtures import FIXTURES
from tests.rules.place import EXPECTED, HERE, found


def files() -> dict[str, bytes]:
    """Give the bytes of each committed file, but for what is found."""
    return {
        f"{rule}/{verdict}/{name}": data
        for rule, (failing, passing) in FIXTURES.items()
        for verdict, inputs in (("fail", failing), ("pass", passing))
        for name, data in inputs.items()
    }


def committed() -> dict[str, bytes]:
    """Read the files that are there."""
    return {
        str(path.relative_to(HERE)): path.read_bytes()
        for folder in HERE.iterdir()
        if folder.is_dir() and folder.name != "__pycache__"
        for path in folder.rglob("*")
        if path.is_file() and path.name != EXPECTED
    }


def main() -> int:
    """Write or compare."""
    wanted, there = files(), committed()
    if "--check" in sys.argv:
        stale = sorted(name for name in wanted | there if wanted.get(name) != there.get(name))
        if stale:
            sys.stderr.write(f"run python -m tests.rules.make: {', '.join(stale)}\n")
        return 1 if stale else 0
    for rule in {name.split("/")[0] for name in wanted | there}:
        shutil.rmtree(HERE / rule, ignore_errors=True)
    for name, data in wanted.items():
        path = HERE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for fixture in sorted(path for rule in FIXTURES for path in (HERE / rule).iterdir()):
        with tempfile.TemporaryDirectory() as root:
            rows = found(fixture, Path(root).resolve())
        lines = ",\n".join(f" {json.dumps(row)}" for row in rows)
        (fixture / EXPECTED).write_text(f"[\n{lines}\n]\n" if rows else "[]\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
