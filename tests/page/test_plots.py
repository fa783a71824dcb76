"""The plots: what each draws is what the board decided, and follows filters and address."""

import itertools

import numpy as np
import pytest
from scipy.stats import spearmanr

from geneb_ci.board.decisions import compare_pair, significantly_better
from geneb_ci.common.benchmark import shipped_benchmark
from tests.board.board import found_intervals
from tests.page.boards import advice, values
from tests.page.rows import ALL, DASH, FULL, MINUS, display, shown

REGIMES = ("full", "10shot", "1shot")
# The page's own functions on the board's doubles.
OWN = """
async ([rows, critical, params]) => {
  const { rankRange } = await import("/src/pure/decide.js");
  const { unbeatenOf } = await import("/src/pure/ranks.js");
  const standings = rows.map(([score, error], model) =>
    ({ score, error, freedom: Infinity, model }));
  const ranges = standings.map((own) => rankRange(standings, own, critical));
  const places = standings.map((_, place) => place);
  return {
    ranges: ranges.map(({ rank, rankLow, rankHigh }) => [rank, rankLow, rankHigh]),
    front: unbeatenOf(places, params, (place) => standings[place], critical),
  };
}
"""


def test_ranges_and_the_front_are_those_of_the_boards_decisions(evaluated):
    board = found_intervals()["full"].board
    scores = board.scores["macro"]
    sizes = {row["model"]: row["params"] for row in FULL}
    params = [sizes[model] for model in board.models]
    rows = list(zip(scores.values.tolist(), (scores.variance**0.5).tolist(), strict=True))
    drawn_sizes = evaluated(OWN, [rows, board.critical, params])
    published = values()["diagnostics.json"]["ranks"]["full"]["macro"]
    assert drawn_sizes["ranges"] == [
        [published[model][name] for name in ("rank", "rank_low", "rank_high")]
        for model in board.models
    ]
    above = significantly_better(scores, board.critical)
    assert set(drawn_sizes["front"]) == {
        own
        for own, size in enumerate(params)
        if size and not any(above[other][own] and params[other] <= size for other in range(ALL))
    }


def ranks_of(regime: str, score: str) -> dict[str, str]:
    """Return rank and rank range of each model, as the plot writes them."""
    ranks = values()["diagnostics.json"]["ranks"][regime]
    own = ranks[score] if score == "macro" else ranks["categories"][score]
    written = {}
    for model, member in own.items():
        ends = dict.fromkeys((member["rank_low"], member["rank_high"]))
        written[display(model)] = f"{member['rank']} ({DASH.join(map(str, ends))})"
    return written


def figures(page, name: str) -> list[list[str]]:
    """Open the figures of the plot that has a table of some id, and return its rows."""
    box = page.locator("figure", has=page.locator(f"#chart-{name}"))
    box.locator("summary").click()
    box.locator("details tbody tr").first.wait_for()
    rows: list[list[str]] = box.locator("details tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.children].map((cell) => cell.innerText))"
    )
    return rows


def drawn_ranks(page) -> list[dict[str, str]]:
    """Return the ranks that the figures of the plot have, of each regime as it is ordered."""
    rows = figures(page, "ranges")
    return [{name: own[k] for name, *own in rows} for k in range(len(REGIMES))]


def test_ranges_of_ranks_are_published_ones_whatever_is_filtered(tab):
    page = tab.go("#/plots")
    assert drawn_ranks(page) == [ranks_of(regime, "macro") for regime in reversed(REGIMES)]
    spans = page.locator("#chart-ranges .part").first.locator(".range").count()
    assert spans == len(REGIMES)
    page = tab.go("#/plots?kind=lncRNA&size=25000000&m=space")
    few = {row["disp"] for row in FULL if row.get("params_trained", row["params"]) <= 25_000_000}
    for regime, drawn_rank in zip(reversed(REGIMES), drawn_ranks(page), strict=True):
        assert drawn_rank == {n: r for n, r in ranks_of(regime, "lncRNA").items() if n in few}
    page.locator("#chart-ranges .part").first.click()
    tab.drawn()
    assert "/model/" in tab.address()


def test_a_species_has_ranges_among_all_models(tab):
    page = tab.go("#/plots?species=plants&size=25000000")
    ranks = [text.split(" ") for text in drawn_ranks(page)[-1].values()]
    assert max(int(rank) for rank, _ in ranks) > len(ranks)
    for rank, span in ranks:
        low, _, high = span.strip("()").partition(DASH)
        assert int(low) <= int(rank) <= int(high or low)


def test_the_front_counts_what_is_distinguishable(tab):
    page = tab.go("#/plots?plot=sizes")
    assert page.locator("#chart-size circle").count() == ALL
    assert page.locator("#chart-size .whiskers line").count() == ALL
    marked = {name for name, *_, front in figures(page, "size") if front == "yes"}
    steps = values()["diagnostics.json"]["size"]["full"]["pareto"]
    assert {display(step["model"]) for step in steps} < marked
    assert page.locator("#chart-size .on-front").count() == len(marked)
    page.locator("#chart-size .on-front").first.hover()
    assert page.inner_text("#pointed-size").partition(":")[0] in marked


@pytest.mark.parametrize("plot", ["ranges", "sizes"])
def test_without_intervals_a_plot_says_that_it_rests_on_scores_alone(tab, plot):
    page = tab.go(f"#/plots?plot={plot}&metric=Acc")
    assert page.locator(".range, .whiskers line").count() == 0
    assert page.locator("figure .part").count() == ALL
    assert "95 %" not in page.inner_text("figcaption")


def test_curves_are_the_means_that_advice_rests_on(tab):
    requests = {"species": "plants", "category": "Promoters"}
    page = tab.go("#/plots?plot=curves&species=plants&kind=Promoters&m=space&m=GROVER")
    expected = []
    for model in ("space", "GROVER"):
        answers = [display(model)]
        for regime in reversed(REGIMES):
            choices = advice(regime, **requests).regimes[0].choices
            own = next(choice for choice in choices if choice.model == model)
            answers.append(f"{shown(own.score)} ({shown(own.low)} to {shown(own.high)})")
        expected.append(answers)
    assert figures(page, "curves") == expected
    assert "over 3 tasks (plants, Promoters), each counting alike" in page.inner_text("figcaption")
    page = tab.go("#/plots?plot=curves&metric=F1&species=plants")
    assert page.locator("#chart-curves .curve").count() == 4
    assert page.locator("#chart-curves .bar").count() == 0


REAL = "leannmlindsey_GUE_mouse_0"
"""A task that has baselines."""


def test_one_task_has_a_dot_for_each_model_and_its_baselines(tab):
    page = tab.go(f"#/plots?plot=task&task={REAL}&m=space")
    rows = figures(page, "task")
    scores_by_name = {name: score for name, score, _ in rows[:ALL]}
    assert scores_by_name == scores_of(REAL)
    assert [name for name, *_ in rows[ALL:]] == [
        f"{name}, a baseline" for name in ("kmer-4", "kmer-6", "random-init")
    ]
    assert page.locator("#chart-task .part").count() == ALL
    assert page.locator("#chart-task .baseline").count() == 3
    assert page.locator("#chart-task .part.s0, #chart-task .mark.s0").count() == 2
    page.select_option("#species", "plants")
    tab.drawn()
    assert page.locator("#one-task option").count() == 10
    page.locator("#one-task").select_option(index=3)
    tab.drawn()
    assert "task=" in tab.address()
    assert page.locator("#chart-task .baseline").count() == 0


def scores_of(task: str) -> dict[str, str]:
    """Return the score of each model in a task, as the page writes both."""
    names = {row["model"]: row["disp"] for row in FULL}
    rows = values()["leaderboard_tasks.json"]["data"]["full"]
    return {names[row["model"]]: shown(row["task_MCC"][task]) for row in rows}


def test_dots_in_a_heap_do_not_cover_each_other(call):
    places = [float(x) for x in np.random.default_rng(3).normal(300, 60, 200)]
    page_result = call("heaps.heaped", places, 10, 2.5, 240)
    dots = sorted(zip(page_result["heights"], places, strict=True))
    for (level, x), (other, y) in itertools.pairwise(dots):
        assert level != other or y - x >= page_result["width"]
    assert (page_result["highest"] + 1) * page_result["width"] <= 240
    assert call("heaps.heaped", [1, 1, 1], 10, 2.5, 240)["heights"] == [0, 1, 2]


def test_correlations_are_spearmans_and_alike_columns_stand_together(call):
    rng = np.random.default_rng(5)
    two = rng.normal(size=(2, 30))
    columns = [np.round(two[k % 2] + rng.normal(size=30) / 4, 1) for k in range(8)]
    array = np.array(call("likeness.rankCorrelations", [own.tolist() for own in columns]))
    assert array == pytest.approx(spearmanr(np.array(columns), axis=1).statistic, abs=1e-12)
    order = call("likeness.alikeOrder", array.tolist())
    assert sorted(order) == list(range(8))
    assert [index % 2 for index in order] in ([0] * 4 + [1] * 4, [1] * 4 + [0] * 4)
    assert call("likeness.alikeOrder", [[1]]) == [0]


def test_tasks_are_correlated_where_they_are_few_and_categories_elsewhere(tab):
    page = tab.go("#/plots?plot=likeness")
    assert page.locator(".likeness tbody tr").count() == 13
    page = tab.go("#/plots?plot=likeness&kind=Splice+Sites&regime=10shot")
    tasks = shipped_benchmark().categories["Splice Sites"]
    names = [text.partition(" ")[2] for text in tab.texts(".likeness tbody th")]
    labels = {task.label: task.id for task in shipped_benchmark().tasks}
    assert sorted(labels[name] for name in names) == sorted(tasks)
    rows = {row["model"]: row for row in values()["leaderboard_tasks.json"]["data"]["10shot"]}
    own = [[row["task_MCC"][labels[name]] for row in rows.values()] for name in names[:2]]
    expected = f"{spearmanr(*own).statistic:.2f}".replace("0.", ".").replace("-", MINUS)
    assert page.locator(".likeness tbody tr").first.locator("td").nth(1).inner_text() == expected
    page = tab.go("#/plots?plot=likeness&q=grover")
    assert "Fewer than three models have no correlation." in page.inner_text("main")


def test_strips_have_the_differences_of_the_relation(tab):
    ids = ["space", "GROVER", "MutBERT"]
    page = tab.go(f"#/compare?species=plants&{'&'.join(f'm={model_id}' for model_id in ids)}")
    board = found_intervals()["full"].board
    first, *others = (board.models.index(model_id) for model_id in ids)
    labels = {task.label: task.id for task in shipped_benchmark().tasks}
    means = []
    rows = figures(page, "strips")
    assert len(rows) == 10
    filled = 0
    for label, _, *numbers in rows:
        scores = board.tasks[labels[label]]
        comparisons = [compare_pair(scores, other, first, board.critical) for other in others]
        assert [text.replace("\n", " ") for text in numbers[3:]] == [
            f"{shown(comparison.difference)} {shown(comparison.low)} to {shown(comparison.high)}"
            for comparison in comparisons
        ]
        means.append(sum(comparison.difference for comparison in comparisons))
        filled += sum(comparison.is_significant for comparison in comparisons)
    assert means == sorted(means, reverse=True)
    assert page.locator("#chart-strips svg").count() == 1
    assert page.locator("#chart-strips .mark").count() == 3 + 2 * len(rows)
    assert page.locator("#chart-strips .mark:not(.hollow)").count() == 3 + filled
    tab.go("#/compare?m=space&m=GROVER")
    assert page.locator("#chart-strips .mark").count() == 2 * 2 + 100


def test_a_chart_is_drawn_again_for_a_window_of_another_width(tab):
    page = tab.page
    page.set_viewport_size({"width": 390, "height": 844})
    tab.go("#/plots?m=space")
    chart = page.locator("#chart-ranges svg")
    for width, drawn_width, panels in ((390, 342, 1), (844, 796, 3), (1440, 860, 3), (390, 342, 1)):
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_selector(f"#chart-ranges svg[viewBox^='0 0 {drawn_width} ']")
        assert chart.locator("> .name").count() == panels
    page.locator("#chart-ranges .part").first.focus()
    page.set_viewport_size({"width": 390, "height": 500})  # a keyboard opens: no other width
    page.wait_for_function("innerHeight === 500")
    assert page.evaluate("document.activeElement.classList.contains('part')")
