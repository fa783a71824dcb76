"""Where the tests find what they read.

Two populations: `SUBMISSIONS` never changes, `LIVE` grows with each row that is merged. A test that
expects names, numbers or findings of the public rows reads the first; one that reads the second
asserts what holds for any number of rows (tests/house/test_live_rows.py).
"""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PUBLIC = ROOT / "tests" / "public"
"""A repository of exactly the 41 public rows."""
SUBMISSIONS = PUBLIC / "submissions"
LIVE = ROOT / "submissions"
# Task data of others stay out of the repository: `make real-tasks` fetches them.
_PULLED, _BESIDE = ROOT / "build" / "real-tasks", ROOT.parent / "shared" / "geneb" / "tasks"
REAL_TASKS = Path(os.environ.get("GENEB_REAL_TASKS") or (_PULLED if _PULLED.is_dir() else _BESIDE))
"""The six real tasks of tests/real_tasks.json, where they are at hand."""
