"""The plots: what each draws is what the board decided, and follows filters and address."""

import pytest

from tests.board.board import found_intervals
from tests.page.boards import values
from tests.page.rows import ALL, DASH, FULL, display

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
    from geneb_ci.board.decisions import better

    board = found_intervals().regimes["full"].board
    scores = board.scores["macro"]
    sizes = {row["model"]: row["params"] for row in FULL}
    params = [sizes[model] for model in board.models]
    rows = list(zip(scores.values.tolist(), (scores.variance**0.5).tolist(), strict=True))
    told = evaluated(OWN, [rows, board.critical, params])
    published = values()["diagnostics.json"]["ranks"]["full"]["macro"]
    assert told["ranges"] == [
        [published[model][name] for name in ("rank", "rank_low", "rank_high")]
        for model in board.models
    ]
    above = better(scores, board.critical)
    assert set(told["front"]) == {
        own
        for own, size in enumerate(params)
        if size and not any(above[other][own] and params[other] <= size for other in range(ALL))
    }


def ranks_of(regime: str, score: str) -> dict[str, str]:
    """Return rank and rank range of each model, as the plot writes them."""
    ranks = values()["diagnostics.json"]["ranks"][regime]
    own = ranks[score] if score == "macro" else ranks["categories"][score]
    written = {}
    for model, one in own.items():
        ends = dict.fromkeys((one["rank_low"], one["rank_high"]))
        written[display(model)] = f"{one['rank']} ({DASH.join(map(str, ends))})"
    return written


def drawn_ranks(page) -> list[dict[str, str]]:
    """Return the ranks that the figures of the plot have, of each regime as it is ordered."""
    page.locator("figure summary").click()
    rows = page.locator("#ranks tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.children].map((cell) => cell.innerText))"
    )
    return [{name: own[k] for name, *own in rows} for k in range(len(REGIMES))]


def test_ranges_of_ranks_are_published_ones_whatever_is_filtered(tab):
    page = tab.go("#/plots")
    assert drawn_ranks(page) == [ranks_of(regime, "macro") for regime in reversed(REGIMES)]
    spans = page.locator("#chart-ranges .part").first.locator(".range").count()
    assert spans == len(REGIMES)
    page = tab.go("#/plots?kind=lncRNA&size=25000000&m=space")
    few = {row["disp"] for row in FULL if row.get("params_trained", row["params"]) <= 25_000_000}
    for regime, told in zip(reversed(REGIMES), drawn_ranks(page), strict=True):
        assert told == {n: r for n, r in ranks_of(regime, "lncRNA").items() if n in few}
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
    page.locator("figure summary").click()
    marked = set(tab.texts("#sizes tbody tr:has(td:text-is('yes')) th"))
    steps = values()["diagnostics.json"]["size"]["full"]["pareto"]
    assert {display(one["model"]) for one in steps} < marked
    assert page.locator("#chart-size .on-front").count() == len(marked)
    page.locator("#chart-size .on-front").first.hover()
    assert page.inner_text("#pointed-size").partition(":")[0] in marked


@pytest.mark.parametrize("plot", ["ranges", "sizes"])
def test_without_intervals_a_plot_says_that_it_rests_on_scores_alone(tab, plot):
    page = tab.go(f"#/plots?plot={plot}&metric=Acc")
    assert page.locator(".range, .whiskers line").count() == 0
    assert page.locator("figure .part").count() == ALL
    assert "95 %" not in page.inner_text("figcaption")
