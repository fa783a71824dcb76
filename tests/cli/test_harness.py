"""Commands that the harness answers: arguments go in, the exit code comes back."""

import os
import subprocess
from typing import Any

import pytest

from geneb_ci.cli.harness import DATA_SUBCOMMANDS, EXTRACTOR_SUBCOMMANDS
from reference_harness.cli import main as harness
from tests import forked
from tests.gate import gated
from tests.paths import PUBLIC


def run(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return forked.run(module, *arguments, cwd=PUBLIC)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["list"], 0), (["--help"], 0), (["check", "no_such.py:Class"], 2), (["no-such-verb"], 2)],
)
@pytest.mark.parametrize("name", gated(["extractor", "extractors"], "extractor"))
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


def offered(line: str) -> list[str]:
    """Return what a shell offers after a line whose last word is empty."""
    requests = {
        "_GENEB_CI_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split())),
    }
    done = forked.run("geneb_ci", cwd=PUBLIC, env=os.environ | requests)
    return [word.removeprefix("plain,") for word in done.stdout.split()]


def test_a_shell_offers_the_subcommands_of_both_programs():
    """They are written down in geneb_ci, which does not import the harness."""
    known: Any = harness.cli.commands
    data, extractors = known["data"].commands, known["extractors"].commands
    assert offered("geneb-ci data ") == [*sorted(data), "push"]
    assert offered("geneb-ci extractor ") == sorted(extractors)
    assert offered("geneb-ci extractor check ") == []
    for words, result in ((DATA_SUBCOMMANDS, data), (EXTRACTOR_SUBCOMMANDS, extractors)):
        for name, text in words.items():
            own = " ".join(result[name].help.partition("\n\n")[0].split())
            assert own.startswith(text.removesuffix(".")), name


def test_a_push_is_refused_before_a_token_is_asked_for(tmp_path):
    done = run("geneb_ci", "data", "push", "--repo", "ab", str(tmp_path))
    assert (done.returncode, done.stderr) == (
        2,
        "geneb-ci: --repo 'ab' is not OWNER/NAME\n  fix: pass for example --repo me/tasks\n",
    )
    task = "leannmlindsey_GUE_mouse_0"
    (tmp_path / f"{task}.csv").touch()
    done = run("geneb_ci", "data", "push", str(tmp_path))
    assert done.returncode == 3
    assert done.stderr.startswith(f"geneb-ci: {tmp_path} lacks 99 tasks of GENEB: ")
    assert done.stderr.endswith(f" to fetch them: geneb-ci data pull {tmp_path}\n")
