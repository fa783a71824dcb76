"""A repository and an installation beside it, as the demonstration has, for many commands."""

from pathlib import Path
from subprocess import CompletedProcess

from tests import forked
from tools.demo_audit import Place


class Installed(Place):
    """Runs the commands of the installation as forks of a process that has its libraries."""

    allowed: frozenset[str] = frozenset()
    """Numbers of servers that the commands may reach, beside the public ones."""

    def _site(self, folder: Path) -> Path:  # noqa: ARG002 (one for all)
        return forked.installation()

    def run(self, module: str, *arguments: str, check: bool = True) -> CompletedProcess[str]:
        """Run a command of the installation in the repository, and keep what it says."""
        done = forked.run(
            module, *arguments, cwd=self.root, env=self.environment, allowed=self.allowed
        )
        if check:
            done.check_returncode()
        return done
