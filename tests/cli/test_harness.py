"""Commands that the harness answers: arguments go in, the exit code comes back."""

import subprocess

import pytest

from tests import forked
from tests.paths import PUBLIC


def run(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return forked.run(module, *arguments, cwd=PUBLIC)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["list"], 0), (["--help"], 0), (["check", "no_such.py:Class"], 2), (["no-such-verb"], 2)],
)
def test_an_extractor_is_checked_by_the_harness(arguments, code):
    ours, theirs = (
        run("geneb_ci", "extractor", *arguments),
        run("reference_harness", "extractors", *arguments),
    )
    assert (ours.returncode, ours.stdout, ours.stderr) == (code, theirs.stdout, theirs.stderr)


def test_task_data_are_audited_by_the_harness(tmp_path):
    ours, theirs = (
        run("geneb_ci", "data", "audit", str(tmp_path)),
        run("reference_harness", "data", "audit", str(tmp_path)),
    )
    assert ours.returncode not in {0, 1}
    assert (ours.returncode, ours.stderr) == (theirs.returncode, theirs.stderr)
