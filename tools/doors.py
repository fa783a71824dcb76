"""`make doors`: tests the ways of installation in docs/contributor/install.md.

usage: python -m tools.doors

The commands and the hook of the page are run in an empty home folder, with uv, pipx, pre-commit and
prek. Only the address of the repository is replaced by a copy of this checkout, as in
tools/tutorials.py. A valid submission must pass, and the hooks must reject one without a score.
This needs git and a package index.
"""

import re
import shlex
import shutil
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path

from tests.tutorial.blocks import Done, blocks, in_shell
from tools.tutorials import environment, snapshot

ROOT = Path(__file__).resolve().parents[1]
PAGE = "docs/contributor/install.md"
MODULE = "tools/doors.py"
PROGRAMS = ("pipx==1.18.4", "pre-commit==4.7.0", "prek==0.5.11", "uv==0.13.9")
ROW = ROOT / "submissions/GROVER.json"
REFUSED = 1
"""Exit code of pre-commit and prek if a hook fails."""


class InstallHome:
    """An empty home folder, in which each way of installation is tried."""

    def __init__(self, at: Path) -> None:
        repository = snapshot(at / "source.git")
        self.variables = environment(at, repository)
        programs, local = at / "programs", at / "home/.local/bin"
        venv.create(programs, with_pip=True, symlinks=True)
        path = f"{programs}/bin:{local}:{self.variables['PATH']}"
        self.variables |= {"PATH": path}
        self.at = at
        self.commit = self.run("git", "-C", str(repository), "rev-parse", "HEAD").stdout.strip()
        self.run(f"{programs}/bin/python", "-m", "pip", "install", "--quiet", *PROGRAMS)

    def run(self, *words: str, code: int = 0, cwd: Path | None = None) -> Done:
        """Run a command. Raises RuntimeError with its output if the exit code is another one."""
        process = in_shell([*words], cwd or self.at, self.variables)
        if process.returncode != code:
            message = f"$ {shlex.join(words)}\nexit code {process.returncode}\n{process.stdout}"
            raise RuntimeError(message + process.stderr)
        return process

    def install_and_uninstall(self, page_text: str, tool: str) -> None:
        """Install with the command in the page's table, run the program, and uninstall it."""
        (command,) = re.findall(rf"^\| {tool} \| `(.*)` \|$", page_text, re.MULTILINE)
        self.run(*shlex.split(command))
        program = self.at / "home/.local/bin/geneb-ci"
        self.run(str(program), "check", str(ROW))
        *program_of, _, _ = shlex.split(command)  # without `install` and the address
        self.run(*program_of, "uninstall", "geneb-ci")

    def run_uninstalled(self, page_text: str) -> None:
        """Run the block of the page that works without an installation."""
        (block,) = [page_block for page_block in blocks(page_text) if page_block.test == MODULE]
        shutil.copy(ROW, self.at / "submission.json")
        for command, _ in block.typed():
            self.run(*shlex.split(command))

    def hook(self, page_text: str, program: str) -> None:
        """Run the page's hook on a valid submission, and on one without a score."""
        (settings,) = re.findall(r"^```yaml\n(.*?)^```", page_text, re.MULTILINE | re.DOTALL)
        folder = self.at / program
        row = folder / "submissions" / ROW.name
        row.parent.mkdir(parents=True)
        shutil.copy(ROW, row)
        file = folder / ".pre-commit-config.yaml"
        file.write_text(settings.replace("COMMIT", self.commit), encoding="utf-8")
        self.run("git", "init", "--quiet", cwd=folder)
        self.run("git", "add", "--all", cwd=folder)
        self.run(program, "run", cwd=folder)
        valid_text = row.read_text(encoding="utf-8")
        row.write_text(valid_text.replace('"MCC"', '"MCX"', 1), encoding="utf-8")
        self.run("git", "add", "--all", cwd=folder)
        self.run(program, "run", cwd=folder, code=REFUSED)


WAYS: dict[str, Callable[[InstallHome, str], None]] = {
    "uvx": InstallHome.run_uninstalled,
    "uv": lambda home, text: home.install_and_uninstall(text, "uv"),
    "pipx": lambda home, text: home.install_and_uninstall(text, "pipx"),
    "pre-commit": lambda home, text: home.hook(text, "pre-commit"),
    "prek": lambda home, text: home.hook(text, "prek"),
}


def main() -> int:
    """Try each way; return 1 at the first one that does not do what the page says."""
    page_text = (ROOT / PAGE).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="geneb-ci-doors-") as folder:
        home = InstallHome(Path(folder))
        for tool, way in WAYS.items():
            started = time.monotonic()
            try:
                way(home, page_text)
            except RuntimeError as error:
                print(f"{tool}: {error}")
                return REFUSED
            print(f"{tool}: {time.monotonic() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
