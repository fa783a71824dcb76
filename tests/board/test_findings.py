"""Figures of the paper as functions of rows and parameters: by hand, and their edges."""

import array
import math
import statistics

from geneb_ci.board.diagnostics.findings import (
    FigureRow,
    _centred_ranks,
    _correlation,
    figure_definitions,
    figure_of,
)
from geneb_ci.statistics.metrics import PackedNumbers

REGIMES = ["full", "10shot", "1shot"]
KINDS = {kind.id: kind for kind in figure_definitions(REGIMES)}


def row(model: str, params: float | None, full: float, few: float = 0.1) -> FigureRow:
    """Return a row of one category and two tasks."""
    scores = {"full": full, "10shot": few, "1shot": few / 2}
    return FigureRow(
        model,
        params,
        scores,
        {regime: {"A": score} for regime, score in scores.items()},
        {regime: {"a": score - 0.1, "b": score + 0.1} for regime, score in scores.items()},
    )


ROWS = [row("p", 100, 0.5), row("q", 500, 0.4, 0.2), row("r", 501, 0.3), row("s", None, 0.6)]


def value(name: str, rows: list[FigureRow] | None = None, **parameters: float | str) -> object:
    return figure_of(KINDS[name], ROWS if rows is None else rows, "board", parameters).value


def spearman_rho(counts, scores) -> float | None:
    return _correlation(_centred_ranks(counts), _centred_ranks(scores))


def test_correlation_shares_ranks_of_equal_counts():
    # Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: rho = 4.5 / sqrt(4.5 x 5).
    rho = spearman_rho([1, 2, 2, 4], [0.1, 0.2, 0.3, 0.4])
    assert rho is not None
    assert round(rho, 4) == 0.9487
    assert value("size-correlation", ROWS[:2]) is None
    assert spearman_rho([1, 1, 1], [0.1, 0.2, 0.3]) is None


def test_rows_without_a_count_have_no_size():
    assert value("size-correlation") == -1.0
    assert value("size-correlation", [*ROWS, row("t", 0, 0.9)]) == -1.0


def test_five_times_is_inclusive_and_a_threshold_is_not():
    figure = figure_of(KINDS["small-beats-large"], ROWS, "board")
    assert (figure.value, [part.name for part in figure.parts]) == (2, ["p over r", "p over q"])
    assert value("small-beats-large", times=5.01) == 1
    means = [row("p", 1, 0.25), row("q", 1, 0.45)]
    assert value("hard-tasks", means, threshold=0.25) == 0
    assert value("hard-tasks", means, threshold=0.2500001) == 1


def test_a_retention_is_a_ratio_of_means_and_not_a_mean_of_ratios():
    assert value("retention", regime="10shot") == (0.5 / 4) / (1.8 / 4)
    assert value("retention", [row("p", 1, -0.1)], regime="10shot") is None


def test_a_category_whose_best_row_differs():
    figure = figure_of(KINDS["winner-changes"], ROWS, "board")
    assert (figure.value, [part.name for part in figure.parts]) == (1, ["A: s, then q"])


def test_a_spread_needs_two_rows():
    assert value("high-variance-tasks", ROWS[:1]) == 0
    assert value("high-variance-tasks", threshold=0.1) == 2
    assert value("high-variance-tasks", threshold=0.2) == 0


def test_without_rows_nothing_is_known():
    for kind in figure_definitions(REGIMES):
        assert figure_of(kind, [], "paper").value in {None, 0}


def test_the_paper_leaves_four_models_out_of_one_figure():
    figure = figure_of(KINDS["small-beats-large"], [*ROWS, row("DNABERT-S", 1, 0.9)], "paper")
    assert figure.rows == 4
    assert "DNABERT-S" in figure.parameters["exclude"]  # type: ignore[operator]
    assert figure_of(KINDS["hard-tasks"], ROWS, "paper", exclude=["p"]).rows == 3


def test_a_difference_of_two_models():
    assert value("controlled-pair", first="p", second="r") == 0.2
    assert value("controlled-pair", first="p", second="nobody") is None


def test_a_deviation_is_compared_with_the_threshold_exactly():
    rows = [row(f"m{k}", 1, k / 7) for k in range(7)]
    tasks = [figure_row.tasks["full"]["a"] for figure_row in rows]
    deviation = statistics.stdev(tasks)
    assert value("high-variance-tasks", rows, threshold=math.nextafter(deviation, 0)) == 2
    assert value("high-variance-tasks", rows, threshold=deviation) == 0


def test_packed_scores_give_what_dicts_give():
    places = {"a": 0, "b": 1}
    packed = [
        figure_row._replace(
            tasks={
                regime: PackedNumbers(places, array.array("d", task.values()))
                for regime, task in figure_row.tasks.items()
            }
        )
        for figure_row in ROWS
    ]
    for name in ("hard-tasks", "high-variance-tasks"):
        for rows in (packed, [packed[0], *ROWS[1:]]):
            figure = figure_of(KINDS[name], rows, "board", {"threshold": 0.1})
            assert figure == figure_of(KINDS[name], ROWS, "board", {"threshold": 0.1})
