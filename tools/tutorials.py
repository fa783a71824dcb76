"""`make tutorials`: runs the commands of the tutorials in an empty environment.

usage: python -m tools.tutorials [PAGE]...

Each page gets a new home, a new folder and a new virtual environment of this Python, in which the
page's own first command installs the program. Git replaces the address on the page by a copy of
this checkout, so the commands stay as the page shows them; nothing else of the checkout is visible.
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
"""The name of this module, with which a page marks the blocks that install."""
ADDRESS = "https://github.com/OWNER/geneb-ci"
"""The address of the program on the pages."""
COMMANDS_MAX = {"docs/contributor/tutorial.md": 10, "docs/reader/tutorial.md": 20}
"""Most commands that the reader of a page has to type, by page."""
SECONDS_MAX = 180
"""Most processor seconds of a page with its installation: three minutes even on one core."""
SYSTEM = ("/usr/local/bin", "/usr/bin", "/bin")


class Played(NamedTuple):
    """The number of commands on a page, and the time that they took."""

    commands: int
    install: float
    """Seconds for the installation."""
    after_install: float
    """Seconds for all other commands."""
    processor: float
    """Processor seconds of all processes together."""


def main() -> int:
    """Run the pages; return 1 at the first command that differs from its page."""
    parser = argparse.ArgumentParser(prog="make tutorials", description=__doc__.splitlines()[0])
    parser.add_argument("page", nargs="*", metavar="PAGE", help=f"of: {', '.join(COMMANDS_MAX)}")
    pages = parser.parse_args().page or [*COMMANDS_MAX]
    if unknown := [page for page in pages if page not in COMMANDS_MAX]:
        parser.error(f"{unknown[0]} is not one of: {', '.join(COMMANDS_MAX)}")
    with tempfile.TemporaryDirectory(prefix="geneb-ci-tutorials-") as root:
        repository = snapshot(Path(root, "source.git"))
        for page in pages:
            folder = Path(root, Path(page).stem)
            folder.mkdir()
            try:
                played = follow(page, folder, repository)
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
                print(f"{page}: no block installs the program; expected one")
                return 1
    return 0


def snapshot(repository: Path, root: Path = ROOT) -> Path:
    """Create a bare repository with one commit of a checkout's files, and return its path."""
    command = ["git", "init", "--quiet", "--bare", "--initial-branch=main", str(repository)]
    subprocess.run(command, check=True)
    nobody = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    env = os.environ | nobody | {"GIT_DIR": str(repository), "GIT_WORK_TREE": str(root)}
    identity = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
    # It is read a few times on this machine, so that nothing is saved by making it small.
    large = ("-c", "core.compression=0", "-c", "pack.window=0")
    for words in (
        ("add", "--all"),
        (*identity, "commit", "--quiet", "--message", "Files of the checkout"),
        # Each fetch would take a second longer from two thousand loose objects.
        ("repack", "-a", "-d", "--quiet"),
    ):
        subprocess.run(["git", *large, *words], cwd=root, env=env, check=True)
    return repository


def environment(folder: Path, repository: Path) -> dict[str, str]:
    """Create an empty home and an empty virtual environment; return the environment variables."""
    home = folder / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\nname = Ada Example\nemail = ada@example.org\n"
        f'[url "file://{repository}"]\ninsteadOf = {ADDRESS}\n',
        encoding="utf-8",
    )
    venv.create(folder / "environment", with_pip=True, symlinks=True)
    passed = {name: os.environ[name] for name in (*PASSED, *CACHES) if name in os.environ}
    path = os.pathsep.join([str(folder / "environment/bin"), *SYSTEM])
    return passed | {"HOME": str(home), "PATH": path, "COLUMNS": "80", "LANG": "C.UTF-8"}


def follow(page: str, root: Path, repository: Path) -> Played:
    """Run the commands of a page in an empty folder.

    Raises DiffersError at the first command whose exit code or output differs from the page.
    """
    variables = environment(root, repository)
    folder = root / "empty"
    folder.mkdir()
    session = Session(folder, variables, in_shell, own=MODULE)
    seconds_by_installs = {True: 0.0, False: 0.0}
    before = processor_seconds()
    for block in blocks((ROOT / page).read_text(encoding="utf-8")):
        started = time.monotonic()
        session.play(block)
        seconds_by_installs[block.test == MODULE] += time.monotonic() - started
        if block.kind == SHELL and block.test == MODULE:
            require_installed(root, variables)
    return Played(
        session.typed,
        seconds_by_installs[True],
        seconds_by_installs[False],
        processor_seconds() - before,
    )


def require_installed(folder: Path, variables: Mapping[str, str]) -> None:
    """Raise DiffersError unless both packages are imported from the environment."""
    code = "import geneb_ci, reference_harness as h; print(geneb_ci.__file__, h.__file__)"
    process = in_shell(["python", "-I", "-c", code], folder, variables)
    files = process.stdout.split()
    if not files or not all(file.startswith(f"{folder}/environment/") for file in files):
        (*_, last) = (process.stdout + process.stderr).splitlines()
        raise DiffersError(f"the program is not installed in the environment: {last}")


def processor_seconds() -> float:
    """Return the processor seconds of all ended child processes."""
    spent = os.times()
    return spent.children_user + spent.children_system


if __name__ == "__main__":
    sys.exit(main())
