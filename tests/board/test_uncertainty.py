"""Standard errors, intervals and ranks of rows: what changes them, and what does not."""

import numpy as np
import pytest

from geneb_ci.board.decisions import significantly_better
from geneb_ci.board.diagnostics.whole import rounded
from geneb_ci.board.uncertainty import model_ranking
from geneb_ci.common.benchmark import shipped_benchmark
from tests.board.board import entries, entry, found_intervals, intervals

BENCHMARK = shipped_benchmark()
OF_A_ROW = ("score", "error", "freedom", "low", "high")
"""What no other row changes."""


def test_what_is_all_right_may_be_wrong_elsewhere(submission_v11):
    def perfect(document):
        cell = {"MCC": 1.0, "Acc": 1.0, "F1": 1.0}
        document["results"]["full"] = dict.fromkeys(document["results"]["full"], cell)

    interval_list = intervals([entry(submission_v11(perfect))], BENCHMARK, regimes=["full"])
    limits = interval_list["full"].tasks
    assert {high for models in limits.values() for _, high, *_ in models.values()} == {1.0}
    assert all(0.9 < low < 1.0 for models in limits.values() for low, *_ in models.values())


def seeds(document):
    """Spread the seeds of each few-shot cell by 0.1 about their mean."""
    for regime in ("10shot", "1shot"):
        for cell in document["evidence"][regime].values():
            cell["per_seed"]["MCC"] = [
                min(1.0, max(-1.0, value + step))
                for value, step in zip(
                    cell["per_seed"]["MCC"], (-0.1, -0.05, 0, 0.05, 0.1), strict=True
                )
            ]


def test_seeds_widen_few_shot_intervals_only(submission_v11):
    plain = submission_v11(
        lambda document: document.pop("evidence") and document.update(evidence={})
    )
    spread = submission_v11(seeds)
    first, other = (intervals([entry(row)], BENCHMARK) for row in (plain, spread))
    assert first["full"].tasks == other["full"].tasks
    assert other["full"].board.draws_covered == ()
    for regime in ("10shot", "1shot"):
        assert first[regime].board.draws_covered == ()
        assert other[regime].board.draws_covered == ("splicebert-1024nt",)
        old, new = (x[regime].macro["splicebert-1024nt"] for x in (first, other))
        assert 1.2 < new["error"] / old["error"] < 3
        # Five seeds tell a spread badly: intervals are wider than 1.96 standard errors.
        task = BENCHMARK.task_ids[0]
        low, high, *_ = other[regime].tasks[task]["splicebert-1024nt"]
        error = float(np.sqrt(other[regime].board.tasks[task].variance[0]))
        assert high - low > 2.1 * 1.96 * error


def test_the_order_of_rows_and_other_rows_change_no_bit():
    some = entries()[:6]
    whole = intervals(some, BENCHMARK, regimes=["full"])["full"]
    again = intervals(reversed(some), BENCHMARK, regimes=["full"])["full"]
    assert (again.macro, again.categories, again.tasks) == (
        whole.macro,
        whole.categories,
        whole.tasks,
    )
    less = intervals(some[:3], BENCHMARK, regimes=["full"])["full"]
    for name in less.board.scores:
        every = model_ranking(whole.board, name)
        for model, stood in model_ranking(less.board, name).items():
            assert [stood[key] for key in OF_A_ROW] == [every[model][key] for key in OF_A_ROW]
        pairs = significantly_better(less.board.scores[name], less.board.critical)
        places = [whole.board.models.index(model) for model in less.board.models]
        more = significantly_better(whole.board.scores[name], whole.board.critical)
        assert (more[np.ix_(places, places)] == pairs).all()


def test_equal_scores_share_the_better_rank_and_the_smaller_model_is_first():
    twin = entries()[0].submission.model_copy(
        update={
            "model_id": "aaa",
            "meta": entries()[0].submission.meta.model_copy(update={"params": 1}),
        }
    )
    rows = [entry(entries()[0].submission), entry(twin)]
    macro = intervals(rows, BENCHMARK, regimes=["full"])["full"].macro
    assert [
        (model, member["rank"], member["could_be_best"]) for model, member in macro.items()
    ] == [
        ("aaa", 1, True),
        (entries()[0].submission.model_id, 1, True),
    ]


def test_one_model_and_none():
    assert intervals([], BENCHMARK, regimes=["full"])["full"].macro.plain_dict() == {}
    (only,) = intervals(entries()[:1], BENCHMARK, regimes=["full"])["full"].macro.values()
    assert list(only.values())[5:] == [1, 1, 1, True]


def test_intervals_hold_their_scores():
    for value in found_intervals().values():
        for name in value.board.scores:
            models = model_ranking(value.board, name)
            assert len(models) == 41
            assert dict(models) == models.plain_dict()
            for model in models.values():
                assert model["low"] < model["score"] < model["high"]
                assert model["rank_low"] <= model["rank"] <= model["rank_high"]
                assert model["could_be_best"] == (model["rank_low"] == 1)


def test_a_figure_of_zero_has_no_sign():
    assert [str(rounded(value)) for value in (-0.0, -1e-9, 1e-9)] == ["0.0"] * 3


@pytest.mark.parametrize("regime", BENCHMARK.regimes)
def test_scores_are_those_of_the_leaderboard(regime):
    from geneb_ci.board.rows import leaderboards

    rows = {row["model"]: row for row in leaderboards(entries(), BENCHMARK)[0]["data"][regime]}
    intervals_of_regime = found_intervals()[regime]
    for model, stood in intervals_of_regime.macro.items():
        assert stood["score"] == rows[model]["macro_MCC"]
        for name, models in intervals_of_regime.categories.items():
            assert models[model]["score"] == rows[model]["cat_MCC"][name]
