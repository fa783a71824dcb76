"""A repository and an installation beside it, as the demonstration has, for many commands."""

from pathlib import Path
from subprocess import CompletedProcess

from tests import forked
from tools.demo_audit import Place


class Installed(Place):
    """Runs the commands of the installation as forks of a process that has its libraries."""

    def _site(self, folder: Path) -> Path:  # noqa: ARG002 (one for all)
        return forked.installation()

    def run(self, module: str, *arguments: str, check: bool = True) -> CompletedProcess[str]:
        """Run a command of the installation in the repository, and keep what it says."""
        done = forked.run(module, *arguments, cwd=self.root, env=self.environment)
        if check:
            done.check_returncode()
        return done
