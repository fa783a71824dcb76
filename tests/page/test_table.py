"""The table of scores: figures, every control, downloads."""

import csv
import json
import re
from itertools import product

import pytest

from geneb_ci.board.columns import COLUMNS
from tests.gate import gated
from tests.page.boards import advice, values
from tests.page.rows import ALL, BY_MACRO, DASH, FULL, display, shown
from tests.page.tab import Tab

TABLE = [column for column in COLUMNS if column.table]


def test_the_table_shows_scores_as_they_are(tab):
    tab.go("#/table")
    assert tab.names() == BY_MACRO
    rows = {row["disp"]: row for row in FULL}
    cells = [text.split("\n")[0] for text in tab.texts(".scores td.heat")]
    expected = [
        shown(score)
        for row in (rows[name] for name in tab.names())
        for score in (row["macro_MCC"], row["micro_MCC"], *row["cat_MCC"].values())
    ]
    assert cells == expected
    assert tab.texts(".scores .trust small:not(.doubt)") == ["not rerun"] * ALL


def test_ranks_and_badges_are_those_of_diagnostics(tab):
    page = tab.go("#/table?sort=category:Splice+Sites&intervals=sorted&density=comfortable")
    ranks = values()["diagnostics.json"]["ranks"]["full"]["categories"]["Splice Sites"]
    rank_words = [text.split() for text in tab.texts(".scores tbody .rank")]
    ranks_and_badges = list(zip(rank_words, tab.texts(".scores tbody .badge"), strict=True))
    expected = []
    for standing in ranks.values():
        low, high = standing["rank_low"], standing["rank_high"]
        could = str(low) if low == high else f"{low}{DASH}{high}"
        words = [could, "by", "score", f"#{standing['rank']}"]
        expected.append((words, "yes" if standing["could_be_best"] else ""))
    assert sorted(ranks_and_badges) == sorted(expected)
    first = next(iter(ranks.values()))
    cell = page.locator(".scores tbody tr").first.locator(".heat small")
    assert cell.all_inner_texts() == [f"{first['low']:.3f}{DASH}{first['high']:.3f}"]


def test_a_filter_changes_neither_ranks_nor_what_could_be_best(tab):
    """A badge, the rank range beside it and both in a download are among the same models."""
    *_, (last, standing) = values()["diagnostics.json"]["ranks"]["full"]["macro"].items()
    page = tab.go(f"#/table?q={last}")
    assert tab.names() == [display(last)]
    low, high = standing["rank_low"], standing["rank_high"]
    assert low > 1
    rank_text = tab.texts(".scores tbody .rank")[0].split("\n")[0]
    assert rank_text == (str(low) if low == high else f"{low}{DASH}{high}")
    assert tab.texts(".scores tbody .badge") == [""]
    assert "Filters change neither ranks nor this mark" in page.inner_text("main")
    head, row, _ = csv.reader([*downloaded(tab, "#csv").splitlines(), ""])
    values_by_column = dict(zip(head, row, strict=True))
    assert (values_by_column["rank by Macro"], values_by_column["ranked models"]) == (
        str(standing["rank"]),
        "41",
    )
    assert (values_by_column["rank from"], values_by_column["rank to"]) == (str(low), str(high))
    assert values_by_column["could be best"] == "false"


def test_a_species_leaves_its_tasks_and_means_of_them(tab):
    page = tab.go("#/table?species=plants")
    row_advice = advice("10shot", "plants")
    assert page.locator(".scores thead .score button").all_inner_texts() == [
        f"Mean of {len(row_advice.tasks)} tasks▼",
        *("Promoters", "DNA Methyl.", "lncRNA"),
    ]
    tab.choose("regime", "10shot")
    (own,) = row_advice.regimes
    assert tab.names() == [display(choice.model) for choice in own.choices]
    cells = [text.split("\n")[0] for text in tab.texts(".scores tbody td.heat:nth-of-type(6)")]
    assert cells == [shown(choice.score) for choice in own.choices]
    page.select_option("#columns", "tasks")
    assert page.locator(".scores thead .score").count() == 1 + len(row_advice.tasks)
    assert tab.address() == "/table?regime=10shot&columns=tasks&species=plants"
    page.click("#reset")
    assert page.locator(".scores thead .score").count() == 2 + 100


COLUMNS_OF = tuple(product(("full", "10shot", "1shot"), ("MCC", "Acc", "F1")))


@pytest.mark.parametrize(("regime", "metric"), gated(COLUMNS_OF, ("10shot", "Acc")))
def test_regime_and_metric(tab, regime, metric):
    tab.go("#/table?intervals=sorted")
    tab.choose("regime", regime)
    tab.choose("metric", metric)
    rows = values()["leaderboard.json"]["data"][regime]
    expected = sorted(rows, key=lambda row: -row[f"macro_{metric}"])
    assert tab.names() == [row["disp"] for row in expected]
    assert tab.page.locator(".scores th.badge").count() == (metric == "MCC")
    assert (tab.page.locator(".heat small").count() > 0) == (metric == "MCC")


def test_size_evidence_search_and_clearing_them(tab):
    page = tab.go("#/table")
    page.select_option("#size", "100000000")
    small = {row["disp"] for row in FULL if row["params"] <= 100_000_000}
    assert set(tab.names()) == small
    assert page.inner_text("#status").startswith(f"{len(small)} of 41 models")
    page.select_option("#evidence", "checked")
    assert set(tab.names()) == small
    page.select_option("#evidence", "audited+")
    assert "No model passes these filters" in page.inner_text("main")
    page.select_option("#evidence", "checked")
    page.fill("#search", "NT-v2")
    assert set(tab.names()) == {name for name in small if "NT-v2" in name}
    assert page.evaluate("document.activeElement.id") == "search"
    page.fill("#search", "nothing is called so")
    assert "No model passes these filters" in page.inner_text("main")
    page.click("#reset")
    assert len(tab.names()) == ALL
    assert tab.address() == "/table"


def test_sorting_by_every_kind_of_column(tab):
    page = tab.go("#/table")
    head = page.locator(".scores thead th")

    def press(name: str) -> None:
        head.get_by_role("button", name=re.compile(rf"^{re.escape(name)}")).click()

    press("Model")
    assert tab.names() == sorted(BY_MACRO, key=str.lower)
    press("Size")
    sizes = {row["disp"]: row["params"] for row in FULL}
    assert [sizes[name] for name in tab.names()] == sorted(sizes.values(), reverse=True)
    press("Size")
    assert [sizes[name] for name in tab.names()] == sorted(sizes.values())
    press("Authorship")
    assert tab.names()[0] == "SpliceBERT 1024nt"
    press("lncRNA")
    by_lncrna = sorted(FULL, key=lambda row: -row["cat_MCC"]["lncRNA"])
    assert tab.names() == [row["disp"] for row in by_lncrna]
    assert page.locator("[aria-sort]").all_inner_texts() == ["lncRNA▼"]
    assert page.locator("[aria-sort]").get_attribute("aria-sort") == "descending"
    assert page.evaluate("document.activeElement.dataset.focus") == "sort category:lncRNA"


def test_tasks_of_a_category_and_all_tasks(tab):
    page = tab.go("#/table")
    page.select_option("#columns", "tasks:Splice Sites")
    tab.drawn()
    tasks = [t for t in values()["leaderboard_tasks.json"]["tasks"] if t["cat"] == "Splice Sites"]
    heads = [text.strip("▼ \n") for text in tab.texts(".scores thead tr:last-child th button")]
    assert heads[len(TABLE) :] == [
        "Splice Sites",
        *(task["label"] for task in tasks),
        "Macro",
        "Micro",
    ]
    assert "sort=category%3ASplice+Sites" in tab.address()
    page.select_option("#columns", "tasks")
    page.wait_for_selector(".scores .above")
    assert tab.texts(".scores .above th") == list(FULL[0]["cat_MCC"])
    first = page.locator(".scores tbody tr").first.locator(".heat")
    exact = values()["leaderboard_tasks.json"]["data"]["full"]
    row = next(row for row in exact if row["disp"] == BY_MACRO[0])
    assert [text.split("\n")[0] for text in first.all_inner_texts()][2:] == [
        shown(score) for score in row["task_MCC"].values()
    ]


def test_intervals_and_colours(tab):
    page = tab.go("#/table")
    assert page.locator(".heat small").count() == 0
    page.locator("#display summary").click()
    page.select_option("#intervals", "sorted")
    assert page.locator(".heat small").count() == ALL
    page.select_option("#intervals", "all")
    assert page.locator(".heat small").count() == ALL * 15
    page.select_option("#intervals", "none")
    assert page.locator(".heat small").count() == 0
    assert page.locator(".scores .h15").count() >= 15
    assert page.locator(".scores .h0").count() >= 15
    page.select_option("#scale", "table")
    assert 0 < page.locator(".scores .h0").count() < 15


def downloaded(tab: Tab, button: str) -> str:
    with tab.page.expect_download() as waiting:
        tab.page.click(button)
    return bytes(waiting.value.path().read_bytes()).decode()


def test_downloads_are_the_rows_that_are_shown(anywhere):
    anywhere.go("#/table?size=25000000&sort=category:lncRNA")
    names = anywhere.names()
    parsed = json.loads(downloaded(anywhere, "#json"))
    assert [row["display"] for row in parsed["rows"]] == names
    exact = {row["disp"]: row for row in FULL}
    for row in parsed["rows"]:
        assert row["lncRNA"] == pytest.approx(
            exact[row["display"]]["cat_MCC"]["lncRNA"], abs=5.1e-4
        )
        assert row["lncRNA low"] <= row["lncRNA"] <= row["lncRNA high"]
    ranks = values()["diagnostics.json"]["ranks"]["full"]["categories"]["lncRNA"]
    for row in parsed["rows"]:
        own = ranks[row["model"]]
        assert (row["rank from"], row["rank to"]) == (own["rank_low"], own["rank_high"])
        assert row["could be best"] == own["could_be_best"]
    lines = downloaded(anywhere, "#csv").split("\r\n")
    assert len(lines) == len(names) + 2
    assert [line.split(",")[1] for line in lines[1:-1]] == [f'"{name}"' for name in names]


def test_columns_are_chosen_and_the_address_holds_the_choice(tab):
    page = tab.go("#/table?sort=category:Splice+Sites")
    page.locator("#display summary").click()
    boxes = page.locator("#hide label")
    labels = [text.strip() for text in boxes.all_inner_texts()]
    heads = page.locator(".scores thead th button")
    shown = [text.strip("▼▲ \n") for text in heads.all_inner_texts()]
    # The name and what ranks always stand.
    assert sorted([*labels, "Model", "Splice Sites"]) == sorted(shown)
    for label in ("Size", "Macro"):
        page.get_by_label(label, exact=True).uncheck()
    left = [text.strip("▼▲ \n") for text in heads.all_inner_texts()]
    assert left == [label for label in shown if label not in {"Size", "Macro"}]
    assert page.evaluate("document.activeElement.value") == "macro"
    tab.go("#/about")
    page = tab.go("#/table?hide=params|macro|name|category:Splice+Sites|none&sort=macro")
    # What ranks stays, whatever an address says.
    assert {"Macro", "Model"} < {text.strip("▼▲ \n") for text in heads.all_inner_texts()}
    assert page.locator("#hide input:not(:checked)").evaluate_all(
        "all => all.map(b => b.value)"
    ) == [
        "category:Splice Sites",
        "params",
    ]
