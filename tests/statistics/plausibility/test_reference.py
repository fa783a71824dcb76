"""The fit against the same mathematics by numpy, and against a fit that never saw the row."""

import dataclasses
import math
from operator import mul
from typing import Any

import numpy as np
import pytest

from geneb_ci.check.folder_context import shipped_rows
from geneb_ci.check.rules.plausibility_rows import (
    ABOVE_DEVIATIONS_MAX,
    ABOVE_FEW_SHOT_DEVIATIONS_MAX,
    BELOW_DEVIATIONS_MAX,
)
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.statistics import reference as module
from geneb_ci.statistics import view
from geneb_ci.statistics.reference import (
    RIDGE_PENALTY,
    RidgeFit,
    ScoreTable,
    gram,
    inverse,
    ridge_fit_of,
    score_table_of,
)
from geneb_ci.statistics.view import leave_one_out_of
from reference_harness.formats.benchmark import Benchmark


@pytest.fixture(scope="module")
def fit(table: ScoreTable) -> RidgeFit:
    reference = ridge_fit_of(table)
    assert reference is not None
    return reference


def without(table: ScoreTable, number: int) -> ScoreTable:
    """Return the table as if a row had never been merged."""
    remaining = [i for i in range(len(table.models)) if i != number]
    names = tuple(table.models[i] for i in remaining)
    return ScoreTable(names, tuple(table.vectors[i] for i in remaining), {}, table.regimes)


def test_inverse() -> None:
    rows = np.random.default_rng(0).normal(size=(20, 50)).tolist()
    matrix = gram(rows, 3.0)
    assert np.allclose(np.array(inverse(matrix)) @ np.array(matrix), np.eye(20), atol=1e-12)


@pytest.mark.parametrize("number", [0, 3, 25, 40])
def test_leaving_out_is_exact(table: ScoreTable, fit: RidgeFit, number: int) -> None:
    """The closed forms give what solving again does, for the row and for each cell."""
    standing = leave_one_out_of(table.vectors[number], fit, number)
    assert standing is not None
    others = np.array([r for i, r in enumerate(fit.standardised) if i != fit.index_of(number)])
    own = np.array(fit.standardised[number])
    for cell in (0, 57, 150, 299):
        is_other_cell = np.arange(300) != cell
        system = others[:, is_other_cell] @ others[:, is_other_cell].T + RIDGE_PENALTY * np.eye(
            len(others)
        )
        weights = np.linalg.solve(system, others[:, is_other_cell] @ own[is_other_cell])
        guess = fit.centre.medians[cell] + fit.fit_scales[cell] * float(weights @ others[:, cell])
        assert standing.predicted[cell] == pytest.approx(guess, abs=1e-9)


def test_leaving_out_two_rows_is_exact(table: ScoreTable, fit: RidgeFit) -> None:
    standing = leave_one_out_of(table.vectors[3], fit, 3, 25)
    assert standing is not None
    others = np.array([r for i, r in enumerate(fit.standardised) if i not in {3, 25}])
    system = others @ others.T + RIDGE_PENALTY * np.eye(len(others))
    weights = np.linalg.solve(system, others @ np.array(fit.standardised[3]))
    assert list(standing.weights) == [i for i in fit.rows if i not in {3, 25}]
    assert list(standing.weights.values()) == pytest.approx(list(weights), abs=1e-12)


def test_profiles_without_a_row_are_those_of_the_others(table: ScoreTable) -> None:
    categories = shipped_benchmark().categories
    places = {task: k for k, task in enumerate(shipped_benchmark().task_ids)}
    parts = tuple(
        (name, tuple(places[model_id] for model_id in ids)) for name, ids in categories.items()
    )
    category_means = view._category_means(table, parts)
    assert category_means is not None
    for number, means in enumerate(category_means.means):
        remaining_rows = [row for i, row in enumerate(category_means.standardised) if i != number]
        precision = inverse(
            gram(list(zip(*remaining_rows, strict=True)), view.CATEGORY_RIDGE_PENALTY)
        )
        own = category_means.standardised[number]
        expected = [
            mean - usual - spread * (z - math.fsum(map(mul, line, own)) / line[k])
            for k, (mean, usual, spread, z, line) in enumerate(
                zip(
                    means,
                    category_means.medians,
                    category_means.spread,
                    own,
                    precision,
                    strict=True,
                )
            )
        ]
        assert category_means.residuals[number] == pytest.approx(expected, abs=1e-12)


FLAGGED = {"BioFM-265M", "evo-1-131k-base"}


@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.nightly)])
def test_leaving_out_is_honest(table: ScoreTable, fit: RidgeFit, step: int) -> None:
    """A fit that never saw the row gives nearly the same distances, and the same warnings."""
    apart, flagged = [], set()
    numbers = {*range(0, len(table.models), step), *map(table.models.index, FLAGGED)}
    for number in numbers:
        row = table.vectors[number]
        shared = leave_one_out_of(row, fit, number)
        reference = ridge_fit_of(without(table, number))
        assert reference is not None
        alone = leave_one_out_of(row, reference, None)
        assert shared is not None
        assert alone is not None
        limits = [(-BELOW_DEVIATIONS_MAX, ABOVE_DEVIATIONS_MAX)] * 100 + [
            (-BELOW_DEVIATIONS_MAX, ABOVE_FEW_SHOT_DEVIATIONS_MAX)
        ] * 200
        if any(not a < d < b for d, (a, b) in zip(alone.distances, limits, strict=True)):
            flagged.add(table.models[number])
        apart += [abs(a - b) for a, b in zip(shared.distances, alone.distances, strict=True)]
    ordered = sorted(apart)
    assert ordered[len(ordered) // 2] < 0.1
    assert ordered[int(0.99 * len(ordered))] < 0.5
    assert flagged == FLAGGED, "as in the shared fit"


def test_too_few_rows(table: ScoreTable) -> None:
    few = ScoreTable(table.models[:7], table.vectors[:7], {}, table.regimes)
    assert ridge_fit_of(few) is None
    assert (
        ridge_fit_of(ScoreTable(table.models[:8], table.vectors[:8], {}, table.regimes)) is not None
    )


def test_rows_with_holes_are_no_reference(table: ScoreTable) -> None:
    holed = tuple((math.nan, *row[1:]) for row in table.vectors[:30])
    mixed = ScoreTable(table.models, holed + table.vectors[30:], {}, table.regimes)
    reference = ridge_fit_of(mixed)
    assert reference is not None
    assert reference.rows == tuple(range(30, 41))


def test_many_rows_are_thinned(
    table: ScoreTable, benchmark: Benchmark, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(table.regimes) == len(benchmark.regimes)
    monkeypatch.setattr(module, "FITTED_ROWS_MAX", 16)
    reference = ridge_fit_of(ScoreTable(table.models, table.vectors, {}, table.regimes))
    assert reference is not None
    assert len(reference.rows) == 16
    row = table.vectors[1]
    standing = leave_one_out_of(row, reference, 1)
    assert standing is not None
    assert max(map(abs, standing.distances)) < 12


def test_equal_rows_do_no_harm(table: ScoreTable) -> None:
    same = ScoreTable(table.models[:10], (table.vectors[0],) * 10, {}, table.regimes)
    reference = ridge_fit_of(same)
    assert reference is not None
    standing = leave_one_out_of(table.vectors[0], reference, 0)
    assert standing is not None
    assert all(math.isfinite(x) for x in standing.distances)


def test_a_row_full_of_holes_has_no_standing(table: ScoreTable, fit: RidgeFit) -> None:
    row = table.vectors[0]
    assert leave_one_out_of((math.nan,) * 31 + row[31:], fit, 0) is None
    assert leave_one_out_of((math.nan,) * 29 + row[29:], fit, 0) is not None


def test_the_shipped_fit_is_the_fit_of_the_shipped_rows(monkeypatch, benchmark):
    rows = score_table_of(shipped_rows(), benchmark)
    shipped = module.ridge_fit_of.__wrapped__(rows)
    monkeypatch.setattr(module, "_shipped_fit", lambda *_: None)
    computed = module.ridge_fit_of.__wrapped__(rows)
    assert shipped is not None
    assert vars(shipped) == vars(computed)


@pytest.mark.parametrize("changed", ["a score", "a setting"])
def test_other_rows_and_settings_are_fitted_anew(monkeypatch, benchmark, changed):
    rows = score_table_of(shipped_rows(), benchmark)
    fitted: list[int] = []
    fit = module._computed_fit

    def counted(vectors: list[Any], *more: Any) -> Any:
        fitted.append(len(vectors))
        return fit(vectors, *more)

    monkeypatch.setattr(module, "_computed_fit", counted)
    module.ridge_fit_of.__wrapped__(rows)
    assert not fitted  # the shipped fit
    if changed == "a score":
        vectors = list(rows.vectors)
        vectors[7] = (*vectors[7][:-1], math.nextafter(vectors[7][-1], 1.0))
        rows = dataclasses.replace(rows, vectors=tuple(vectors))
    else:
        monkeypatch.setattr(module, "POOLING_ROWS", 21)
    module.ridge_fit_of.__wrapped__(rows)
    assert fitted
