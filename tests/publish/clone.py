"""A repository of submissions for the benchmark of three tasks, with commits at fixed times."""

import json
import shutil
from pathlib import Path
from typing import Any, Self

from tests.git import git, head_of
from tests.paths import ROOT, SUBMISSIONS
from tests.small import BENCHMARK_FILE, CARD, small

FIRST = 1_795_000_000  # seconds; an hour passes between two commits
PAGE = b"<p>small</p>"
SPACE_CARD = b"---\ntitle: Small board\nsdk: static\n---\n\nA board of tests.\n"


class Folder:
    """A git repository in a folder of its own, with nothing in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.commits: list[str] = []
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def copied(self, root: Path) -> Self:
        """Copy the repository with its history to a folder that is not there."""
        copy = object.__new__(type(self))
        copy.root, copy.commits = shutil.copytree(self.root, root), list(self.commits)
        return copy

    def git(self, *arguments: str) -> str:
        return git(self.root, *arguments, when=f"{FIRST + 3600 * len(self.commits)} +0000")

    def write(self, name: str, content: bytes | dict[str, Any]) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    def commit(self, message: str) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self._note()

    def merge(self, branch: str, message: str) -> str:
        self.git("merge", "--quiet", "--no-ff", "--message", message, branch)
        return self._note()

    def add(self, model: str, **meta: Any) -> Path:
        """Write a submission with its card; `meta` changes what it says of the model."""
        document = small(model)
        document["meta"] |= meta
        self.write(f"submissions/cards/{model}.md", CARD.encode())
        return self.write(f"submissions/{model}.json", document)

    def _note(self) -> str:
        self.commits.append(head_of(self.root))
        return self.commits[-1]


class Clone(Folder):
    """A repository with one small submission."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.write("schemas/benchmark.json", BENCHMARK_FILE.read_bytes())
        self.write("leaderboard/policy/official.json", {"files": {}})
        self.write("leaderboard/README.md", SPACE_CARD)
        self.write("leaderboard/index.html", PAGE)
        self.add("model-a")
        self.commit("Lay the ground")


class Public(Folder):
    """The public submissions in one commit, whatever history this repository has here."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        shutil.copytree(SUBMISSIONS, root / "submissions")
        shutil.copytree(ROOT / "leaderboard", root / "leaderboard")
        shutil.copytree(ROOT / "schemas", root / "schemas")
        self.commit("Lay the ground")
