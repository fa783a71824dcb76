"""Lets every Python process whose path has this folder rerun by tests/audit/unboxed.py."""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).parents[1] / "unboxed.py"))["install"]()
