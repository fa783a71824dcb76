"""What was checked elsewhere costs nothing: a check reads the results of its own files alone."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.many_rows import write_rows
from geneb_ci import api
from geneb_ci.cli.main import main
from geneb_ci.common.config import find_layout
from tests.check.test_reuse import repository
from tests.paths import SUBMISSIONS

ROWS = sorted(SUBMISSIONS.glob("*.json"))
MANY = 24
"""Files of the folder whose results are kept."""
LARGE_BYTES = 120_000_000
"""Of each file of its store, which is sparse: the disk has no block of what is added."""

opened: set[str] = set()
EVENTS = {"open", "os.scandir", "os.listdir", "os.mkdir"}


def note(event: str, given: tuple[Any, ...]) -> None:
    """Note a file or folder that is opened, listed or made."""
    if event in EVENTS:
        opened.add(str(given[0]))


sys.addaudithook(note)


def copied(folder: Path, count: int) -> list[Path]:
    """Copy public rows into a new folder and return them."""
    folder.mkdir(parents=True)
    return [Path(shutil.copy(row, folder)) for row in ROWS[:count]]


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with rows in `many`, of which the board was built, and a large `cache`."""
    root = tmp_path_factory.mktemp("checked")
    copied(root / "many", MANY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(root / "cache"))
        patch.delenv("GITHUB_ACTIONS", raising=False)
        api.build(root / "many", diagnostics=False, out=root / "board")
    files = [*(root / "cache/geneb-ci/check").iterdir()]
    assert len(files) > 1
    for path in files:
        os.truncate(path, LARGE_BYTES)
    return root


@pytest.fixture
def used(checked: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], set[str]]:
    """Return what says which files of results were opened; "." is their folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(checked / "cache"))
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    find_layout.cache_clear()
    folder = checked / "cache/geneb-ci/check"
    opened.clear()
    return lambda: {
        str(path.relative_to(folder)) for path in map(Path, opened) if path.is_relative_to(folder)
    }


def run_command(*words: str) -> None:
    assert main([*words]) == 0


CASES: dict[str, Callable[[Path, Path], Any]] = {
    "one file": lambda _, new: api.check(copied(new, 1)[0]),
    "one of the many": lambda many, _: api.check(many / ROWS[3].name),
    "one of a small repository": lambda _, new: api.check(repository(new)[0]),
    "a small folder": lambda _, new: api.check(copied(new, 6)[0].parent),
    "beside few rows": lambda many, new: api.check(
        many / ROWS[3].name, against=copied(new, 3)[0].parent
    ),
    "bytes": lambda *_: api.check(ROWS[0].read_bytes()),
    "by the command": lambda _, new: run_command("check", str(copied(new, 1)[0])),
    "by the hook": lambda _, new: run_command("check", *map(str, repository(new)[:3])),
    "a small board": lambda _, new: api.build(
        copied(new, 3)[0].parent, diagnostics=False, out=new / "out"
    ),
    "advice on few": lambda _, new: api.recommend(copied(new, 3)[0].parent),
}


@pytest.mark.parametrize("case", CASES)
def test_few_files_open_no_results(checked, used, tmp_path, case):
    CASES[case](checked / "many", tmp_path / "new")
    assert used() == set()


@pytest.mark.parametrize("case", ["check", "build", "recommend", "one in a repository"])
def test_many_files_open_results_of_their_own_folders_alone(checked, used, tmp_path, case):
    former = {path.name for path in (checked / "cache/geneb-ci/check").iterdir()}
    rows = tmp_path / "new/submissions"
    copied(rows, MANY)
    if case == "one in a repository":
        text = '[tool.geneb-ci]\nsubmissions = "submissions"\n'
        (tmp_path / "new/pyproject.toml").write_text(text, encoding="utf-8")
        api.check(rows / ROWS[3].name)
    elif case == "build":
        api.build(rows, diagnostics=False, out=tmp_path / "out")
    else:
        getattr(api, case)(rows)
    assert used()
    assert not used() & former


def test_results_of_a_folder_follow_the_number_of_its_files(tmp_path, monkeypatch):
    """However often its rows were changed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setattr("geneb_ci.check.reuse.FILES_MIN", 1)
    write_rows(tmp_path / "rows", 3)
    rows = sorted((tmp_path / "rows").iterdir())
    sizes = []
    for number in range(14):
        path = rows[number % len(rows)]
        document = json.loads(path.read_bytes())
        document["meta"]["params"] = 2_000_000 + number
        path.write_text(json.dumps(document), encoding="utf-8")
        api.build(tmp_path / "rows", diagnostics=False, out=tmp_path / "out")
        files = (tmp_path / "cache/geneb-ci/check").iterdir()
        sizes.append(sum(path.stat().st_size for path in files))
    assert max(sizes[11:]) < 1.02 * max(sizes[:11])
