"""git without anybody's settings, at a fixed time: a history is the same each time."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.paths import ROOT, SUBMISSIONS

MOMENT = "2026-11-20T08:30:00Z"
NAME = "M. Aintainer"


def git(root: Path, *arguments: str, stdin: str = "", when: str = MOMENT) -> str:
    """Run git in a folder, and return what it prints, without the spaces around it."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    identity = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", NAME), ("EMAIL", "m@example.org"), ("DATE", when))
    }
    nobody = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    nobody["GIT_TEMPLATE_DIR"] = ""  # no sample hooks, which each copy would have to copy
    # Else each commit starts one more process, which looks whether there is something to tidy up.
    nobody |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "maintenance.auto"}
    nobody["GIT_CONFIG_VALUE_0"] = "false"
    done = subprocess.run(
        ["git", "-C", str(root), *arguments],
        env=clean | nobody | identity,
        input=stdin,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def head_of(root: Path) -> str:
    """Return the commit that was just made in a repository, without a process."""
    folder = root / ".git"
    head = (folder / "HEAD").read_text(encoding="utf-8").strip()
    branch = head.removeprefix("ref: ")
    return head if branch == head else (folder / branch).read_text(encoding="utf-8").strip()


def board_of_rows(root: Path, *rows: str) -> None:
    """Make a repository of public rows with schemas and policy, each row in a commit of its own."""
    (root / "submissions").mkdir()
    shutil.copytree(ROOT / "schemas", root / "schemas")
    shutil.copytree(ROOT / "leaderboard/policy", root / "leaderboard/policy")
    git(root, "init", "--quiet", "--initial-branch", "main")
    for row in rows:
        shutil.copy(SUBMISSIONS / f"{row}.json", root / "submissions")
        git(root, "add", "--all")
        git(root, "commit", "--quiet", "--message", row)
