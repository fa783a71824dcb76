"""The page decides as Python does: each pair, badge and sentence, from the same doubles."""

from decimal import ROUND_FLOOR, Decimal

import numpy as np
import pytest
from scipy.special import ndtr

from geneb_ci.board.decisions import (
    ScoreColumn,
    compare_pair,
    critical_value,
    intervals_of,
    significantly_better,
)
from geneb_ci.board.page_data import NORMAL_QUANTILE
from geneb_ci.board.reasons import SHOWN_UNIT, bound_text
from geneb_ci.common.benchmark import shipped_benchmark
from tests.board.board import found_intervals
from tests.gate import gated
from tests.page.boards import advice
from tests.page.rows import MINUS, display, shown

REGIMES = shipped_benchmark().regimes
NAMES = ("macro", "micro", *shipped_benchmark().category_order)
STEP = 8
"""One of so many models is compared with all others in figures: each takes Python a moment."""
# All pairs of all models in one column, as the page's own functions decide them.
EVERY = """
async ([rows, critical, matrix, step = 1]) => {
  const { compared } = await import("/src/pure/decide.js");
  const standings = rows.map(([score, error, freedom], model) => ({
    score, error, freedom: freedom ?? Infinity, model,
    shared: matrix ? (other) => matrix[model][other] : undefined,
  }));
  const all = standings.map((one) => standings.map((other) => compared(one, other, critical)));
  const found = all.filter((_, place) => place % step === 0).map((row) =>
    row.map(({ difference, low, high, probability }) => [difference, low, high, probability]));
  const significant = all.map((row) => row.map(({ isSignificant }) => isSignificant));
  const pairs = all.map((row) => row.map((one) => one.isSignificant && one.difference > 0));
  return { pairs, found, significant };
}
"""


def rows_of(scores: ScoreColumn) -> list[list[float | None]]:
    return [
        [value, error, None if np.isinf(freedom) else freedom]
        for value, error, freedom in zip(
            scores.values.tolist(),
            np.sqrt(scores.variance).tolist(),
            scores.freedom.tolist(),
            strict=True,
        )
    ]


def same_relation(answer, scores: ScoreColumn, c: float) -> bool:
    """Say whether the page decides each pair, in each of its views, as Python does."""
    above = significantly_better(scores, c)
    own = (above.tolist(), (above | above.T).tolist())
    return (answer["pairs"], answer["significant"]) == own


SCORES_OF = tuple((regime, NAMES) for regime in REGIMES)
FEW = ("10shot", NAMES[:4])


@pytest.mark.parametrize(
    ("regime", "names"), gated([*SCORES_OF, FEW], FEW), ids=[*REGIMES, "four scores of 10shot"]
)
def test_all_pairs(evaluated, regime, names):
    """By night in the three regimes, 820 pairs in each of 15 scores: 36,900, none contradicted."""
    board = found_intervals()[regime].board
    pairs = 0
    for name in names:
        scores = board.scores[name]
        relations = evaluated(EVERY, [rows_of(scores), board.critical, None, STEP])
        assert same_relation(relations, scores, board.critical)
        places = range(len(board.models))
        mine = [
            [compare_pair(scores, i, j, board.critical)[:4] for j in places] for i in places[::STEP]
        ]
        assert np.abs(np.array(relations["found"]) - np.array(mine)).max() <= 2e-9
        pairs += len(places) * (len(places) - 1) // 2
    assert pairs == 820 * len(names)


def test_pairs_of_rows_with_predictions(evaluated):
    """Errors of half the rows correlate; the page has the covariances that Python has."""
    rng = np.random.Generator(np.random.PCG64(2))
    scores = ScoreColumn(rng.uniform(0, 0.1, 40), rng.uniform(1e-5, 1e-3, 40), np.full(40, np.inf))
    sizes = np.sqrt(scores.variance) * (np.arange(40) < 20)
    shared = 0.7 * np.outer(sizes, sizes) * (1 - np.eye(40))
    scores = scores._replace(variance=np.square(np.sqrt(scores.variance)))
    paired = scores._replace(shared=shared)
    relations = evaluated(EVERY, [rows_of(scores), critical_value(50), shared.tolist()])
    assert same_relation(relations, paired, critical_value(50))
    assert not same_relation(relations, scores, critical_value(50))
    assert relations["found"][3][7] == pytest.approx(
        compare_pair(paired, 3, 7, critical_value(50))[:4], abs=2e-9
    )


def test_pairs_of_rows_with_scores_by_seed(evaluated):
    rng = np.random.Generator(np.random.PCG64(1))
    freedom = np.where(rng.random(40) < 0.5, rng.uniform(4, 400, 40), np.inf)
    scores = ScoreColumn(rng.uniform(0, 0.5, 40), rng.uniform(1e-6, 1e-3, 40), freedom)
    scores = scores._replace(variance=np.square(np.sqrt(scores.variance)))
    assert same_relation(
        evaluated(EVERY, [rows_of(scores), critical_value(50)]), scores, critical_value(50)
    )


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0, 1.96, 2.8, 2.9, 4.0, 6.0, 9.0])
def test_the_normal_of_the_page(call, value):
    for sign in (-1, 1):
        assert call("decide.normalBelow", sign * value) == pytest.approx(
            ndtr(sign * value), rel=1e-12
        )


def test_intervals_of_the_page_are_published(evaluated):
    board = found_intervals()["10shot"].board
    scores = board.scores["macro"]
    low, high = intervals_of(scores)
    ends = evaluated(
        """async ([rows, normal]) => {
          const { intervalOf } = await import("/src/pure/decide.js");
          return rows.map(([score, error]) => {
            const { low, high } = intervalOf({ score, error, freedom: Infinity }, normal);
            return [low, high];
          });
        }""",
        [rows_of(scores), NORMAL_QUANTILE],
    )
    assert ends == [list(pair) for pair in zip(low.tolist(), high.tolist(), strict=True)]


def probability_text(value: float) -> str:
    """Return the text of a lower bound of a probability, rounded down."""
    rounded = Decimal(repr(value)).quantize(SHOWN_UNIT, ROUND_FLOOR)
    return "more than 0.999" if value >= 0.999 else f"at least {rounded}"


def test_every_bound_and_probability_is_written_as_python_writes_it(call):
    bounds = [c.loss_bound for c in advice("10shot", margin=1.0).regimes[0].choices]
    for bound in bounds[:20]:
        assert call("words.boundText", bound) == bound_text(bound or 0)
        if bound is not None:
            assert call("words.probabilityText", bound) == probability_text(bound)


def test_compare_says_what_the_relation_says(tab):
    ids = ["GENERator-eukaryote-3b-base", "LucaOne-default-step36M", "space", "GROVER"]
    page = tab.go(f"#/compare?{'&'.join(f'm={model_id}' for model_id in ids)}")
    board = found_intervals()["full"].board
    index_by_model = {model: k for k, model in enumerate(board.models)}
    sentences = []
    best = display(ids[0])
    for other in ids[1:]:
        comparison = compare_pair(
            board.scores["macro"], index_by_model[ids[0]], index_by_model[other], board.critical
        )
        low = display(other)
        if comparison.is_significant:
            sentences.append(
                f"{best} is significantly better than {low} on the mean of all categories: "
                f"{shown(comparison.difference)} higher (95 % interval {shown(comparison.low)} to "
                f"{shown(comparison.high)}, corrected for all pairs)."
            )
        else:
            sentences.append(
                f"{best} scores {shown(comparison.difference)} higher than {low} on the mean of "
                "all "
                "categories; the difference is not significant after correction for all pairs. "
                f"Probability that {best} is better: {probability_text(comparison.probability)}."
            )
    assert tab.texts(".compared-why li") == sentences
    rows = page.locator(".comparison tbody tr")
    for row, name in zip(rows.all(), NAMES, strict=True):
        scores = board.scores[name]
        first = max(ids, key=lambda model_id: scores.values[index_by_model[model_id]])
        words = row.locator(".verdict").all_inner_texts()
        expected = [
            "significantly lower"
            if significantly_better(scores, board.critical)[
                index_by_model[first], index_by_model[model_id]
            ]
            else "not significant"
            for model_id in ids
            if model_id != first
        ]
        assert words == expected
    assert MINUS not in "".join(words)
