"""Git repositories of a few rows, with a history that nobody's settings change."""

import json
import shutil
from pathlib import Path
from typing import Any

from tests.git import git, head_of
from tests.paths import ROOT, SUBMISSIONS
from tests.small import BENCHMARK_FILE, CARD, small


def commit(root: Path, message: str = "a change") -> str:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--allow-empty", "--message", message)
    return head_of(root)


def put(root: Path, name: str, document: Any = None) -> Path:
    """Write a row and its card."""
    path = root / f"submissions/{name}.json"
    path.write_text(json.dumps(document or small(name)), encoding="utf-8")
    (root / f"submissions/cards/{name}.md").write_text(CARD, encoding="utf-8")
    return path


def small_repository(root: Path, *names: str) -> Path:
    """Make a repository of small rows, committed."""
    for folder in ("schemas", "submissions/cards", "leaderboard/policy"):
        (root / folder).mkdir(parents=True)
    shutil.copy(BENCHMARK_FILE, root / "schemas/benchmark.json")
    for file, member in (("official", "files"), ("registry", "models")):
        path = root / f"leaderboard/policy/{file}.json"
        path.write_text(json.dumps({member: {}}), encoding="utf-8")
    for name in names:
        put(root, name)
    git(root, "init", "--quiet", "--initial-branch", "main")
    commit(root, "rows")
    return root


def real_repository(root: Path, *names: str, code: bool = False) -> Path:
    """Make a repository of public rows, all unless some are named, committed."""
    shutil.copytree(ROOT / "leaderboard", root / "leaderboard")
    shutil.copytree(ROOT / "schemas", root / "schemas")
    shutil.copytree(SUBMISSIONS / "cards", root / "submissions/cards")
    for path in SUBMISSIONS.glob("*.json"):
        if not names or path.stem in names:
            shutil.copy(path, root / "submissions")
    if code:
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "geneb_ci", root / "geneb_ci", ignore=unwanted)
    git(root, "init", "--quiet", "--initial-branch", "main")
    commit(root, "rows")
    return root
