"""A board that `init` wrote, and servers on loopback to set it up on."""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from geneb_ci.github.errors import WaitingLimits
from geneb_ci.publish.git import GitRepository
from tests import forked
from tests.git import git
from tests.github.server import REPOSITORY, TOKEN
from tests.github.serving import serving
from tests.github.settings_server import SettingsServer
from tests.publish.command import environment
from tests.publish.hub import WRITER, Hub

IMPATIENT = WaitingLimits(
    wait_max=5,
    secondary_wait=0.01,
    retries=2,
    first_backoff=0,
    pause_between_writes=0,
    request_time_max=10,
)
SPACE = REPOSITORY
FIRST = ("init", "--repo", REPOSITORY, "--maintainers", "@org/maintainers")
SECOND = ("init", "--apply")
THIRD = ("publish", "--space", SPACE)
SAFE = {"PYTHONSAFEPATH": "1"}
"""A command is the program that is installed, not the code of the board that it is run in."""


@pytest.fixture(scope="session")
def identity(tmp_path_factory) -> Path:
    """Return a home whose git knows who commits."""
    home: Path = tmp_path_factory.mktemp("home")
    (home / ".gitconfig").write_text("[user]\nname = M. Aintainer\nemail = m@example.org\n")
    return home


class Board(NamedTuple):
    """A folder that `init` wrote, and what it printed."""

    root: Path
    said: str


SHARED = ("geneb_ci", "reference_harness", ".git/objects")
"""Nine in ten files of a board: the code, which no test alters, and what git never alters."""


@pytest.fixture(scope="session")
def written(tmp_path_factory, identity) -> Iterator[Board]:
    """Write a board once; tests copy it, and none alters a file that all copies share."""
    root = tmp_path_factory.mktemp("board")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("HOME", str(identity))
        patch.setenv("XDG_CONFIG_HOME", str(identity))
        message = run(FIRST, root, identity, err="")
    git(root, "gc", "--quiet")  # one file in place of 700 for each copy
    before = contents(root)
    yield Board(root, message)
    assert contents(root) == before


def run(
    words: tuple[str, ...],
    cwd: Path,
    home: Path,
    code: int = 0,
    err: str | None = None,
    **more: str,
) -> str:
    """Run a command in a process of its own, and return what it prints.

    Fails for another exit code, and for other errors than those given.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "GITHUB_", "GH_"))}
    env |= {"HOME": str(home), "XDG_CONFIG_HOME": str(home), "COLUMNS": "80", **SAFE, **more}
    done = forked.run("geneb_ci", *words, cwd=cwd, env=env)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert err in {None, done.stderr}
    return str(done.stdout)


@pytest.fixture
def board(written, tmp_path, monkeypatch, identity) -> Board:
    """Lend a copy of the board, as the current folder."""
    root = tmp_path / "board"
    shared = tuple(f"{written.root / name}/" for name in SHARED)

    def copied(source: str, target: str) -> None:
        """Copy a file, or link one of those that all copies share: a fifth of the time."""
        (os.link if source.startswith(shared) else shutil.copy2)(source, target)

    shutil.copytree(written.root, root, symlinks=True, copy_function=copied)
    monkeypatch.chdir(root)
    monkeypatch.setenv("HOME", str(identity))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(identity))
    return Board(root, written.said)


def contents(root: Path) -> Mapping[str, tuple[int, bytes]]:
    """Return mode and bytes of each file of a folder, apart from those of git and of Python."""
    files = {}
    for folder, folder_names, names in os.walk(root):
        folder_names[:] = {*folder_names} - {".git", "__pycache__"}
        for path in (Path(folder, name) for name in {*names} - {".git"}):
            if path.is_file():
                files[path.relative_to(root).as_posix()] = path.stat().st_mode, path.read_bytes()
    return dict(sorted(files.items()))


class Forge(SettingsServer):
    """GitHub with a git repository that is pushed to."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.main_of = self._pushed
        self.before = self._rules_come_last
        git(folder.parent, "init", "--quiet", "--bare", "--initial-branch=main", str(folder))

    def _rules_come_last(self, verb: str, path: str) -> None:
        """Hang up on a ruleset that would refuse the first push."""
        assert (verb, path.endswith("/rulesets")) != ("POST", True) or self.main_of()

    def _pushed(self) -> str:
        """Learn what was pushed, once."""
        if not self.pushed and git(self.folder, "for-each-ref", "refs/heads/main"):
            bare = GitRepository(self.folder)
            entries = bare.tree("main", ())
            blobs = dict(bare.blobs(entry.blob for entry in entries))
            self.push({entry.path: (entry.mode, blobs[entry.blob]) for entry in entries})
        return self.pushed


class Servers(NamedTuple):
    """GitHub and the Hub."""

    forge: Forge
    hub: Hub

    def environment(self, home: Path) -> dict[str, str]:
        environment_of_home = environment(self.hub, home, HOME=str(home), XDG_CONFIG_HOME=str(home))
        return environment_of_home | {
            **SAFE,
            "GH_TOKEN": TOKEN,
            "HF_TOKEN": WRITER,
            "GITHUB_API_URL": self.forge.address,
            "GITHUB_SERVER_URL": f"file://{self.forge.folder.parent.parent}",
        }


@pytest.fixture
def servers(tmp_path) -> Iterator[Servers]:
    (tmp_path / "hosted/org").mkdir(parents=True)
    hub = Hub()
    with serving(Forge(tmp_path / "hosted/org/board.git")) as forge:
        assert isinstance(forge, Forge)
        yield Servers(forge, hub)
    hub.close()
