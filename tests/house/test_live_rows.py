"""No test expects a number of rows in `submissions/`: each merged row would break it."""

import hashlib
from pathlib import Path

import pytest

from tests.house.enlarged import enlarged, run
from tests.house.live_rows import reaches
from tests.house.tracked import python_files
from tests.paths import LIVE, ROOT, SUBMISSIONS, outside_rows

PUBLIC_ROWS = "e6132857d90d683f03123716454ccc51807652fdc1b6b8cac8eeefc2f2679808"
"""Of the names and bytes of the 41 rows in tests/public."""
# The modules that say where the root is, read pages, start the suite or build the wheel, which has
# no submission, and benches, which no gate runs.
KNOWN = (
    *("tests/paths.py", "tests/harness/support.py", "tests/house/tracked.py"),
    *("tests/house/glossary.py", "tests/house/pages.py", "tests/packaging/wheel.py"),
    *("tests/house/enlarged.py", "tests/flakes.py", "tests/forked.py"),
)
# They read the harness, which knows nothing of submissions, from the folder that holds it.
HARNESS = "tests/harness/"
NOT_AGAIN = ("tests/house/", "tests/mutants/")
"""Not run again with more rows: they read code, settings and locks, which no submission changes."""
AGAIN = ("tests/house/test_no_leaks.py", "tests/house/test_workflows.py")
"""But these read every file, or decide by the names of changed ones."""
ROWS = 100
"""Any number but 41 finds what counts on 41; `make test-rows ROWS=42` runs the whole suite."""


def readers() -> dict[str, list[str]]:
    """Name the files of tests that may reach the live folder, with the places where they do."""
    places_by_path = {}
    for path in python_files("tests"):
        places = reaches(path, (ROOT / path).read_text(encoding="utf-8"))
        if places and not path.as_posix().startswith((*KNOWN, HARNESS)):
            places_by_path[path.as_posix()] = places
    return places_by_path


def test_the_fixed_population_is_the_41_public_rows():
    files = sorted(path for path in SUBMISSIONS.rglob("*") if path.is_file())
    text = b"".join(
        path.relative_to(SUBMISSIONS).as_posix().encode() + b"\0" + path.read_bytes()
        for path in files
    )
    assert len(list(SUBMISSIONS.glob("*.json"))) == 41
    assert hashlib.sha256(text).hexdigest() == PUBLIC_ROWS


def test_the_live_folder_has_rows():
    assert list(LIVE.glob("*.json")) != []


@pytest.mark.nightly  # a rule of the house that seldom matters
def test_only_test_modules_reach_the_live_folder():
    """What a helper hands on, no scan could follow: helpers take tests.paths.SUBMISSIONS."""
    helpers = {name: at for name, at in readers().items() if "/test_" not in name}
    assert helpers == {}


@pytest.mark.nightly
def test_what_may_reach_the_live_folder_passes_with_more_rows(tmp_path: Path):
    modules = [*AGAIN, *(name for name in sorted(readers()) if not name.startswith(NOT_AGAIN))]
    assert {"tests/check/test_layouts.py", *AGAIN} < set(modules)
    rows = max(ROWS, len(list(LIVE.glob("*.json"))) + ROWS - 41)
    code, output = run(enlarged(tmp_path / "copy", rows), "-q", *modules)
    assert code == 0, output[-8000:]


FIXED = "from tests.paths import ROOT, SUBMISSIONS, LIVE\n"


@pytest.mark.parametrize(
    "line",
    [
        'x = ROOT / "submissions"',
        'x = (ROOT / "submissions/cards").iterdir()',
        'x = ROOT / "leaderboard/../submissions"',
        'x = [ROOT / name for name in ("schemas", "submissions")]',
        'x = ROOT / f"{name}"',
        "run(command, cwd=ROOT)",
        'main(["build", str(ROOT)])',
        "x = len(list(LIVE.iterdir()))",
        "def run(cwd=ROOT): ...",
        "home = ROOT",
        "import tests.paths as p\nx = p.LIVE",
        'x = Path(__file__).resolve().parents[2] / "submissions"',
        "x = Path(__file__).parent.parent.parent",
        "from tests.paths import ROOT as R\nx = R",
    ],
)
def test_a_way_to_the_live_folder_is_seen(line: str):
    assert reaches(Path("tests/check/test_x.py"), FIXED + line) != []


@pytest.mark.parametrize(
    "line",
    [
        'x = SUBMISSIONS / "space.json"',
        'x = ROOT / "schemas/benchmark.json"',
        "x = outside_rows(name)",
        'x = ROOT / f"schemas/{name}.schema.json"',
        'run(env={"PYTHONPATH": str(ROOT)})',
        'x = Path(__file__).with_name("golden")',
        'x = Path(__file__).parents[1] / "faulty"',
    ],
)
def test_what_cannot_reach_it_is_not_accused(line: str):
    assert reaches(Path("tests/check/test_x.py"), FIXED + line) == []


@pytest.mark.parametrize(
    "name", ["submissions", "submissions/x.json", ".", "a/../submissions", "/"]
)
def test_a_name_that_is_known_late_does_not_reach_it(name: str):
    with pytest.raises(ValueError, match="expected a path of the checkout outside submissions/"):
        outside_rows(name)
    assert outside_rows("schemas/benchmark.json") == ROOT / "schemas/benchmark.json"
