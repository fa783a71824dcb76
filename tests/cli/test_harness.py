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
@pytest.mark.parametrize("name", ["extractor", "extractors"])
def test_an_extractor_is_checked_by_the_harness(name, arguments, code):
    ours, theirs = (
        run("geneb_ci", name, *arguments),
        run("reference_harness", "--program", "geneb-ci", name, *arguments),
    )
    assert (ours.returncode, ours.stdout, ours.stderr) == (code, theirs.stdout, theirs.stderr)


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (["data"], "geneb-ci data [OPTIONS] COMMAND"),
        (["data", "verify"], "geneb-ci data verify [OPTIONS] FOLDER"),
        (["data", "verfy"], "geneb-ci data [OPTIONS] COMMAND"),
        (["data", "push"], "geneb-ci data push [OPTIONS] FOLDER"),
        (["extractor", "check"], "geneb-ci extractor check [OPTIONS]"),
        (["extractors", "check"], "geneb-ci extractors check [OPTIONS]"),
    ],
)
def test_usage_names_the_program_that_was_typed(words, program):
    done = run("geneb_ci", *words)
    assert (done.returncode, done.stderr.partition(program)[0]) == (2, "Usage: ")


@pytest.mark.parametrize(
    ("words", "meant"),
    [(["chek"], "check"), (["audit", "verfy"], "verify"), (["data", "verfy"], "verify")],
)
def test_an_unknown_command_suggests_a_known_one(words, meant):
    done = run("geneb_ci", *words)
    assert done.returncode == 2
    assert done.stderr.endswith(f"No such command {words[-1]!r}. Did you mean {meant!r}?\n")


def test_a_name_like_no_command_has_no_suggestion():
    assert run("geneb_ci", "zzz").stderr.endswith("Error: No such command 'zzz'.\n")


def test_task_data_are_audited_by_the_harness(tmp_path):
    ours, theirs = (
        run("geneb_ci", "data", "audit", str(tmp_path)),
        run("reference_harness", "data", "audit", str(tmp_path)),
    )
    assert ours.returncode not in {0, 1}
    assert (ours.returncode, ours.stderr) == (theirs.returncode, theirs.stderr)
