"""Installs as docs/contributor/install.md says, by uv, pipx, pre-commit and prek: `make doors`.

usage: python -m tools.doors

The commands and the hook are those of the page, run in an empty home; only the address of the page
leads to the files as they lie here, as in tools/tutorials.py. A sound submission has to pass, and
one that lacks a score has to be refused by the hooks. It needs git and a package index.
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
"""Exit code of pre-commit and prek where a hook refuses."""


class Doors:
    """A home, in which each way to the program is tried."""

    def __init__(self, at: Path) -> None:
        source = snapshot(at / "source.git")
        self.variables = environment(at, source)
        programs, local = at / "programs", at / "home/.local/bin"
        venv.create(programs, with_pip=True, symlinks=True)
        path = f"{programs}/bin:{local}:{self.variables['PATH']}"
        self.variables |= {"PATH": path}
        self.at = at
        self.commit = self.run("git", "-C", str(source), "rev-parse", "HEAD").stdout.strip()
        self.run(f"{programs}/bin/python", "-m", "pip", "install", "--quiet", *PROGRAMS)

    def run(self, *words: str, code: int = 0, cwd: Path | None = None) -> Done:
        """Run a command. Raises RuntimeError with what it printed for another exit code."""
        process = in_shell([*words], cwd or self.at, self.variables)
        if process.returncode != code:
            message = f"$ {shlex.join(words)}\nexit code {process.returncode}\n{process.stdout}"
            raise RuntimeError(message + process.stderr)
        return process

    def install_kept(self, text: str, tool: str) -> None:
        """Install by the command of the page's table, run the program, and remove it."""
        (command,) = re.findall(rf"^\| {tool} \| `(.*)` \|$", text, re.MULTILINE)
        self.run(*shlex.split(command))
        program = self.at / "home/.local/bin/geneb-ci"
        self.run(str(program), "check", str(ROW))
        *program_of, _, _ = shlex.split(command)  # but `install` and the address
        self.run(*program_of, "uninstall", "geneb-ci")

    def without(self, text: str) -> None:
        """Type the block that installs nothing."""
        (block,) = [page_block for page_block in blocks(text) if page_block.test == MODULE]
        shutil.copy(ROW, self.at / "submission.json")
        for command, _ in block.typed():
            self.run(*shlex.split(command))

    def hook(self, text: str, program: str) -> None:
        """Run the hook of the page on a sound submission, and on one without a score."""
        (settings,) = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        folder = self.at / program
        row = folder / "submissions" / ROW.name
        row.parent.mkdir(parents=True)
        shutil.copy(ROW, row)
        file = folder / ".pre-commit-config.yaml"
        file.write_text(settings.replace("COMMIT", self.commit), encoding="utf-8")
        self.run("git", "init", "--quiet", cwd=folder)
        self.run("git", "add", "--all", cwd=folder)
        self.run(program, "run", cwd=folder)
        sound = row.read_text(encoding="utf-8")
        row.write_text(sound.replace('"MCC"', '"MCX"', 1), encoding="utf-8")
        self.run("git", "add", "--all", cwd=folder)
        self.run(program, "run", cwd=folder, code=REFUSED)


WAYS: dict[str, Callable[[Doors, str], None]] = {
    "uvx": Doors.without,
    "uv": lambda doors, text: doors.install_kept(text, "uv"),
    "pipx": lambda doors, text: doors.install_kept(text, "pipx"),
    "pre-commit": lambda doors, text: doors.hook(text, "pre-commit"),
    "prek": lambda doors, text: doors.hook(text, "prek"),
}


def main() -> int:
    """Try each way; returns 1 at the first that does not do what the page says."""
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="geneb-ci-doors-") as at:
        doors = Doors(Path(at))
        for name, door in WAYS.items():
            begun = time.monotonic()
            try:
                door(doors, text)
            except RuntimeError as error:
                print(f"{name}: {error}")
                return REFUSED
            print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
