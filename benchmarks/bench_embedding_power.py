"""Compute and simulate the share of altered test and training embeddings that a draw finds."""

import functools
import io
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import numpy.typing as npt

from geneb_ci.audit.sampling.embedding_power import chance_text
from geneb_ci.board.confusion import recovered_tables
from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker
from geneb_ci.receipt.alteration_power import (
    MEASURED_GAIN,
    RAISES,
    Alterations,
    altered_counts,
    hit_lower_bound,
    hit_probability_in_test,
    hit_probability_in_training,
    mcc,
)
from geneb_ci.receipt.draw import STANDARD_TEST
from reference_harness.formats.files import write_whole
from tests.paths import SUBMISSIONS

SIMULATED = 4000
NEEDED = math.log(20)
"""Expected hits with which a draw finds an alteration in 95 % of cases."""
Table = list[str]
Matrix = npt.NDArray[np.float32]


class Kept:
    """A store of measured lines of tables and embeddings of tasks, which are not measured again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def line(self, name: str, make: Callable[[], str]) -> str:
        """Return a line of a table."""
        place = self.folder / f"{name.replace(' ', '-')}.txt"
        if not place.is_file():
            write_whole(place, functools.partial(_put, make().encode()))
        return place.read_text(encoding="utf-8")

    def rows(self, name: str, make: Callable[[], Matrix]) -> Matrix:
        """Return embeddings."""
        place = self.folder / f"{name.replace(' ', '-')}.npy"
        if not place.is_file():
            stream = io.BytesIO()
            np.save(stream, make())
            write_whole(place, functools.partial(_put, stream.getvalue()))
        found: Matrix = np.load(place)
        return found


def _put(content: bytes, stream: IO[bytes]) -> None:
    stream.write(content)


class PublishedRow(NamedTuple):
    """The binary cells of a published row in the full regime, raised by altered test embeddings."""

    name: str
    macro: list[Alterations]
    micro: list[Alterations]
    """The same if rows were ranked by the mean over tasks, with as many draws for each task."""


def raised(matrix: Sequence[Sequence[int]], weight: float) -> Alterations:
    """Return what altering wrong embeddings to right ones of an honest matrix gains, and its hits.

    `alteration_power.alterations_of` goes the other way, from a claim to what it may have been.
    """
    (tn, fp), (fn, tp) = matrix
    a, b = (
        one.reshape(-1)
        for one in np.meshgrid(altered_counts(fp), altered_counts(fn), indexing="ij")
    )
    negative, positive = tn + a, tp + b
    hit = 0.5 * (a + b) / np.maximum(1, negative + positive)
    hit += 0.25 * (a / np.maximum(1, negative) + b / np.maximum(1, positive))
    one = np.ones_like(a)
    gain = mcc(negative, fp - a, fn - b, positive) - mcc(tn * one, fp * one, fn * one, tp * one)
    return Alterations(hit, gain, weight)


def published() -> list[PublishedRow]:
    """Return the 41 public rows, with confusion matrices recovered from their scores."""
    checker, found = Checker(RULES), []
    for path in sorted(SUBMISSIONS.glob("*.json")):
        context = checker.context(path)
        categories = context.benchmark.categories.values()
        weights = {task: 1 / len(categories) / len(one) for one in categories for task in one}
        cells = {
            one.task: [[t.large_correct, t.large_wrong], [t.small_wrong, t.small_correct]]
            for one in recovered_tables(context, "full")
            if (t := one.table) is not None
        }
        found.append(
            PublishedRow(
                path.stem,
                [raised(matrix, weights[task]) for task, matrix in cells.items()],
                [raised(matrix, 1 / len(weights)) for matrix in cells.values()],
            )
        )
    return found


def power(rows: Sequence[PublishedRow]) -> Table:
    """Return the draws needed for 95 %, and what 1,500 find, worst and median of the rows.

    The last column divides the draws equally by task and weighs the tasks alike.
    """
    lines = [
        "| raise | draws for 95 %, worst / median | 1,500 find | mean over tasks: draws |",
        ruled(4),
    ]
    for raise_ in RAISES:
        draws = [NEEDED / hit_lower_bound(one.macro, raise_) for one in rows]
        alike = [NEEDED / hit_lower_bound(one.micro, raise_) for one in rows]
        chances = [hit_probability_in_test(one.macro, raise_, STANDARD_TEST) for one in rows]
        lines.append(
            f"| +{raise_:g} | {max(draws):,.0f} / {np.median(draws):,.0f} | "
            f"{min(chances):.3f} / {np.median(chances):.3f} | "
            f"{max(alike):,.0f} / {np.median(alike):,.0f} |"
        )
    return lines


def simulated(rows: Sequence[PublishedRow], draws: int = STANDARD_TEST) -> Table:
    """Alter embeddings by the same optimisation, draw as an audit does, and count what is found."""
    lines = [
        f"| row | raise | computed | found in {SIMULATED:,} audits | standard errors apart |",
        ruled(5),
    ]
    generator = np.random.default_rng(1)
    for one in rows:
        for raise_ in (0.004, 0.006, 0.01):
            picks, gain = _cheapest(one.macro, raise_)
            hits = np.array([c.hit[k] for c, k in zip(one.macro, picks, strict=True)])
            counts = np.array([int(np.ceil(draws * c.weight - 1e-9)) for c in one.macro])
            computed = 1 - float(np.prod((1 - hits) ** counts))
            found = (generator.binomial(counts, hits, (SIMULATED, len(hits))) > 0).any(axis=1)
            error = np.sqrt(max(computed * (1 - computed), 1e-9) / SIMULATED)
            apart = (found.mean() - computed) / error
            lines.append(
                f"| {one.name} | +{gain:.4f} | {computed:.3f} | {found.mean():.3f} | {apart:+.1f} |"
            )
    return lines


def _cheapest(cells: Sequence[Alterations], raise_: float) -> tuple[list[int], float]:
    """Return the alteration of the smallest multiplier that raises the macro by so much."""

    def best(multiplier: float) -> tuple[list[int], float]:
        picks = [int((one.hit - multiplier * one.mcc_gain).argmin()) for one in cells]
        gains = (one.weight * float(one.mcc_gain[k]) for one, k in zip(cells, picks, strict=True))
        return picks, math.fsum(gains)

    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if best(middle)[1] < raise_ else (low, middle)
    return best(high)


def training() -> Table:
    """Return the altered training embeddings that draws of 30 in each of 100 tasks find."""
    lines = [
        "| altered training embeddings | found by the standard draw | mean gain | largest gain |",
        ruled(4),
    ]
    for share, (mean, largest) in MEASURED_GAIN.items():
        chance = hit_probability_in_training(share, 3000)
        lines.append(f"| {share:.1%} | {chance_text(chance)} | {mean:+.3f} | {largest:+.3f} |")
    return lines


def ruled(columns: int) -> str:
    """Return the line below the head of a table."""
    return "|---" + "|---:" * (columns - 1) + "|"
