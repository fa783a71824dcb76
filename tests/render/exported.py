"""What the tests of exports share: programs of others, and how a CSV file is read back."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from geneb_ci.board.tables import FORMULA_GUARD

VALIDATORS = Path(sys.prefix, "validators")  # also in a copy of the checkout with more rows
WHEN = "2026-11-20T08:30:00Z"
SITE_PACKAGES = "import json, sysconfig; print(json.dumps(sysconfig.get_path('purelib')))"
PARQUET = """
import json, sys
import pyarrow.parquet as pq
found = {}
for name in ("models", "scores", "values"):
    table = pq.read_table(f"{sys.argv[1]}/{name}.parquet")
    found[name] = [dict(zip(table.column_names, map(str, table.schema.types))), table.to_pylist()]
print(json.dumps(found))
"""
"""Prints the columns and the rows of each table of a folder."""


def validated(code: str, *arguments: str | Path) -> Any:
    """Run a program in the environment of the validators; return the JSON that it prints."""
    python = VALIDATORS / "bin/python"
    if not python.exists():
        missing = "the validators are missing: make .venv/validators/.ready"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    done = subprocess.run(
        [python, "-W", "ignore", "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def unmarked(content: bytes) -> list[dict[str, str]]:
    """Read a CSV file as docs/reader/exports.md says."""
    lines = csv.DictReader(io.StringIO(content.decode(), newline=""))
    return [{k: v.removeprefix(FORMULA_GUARD) for k, v in line.items()} for line in lines]
