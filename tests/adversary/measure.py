"""What the variants and fresh sequences of an audit show of an extractor, without a sandbox."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from reference_harness import probe
from reference_harness.decisions import FRESH, FurtherRows, decide
from reference_harness.rescored import Decisions
from reference_harness.tasks import Split, TaskData
from reference_harness.variants import variants_of


class Case(NamedTuple):
    """A task, and fresh sequences of the same kind."""

    data: TaskData
    fresh: Split | None


def decisions_of(extractor: Any, case: Case, seed: str, rows: int) -> Decisions:
    """Return what an audit that varies so many rows finds of one task."""
    data = case.data
    variants = variants_of(data, seed, rows)
    fresh = case.fresh or Split([], np.zeros(0, dtype=np.int64))
    beside = [*(one.sequence for one in variants), *fresh.sequences]
    parts = (data.train.sequences, data.test.sequences, beside)
    train, test, values = (np.asarray(extractor.extract_embeddings(one)) for one in parts)
    count = len(fresh.sequences)
    further = FurtherRows(
        [*(one.split for one in variants), *[FRESH] * count],
        [*(one.kind for one in variants), *[FRESH] * count],
        np.array([*(one.row for one in variants), *range(count)], dtype=np.int64),
        np.array([*[0] * len(variants), *fresh.labels.tolist()], dtype=np.int64),
        values,
    )
    problem = probe.Problem(train, data.train.labels, test, data.test.labels)
    return decide(problem, further)


def both_splits(data: TaskData) -> Split:
    """Return the sequences of both splits as one."""
    return Split(
        [*data.train.sequences, *data.test.sequences],
        np.concatenate([data.train.labels, data.test.labels]),
    )


def mean_drop(found: Sequence[Decisions]) -> float:
    """Return the mean over tasks of MCC on the public test rows less that on fresh ones."""
    return float(np.mean([one.public.MCC - one.fresh.MCC for one in found if one.fresh]))
