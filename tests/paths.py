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
IMPORTABLE = str(ROOT)
"""The checkout as an entry of Python's path, for an interpreter that tests start."""
# Task data of others stay out of the repository: `make real-tasks` fetches them.
_PULLED, _BESIDE = ROOT / "build" / "real-tasks", ROOT.parent / "shared" / "geneb" / "tasks"
REAL_TASKS = Path(os.environ.get("GENEB_REAL_TASKS") or (_PULLED if _PULLED.is_dir() else _BESIDE))
"""The six real tasks of tests/real_tasks.json, where they are at hand."""


def outside_rows(name: str | Path) -> Path:
    """Return a path of the checkout by a name that is known when the test runs.

    Raises ValueError for one that may reach the live rows, which `ROOT / name` would not.
    """
    path = Path(name)
    if path.is_absolute() or ".." in path.parts or path.parts[:1] in {(), (LIVE.name,)}:
        msg = f"{name}: expected a path of the checkout outside {LIVE.name}/"
        raise ValueError(msg)
    return ROOT / path
