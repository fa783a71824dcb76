"""Rescorings made by hand, for tests of the tolerance; every score is of a real matrix."""

import random
from collections.abc import Sequence

from geneb_ci.audit.compare.outcome import METRICS
from geneb_ci.audit.compare.tolerance import COPIES_MIN, MANY_COPIES, CellWithCopies
from reference_harness.formats.base import Scores
from reference_harness.formats.rescored import JitteredCopy
from reference_harness.formats.run_record import PerSeed
from reference_harness.probe.metrics import ConfusionMatrix, scores_of

SEEDS = 5


def per_seed(matrices: Sequence[ConfusionMatrix]) -> PerSeed:
    values = [scores_of(matrix) for matrix in matrices]
    columns = zip(*values, strict=True)
    return PerSeed(**dict(zip(METRICS, map(list, columns), strict=True)))


def flipped(matrix: ConfusionMatrix, flips: int, rng: random.Random) -> ConfusionMatrix:
    """Change so many predictions of a two-class matrix, each to the other class."""
    now = matrix.copy()
    for _ in range(flips):
        cells = [(r, c) for r in (0, 1) for c in (0, 1) if now[r, c]]
        row, column = rng.choices(cells, [int(now[cell]) for cell in cells])[0]
        now[row, column] -= 1
        now[row, 1 - column] += 1
    return now


def copy(base: Sequence[ConfusionMatrix], flips: Sequence[int], rng: random.Random) -> JitteredCopy:
    moved = [flipped(m, f, rng) for m, f in zip(base, flips, strict=True)]
    return JitteredCopy(per_seed=per_seed(moved), flips=list(flips))


def measured(
    base: Sequence[ConfusionMatrix],
    plain: Sequence[Sequence[int]] | None = None,
    stressed: Sequence[Sequence[int]] | None = None,
    *,
    stops: list[list[Scores]] | None = None,
    one_fit: bool = False,
    seed: int = 0,
) -> CellWithCopies:
    """Return a cell whose copies flip these predictions, a number for each copy and seed."""
    rng = random.Random(seed)
    still = [[0] * len(base)]
    return CellWithCopies(
        per_seed(base),
        [matrix.tolist() for matrix in base],
        [copy(base, flips, rng) for flips in (still * COPIES_MIN if plain is None else plain)],
        [
            copy(base, flips, rng)
            for flips in (still * MANY_COPIES if stressed is None else stressed)
        ],
        stops or [],
        one_fit,
    )
