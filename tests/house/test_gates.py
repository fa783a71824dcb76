"""The guards of this folder cannot be removed in silence: the commands that gate name each."""

from tests.house.tracked import tracked
from tests.paths import ROOT

GUARDS = ("tests/house/test_collection.py", "tests/house/test_live_rows.py")
"""What notices a test that does not run, and a test that a new row breaks."""
GATE = """\
set -euo pipefail
cd "$(dirname "$0")/.."
make .venv/.ready
make rehearse > "$output" 2>&1 &
make "${TESTS:-test}"
make --jobs=2 --output-sync lint  # mypy has one process
wait "$rehearsal" || code=$?
exit "$code"
"""


def test_the_guards_are_tracked_and_hold_tests():
    files = {path.as_posix() for path in tracked()}
    assert set(GUARDS) <= files
    for name in GUARDS:
        assert "\ndef test_" in (ROOT / name).read_text(encoding="utf-8")


def test_lint_names_each_guard():
    """Pytest stops where a named file does not exist; in a folder nobody would miss it."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "\nlint: types style " in text
    recipe = text.partition("\nstyle:")[2].partition("\n\n")[0]
    assert f"--collect-only --no-summary {' '.join(GUARDS)} " in recipe


def test_what_gates_a_change_runs_all_tests_and_all_linters():
    lines = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines(keepends=True)
    commands = "".join(line for line in lines if not line.startswith("#"))
    assert [line for line in GATE.splitlines() if line not in commands.splitlines()] == []


def test_the_checkouts_own_workflow_runs_the_gate():
    text = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    assert "        run: .ci/run\n" in text


def test_the_checkouts_own_workflow_types_the_tutorials():
    """The rehearsal of this job is what types them where no hosted job runs."""
    text = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    assert "      - run: make tutorials\n" in text
    assert "      - run: make doors\n" in text
