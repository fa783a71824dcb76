"""Draw embeddings of a receipt by SHA-256, from strata that anybody can compute.

The strata of a task follow from the predictions of canonical probes and probes of record on the
committed embeddings.

*Test embeddings* are drawn in each regime; their number is divided among the tasks by their weight
in the macro. Half of the draws of a task are uniform among the embeddings that are predicted right,
since altering an embedding that is still wrong has no gain. The other half first draws a class with
right predictions, then a right embedding of it, since few altered embeddings of a rare class gain
much. The probes of a few-shot regime are used in turn. *Training embeddings*: the same number in
each task, uniformly. *Support embeddings*, the training embeddings of a few-shot regime: all of the
regime with the fewest, and some of the remaining ones of other regimes.

Draw j of a stratum is SHA-256(s || 0x00 || stratum || 0x00 || j || 0x00 || attempt) modulo the
stratum's size, where j and attempt are 8 bytes, big-endian, and attempt is the first for which the
hash is below the largest multiple of that size. A draw does not depend on the number of draws, so a
larger sample only adds embeddings.
"""

import hashlib
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import Field

from reference_harness.formats.base import StrictModel

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

STANDARD_TEST_DRAWS = 1500
"""Number of test embeddings that are drawn for each regime by default: about 1,450 detect a macro
MCC raised by more than 0.01 with 95 % probability in the worst of 41 published rows."""
STANDARD_TRAINING_DRAWS = 30
"""Number of training embeddings that are drawn in each task by default: if a share of 0.1 % is
altered, averaged over 100 tasks, at least one altered embedding is drawn with 95 % probability."""
SMALL_TASK_EMBEDDINGS = 3000
"""Number of training embeddings below which a full draw includes all of a task: in a small task,
few altered embeddings gain most."""
TEST_PART, TRAINING = "test ", "training"
"""Prefix of the names of parts of test embeddings, before the regime; name of the part of training
embeddings."""
TEST_EMBEDDINGS_MAX, TRAINING_EMBEDDINGS_MAX = 1_000_000, 20_000
"""Largest sample: more test embeddings than the benchmark has, and the training embeddings of each
task that `--size` draws with them. The limit exists since a verification repeats every draw."""
DrawCount = Annotated[int, Field(ge=1, le=TEST_EMBEDDINGS_MAX)]
"""A number of draws, at most that of all test embeddings."""
_SEPARATOR = b"\x00"
"""Byte between the parts of the text that a draw hashes."""
_DIGEST_RANGE = 1 << 256
"""Number of possible values of a SHA-256."""


class EmbeddingCounts(StrictModel):
    """Numbers of drawn embeddings of a receipt."""

    test: DrawCount
    """Smallest number of test embeddings of each regime, in all tasks together."""
    training: Annotated[int, Field(ge=1, le=TRAINING_EMBEDDINGS_MAX)]
    """Number of training embeddings of each task."""
    support: DrawCount
    """Number of few-shot training embeddings drawn for each few-shot regime, over all tasks.

    Of the smallest regime, all embeddings are drawn.
    """
    whole: bool
    """Whether all embeddings of few-shot training sequences, and all training embeddings of the
    smaller tasks, are drawn."""


STANDARD_COUNTS = EmbeddingCounts(
    test=STANDARD_TEST_DRAWS,
    training=STANDARD_TRAINING_DRAWS,
    support=STANDARD_TEST_DRAWS,
    whole=False,
)


class TaskShare(NamedTuple):
    """Numbers of draws in one task."""

    position: int
    """Position among the tasks of the receipt, which decides the probe of the first draw."""
    test: int
    """Number of test embeddings of each regime."""
    training: int
    """Number of training embeddings."""
    support: int
    """Number of training embeddings of each few-shot regime, except the smallest regime."""
    whole: bool
    """Whether all training embeddings are drawn, as in `EmbeddingCounts`."""


def draw_shares(
    counts: EmbeddingCounts, class_counts: Mapping[str, int], categories: Sequence[Collection[str]]
) -> dict[str, TaskShare]:
    """Return how many embeddings of each kind are drawn in each task.

    `class_counts` has the numbers of classes by task of the receipt, in the benchmark's order;
    `categories` has the tasks of each category, of which only those of the receipt count.
    Test embeddings are divided equally among categories, and within each among tasks, like the
    weights of the macro; otherwise a category of one task would have few draws and a large weight.
    Support embeddings are divided in proportion to the number of classes. Both are rounded up.
    """
    total = sum(class_counts.values())
    groups = [
        members
        for category in categories
        if (members := [task for task in category if task in class_counts])
    ]
    divisors = {task: len(groups) * len(members) for members in groups for task in members}
    return {
        task: TaskShare(
            position,
            -(-counts.test // divisors[task]),
            counts.training,
            -(-counts.support * class_count // total),
            counts.whole,
        )
        for position, (task, class_count) in enumerate(class_counts.items())
    }


def drawn_number(seed: bytes, stratum: str, draw: int, size: int) -> int:
    """Return the number from 0 to `size` - 1 that draw number `draw` of a stratum gives."""
    head = seed + _SEPARATOR + stratum.encode() + _SEPARATOR + struct.pack(">Q", draw) + _SEPARATOR
    limit = _DIGEST_RANGE - _DIGEST_RANGE % size
    attempt = 0
    while True:
        digest = hashlib.sha256(head + struct.pack(">Q", attempt)).digest()
        number = int.from_bytes(digest, "big")
        if number < limit:
            return number % size
        attempt += 1


@dataclass(frozen=True)
class TaskStrata:
    """The sets of embeddings (strata) of one task that are drawn from."""

    task: str
    train: int
    """Number of training embeddings, which come first in the file."""
    labels: "npt.NDArray[np.int64]"
    """(m,) labels of the test embeddings."""
    predicted: "Mapping[str, npt.NDArray[np.int64]]"
    """By regime, the (s, m) predictions of s canonical probes."""
    support: "Mapping[str, npt.NDArray[np.int64]]"
    """By few-shot regime, the indices of its training embeddings; the smallest regime first."""
    of_record: "Mapping[str, npt.NDArray[np.int64]]" = field(default_factory=dict)
    """By regime, the (s, m) predictions of record; empty if not computed, as before version 2.1."""

    def right_rows(self, regime: str, probe: int) -> "npt.NDArray[np.int64]":
        """Return indices of test embeddings that the canonical probe or that of record gets right.

        They ascend. An embedding that only one of the two probes predicts right may be altered.
        """
        is_right = self.predicted[regime][probe] == self.labels
        if regime in self.of_record:
            is_right = is_right | (self.of_record[regime][probe] == self.labels)
        rows: npt.NDArray[np.int64] = is_right.nonzero()[0]
        return rows


class TestDraw(NamedTuple):
    """One draw of a test embedding of a task and regime."""

    draw: int
    """Number of this draw among those of the regime, from 0."""
    probe: int
    """Index of the probe whose rightly predicted embeddings are drawn from."""
    is_class_first: bool
    """Whether a class is drawn first, then an embedding of this class."""


def draws_of_regime(strata: TaskStrata, regime: str, share: TaskShare) -> list[TestDraw]:
    """Return the draws of test embeddings of a regime in their order, before chance decides.

    A probe without right predictions has no draws, since no embedding was altered to be right.
    """
    probe_count = len(strata.predicted[regime])
    has_right = [bool(len(strata.right_rows(regime, probe))) for probe in range(probe_count)]
    numbered = ((j, j + share.position) for j in range(share.test))
    draws = [TestDraw(j, number // 2 % probe_count, bool(number % 2)) for j, number in numbered]
    return [draw for draw in draws if has_right[draw.probe]]


def unforeseen_rows(rows: Mapping[str, Sequence[int]]) -> set[int]:
    """Return the drawn indices of one task that nobody could foresee, from all of them by part.

    Support embeddings, the strongest ones and those of earlier draws are known before the draw.
    """
    unforeseen_parts = (
        part_rows
        for part, part_rows in rows.items()
        if part.startswith(TEST_PART) or part == TRAINING
    )
    return {row for part_rows in unforeseen_parts for row in part_rows}


class DrawnEmbeddings(NamedTuple):
    """The embeddings drawn in one task."""

    sizes: dict[str, int]
    """Size of each stratum that was drawn from."""
    rows: dict[str, list[int]]
    """By part, the indices of drawn embeddings in the task's file, in the order of the draws."""

    @property
    def distinct_rows(self) -> list[int]:
        """The drawn indices without repetition, ascending."""
        return sorted({row for rows in self.rows.values() for row in rows})


class TaskDraw:
    """The draw of the embeddings of one task by one seed."""

    def __init__(self, seed: str, strata: TaskStrata) -> None:
        self._seed = bytes.fromhex(seed)
        self._strata = strata
        self.sizes: dict[str, int] = {}

    def embeddings(self, share: TaskShare) -> DrawnEmbeddings:
        """Return the drawn embeddings of the task."""
        strata = self._strata
        rows_by_part = {
            f"{TEST_PART}{regime}": [strata.train + row for row in self._test_rows(regime, share)]
            for regime in strata.predicted
        }
        is_complete = share.whole and strata.train < SMALL_TASK_EMBEDDINGS
        rows_by_part[TRAINING] = (
            list(range(strata.train))
            if is_complete
            else [self._drawn_number("training", j, strata.train) for j in range(share.training)]
        )
        drawn_rows: set[int] = set()
        for position, (regime, rows) in enumerate(strata.support.items()):
            undrawn = [row for row in rows.tolist() if row not in drawn_rows]
            drawn_rows.update(undrawn)
            rows_by_part[f"support {regime}"] = (
                undrawn
                if position == 0 or share.whole or len(undrawn) <= share.support
                else [
                    undrawn[self._drawn_number(f"support {regime}", j, len(undrawn))]
                    for j in range(share.support)
                ]
            )
        return DrawnEmbeddings(dict(self.sizes), rows_by_part)

    def _test_rows(self, regime: str, share: TaskShare) -> list[int]:
        """Return the drawn indices of test embeddings of a regime, in the order of the draws."""
        strata, drawn_rows = self._strata, []
        probe_count = len(strata.predicted[regime])
        right_rows = [strata.right_rows(regime, probe).tolist() for probe in range(probe_count)]
        right_rows_by_class = [
            self._right_rows_by_class(regime, probe) for probe in range(probe_count)
        ]
        for draw in draws_of_regime(strata, regime, share):
            rows, draw_name = right_rows[draw.probe], f"test {regime} {draw.probe} right"
            if draw.is_class_first:
                rows_by_class = right_rows_by_class[draw.probe]
                labels = list(rows_by_class)
                label = labels[self._drawn_number(f"{draw_name}, class", draw.draw, len(labels))]
                rows, draw_name = rows_by_class[label], f"{draw_name}, class {label}"
            drawn_rows.append(rows[self._drawn_number(draw_name, draw.draw, len(rows))])
        return drawn_rows

    def _right_rows_by_class(self, regime: str, probe: int) -> dict[int, list[int]]:
        """Return the indices of rightly predicted embeddings by class, both ascending."""
        right_rows = self._strata.right_rows(regime, probe)
        by_class: dict[int, list[int]] = {}
        for row, label in zip(
            right_rows.tolist(), self._strata.labels[right_rows].tolist(), strict=True
        ):
            by_class.setdefault(label, []).append(row)
        return {label: by_class[label] for label in sorted(by_class)}

    def _drawn_number(self, stratum: str, draw: int, size: int) -> int:
        """Return the number that a draw gives, and note the size of the stratum."""
        self.sizes[stratum] = size
        return drawn_number(self._seed, f"{self._strata.task} {stratum}", draw, size)


def drawn_embeddings(seeds: Sequence[str], strata: TaskStrata, share: TaskShare) -> DrawnEmbeddings:
    """Return the embeddings of a task that the first seed draws, and those of earlier draws.

    `seeds` are hex digits; the draws by all but the first are the part "earlier".
    """
    current = TaskDraw(seeds[0], strata).embeddings(share)
    earlier_rows: dict[int, None] = {}
    for seed in seeds[1:]:
        for rows in TaskDraw(seed, strata).embeddings(share).rows.values():
            earlier_rows.update(dict.fromkeys(rows))
    return DrawnEmbeddings(
        current.sizes, current.rows | ({"earlier": list(earlier_rows)} if earlier_rows else {})
    )
