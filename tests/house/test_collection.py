"""Every test that is written is run: pytest's collection against the files that git tracks."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import NIGHTLY
from tests.house.collection import chooses_nothing, collected, missing
from tests.house.tracked import python_files
from tests.paths import ROOT

TESTS_MIN = 4464
"""No fewer than there were when this test was written; raise it as tests are added."""
FILES = tuple(path for path in python_files("tests") if path.name.startswith("test_"))


def test_every_test_of_the_repository_is_collected(request: pytest.FixtureRequest):
    assert len(FILES) > 150
    # A run of the whole suite has just collected it, but for what is marked `nightly`.
    ids = [item.nodeid for item in request.session.items] + request.config.stash.get(NIGHTLY, [])
    absent = missing(ROOT, FILES, ids)
    if absent:
        ids = collected(ROOT)
        absent = missing(ROOT, FILES, ids)
    assert absent == []
    assert chooses_nothing(ROOT)
    assert len(ids) >= TESTS_MIN


SMALL = {
    "tests/__init__.py": "",
    "tests/conftest.py": "",
    "tests/build/__init__.py": "",
    "tests/build/test_a.py": "def test_one():\n    pass\n\n\ndef test_two():\n    pass\n",
    "tests/page/test_b.py": "class TestPage:\n    def test_three(self):\n        pass\n",
}
SMALL_FILES = [Path(name) for name in SMALL if "/test_" in name]
IN_BUILD = ["tests/build/test_a.py::test_one", "tests/build/test_a.py::test_two"]
ONE, _, PAGE = (*IN_BUILD, "tests/page/test_b.py::test_three")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Lay out a checkout with this repository's settings and three tests."""
    for name, text in SMALL.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


@pytest.mark.nightly  # in the gate: this checkout, and one with a hidden test
def test_nothing_is_missing_from_a_sound_checkout(small: Path):
    assert missing(small, SMALL_FILES, collected(small)) == []


def replaced(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        text = (root / name).read_text(encoding="utf-8")
        assert re.search(old, text), f"{name} has no {old}"
        (root / name).write_text(re.sub(old, new, text, count=1), encoding="utf-8")

    return change


def added(name: str, text: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        path = root / name
        path.write_text((path.read_text("utf-8") if path.exists() else "") + text, "utf-8")

    return change


def both(first: Callable[[Path], None], second: Callable[[Path], None]) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        first(root)
        second(root)

    return change


HIDDEN: dict[str, tuple[Callable[[Path], None], list[str]]] = {
    "norecursedirs-is-the-default": (
        replaced("pyproject.toml", r"(?m)^norecursedirs.*\n", ""),
        IN_BUILD,
    ),
    "norecursedirs-names-it": (
        replaced("pyproject.toml", r"(?m)^norecursedirs.*", 'norecursedirs = ["build"]'),
        IN_BUILD,
    ),
    "ignored-in-addopts": (
        replaced("pyproject.toml", 'addopts = "', 'addopts = "--ignore=tests/build '),
        IN_BUILD,
    ),
    "deselected-in-addopts": (
        replaced("pyproject.toml", 'addopts = "', 'addopts = "--deselect tests/build/test_a.py '),
        IN_BUILD,
    ),
    "other-testpaths": (
        replaced("pyproject.toml", r"testpaths = .*", 'testpaths = ["tests/page"]'),
        IN_BUILD,
    ),
    "other-names": (
        replaced("pyproject.toml", "xfail_strict", 'python_functions = ["test_t*"]\nxfail_strict'),
        [ONE],
    ),
    "chosen-in-the-recipe": (replaced("Makefile", '-m ""', "-k page"), IN_BUILD),
    "ignored-in-the-recipe": (
        replaced("Makefile", '-m ""', "--ignore tests/page"),
        [PAGE],
    ),
    "another-file-of-settings": (
        added("pytest.ini", "[pytest]\ntestpaths = tests/page\n"),
        IN_BUILD,
    ),
    "collect_ignore": (added("tests/conftest.py", 'collect_ignore = ["build"]\n'), IN_BUILD),
    "collect_ignore_glob": (
        added("tests/build/conftest.py", 'collect_ignore_glob = ["test_*"]\n'),
        IN_BUILD,
    ),
    "a-hook-that-ignores": (
        added(
            "tests/conftest.py",
            "def pytest_ignore_collect(collection_path):\n"
            "    return True if collection_path.name == 'build' else None\n",
        ),
        IN_BUILD,
    ),
    "a-hook-that-drops-items": (
        added(
            "conftest.py",
            "def pytest_collection_modifyitems(items):\n    items[:] = items[1:]\n",
        ),
        [ONE],
    ),
    "skipped-as-a-module": (
        added("tests/build/test_a.py", "import pytest\npytest.skip('', allow_module_level=True)\n"),
        IN_BUILD,
    ),
    "nightly-in-the-recipe-of-the-night": (
        both(
            replaced("Makefile", '-m ""', ""),
            replaced("tests/page/test_b.py", "class", "import pytest\n@pytest.mark.nightly\nclass"),
        ),
        [PAGE],
    ),
    "a-file-that-opts-out": (added("tests/build/test_a.py", "test_one.__test__ = False\n"), [ONE]),
    "a-class-that-is-no-test": (
        replaced("tests/page/test_b.py", "TestPage", "Page"),
        [PAGE],
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("-n auto --dist worksteal", True),
        ("-n 4", True),
        ("", True),
        ("-n auto -k page", False),
        ("-n auto --ignore tests/page", False),
        ("--dist worksteal tests/page", False),
    ],
)
def test_a_recipe_that_only_spreads_tests_over_workers_chooses_none(
    small: Path, words: str, expected: bool
):
    replaced("Makefile", "(-m pytest) -n auto.*", rf"\1 {words}")(small)
    assert chooses_nothing(small) is expected


IN_THE_GATE = {"ignored-in-addopts"}
"""Of the ways to hide a test; the rest are nightly."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in IN_THE_GATE else pytest.mark.nightly)
        for name in HIDDEN
    ],
)
def test_a_hidden_test_is_named(small: Path, name: str):
    change, expected = HIDDEN[name]
    change(small)
    assert missing(small, SMALL_FILES, collected(small)) == expected


@pytest.mark.nightly  # of pytest's own setting
def test_a_parametrized_test_without_parameters_is_refused(small: Path):
    """Else it would be one skipped test, and count as collected."""
    (small / "tests/build/test_a.py").write_text(
        "import pytest\n\n\n@pytest.mark.parametrize('x', [])\ndef test_one(x):\n    pass\n"
    )
    with pytest.raises(AssertionError, match="Empty parameter set"):
        collected(small)
