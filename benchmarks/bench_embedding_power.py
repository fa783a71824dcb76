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
from geneb_ci.board.confusion import recovered_cells
from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker
from geneb_ci.receipt.alteration_power import (
    MEASURED_GAINS,
    POWER_TABLE_RAISES,
    Alterations,
    hit_lower_bound,
    hit_probability_in_test,
    hit_probability_in_training,
    mcc,
    tried_altered_counts,
)
from geneb_ci.receipt.draw import STANDARD_TEST_DRAWS
from reference_harness.formats.files import write_whole
from tests.paths import SUBMISSIONS

SIMULATED_AUDITS = 4000
HITS_NEEDED = math.log(20)
"""Expected hits with which a draw finds an alteration in 95 % of cases."""
Table = list[str]
Matrix = npt.NDArray[np.float32]


class MeasurementStore:
    """Files with measured lines of tables and embeddings of tasks, which are measured only once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def line(self, name: str, make: Callable[[], str]) -> str:
        """Return a line of a table from its file; make and store it if there is none."""
        path = self.folder / f"{name.replace(' ', '-')}.txt"
        if not path.is_file():
            write_whole(path, functools.partial(_write_content, make().encode()))
        return path.read_text(encoding="utf-8")

    def rows(self, name: str, make: Callable[[], Matrix]) -> Matrix:
        """Return embeddings from their file; make and store them if there is none."""
        path = self.folder / f"{name.replace(' ', '-')}.npy"
        if not path.is_file():
            stream = io.BytesIO()
            np.save(stream, make())
            write_whole(path, functools.partial(_write_content, stream.getvalue()))
        matrix: Matrix = np.load(path)
        return matrix


def _write_content(content: bytes, stream: IO[bytes]) -> None:
    stream.write(content)


class PublishedRow(NamedTuple):
    """The binary cells of a published row in the full regime, raised by altered test embeddings."""

    name: str
    macro: list[Alterations]
    micro: list[Alterations]
    """The same if rows were ranked by the mean over tasks, with as many draws for each task."""


def alterations_of_matrix(matrix: Sequence[Sequence[int]], weight: float) -> Alterations:
    """Return the gains of altering wrongly predicted test embeddings, and the chances of a hit.

    It starts from the honest matrix; `alteration_power.alterations_of` starts from the claimed one.
    """
    (tn, fp), (fn, tp) = matrix
    raised_negatives, raised_positives = (
        ones.reshape(-1)
        for ones in np.meshgrid(tried_altered_counts(fp), tried_altered_counts(fn), indexing="ij")
    )
    negative, positive = tn + raised_negatives, tp + raised_positives
    hit = 0.5 * (raised_negatives + raised_positives) / np.maximum(1, negative + positive)
    hit += 0.25 * (
        raised_negatives / np.maximum(1, negative) + raised_positives / np.maximum(1, positive)
    )
    ones = np.ones_like(raised_negatives)
    gain = mcc(negative, fp - raised_negatives, fn - raised_positives, positive) - mcc(
        tn * ones, fp * ones, fn * ones, tp * ones
    )
    return Alterations(hit, gain, weight)


def published_rows() -> list[PublishedRow]:
    """Return the 41 public rows, with confusion matrices recovered from their scores."""
    checker, rows = Checker(RULES), []
    for path in sorted(SUBMISSIONS.glob("*.json")):
        context = checker.context(path)
        categories = context.benchmark.categories.values()
        weights = {
            task: 1 / len(categories) / len(recovered)
            for recovered in categories
            for task in recovered
        }
        cells = {
            recovered.task: [[t.large_correct, t.large_wrong], [t.small_wrong, t.small_correct]]
            for recovered in recovered_cells(context, "full")
            if (t := recovered.table) is not None
        }
        rows.append(
            PublishedRow(
                path.stem,
                [alterations_of_matrix(matrix, weights[task]) for task, matrix in cells.items()],
                [alterations_of_matrix(matrix, 1 / len(weights)) for matrix in cells.values()],
            )
        )
    return rows


def power_table(rows: Sequence[PublishedRow]) -> Table:
    """Return the table of draws needed for 95 %, and of the chance that 1,500 draws find a raise.

    Figures are the worst and the median of the rows. In the last column every task has as many
    draws and the same weight.
    """
    lines = [
        "| raise | draws for 95 %, worst / median | 1,500 find | mean over tasks: draws |",
        alignment_row(4),
    ]
    for raise_size in POWER_TABLE_RAISES:
        draws = [HITS_NEEDED / hit_lower_bound(row.macro, raise_size) for row in rows]
        equal_draws = [HITS_NEEDED / hit_lower_bound(row.micro, raise_size) for row in rows]
        chances = [
            hit_probability_in_test(row.macro, raise_size, STANDARD_TEST_DRAWS) for row in rows
        ]
        lines.append(
            f"| +{raise_size:g} | {max(draws):,.0f} / {np.median(draws):,.0f} | "
            f"{min(chances):.3f} / {np.median(chances):.3f} | "
            f"{max(equal_draws):,.0f} / {np.median(equal_draws):,.0f} |"
        )
    return lines


def simulation_table(rows: Sequence[PublishedRow], draws: int = STANDARD_TEST_DRAWS) -> Table:
    """Alter embeddings by the same optimisation, draw as an audit does, and count what is found."""
    lines = [
        (
            f"| row | raise | computed | found in {SIMULATED_AUDITS:,} audits | standard errors "
            "apart |"
        ),
        alignment_row(5),
    ]
    generator = np.random.default_rng(1)
    for row in rows:
        for raise_size in (0.004, 0.006, 0.01):
            picked_counts, gain = _cheapest(row.macro, raise_size)
            hits = np.array(
                [c.hit_probability[k] for c, k in zip(row.macro, picked_counts, strict=True)]
            )
            counts = np.array([int(np.ceil(draws * c.weight - 1e-9)) for c in row.macro])
            computed = 1 - float(np.prod((1 - hits) ** counts))
            is_found = (generator.binomial(counts, hits, (SIMULATED_AUDITS, len(hits))) > 0).any(
                axis=1
            )
            error = np.sqrt(max(computed * (1 - computed), 1e-9) / SIMULATED_AUDITS)
            errors_apart = (is_found.mean() - computed) / error
            lines.append(
                f"| {row.name} | +{gain:.4f} | {computed:.3f} | {is_found.mean():.3f} | "
                f"{errors_apart:+.1f} |"
            )
    return lines


def _cheapest(cells: Sequence[Alterations], raise_size: float) -> tuple[list[int], float]:
    """Return the alteration of the smallest multiplier that raises the macro by so much."""

    def best(multiplier: float) -> tuple[list[int], float]:
        picked_counts = [
            int((cell.hit_probability - multiplier * cell.mcc_gain).argmin()) for cell in cells
        ]
        gains = (
            cell.weight * float(cell.mcc_gain[k])
            for cell, k in zip(cells, picked_counts, strict=True)
        )
        return picked_counts, math.fsum(gains)

    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if best(middle)[1] < raise_size else (low, middle)
    return best(high)


def training_table() -> Table:
    """Return the altered training embeddings that draws of 30 in each of 100 tasks find."""
    lines = [
        "| altered training embeddings | found by the standard draw | mean gain | largest gain |",
        alignment_row(4),
    ]
    for share, (mean, largest) in MEASURED_GAINS.items():
        chance = hit_probability_in_training(share, 3000)
        lines.append(f"| {share:.1%} | {chance_text(chance)} | {mean:+.3f} | {largest:+.3f} |")
    return lines


def alignment_row(columns: int) -> str:
    """Return the line below the head of a Markdown table, which aligns its columns."""
    return "|---" + "|---:" * (columns - 1) + "|"
