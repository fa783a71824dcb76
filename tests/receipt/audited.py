"""Audits by receipt without a sandbox: embeddings written, scored and drawn as in an audit, and
judged.

The rerun is a matrix that the test gives; all else is what an audit does.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from geneb_ci.audit.compare.embedding_outcome import (
    WITH_BOUNDS,
    ComparedCells,
    ComparedTask,
    Direction,
    Effect,
    EmbeddingOutcome,
    EmbeddingRepeat,
    reasons_of,
)
from geneb_ci.audit.compare.embeddings import (
    DrawnTask,
    RepeatedEmbedding,
    compared_task,
    direction_of,
    drawn_task,
    effect_of,
    influence_by_part,
    read_task_files,
    room_of,
)
from geneb_ci.audit.compare.outcome import Decoys
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import PRACTICE_BENCHMARK
from geneb_ci.receipt.column_rule import (
    compare_with_repeat,
    compare_with_rerun,
    coordinate_tolerances,
)
from geneb_ci.receipt.draw import EmbeddingCounts, TaskStrata, draw_shares, drawn_embeddings
from reference_harness.data.task_folder import MiniSource, Source
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import EmbeddingReceipt
from reference_harness.formats.submission_terms import receipt_file
from reference_harness.receipt.cells import CellsJob
from reference_harness.receipt.rounding import rounded
from reference_harness.receipt.task_file import write_task
from reference_harness.rescore.scoring import load_task

Rows = npt.NDArray[np.floating[Any]]
MINI = shipped_benchmark(PRACTICE_BENCHMARK)
QUIET = Decoys(order_dependent=False, memorised=False, detail="none")
SEED = "5e" * 32


class Scored(NamedTuple):
    """A task whose receipt was written and scored."""

    receipt: EmbeddingReceipt
    drawn: DrawnTask
    mcc: dict[str, float]
    """Regime to the mean MCC."""


class Found(NamedTuple):
    """What an audit of some tasks finds."""

    tasks: list[ComparedTask]
    direction: Direction
    effect: Effect
    reasons: list[str]


def receipt_with(dim: int, tasks: Mapping[str, Any]) -> EmbeddingReceipt:
    """Return a receipt of tasks that the harness wrote, whose root nothing reads."""
    return EmbeddingReceipt.model_validate(
        {
            "version": "1",
            "location": None,
            "dtype": "float16",
            "compute_dtype": "float32",
            "tf32": False,
            "dim": dim,
            "rows": sum(task.train + task.test for task in tasks.values()),
            "root": "0" * 64,
            "tasks": {name: task.model_dump(exclude={"dim"}) for name, task in tasks.items()},
        }
    )


def scored(
    folder: Path,
    task: str,
    rows: Rows,
    sample: EmbeddingCounts,
    *,
    seed: str = SEED,
    source: Source | None = None,
    benchmark: Benchmark = MINI,
) -> Scored:
    """Write embeddings as the receipt of a task, score them, and draw from them by a seed.

    `rows` has the training embeddings and then the test embeddings.
    """
    source = source or MiniSource()
    data = load_task(benchmark, source, task)
    receipt_task = write_task(folder, task, rounded([rows]), len(data.train.labels))
    job = CellsJob(
        task, receipt_file(folder, task), receipt_task, benchmark, source, tuple(benchmark.regimes),
        canonical=False, strata=folder / "strata",
    )  # fmt: skip
    done = job.execute()
    receipt = receipt_with(rows.shape[1], {task: receipt_task})
    read = read_task_files(folder / "strata", task, benchmark)
    share = draw_shares(sample, {task: len(np.unique(data.test.labels))}, [[task]])[task]
    drawn = drawn_embeddings([seed], read.strata, share)
    return Scored(
        receipt,
        drawn_task(task, receipt, receipt_file(folder, task), read, drawn),
        {name: member.scores.MCC for name, member in (done.cells.record or {}).items()},
    )


def audit(
    scored_by_task: Mapping[str, Scored],
    reruns: Mapping[str, Rows],
    seed: str = SEED,
    precise: Mapping[str, Rows] | None = None,
) -> Found:
    """Compare the drawn embeddings of tasks with a rerun of all their embeddings; what fails is
    tried again.

    `precise` has what the extractor gives in float64, where that is anything else.
    """
    tasks, by_task, width = [], [], 0
    for name, member in scored_by_task.items():
        width = member.receipt.dim
        rerun, scale = reruns[name][member.drawn.rows], member.drawn.receipt_task.scale_log2
        limits = coordinate_tolerances(rerun, scale, member.drawn.unforeseen)
        judged = compare_with_rerun(member.drawn.committed, rerun, limits, scale)
        again = {}
        for path in judged.failed(width).nonzero()[0].tolist():
            value = (precise or reruns)[name][member.drawn.rows[path]]
            repeat = compare_with_repeat(
                member.drawn.committed[path], rerun[path], value, limits[path], scale
            )
            result = EmbeddingRepeat(
                dtype="float64",
                deviation=repeat.deviation,
                mismatch=repeat.mismatch,
                distance=repeat.distance or None,
            )
            again[member.drawn.rows[path]] = RepeatedEmbedding(result, value)
        room = room_of(member.drawn, rerun.astype(np.float32))
        tasks.append(compared_task(member.drawn, judged, again, width, room))
        by_task.append(influence_by_part(member.drawn, rerun.astype(np.float32)))
    drawn = [value.drawn for value in scored_by_task.values()]
    direction = direction_of(
        drawn, [reruns[task.task][task.rows].astype(np.float32) for task in drawn], seed
    )
    effect = effect_of(by_task)
    parts: dict[str, Any] = {
        "schema_version": WITH_BOUNDS,
        "receipt": scored_by_task[name].receipt,
        "cells": ComparedCells(equal=1, of=1, differing=[], unclaimed=[], unequal=[]),
        "tasks": tasks,
        "direction": direction,
        "effect": effect,
        "decoys": QUIET,
    }
    return Found(tasks, direction, effect, reasons_of(EmbeddingOutcome.model_construct(**parts)))


def strata_example(test: int = 40, train: int = 100, classes: int = 2, seed: int = 0) -> TaskStrata:
    """Return strata of made-up predictions, right in about three cases of four."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(classes, size=test)
    probes = {"full": 1, "10shot": 5, "1shot": 5}

    def predicted(count: int) -> npt.NDArray[np.int64]:
        wrong = draw.random((count, test)) < 0.25
        return np.where(wrong, (labels + 1) % classes, labels)

    some = draw.permutation(train)
    return TaskStrata(
        "task",
        train,
        labels,
        {name: predicted(count) for name, count in probes.items()},
        {"1shot": np.sort(some[:6]), "10shot": np.sort(some[:50])},
    )
