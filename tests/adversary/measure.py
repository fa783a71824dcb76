"""What the variants and fresh sequences of an audit show of an extractor, without a sandbox."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from reference_harness.data import benchmark
from reference_harness.data.task_data import Split, TaskData
from reference_harness.embedding.variants import support_variants, variants_of
from reference_harness.formats.rescored import Decisions
from reference_harness.probe import logistic
from reference_harness.probe.decisions import (
    FRESH_SPLIT,
    FitRows,
    FurtherEmbeddings,
    few_shot_draws,
    further_decisions,
    support_indices,
)


class Case(NamedTuple):
    """A task, and fresh sequences of the same kind."""

    data: TaskData
    fresh: Split | None


def decisions_of(
    extractor: Any, case: Case, seed: str, rows: int, *, few_shot: bool = True
) -> Decisions:
    """Return what an audit that varies so many rows finds of one task.

    Without `few_shot`, no few-shot probe is fitted on other sequences: four of five fits less.
    """
    data, protocol = case.data, benchmark.mini().protocol
    labels = data.train.labels
    shots = protocol.few_shot_k if few_shot else {}
    draws = few_shot_draws(labels, shots, protocol.seeds, seed)
    variants = variants_of(data, seed, rows) + support_variants(data, seed, support_indices(draws))
    fresh = case.fresh or Split([], np.zeros(0, dtype=np.int64))
    beside = [*(variant.sequence for variant in variants), *fresh.sequences]
    parts = (data.train.sequences, data.test.sequences, beside)
    train, test, values = (np.asarray(extractor.extract_embeddings(part)) for part in parts)
    count = len(fresh.sequences)
    further = FurtherEmbeddings(
        [*(variant.split for variant in variants), *[FRESH_SPLIT] * count],
        [*(variant.kind for variant in variants), *[FRESH_SPLIT] * count],
        np.array([*(variant.row for variant in variants), *range(count)], dtype=np.int64),
        np.array([*[0] * len(variants), *fresh.labels.tolist()], dtype=np.int64),
        values,
    )
    problem = logistic.Problem(train, data.train.labels, test, data.test.labels)
    return further_decisions(problem, further, _drawn(data), draws)


def _drawn(data: TaskData) -> dict[str, list[FitRows]]:
    """Return the training rows of each fit of each regime; both benchmarks draw alike."""
    bench = benchmark.mini()
    seeds, shots = list(bench.protocol.seeds), bench.protocol.few_shot_k
    return {
        regime: logistic.fit_indices(data.train.labels, regime, seeds, shots)
        for regime in bench.regimes
    }


def both_splits(data: TaskData) -> Split:
    """Return the sequences of both splits as one."""
    return Split(
        [*data.train.sequences, *data.test.sequences],
        np.concatenate([data.train.labels, data.test.labels]),
    )


def few_shot_indices(data: TaskData) -> set[int]:
    """Return the training rows that some few-shot regime of the benchmark draws."""
    return {
        int(row)
        for regime, fits in _drawn(data).items()
        for rows in fits
        if rows is not None
        for row in rows
    }


def mean_drop(decisions: Sequence[Decisions], probe_name: str = "") -> float:
    """Return the mean over tasks of MCC on the public test rows less that on fresh ones.

    By the probe of the full regime, or by another one of `others`.
    """
    parts = [decision.others[probe_name] if probe_name else decision for decision in decisions]
    return float(np.mean([part.public.MCC - part.fresh.MCC for part in parts if part.fresh]))


def largest_drop(decisions: Sequence[Decisions]) -> float:
    """Return the largest of these of any probe."""
    return max(mean_drop(decisions, name) for name in ("", *decisions[0].others))
