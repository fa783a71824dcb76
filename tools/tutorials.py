"""Types the tutorials as their pages stand, in an empty environment: `make tutorials`.

usage: python -m tools.tutorials [PAGE]...

Each page gets a new home, a new folder and a new virtual environment of this Python, in which its
own first command installs the program. The address on the page leads to the files as they lie here:
git replaces it, and what is typed stays what the page says. Nothing else of the checkout is seen.
This tool needs git and the standard library.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.tutorial.blocks import SHELL, DiffersError, Session, blocks, in_shell
from tools.rehearse.machine import CACHES, PASSED

ROOT = Path(__file__).resolve().parents[1]
MODULE = "tools/tutorials.py"
"""This module, which a page names above the blocks that install."""
ADDRESS = "https://github.com/OWNER/geneb-ci"
"""Where the pages say that the program is."""
COMMANDS_MAX = {"docs/contributor/tutorial.md": 10, "docs/reader/tutorial.md": 20}
"""By page: what its reader may be asked to type."""
SECONDS_MAX = 180
"""Processor seconds of a page, installation included: three minutes even on one core."""
SYSTEM = ("/usr/local/bin", "/usr/bin", "/bin")


class Played(NamedTuple):
    """The commands that a reader of a page types, and the time that they take."""

    commands: int
    install: float
    """Seconds."""
    after_install: float
    processor: float
    """Seconds of all processes together."""


def main() -> int:
    """Follow the pages; returns 1 at the first command that differs from its page."""
    parser = argparse.ArgumentParser(prog="make tutorials", description=__doc__.splitlines()[0])
    parser.add_argument("page", nargs="*", metavar="PAGE", help=f"of: {', '.join(COMMANDS_MAX)}")
    pages = parser.parse_args().page or [*COMMANDS_MAX]
    if unknown := [page for page in pages if page not in COMMANDS_MAX]:
        parser.error(f"{unknown[0]} is none of: {', '.join(COMMANDS_MAX)}")
    with tempfile.TemporaryDirectory(prefix="geneb-ci-tutorials-") as at:
        source = snapshot(Path(at, "source.git"))
        for page in pages:
            folder = Path(at, Path(page).stem)
            folder.mkdir()
            try:
                played = follow(page, folder, source)
            except DiffersError as error:
                print(f"{page}: not as the page shows\n{error}")
                return 1
            print(
                f"{page}: {played.commands} commands; install {played.install:.0f} s, the rest "
                f"{played.after_install:.0f} s; {played.processor:.0f} processor seconds",
                flush=True,
            )
            if played.commands > COMMANDS_MAX[page] or played.processor > SECONDS_MAX:
                print(f"more than {COMMANDS_MAX[page]} commands or {SECONDS_MAX} processor seconds")
                return 1
            if not played.install:
                print(f"{page}: expected a block that installs the program; there is none")
                return 1
    return 0


def snapshot(repository: Path) -> Path:
    """Make a bare repository whose only commit has the files as they lie here, and return it."""
    env = os.environ | {"GIT_DIR": str(repository), "GIT_WORK_TREE": str(ROOT)}
    identity = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
    for words in (
        ("init", "--quiet", "--bare", "--initial-branch=main", str(repository)),
        ("add", "--all"),
        (*identity, "commit", "--quiet", "--message", "The files as they lie here"),
    ):
        without_git = {k: v for k, v in env.items() if k not in {"GIT_DIR", "GIT_WORK_TREE"}}
        is_new = words[0] == "init"
        subprocess.run(["git", *words], cwd=ROOT, env=without_git if is_new else env, check=True)
    return repository


def environment(folder: Path, source: Path) -> dict[str, str]:
    """Make an empty home and an environment of nothing but Python; return the variables."""
    home = folder / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\nname = Ada Example\nemail = ada@example.org\n"
        f'[url "file://{source}"]\ninsteadOf = {ADDRESS}\n',
        encoding="utf-8",
    )
    venv.create(folder / "environment", with_pip=True, symlinks=True)
    passed = {name: os.environ[name] for name in (*PASSED, *CACHES) if name in os.environ}
    path = os.pathsep.join([str(folder / "environment/bin"), *SYSTEM])
    return passed | {"HOME": str(home), "PATH": path, "COLUMNS": "80", "LANG": "C.UTF-8"}


def follow(page: str, root: Path, source: Path) -> Played:
    """Type a page into an empty folder.

    Raises DiffersError at the first command whose exit code or output is not as on the page.
    """
    variables = environment(root, source)
    folder = root / "empty"
    folder.mkdir()
    session = Session(folder, variables, in_shell, own=MODULE)
    spent = {True: 0.0, False: 0.0}
    before = processor_seconds()
    for block in blocks((ROOT / page).read_text(encoding="utf-8")):
        begun = time.monotonic()
        session.play(block)
        spent[block.test == MODULE] += time.monotonic() - begun
        if block.kind == SHELL and block.test == MODULE:
            hold_installed(root, variables)
    return Played(session.typed, spent[True], spent[False], processor_seconds() - before)


def hold_installed(folder: Path, variables: Mapping[str, str]) -> None:
    """Raise DiffersError unless both packages are those of the environment."""
    code = "import geneb_ci, reference_harness as h; print(geneb_ci.__file__, h.__file__)"
    process = in_shell(["python", "-I", "-c", code], folder, variables)
    files = process.stdout.split()
    if not files or not all(file.startswith(f"{folder}/environment/") for file in files):
        (*_, last) = (process.stdout + process.stderr).splitlines()
        raise DiffersError(f"the program is not installed in the environment: {last}")


def processor_seconds() -> float:
    """Return the seconds that ended processes of this one have computed for."""
    spent = os.times()
    return spent.children_user + spent.children_system


if __name__ == "__main__":
    sys.exit(main())
