"""Progress where there is no terminal: a line a minute says what is finished."""

import re
import time
from typing import Any

import pytest

from reference_harness import worker
from reference_harness.run import progress
from reference_harness.worker_options import WorkerOptions

SECONDS = 0.02  # in the place of a minute


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", SECONDS)


def lines(capsys: Any, *steps: Any, quiet: bool = False) -> list[str]:
    """Return the different lines that are written while nothing happens after some steps."""
    with progress.listener(3, quiet=quiet) as listener:
        for step in steps:
            step(listener)
        time.sleep(5 * SECONDS)
    return list(dict.fromkeys(capsys.readouterr().err.splitlines()))


@pytest.mark.parametrize(
    ("steps", "line"),
    [
        ((), r"0 of 3 tasks finished"),
        (
            (lambda x: x.begin("mini_tf", 1904), lambda x: x.step(812, 40_000)),
            r"0 of 3 tasks finished; mini_tf: 812 of 1,904 sequences embedded, [\d,]+ bp/s",
        ),
        (
            (lambda x: x.begin("mini_tf", 4), lambda x: x.step(4, 9)),
            r"0 of 3 tasks finished; scoring",
        ),
        ((lambda x: x.finish("mini_tf", "full MCC 0.5"),), r"1 of 3 tasks finished"),
    ],
)  # fmt: skip
def test_a_line_says_what_is_finished_and_what_is_embedded(steps, line, capsys):
    assert re.fullmatch(line, lines(capsys, *steps)[-1])


def test_lines_end_with_the_last_task_and_with_the_run(capsys):
    done = [lambda x: x.finish("t", "a line")] * 3
    assert lines(capsys, *done) == ["t: a line"]
    time.sleep(3 * SECONDS)
    assert capsys.readouterr().err == ""


def test_quiet_is_quiet(capsys):
    assert lines(capsys, lambda x: x.begin("mini_tf", 4), quiet=True) == []


def test_an_audit_learns_how_many_letters_are_embedded(
    monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setattr(worker, "LETTERS_SECONDS", 0.0)
    options = WorkerOptions(
        schema_version="1.0", extractor="builtin:kmer", name_model="", device="cpu",
        options={"k": "1"}, batching="file", processes=64,
    )  # fmt: skip
    worker.embed(options, ["ACGT", "AC"] * 1500)
    assert capfd.readouterr().err.splitlines()[:2] == [
        "letters embedded: 6144",
        "letters embedded: 9000",
    ]
