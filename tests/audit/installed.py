"""A repository and an installation beside it, as the demonstration has, for many commands."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

from tests import forked
from tests.audit import unboxed
from tools.demo_audit import DRAWN, MiniRepository

UNBOXED_SITE = Path(__file__).with_name("site")
"""Folder for the path of processes that commands start, such as those of a queue."""
SCORED_HERE = Path(__file__).with_name("scored_here.py")


class Installed(MiniRepository):
    """Runs the commands of the installation as forks of a process that has its libraries."""

    allowed: frozenset[str] = frozenset()
    """Numbers of servers that the commands may reach, beside the public ones."""

    harness_alone = True
    """Whether reruns in a sandbox are scored by a process of the harness, as they are for users;
    else in the process of the command, which takes scores that another test has computed."""

    torch = False
    """Whether the process that they are forks of has torch: set it after the environment."""

    def __init__(self, folder: Path, drawn: int = DRAWN, *, boxed: bool = True) -> None:
        """Lay both out; unless `boxed`, commands rerun by tests/audit/unboxed.py."""
        self.boxed = boxed
        super().__init__(folder, drawn, forked.installation())

    @contextlib.contextmanager
    def in_sandbox(self, *, harness_alone: bool = True) -> Iterator[None]:
        """Let commands rerun in a sandbox, as they do for users."""
        before = self.boxed, self.harness_alone
        self.boxed, self.harness_alone = True, harness_alone
        yield
        self.boxed, self.harness_alone = before

    @contextlib.contextmanager
    def without_audits(self) -> Iterator[None]:
        """Set the audits of earlier tests aside: their draws would be compared with new ones."""
        audits, earlier_audits = self.root / "leaderboard/audits", self.root / "earlier-audits"
        audits.mkdir(parents=True, exist_ok=True)
        audits.rename(earlier_audits)
        audits.mkdir()
        try:
            yield
        finally:
            shutil.rmtree(audits)
            earlier_audits.rename(audits)

    @property
    def _before(self) -> Path | None:
        """The file that is run before a command."""
        if not self.boxed:
            return Path(unboxed.__file__)
        return None if self.harness_alone else SCORED_HERE

    def audit_one_regime(self) -> None:
        """Let the policy audit 1shot alone."""
        policy = self.root / "leaderboard/policy/policy.toml"
        text = policy.read_text(encoding="utf-8").replace(
            '["full", "10shot", "1shot"]', '["1shot"]'
        )
        policy.write_text(text, encoding="utf-8")

    @contextlib.contextmanager
    def unboxed_processes(self) -> Iterator[None]:
        """Let processes that a command starts rerun by tests/audit/unboxed.py too."""
        before = self.environment["PYTHONPATH"]
        self.environment["PYTHONPATH"] = f"{before}{os.pathsep}{UNBOXED_SITE}"
        yield
        self.environment["PYTHONPATH"] = before

    def run(self, module: str, *arguments: str, check: bool = True) -> CompletedProcess[str]:
        """Run a command of the installation in the repository, and keep what it says."""
        done = forked.run(
            *(module, *arguments),
            cwd=self.root,
            env=self.environment,
            before=self._before,
            allowed=self.allowed,
            torch=self.torch,
        )
        if check:
            done.check_returncode()
        return done

    def start(self, module: str, *arguments: str) -> forked.Started:
        """Start a command as `run` does; it can be killed."""
        return forked.start(
            *(module, *arguments),
            cwd=self.root,
            env=self.environment,
            before=self._before,
        )
