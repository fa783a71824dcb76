"""The rehearsal is red where a hosted job would fail: the cases that take seconds.

One is in the gate, which rehearses every job as well; the others are nightly. Those that install
packages are in `make rehearse-proof`.
"""

import pytest

from tools.rehearse.__main__ import main
from tools.rehearse.copy import copied

FLOWS = ".github/workflows"


@pytest.fixture
def rehearsed(tmp_path, capsys):
    """Alter one file of a copy of the repository, and rehearse some of its jobs."""

    def run(file: str, old: str, new: str, *jobs: str) -> tuple[int, str]:
        root = copied(tmp_path / "copy")
        text = (root / file).read_text(encoding="utf-8")
        assert old in text
        (root / file).write_text(text.replace(old, new, 1), encoding="utf-8")
        arguments = [word for job in jobs for word in ("--job", job)]
        code = main(["--root", str(root), "--borrow", *arguments])
        return code, capsys.readouterr().out

    return run


@pytest.mark.nightly
def test_a_removed_permission(rehearsed):
    line = "      statuses: write # geneb/verdict\n"
    code, out = rehearsed(f"{FLOWS}/verdict.yml", line, "", "verdict")
    assert code == 1
    assert "needs statuses: write" in out
    assert "a pull request with an impossible score is refused: verdict.report failed" in out


@pytest.mark.nightly
def test_a_permission_that_nothing_uses(rehearsed):
    line = "      statuses: read # which statuses no longer hold\n"
    code, out = rehearsed(f"{FLOWS}/verdict.yml", line, line + "      pages: write\n", "verdict")
    assert code == 1
    assert "verdict.parse: nothing it did used its permission `pages: write`: take it" in out


@pytest.mark.nightly
def test_a_checkout_without_its_permission(rehearsed):
    line = "      contents: read # our own code; trees and blobs of pull requests\n"
    code, out = rehearsed(f"{FLOWS}/verdict.yml", line, "", "verdict")
    assert code == 1
    assert "actions/checkout: 403 Resource not accessible by integration" in out


@pytest.mark.nightly
def test_a_renamed_label(rehearsed):
    """GitHub has the labels that this version creates."""
    file, old = "geneb_ci/github/report.py", "geneb: changes needed"
    code, out = rehearsed(file, old, "geneb: needs changes", "verdict")
    assert code == 1
    assert "the repository has no label 'geneb: needs changes'" in out


@pytest.mark.nightly
def test_a_lost_doorbell(rehearsed):
    code, out = rehearsed(f"{FLOWS}/verdict.yml", "[pr-validate]", "[validate]", "verdict")
    assert code == 1
    assert "the event workflow_run does not start verdict: see its `on:`" in out


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        (
            f"{FLOWS}/publish.yml",
            '"3.13"',
            '"3.12"',
            "hosted jobs disagree about the version of Python: 3.12 in publish.yml; 3.13 in",
        ),
        (
            f"{FLOWS}/publish.yml",
            '"3.13"',
            '"3.14"',
            "publish.yml: Python 3.14 is none that pyproject.toml promises (3.11, 3.12, 3.13)",
        ),
        (
            f"{FLOWS}/publish.yml",
            '"3.13"',
            "3.13",
            "publish.yml: python-version 3.13 has no quotes",
        ),
        (f"{FLOWS}/ci.yml", ', "3.13"]', "]", "no matrix tests Python 3.13"),
        (
            f"{FLOWS}/publish.yml",
            "    timeout-minutes: 15\n",
            "    container: python\n",
            "publish.yml, job build: the rehearsal does not know the key 'container'",
        ),
    ],
    ids=["disagrees", "not-promised", "no-quotes", "not-tested", "unknown-key"],
)
def test_what_is_wrong_before_any_job_runs(rehearsed, file, old, new, said):
    code, out = rehearsed(file, old, new, "publish")
    assert code == 1
    assert said in out
    assert "build: success" not in out
