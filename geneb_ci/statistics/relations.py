"""Pairs and unions of tasks that hold nearly the same sequences, found by names and numbers.

Two laws, each read off the benchmark's own ids and sizes, and used only where the rows obey it:
- a union: the test split of `..._all` is that of `..._tata` and `..._notata` together (sizes and
  class counts add up), so its score lies near the mean of theirs, weighted by size. Not exactly:
  upstream trains one probe on each of the three;
- twins: the same assay in two collections (same last part of the id, same size, same category),
  split anew, so that the two scores differ by little more than the draw.
"""

import functools
import itertools
from collections.abc import Iterator
from typing import NamedTuple

from geneb_ci.common.benchmark import Benchmark
from geneb_ci.statistics.reference import median_sorted
from geneb_ci.statistics.table import ScoreTable, Vector

# A law whose gap varies more than this between rows binds nothing: promoters of 70 bp against those
# of 300 bp under one name.
SCALE_MAX = 0.02
# Below this, a gap is the luck of the draw, however closely the other rows agree.
SCALE_FLOOR = 0.008
_TAIL, _NORMAL_TAIL = 0.8, 1.2816  # as in the reference: tails are heavy, so the size is read there
# Two splits of the same sequences differ by less than this in the share of a class.
CLASS_SHARE = 0.02


class Law(NamedTuple):
    """One task, and the tasks with weights that should give nearly its score."""

    task: int
    parts: tuple[tuple[int, float], ...]

    def gap(self, row: Vector, offset: int) -> float:
        """Return the task's score less that of its parts, in the regime that starts at `offset`."""
        return row[offset + self.task] - sum(w * row[offset + k] for k, w in self.parts)


class Gap(NamedTuple):
    """What the other rows show of a law in one regime."""

    usual: float
    scale: float


class _Kin(NamedTuple):
    """What the laws are found by."""

    number: int
    id: str
    category: str
    size: int
    counts: tuple[int, ...]
    """Of the two classes, ascending and unlabelled; nothing where they are not known."""


def laws_of(benchmark: Benchmark) -> tuple[Law, ...]:
    """Find the unions and the twins of a benchmark."""
    return _laws(
        tuple(
            _Kin(i, t.id, t.category, t.n_test or 0, tuple(sorted(t.test_class_counts or ())))
            for i, t in enumerate(benchmark.tasks)
        )
    )


@functools.lru_cache(maxsize=4)
def _laws(tasks: tuple[_Kin, ...]) -> tuple[Law, ...]:
    known = [t for t in tasks if len(t.counts) == 2]  # noqa: PLR2004 (two classes)
    return (*_unions(known), *_twins(known))


def _unions(tasks: list[_Kin]) -> Iterator[Law]:
    for whole in tasks:
        if not whole.id.endswith("_all"):
            continue
        stem = whole.id.removesuffix("all")
        family = [t for t in tasks if t is not whole and t.id.startswith(stem)]
        for a, b in itertools.combinations(family, 2):
            if a.size + b.size == whole.size and _add_up(whole, a, b):
                parts = ((a.number, a.size / whole.size), (b.number, b.size / whole.size))
                yield Law(whole.number, parts)


def _add_up(whole: _Kin, a: _Kin, b: _Kin) -> bool:
    """Whether the class counts of two parts give those of the whole, whichever class is which."""
    sums = {a.counts[0] + b.counts[0], a.counts[0] + b.counts[1]}
    return bool(sums & set(whole.counts))


def _twins(tasks: list[_Kin]) -> Iterator[Law]:
    for a, b in itertools.combinations(tasks, 2):
        if (a.category, a.size, _last(a)) == (b.category, b.size, _last(b)) and _split_anew(a, b):
            yield Law(a.number, ((b.number, 1.0),))


def _last(task: _Kin) -> str:
    return task.id.rpartition("_")[2].casefold()


def _split_anew(a: _Kin, b: _Kin) -> bool:
    """Whether two collections of different authors have the classes in nearly the same shares."""
    apart = abs(a.counts[0] - b.counts[0]) <= CLASS_SHARE * a.size
    return apart and a.id.partition("_")[0] != b.id.partition("_")[0]


@functools.lru_cache(maxsize=4)
def _gaps(table: ScoreTable, laws: tuple[Law, ...]) -> dict[tuple[int, int], list[float]]:
    """Sort the gaps of all rows, by law and regime."""
    found = {}
    for number, law in enumerate(laws):
        for part in table.regimes:
            gaps = (law.gap(row, part.start) for row in table.vectors)
            found[number, part.start] = sorted(g for g in gaps if g == g)  # noqa: PLR0124 (NaN)
    return found


def usual_gap(
    table: ScoreTable,
    laws: tuple[Law, ...],
    number: int,
    offset: int,
    without: int | None,
    rows_min: int,
) -> Gap | None:
    """Return what the other rows show of a law; None where they do not obey it, or are too few."""
    gaps = list(_gaps(table, laws)[number, offset])
    if without is not None:
        own = laws[number].gap(table.vectors[without], offset)
        if own in gaps:
            gaps.remove(own)
    if len(gaps) < rows_min:
        return None
    usual = median_sorted(gaps)
    sizes = sorted(abs(g - usual) for g in gaps)
    scale = sizes[int(_TAIL * (len(sizes) - 1))] / _NORMAL_TAIL
    return Gap(usual, max(scale, SCALE_FLOOR)) if scale <= SCALE_MAX else None
