"""A whole run as a user starts it: mini, a module of one's own, stopped and resumed, killed."""

import json
import os
import resource
import shutil
import signal
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.forked import Started
from tests.gate import gated
from tests.harness.support import Harness

MINI_CPU_SECONDS = 30
"""A run may take 30 s on two cores; measured: 4 s, of 6 CPU seconds. CPU time is held, as a machine
shared with others stretches the other without a fault of ours."""
STOP_SECONDS = 90  # a run that does not end by then after a signal hangs

SLOW = """
import time
from pathlib import Path
import numpy as np
from .base import BaseEmbeddingExtractor

class Slow(BaseEmbeddingExtractor):
    embedded = 0
    layer, pooling, max_length, truncation, dtype = "none", "mean", None, "none", "float32"
    source = {"kind": "none", "location": "", "revision": None, "weights": {}}

    def extract_embeddings(self, sequences, batch_size=8):
        self.embedded += len(sequences)
        if self.embedded > 1040 and not Path("quick").exists():  # 520 of each task
            time.sleep(0.02)
        with Path("asked").open("a") as stream:
            stream.writelines(s + "\\n" for s in sequences)
        return np.array([[s.count(c) / len(s) for c in "ACGT"] for s in sequences], "float32")
"""
# Tests that run in the background of a shell inherit that Ctrl-C is ignored: a terminal's does not.
FLUSH_ALWAYS = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "import reference_harness.embedding.cache as c; c.FLUSH_SECONDS = 0\n"
    "from reference_harness.cli.main import main; main()"
)
Scores = dict[tuple[str, str], Any]
TASKS = ("mini_histone", "mini_promoter", "mini_enhancer", "mini_splice", "mini_tf")
FINISHED = 2
"""Tasks that are finished before a run is stopped: those before the extractor is slow."""
RUN = (
    "run", "--extractor", "slow.py:Slow", "--output", "record.json",
    "--tasks", ",".join(TASKS), "--regimes", "full,1shot",
)  # fmt: skip


def scores(path: Path) -> Scores:
    tasks = json.loads(path.read_text())["tasks"]
    return {
        (task_id, name): (regime["predictions_sha256"], regime["scores"])
        for task_id, task in tasks.items()
        for name, regime in task["regimes"].items()
    }


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Scores:
    harness = Harness(tmp_path_factory.mktemp("clean"))
    (harness.folder / "slow.py").write_text(SLOW)
    (harness.folder / "quick").touch()
    done = harness(*RUN, "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return scores(harness.folder / "record.json")


@pytest.mark.nightly  # in the gate: all of it by a fork, in test_harness_submission.py
def test_mini_needs_an_output_file_and_seconds(harness: Harness) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = harness.alone("run", "--output", "record.json")
    assert done.returncode == 0, done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert 0 < spent < MINI_CPU_SECONDS
    record = json.loads((harness.folder / "record.json").read_text())
    assert record["benchmark"]["name"] == "GENEB-mini"
    assert record["model_id"] == "4-mer-frequency"
    assert len(record["tasks"]) == 13
    assert record["dataset"]["verified"] is True
    assert {library["threads"] for library in record["probe"]["libraries"]} == {1}
    assert any(library["library"] == "openblas" for library in record["probe"]["libraries"])
    assert done.stderr.splitlines()[-1] == "wrote record.json: 13 tasks, model_id 4-mer-frequency"
    assert sorted(p.name for p in harness.folder.iterdir()) == ["cache", "record.json"]


def test_a_second_run_takes_every_embedding_from_the_cache_and_workers_change_no_score(
    harness: Harness,
) -> None:
    words = ("run", "--quiet", "--tasks")
    harness(*words, "mini_tf,mini_splice,mini_mouse", "--jobs", 1, "--output", "first.json")
    done = harness(*words, "mini_tf,mini_splice", "--jobs", 3, "--output", "second.json")
    assert done.returncode == 0, done.stderr
    tasks = json.loads((harness.folder / "second.json").read_text())["tasks"]
    assert list(tasks) == ["mini_splice", "mini_tf"]
    assert all(task["embedded_now"] == 0 for task in tasks.values())
    first = scores(harness.folder / "first.json")
    assert scores(harness.folder / "second.json").items() <= first.items()


def started(harness: Harness) -> Started:
    """Start a slow run and return once some tasks are finished."""
    (harness.folder / "slow.py").write_text(SLOW)
    process = harness.start(*RUN, code=FLUSH_ALWAYS)
    partial = harness.folder / "record.json.partial"
    until = time.monotonic() + STOP_SECONDS
    while len(list(partial.glob("task-*.json"))) < FINISHED:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.01)
    return process


def group_ends(group: int) -> bool:
    until = time.monotonic() + STOP_SECONDS
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


class StoppedRun(NamedTuple):
    """A run that was stopped: its folder, exit code and errors."""

    folder: Path
    code: int
    message: str


def stopped_by(how: str, folder: Path) -> StoppedRun:
    process = started(Harness(folder))
    if how == "ctrl-c":
        os.killpg(process.pid, signal.SIGINT)  # a terminal signals every process
    else:
        process.send_signal(signal.SIGTERM if how == "sigterm" else signal.SIGKILL)
    _, message = process.communicate(timeout=STOP_SECONDS)
    assert group_ends(process.pid), "a worker outlived its parent"
    return StoppedRun(folder, process.returncode, message)


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> StoppedRun:
    """Return a run that Ctrl-C stopped; tests copy its folder."""
    return stopped_by("ctrl-c", tmp_path_factory.mktemp("stopped"))


@pytest.fixture
def stopped(interrupted: StoppedRun, harness: Harness) -> Harness:
    """Return a harness whose run was stopped."""
    shutil.copytree(interrupted.folder, harness.folder, dirs_exist_ok=True)
    return harness


@pytest.mark.parametrize("how", gated(["ctrl-c", "sigterm", "kill -9"], "ctrl-c"))
def test_a_stopped_run_resumes(
    request: pytest.FixtureRequest, harness: Harness, clean: Scores, how: str
) -> None:
    if how == "ctrl-c":
        request.getfixturevalue("stopped")
        _, code, message = request.getfixturevalue("interrupted")
    else:
        _, code, message = stopped_by(how, harness.folder)
    assert "Traceback" not in message
    if how != "kill -9":
        assert code == 130
        assert message.endswith("stopped; finished work is kept: continue with --resume\n")

    # 1. No half-written file, and no record that looks whole.
    assert not (harness.folder / "record.json").exists()
    partial = harness.folder / "record.json.partial"
    remaining_names = {p.name for p in partial.glob("task-*.json")}
    assert FINISHED <= len(remaining_names) < len(TASKS)
    for path in partial.glob("*.json"):
        json.loads(path.read_text())

    # 2. The rest runs, what is finished does not, and no sequence is embedded twice but those of
    # a call that was cut short.
    before = (harness.folder / "asked").read_text().splitlines()
    (harness.folder / "quick").touch()  # only what is stopped has to be slow
    done = harness(*RUN, "--resume")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("finished in the stopped run") == len(remaining_names)
    after = (harness.folder / "asked").read_text().splitlines()[len(before) :]
    assert len(set(before) & set(after)) <= 200
    assert len(after) < len(before + after)

    # 3. As if nothing had happened.
    record = json.loads((harness.folder / "record.json").read_text())
    assert record["resumed"] is True
    assert scores(harness.folder / "record.json") == clean
    assert not partial.exists()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--model-id other", "model_id 'Slow', but this run has 'other'"),
        pytest.param(
            "--probe-device torch-cpu",
            "probe_device 'cpu', but this run has 'cpu, torch from 4194304 numbers'",
            marks=pytest.mark.nightly,  # it imports torch, to compare one more member
        ),
    ],
)
def test_another_run_does_not_resume(stopped: Harness, option: str, message: str) -> None:
    done = stopped(*RUN, "--resume", *option.split())
    assert done.returncode == 3
    assert f"the stopped run had {message}" in done.stderr
    assert "Traceback" not in done.stderr


def test_damaged_state_is_named(stopped: Harness) -> None:
    damaged = next((stopped.folder / "record.json.partial").glob("task-*.json"))
    damaged.write_text("{}")
    done = stopped(*RUN, "--resume")
    assert done.returncode == 3
    assert f"{damaged.name}: the file is damaged" in done.stderr


def test_a_failing_extractor_is_a_sentence(harness: Harness) -> None:
    body = SLOW.replace("self.embedded += len(sequences)", "raise RuntimeError('no such layer')")
    (harness.folder / "slow.py").write_text(body)
    done = harness(*RUN)
    assert done.returncode == 3
    assert "the extractor Slow failed: RuntimeError: no such layer" in done.stderr
    assert "\nerror: 5 of 5 tasks failed:\n  mini_histone: " in done.stderr
    assert "Traceback" not in done.stderr
