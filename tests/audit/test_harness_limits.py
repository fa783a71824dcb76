"""Scoring untrusted embeddings ends within limits, and says which task, stage and limit it was."""

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from geneb_ci.audit.record.events import AbortedRun, AuditAbort, bounded_message, parse_event
from geneb_ci.audit.record.keys import trusted_keys
from geneb_ci.audit.record.signing import Signing
from geneb_ci.audit.record.statement import event_files
from geneb_ci.audit.rerun.scoring import ScoringSettings, rescore_embeddings, write_sequences
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import (
    ExtractorRefused,
    LimitExceeded,
    NothingChecked,
    ResultRefused,
)
from geneb_ci.harness.process import HarnessProcess, ScoringLimitOverrides, TaskSource
from geneb_ci.sandbox import processes
from reference_harness.data.define import define
from reference_harness.formats.rescored import Rescored
from tests.audit.hostile_embeddings import FITTED, REFUSED, WIDTH
from tests.audit.recorded import key, outcome_of, plan_for, repository, submission_bytes

TASK = "tiny"
REGIMES = ("full", "10shot", "1shot")
SECONDS = 2
"""Limit of one matrix: an honest one takes less, with the start of a worker."""
PATIENCE = 10.0
"""Seconds in which a killed process is gone, also on a busy machine."""
SLACK = 3.0
"""Seconds of the processor that pass between two checks, with the start of a worker."""


TYPICAL = {"one row of 1e17", "duplicates", "signs in float16"}
"""Matrices that are tried for each change: stopped by a limit, and scored, of either dtype."""


class ScoredTask:
    """A task of 60 sequences, and a harness that scores embeddings of it."""

    def __init__(self, folder: Path, harness: HarnessProcess) -> None:
        draw = random.Random(7)
        splits = ["train"] * 40 + ["test"] * 20
        rows = [
            f"{''.join(draw.choices('ACGT', k=40))},{number % 2},{split}"
            for number, split in enumerate(splits)
        ]
        data = folder / "data"
        data.mkdir()
        (data / f"{TASK}.csv").write_text("\n".join(["text,label,split", *rows]) + "\n")
        define(data, "Tiny")
        self.folder, self.harness = folder, harness
        self.source = TaskSource(data, data / "benchmark.json")
        self.sequences = write_sequences([TASK], self.source, folder, harness)
        self.rows = len(self.sequences.read_text().splitlines())
        self.plan = plan_for(submission_bytes())
        self.outcome = outcome_of(self.plan, submission_bytes())
        self.layout = find_layout(repository(folder / "repository"))
        self.keys = trusted_keys(self.layout)

    def score(self, embeddings: Path, options: ScoringLimitOverrides) -> Rescored:
        how = ScoringSettings("float32", 1, 2, 1, REGIMES, limits=options)
        return rescore_embeddings(
            TASK, self.source, self.sequences, embeddings, how, self.harness, 2
        )

    def abort_of(self, error: ExtractorRefused, audits: Path) -> AuditAbort:
        """Sign the abort that a run writes for what ended it, and read it as a trusted one."""
        assert error.stage == "scoring"
        ran = self.outcome
        error.aborted_run = AbortedRun(
            "scoring", error.task, ran.sandbox, ran.started_at, ran.finished_at
        )
        Signing(self.layout, key(), audits, lambda _: None).sign_abort(error, self.plan)
        (file,) = event_files(audits)
        event = parse_event(file.read_bytes(), f"{file.parent.name}/{file.name}", self.keys)
        assert event.abort is not None
        return event.abort


@pytest.fixture(scope="module")
def scored_task(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScoredTask]:
    with HarnessProcess() as harness:
        made = ScoredTask(tmp_path_factory.mktemp("hostile"), harness)
        np.save(made.folder / "honest.npy", np.eye(made.rows, WIDTH, dtype=np.float32))
        yield made


def spent() -> float:
    """Return the seconds of the processor of all children, running and ended."""
    ended = os.times()
    running = [processes.cpu_seconds(pid) for pid in children()]
    return ended.children_user + ended.children_system + sum(running)


def children() -> set[int]:
    """Return the processes below this one, without the fork servers of other tests."""
    return {
        process.pid
        for process in processes.descendants(os.getpid())
        if not process.zombie and not is_fork_server(process.pid)
    }


def left_over(others: set[int]) -> set[int]:
    """Return the processes beside `others` that are still there after `PATIENCE` seconds."""
    until = time.monotonic() + PATIENCE
    while (child_processes := children() - others) and time.monotonic() < until:
        time.sleep(0.05)
    return child_processes


def is_fork_server(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"forkserver" in words or b"resource_tracker" in words


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_model_returns_is_refused_before_anything_is_fitted(scored_task, name, tmp_path):
    """The run ends with a signed record that names task, stage and cause."""
    path = scored_task.folder / "embeddings.npy"
    REFUSED[name](path, scored_task.rows)
    with pytest.raises(
        ResultRefused, match=f"task {TASK}: the embeddings cannot be scored"
    ) as error:
        scored_task.score(path, ScoringLimitOverrides())
    aborted = scored_task.abort_of(error.value, tmp_path)
    assert (aborted.plan, aborted.stage, aborted.task) == (scored_task.plan, "scoring", TASK)
    assert (aborted.kind, aborted.message) == ("result", bounded_message(error.value.message))


def ended(scored_task: ScoredTask, path: Path) -> ExtractorRefused | Rescored:
    """Score embeddings within a small limit; return the scores, or what refused them."""
    try:
        return scored_task.score(path, ScoringLimitOverrides(seconds=SECONDS))
    except ExtractorRefused as error:
        return error


@pytest.mark.parametrize(
    "name",
    [
        limit_name if limit_name in TYPICAL else pytest.param(limit_name, marks=pytest.mark.nightly)
        for limit_name in FITTED
    ],
)
def test_hostile_embeddings_end_within_the_limits(scored_task, name, tmp_path):
    """Either with scores, which a record compares with the claims, or with a signed abort."""
    path = scored_task.folder / "embeddings.npy"
    FITTED[name](path, scored_task.rows)
    before, others = spent(), children()
    error = ended(scored_task, path)
    if isinstance(error, ExtractorRefused):
        aborted = scored_task.abort_of(error, tmp_path)
        kind = "limit" if isinstance(error, LimitExceeded) else "result"
        assert (aborted.stage, aborted.task, aborted.kind) == ("scoring", TASK, kind)
        assert aborted.message == bounded_message(error.message)
    else:
        assert list(error.tasks) == [TASK]
    if isinstance(error, LimitExceeded):
        assert error.limit == "scoring_seconds"
        assert f"more than {SECONDS} s of CPU time" in error.message
        assert "--limit-scoring-time" in error.fix
        assert left_over(others) == set()
    assert spent() - before < SECONDS + SLACK


def test_too_much_memory_is_a_limit_of_its_own(scored_task):
    others = children()
    with pytest.raises(LimitExceeded) as caught:
        scored_task.score(scored_task.folder / "honest.npy", ScoringLimitOverrides(memory_mib=64))
    error = caught.value
    assert (error.limit, error.stage, error.task) == ("scoring_memory_mib", "scoring", TASK)
    assert error.message == (
        f"task {TASK}: scoring its embeddings was stopped: it used more than 64 MiB"
    )
    assert "--limit-scoring-memory" in error.fix
    assert left_over(others) == set()


@pytest.mark.nightly  # in the gate, the limit itself
def test_after_a_limit_the_next_task_is_scored_by_another_process(scored_task):
    score = scored_task.score(scored_task.folder / "honest.npy", ScoringLimitOverrides())
    assert list(score.tasks) == [TASK]
    assert len(children()) >= 2


def test_what_is_not_the_embeddings_fault_is_no_refusal(scored_task):
    with pytest.raises(NothingChecked, match="No such file") as caught:
        scored_task.harness.call(
            ["rescore", "--tasks", "other", *scored_task.source.options, "--sequences", "s",
             "--embeddings", str(scored_task.folder / "honest.npy"), "--noise", "float32",
             "--seed", "1", "--output", "o"],
        )  # fmt: skip
    assert "fix what the message names" in caught.value.fix


def test_a_harness_that_is_killed_is_named(scored_task):
    scored_task.harness.call(["sequences", "--tasks", TASK, *scored_task.source.options, "--output",
                        str(scored_task.folder / "again.txt"), "--quiet"])  # fmt: skip
    process = scored_task.harness._process
    process.kill()
    process.wait()
    # It is noticed before the next call, which starts another.
    scored_task.harness.call(["sequences", "--tasks", TASK, *scored_task.source.options, "--output",
                        str(scored_task.folder / "again.txt"), "--quiet"])  # fmt: skip
    assert scored_task.harness._process.pid != process.pid
