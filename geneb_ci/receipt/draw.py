"""The draw of embeddings of a receipt: by SHA-256, from strata that anybody can list.

The strata of a task follow from the predictions on the committed bytes, by probes at their optimum
and by those of record.

*Test embeddings*, in each regime, divided by task as the macro weighs them. Half of the draws of a
task are uniform among the embeddings predicted right: an altered embedding that is still wrong
gains nothing. The other half first draws a predicted class, among those with a right prediction,
then a right embedding of it: where the minority is seldom predicted, few altered embeddings gain
much. The probes of a few-shot regime take turns. *Training embeddings* are drawn equally by task
and uniformly within it. *Support embeddings*: all of the regime with the fewest, of the others a
share of those that are left.

Draw j of a stratum is the first SHA-256(s || 0x00 || stratum || 0x00 || j || 0x00 || attempt), j
and attempt as 8 bytes, big-endian, that is below the largest multiple of the stratum's size, modulo
that size. It does not depend on how many embeddings are drawn: a larger sample only adds
embeddings.
"""

import hashlib
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

STANDARD_TEST = 1500
"""Test embeddings of each regime: about 1,450 find a macro MCC raised by more than 0.01 with 95 %
in the worst of 41 published rows, if they are divided as the macro weighs the tasks."""
STANDARD_TRAINING = 30
"""Training embeddings a task: an altered share of 0.1 % in the mean of 100 tasks is drawn with 95
%."""
SMALL_TASK = 3000
"""Training embeddings below which a task is embedded whole by a full draw: where few altered
embeddings gain most."""
TEST_PART, TRAINING = "test ", "training"
"""Part of training embeddings; what begins the name of each part of test embeddings, before that of
the regime."""
_SEPARATOR = b"\x00"
_SPACE = 1 << 256


class SampleSizes(NamedTuple):
    """Numbers of embeddings to draw."""

    test: int = STANDARD_TEST
    """Test embeddings of each regime, in all tasks together, at least."""
    training: int = STANDARD_TRAINING
    """Training embeddings of each task."""
    support: int = STANDARD_TEST
    """Embeddings of each further few-shot regime's support, in all tasks together."""
    whole: bool = False
    """Whether every support embedding is taken, and every training embedding of the smaller
    tasks."""


class TaskShare(NamedTuple):
    """Numbers of draws in one task."""

    position: int
    """The task's position in the benchmark, by which its first draw of test embeddings takes
    turns."""
    test: int
    training: int
    support: int
    whole: bool


def shares(
    sample: SampleSizes, classes: Mapping[str, int], categories: Sequence[Collection[str]]
) -> dict[str, TaskShare]:
    """Return the draws of each task; `classes` has the tasks of the receipt in board order.

    `categories` has the tasks of each category; others among them do not count. Test embeddings are
    divided equally by category, and within it by task, as the macro weighs them; divided equally
    by task, a category of one task would be the place to alter embeddings. Support embeddings are
    divided by the number of classes: a task has that many times k. Both are rounded up.
    """
    total = sum(classes.values())
    groups = [
        members
        for category in categories
        if (members := [task for task in category if task in classes])
    ]
    among = {task: len(groups) * len(members) for members in groups for task in members}
    return {
        task: TaskShare(
            position,
            -(-sample.test // among[task]),
            sample.training,
            -(-sample.support * count // total),
            sample.whole,
        )
        for position, (task, count) in enumerate(classes.items())
    }


def number_of(seed: bytes, stratum: str, draw: int, size: int) -> int:
    """Return draw `draw` of a stratum, from 0 to below its size."""
    head = seed + _SEPARATOR + stratum.encode() + _SEPARATOR + struct.pack(">Q", draw) + _SEPARATOR
    limit = _SPACE - _SPACE % size
    attempt = 0
    while True:
        digest = hashlib.sha256(head + struct.pack(">Q", attempt)).digest()
        number = int.from_bytes(digest, "big")
        if number < limit:
            return number % size
        attempt += 1


@dataclass(frozen=True)
class TaskStrata:
    """The strata that the embeddings of one task are drawn from."""

    task: str
    train: int
    """Training embeddings, which come first in the file."""
    labels: "npt.NDArray[np.int64]"
    """(m,) labels of the test embeddings."""
    predicted: "Mapping[str, npt.NDArray[np.int64]]"
    """Regime to (s, m) predictions at the optimum, by each probe in turn."""
    support: "Mapping[str, npt.NDArray[np.int64]]"
    """Few-shot regime to its training embeddings, ascending; the regime with the fewest first."""
    of_record: "Mapping[str, npt.NDArray[np.int64]]" = field(default_factory=dict)
    """Regime to the predictions of record, in the same form; none where they were not computed, and
    for draws of records before version 2.1."""

    def right(self, regime: str, probe: int) -> "npt.NDArray[np.int64]":
        """Return the test embeddings that a probe, or that of record, predicts right, ascending.

        An embedding that one of them gets wrong may have been altered for the other's sake.
        """
        is_right = self.predicted[regime][probe] == self.labels
        if regime in self.of_record:
            is_right = is_right | (self.of_record[regime][probe] == self.labels)
        rows: npt.NDArray[np.int64] = is_right.nonzero()[0]
        return rows


class TestDraw(NamedTuple):
    """Draw of one test embedding of a task and regime."""

    draw: int
    """Its number among the draws of the task and regime."""
    probe: int
    """Whose right embeddings it is drawn from."""
    by_class: bool
    """Whether one of their predicted classes is drawn first."""


def turns(strata: TaskStrata, regime: str, share: TaskShare) -> list[TestDraw]:
    """Return how each test embedding of a regime is drawn, in the order of the draws.

    Where a probe predicts nothing right, no embedding can have been made right, and none is drawn.
    """
    probes = len(strata.predicted[regime])
    has_right = [bool(len(strata.right(regime, probe))) for probe in range(probes)]
    numbered = ((j, j + share.position) for j in range(share.test))
    all_turns = [TestDraw(j, number // 2 % probes, bool(number % 2)) for j, number in numbered]
    return [turn for turn in all_turns if has_right[turn.probe]]


def unforeseen(rows: Mapping[str, Sequence[int]]) -> set[int]:
    """Return the embeddings that nobody could foresee, of those drawn in one task, by part.

    Support embeddings, the strongest and those of earlier draws are known before a draw.
    """
    parts = (
        part_rows
        for part, part_rows in rows.items()
        if part.startswith(TEST_PART) or part == TRAINING
    )
    return {row for part_rows in parts for row in part_rows}


class DrawnEmbeddings(NamedTuple):
    """The embeddings drawn in one task."""

    sizes: dict[str, int]
    """Stratum to its size, of each that was drawn from."""
    rows: dict[str, list[int]]
    """Part to embeddings of the file, in the order of the draws."""

    @property
    def distinct(self) -> list[int]:
        """Embeddings to embed, ascending."""
        return sorted({row for rows in self.rows.values() for row in rows})


class TaskDraw:
    """Draws the embeddings of one task by one seed."""

    def __init__(self, seed: str, strata: TaskStrata) -> None:
        self._seed = bytes.fromhex(seed)
        self._strata = strata
        self.sizes: dict[str, int] = {}

    def rows(self, share: TaskShare) -> DrawnEmbeddings:
        """Return all embeddings of a task."""
        strata = self._strata
        parts = {
            f"{TEST_PART}{regime}": [strata.train + row for row in self._test(regime, share)]
            for regime in strata.predicted
        }
        whole = share.whole and strata.train < SMALL_TASK
        parts[TRAINING] = (
            list(range(strata.train))
            if whole
            else [self._number("training", j, strata.train) for j in range(share.training)]
        )
        drawn: set[int] = set()
        for position, (regime, rows) in enumerate(strata.support.items()):
            undrawn = [row for row in rows.tolist() if row not in drawn]
            drawn.update(undrawn)
            parts[f"support {regime}"] = (
                undrawn
                if position == 0 or share.whole or len(undrawn) <= share.support
                else [
                    undrawn[self._number(f"support {regime}", j, len(undrawn))]
                    for j in range(share.support)
                ]
            )
        return DrawnEmbeddings(dict(self.sizes), parts)

    def _test(self, regime: str, share: TaskShare) -> list[int]:
        strata, drawn = self._strata, []
        probes = len(strata.predicted[regime])
        right = [strata.right(regime, probe).tolist() for probe in range(probes)]
        listed = [self._classes(regime, probe) for probe in range(probes)]
        for turn in turns(strata, regime, share):
            rows, name = right[turn.probe], f"test {regime} {turn.probe} right"
            if turn.by_class:
                classes = listed[turn.probe]
                names = list(classes)
                chosen = names[self._number(f"{name}, class", turn.draw, len(names))]
                rows, name = classes[chosen], f"{name}, class {chosen}"
            drawn.append(rows[self._number(name, turn.draw, len(rows))])
        return drawn

    def _classes(self, regime: str, probe: int) -> dict[int, list[int]]:
        """Return the right embeddings of each predicted class that has some, both ascending."""
        right = self._strata.right(regime, probe)
        by_class: dict[int, list[int]] = {}
        for row, label in zip(right.tolist(), self._strata.labels[right].tolist(), strict=True):
            by_class.setdefault(label, []).append(row)
        return {label: by_class[label] for label in sorted(by_class)}

    def _number(self, stratum: str, draw: int, size: int) -> int:
        self.sizes[stratum] = size
        return number_of(self._seed, f"{self._strata.task} {stratum}", draw, size)


def drawn_embeddings(seeds: Sequence[str], strata: TaskStrata, share: TaskShare) -> DrawnEmbeddings:
    """Return the embeddings of a task by its own seed, the first, and those of earlier draws.

    `seeds` are hex digits. Embeddings of earlier draws are the part "earlier".
    """
    current = TaskDraw(seeds[0], strata).rows(share)
    earlier: dict[int, None] = {}
    for seed in seeds[1:]:
        for rows in TaskDraw(seed, strata).rows(share).rows.values():
            earlier.update(dict.fromkeys(rows))
    return DrawnEmbeddings(
        current.sizes, current.rows | ({"earlier": list(earlier)} if earlier else {})
    )
