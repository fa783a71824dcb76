"""A run never replaces a record or a submission that has scores which the run leaves out."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.harness.support import Harness

REGIMES = ("full", "10shot", "1shot")
RUN = ("run", "--quiet", "--output", "record.json")


def record(tasks: tuple[str, ...], regimes: tuple[str, ...] = REGIMES) -> dict[str, Any]:
    return {"limit": None, "tasks": {t: {"regimes": {r: {} for r in regimes}} for t in tasks}}


def submission(tasks: tuple[str, ...], regimes: tuple[str, ...] = REGIMES) -> dict[str, Any]:
    return {"results": {regime: {task: {} for task in tasks} for regime in regimes}}


@pytest.mark.parametrize(
    ("name", "held", "words", "says"),
    [
        (
            "record.json",
            record(("mini_tf", "mini_splice", "mini_mouse", "mini_phage", "mini_coding")),
            ("--tasks", "mini_splice", "--resume"),
            (
                "--output record.json: not replaced, as the file has 4 tasks that this run omits "
                "(mini_tf, mini_mouse, mini_phage and 1 more): name another file, or run the same "
                "command without --tasks"
            ),
        ),
        (
            "record.json",
            record(("mini_tf",)),
            ("--tasks", "mini_tf", "--regimes", "full,10shot"),
            (
                "--output record.json: not replaced, as the file has 1 regime that this run omits "
                "(1shot): name another file, or run the same command without --regimes"
            ),
        ),
        (
            "record.json",
            record(("mini_tf",)),
            ("--limit", "20"),
            (
                "--output record.json: not replaced, as the file has scores of all sequences, but "
                "this run "
                "has --limit: name another file, or run the same command without --limit"
            ),
        ),
        (
            "record.json",
            record(("of_another_benchmark",)),
            (),
            (
                "--output record.json: not replaced, as the file has 1 task that this run omits "
                "(of_another_benchmark): name another file, or delete the file first"
            ),
        ),
        (
            "mine.json",
            submission(("mini_tf", "mini_splice")),
            ("--tasks", "mini_tf", "--submission", "mine.json"),
            (
                "--submission mine.json: not replaced, as the file has 1 task that this run omits "
                "(mini_splice): name another file, or run the same command without --tasks"
            ),
        ),
    ],
)
def test_scores_of_an_earlier_run_are_kept(
    harness: Harness, name: str, held: dict[str, Any], words: tuple[str, ...], says: str
) -> None:
    path = harness.folder / name
    path.write_text(json.dumps(held))
    done = harness(*RUN, *words)
    assert (done.returncode, done.stderr) == (2, f"error: {says}\n")
    assert json.loads(path.read_text()) == held
    assert [path.name for path in harness.folder.iterdir()] == [name]


EMPTY = ("", "[]", '{"tasks": [], "results": {"full": 1}}', '{"tasks": {"mini_tf": 1}}')


@pytest.mark.parametrize(
    "contents",
    [pytest.param(EMPTY[2:3], id="one"), pytest.param(EMPTY, id="each", marks=pytest.mark.nightly)],
)
def test_a_run_replaces_what_it_has_too(harness: Harness, contents: tuple[str, ...]) -> None:
    path = harness.folder / "record.json"
    words = ("--tasks", "mini_tf", "--regimes", "full")
    for content in (*contents, None):
        if content is not None:  # the last run replaces the record of the one before
            path.write_text(content)
        done = harness(*RUN, *words)
        assert (done.returncode, done.stderr) == (0, ""), content
        assert list(json.loads(path.read_text())["tasks"]) == ["mini_tf"]


def test_a_pipe_is_not_waited_for(harness: Harness) -> None:
    os.mkfifo(harness.folder / "record.json")
    assert harness(*RUN, "--tasks", "mini_tf", "--regimes", "full").returncode == 0
    assert Path(harness.folder / "record.json").is_file()
