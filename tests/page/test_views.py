"""Every view and every control, from disk and from a server."""

import json
import re
from typing import Any

import pytest

from tests.page.boards import values
from tests.page.tab import Tab

ALL = 41
MINUS, DASH = "\u2212", "\u2013"
PROMOTER = "InstaDeepAI_nucleotide_transformer_downstream_tasks_promoter_no_tata"
FULL = values()["leaderboard.json"]["data"]["full"]
BY_MACRO = [row["disp"] for row in sorted(FULL, key=lambda row: -row["macro_MCC"])]
VIEWS = {
    "#/overview": "Which model to take",
    "#/table": "MCC, all data",
    "#/table?columns=tasks": "MCC, all data",
    "#/plots": "Plots",
    "#/compare?m=space&m=GROVER": "Comparison",
    "#/model/space": "space",
    "#/about": "Method and data",
}


def choose(tab: Tab, name: str, value: str) -> None:
    tab.page.check(f"input[name={name}][value='{value}']", force=True)
    tab.drawn()


def test_every_view_loads(anywhere):
    for place, title in VIEWS.items():
        page = anywhere.go(place)
        assert page.inner_text("h2") == title
        assert page.title().endswith("· GENEB leaderboard")
        assert page.locator(".fault").count() == 0


def test_the_way_through_the_page_with_a_mouse(anywhere):
    page = anywhere.go("")
    for name, title in [
        ("Scores", "MCC, all data"),
        ("Plots", "Plots"),
        ("Compare", "Comparison"),
        ("Method and data", "Method and data"),
        ("Which model", "Which model to take"),
    ]:
        page.locator("#views").get_by_text(name, exact=False).click()
        anywhere.drawn()
        assert page.inner_text("h2") == title
        assert page.locator("#views [aria-current=page]").inner_text().startswith(name)
    page.go_back()
    assert page.inner_text("h2") == "Method and data"


# -- overview


def advice(
    regime: str = "full",
    category: str | None = None,
    max_params: int | None = None,
    level: str | None = None,
) -> dict[str, Any]:
    need = {"category": category, "regime": regime, "max_params": max_params, "level": level}
    found: list[dict[str, Any]] = values()["recommendations.json"]["advice"]
    return next(one for one in found if one["need"] == need)


def display(model: str) -> str:
    return next(str(row["disp"]) for row in FULL if row["model"] == model)


def test_the_overview_answers_as_recommend_does(tab):
    page = tab.go("#/overview")
    page.select_option("#need", "Splice Sites")
    choose(tab, "regime", "10shot")
    page.select_option("#size", "500000000")
    found = advice("10shot", "Splice Sites", 500_000_000)
    chosen = [display(found["best"]["model"])]
    if found["smallest"]["model"] != found["best"]["model"]:
        chosen.append(display(found["smallest"]["model"]))
    assert tab.texts(".choices .model") == chosen
    page.get_by_text("Why", exact=True).click()
    assert tab.texts(".answer details[open] li") == found["why"]
    assert tab.address() == "/overview?regime=10shot&size=500000000&need=Splice+Sites"
    page.select_option("#trust", "verified")
    assert "trust=verified" in tab.address()
    again = advice("10shot", "Splice Sites", 500_000_000, "verified")
    assert tab.texts(".choices .model")[0] == display(again["best"]["model"])


def test_the_overview_has_an_answer_for_every_category_and_size(tab):
    page = tab.go("#/overview?regime=1shot")
    cells = tab.texts(".needs tbody td a")
    categories = [None, *FULL[0]["cat_MCC"]]
    limits = [None, 1_000_000_000, 500_000_000, 100_000_000, 25_000_000]
    assert cells == [
        display(advice("1shot", category, limit)["smallest"]["model"])
        for category in categories
        for limit in limits
    ]
    assert page.locator(".needs .asked").count() == 1


def test_all_that_tie_are_named(tab):
    page = tab.go("#/overview?need=Chromatin+Acc.")
    found = advice("full", "Chromatin Acc.")
    tied = [display(model) for model in (found["best"]["model"], *found["ties"])]
    page.locator(".ties summary").click()
    assert tab.texts(".ties li a") == tied
    assert f"{len(tied)} of {ALL} models" in page.inner_text(".answer")


# -- scores


def test_the_table_shows_scores_as_they_are(tab):
    tab.go("#/table")
    assert tab.names() == BY_MACRO
    rows = {row["disp"]: row for row in FULL}
    cells = [text.split("\n")[0] for text in tab.texts(".scores td.heat")]
    wanted = [
        f"{score:.3f}".replace("-", MINUS)
        for row in (rows[name] for name in tab.names())
        for score in (row["macro_MCC"], row["micro_MCC"], *row["cat_MCC"].values())
    ]
    assert cells == wanted


def test_rank_intervals_and_tie_groups_are_those_of_diagnostics(tab):
    page = tab.go("#/table?sort=category:Splice+Sites")
    ranks = values()["diagnostics.json"]["ranks"]["full"]["categories"]["Splice Sites"]
    said = [text.split() for text in tab.texts(".scores tbody .rank")]
    shown = list(zip(said, tab.texts(".scores tbody .group"), strict=True))
    wanted = []
    for standing in ranks.values():
        low, high = standing["rank_low"], standing["rank_high"]
        could = str(low) if low == high else f"{low}{DASH}{high}"
        words = [str(standing["rank"]), "could", "be", could]
        wanted.append((words, str(standing["group"])))
    assert sorted(shown) == sorted(wanted)
    first = next(iter(ranks.values()))
    cell = page.locator(".scores tbody tr").first.locator(".heat small")
    assert cell.all_inner_texts() == [f"{first['low']:.3f}{DASH}{first['high']:.3f}"]


@pytest.mark.parametrize("metric", ["MCC", "Acc", "F1"])
@pytest.mark.parametrize("regime", ["full", "10shot", "1shot"])
def test_regime_and_metric(tab, regime, metric):
    tab.go("#/table")
    choose(tab, "regime", regime)
    choose(tab, "metric", metric)
    rows = values()["leaderboard.json"]["data"][regime]
    wanted = sorted(rows, key=lambda row: -row[f"macro_{metric}"])
    assert tab.names() == [row["disp"] for row in wanted]
    assert tab.page.locator(".scores th.group").count() == (metric == "MCC")
    assert (tab.page.locator(".heat small").count() > 0) == (metric == "MCC")


def test_size_level_search_and_clearing_them(tab):
    page = tab.go("#/table")
    page.select_option("#size", "100000000")
    small = {row["disp"] for row in FULL if row["params"] <= 100_000_000}
    assert set(tab.names()) == small
    assert page.inner_text("#status").startswith(f"{len(small)} of 41 models")
    page.select_option("#level", "self-reported")
    assert tab.names() == ["SpliceBERT 1024nt"]
    page.select_option("#level", "reproduced+")
    assert set(tab.names()) == small - {"SpliceBERT 1024nt"}
    page.fill("#search", "NT-v2")
    assert set(tab.names()) == {name for name in small if "NT-v2" in name} - {"SpliceBERT 1024nt"}
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
    press("Trust")
    assert tab.names()[-1] == "SpliceBERT 1024nt"
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
    assert heads[-len(tasks) :] == [task["label"] for task in tasks]
    assert "sort=category%3ASplice+Sites" in tab.address()
    page.select_option("#columns", "tasks")
    page.wait_for_selector(".scores .above")
    assert tab.texts(".scores .above th") == list(FULL[0]["cat_MCC"])
    first = page.locator(".scores tbody tr").first.locator(".heat")
    exact = values()["leaderboard_tasks.json"]["data"]["full"]
    row = next(row for row in exact if row["disp"] == BY_MACRO[0])
    assert [text.split("\n")[0] for text in first.all_inner_texts()][2:] == [
        f"{score:.3f}".replace("-", MINUS) for score in row["task_MCC"].values()
    ]


def test_intervals_and_colours(tab):
    page = tab.go("#/table")
    assert page.locator(".heat small").count() == ALL
    page.select_option("#intervals", "all")
    assert page.locator(".heat small").count() == ALL * 15
    page.select_option("#intervals", "none")
    assert page.locator(".heat small").count() == 0
    page.select_option("#scale", "column")
    assert page.locator(".scores .h15").count() >= 15
    assert page.locator(".scores .h0").count() >= 15
    page.select_option("#scale", "table")
    assert 0 < page.locator(".scores .h0").count() < 15


# -- deep links


@pytest.mark.parametrize(
    "place",
    [
        "/overview?regime=1shot&size=25000000&trust=verified&need=TF+Binding",
        "/table?regime=10shot&metric=Acc&size=1000000000&level=official&columns=tasks%3AlncRNA",
        "/table?intervals=all&scale=column&q=nt&sort=params&order=up",
        "/plots?regime=1shot&metric=F1&y=category%3AlncRNA&m=space",
        "/compare?regime=10shot&m=space&m=GROVER&m=MutBERT&m=DNABERT-S",
        f"/model/space?metric=Acc&task={PROMOTER}",
    ],
)
def test_an_address_brings_back_what_it_shows(anywhere, place):
    page = anywhere.go(f"#{place}")
    # A filter that is set again leaves the address as it is: the page read all of it.
    shown = page.inner_text("main")
    page.evaluate("change({})")
    anywhere.drawn()
    assert anywhere.address() == place
    page.reload()
    anywhere.drawn()
    assert page.inner_text("main") == shown


@pytest.mark.parametrize(
    "place",
    [
        "#/nowhere?regime=none&metric=__proto__&size=-1&level=constructor&sort=toString",
        "#/table?regime=&page=-5&q=%E0%A4%A&columns=tasks:none&order=sideways",
        "#table",
        "#/",
        "#?",
        "#/compare?m=nobody&m=__proto__&m=space&m=space",
        "#/plots?y=task:x",
    ],
)
def test_an_address_that_makes_no_sense_shows_what_is_usual(tab, place):
    page = tab.go(place)
    assert page.locator("h2").count() == 1
    assert page.locator(".fault").count() == 0


def test_a_model_that_is_not_there(tab):
    page = tab.go("#/model/%3Cimg%20src=x%20onerror=alert(1)%3E")
    assert page.inner_text("main q") == "<img src=x onerror=alert(1)>"
    page.get_by_role("link", name="See all models").click()
    tab.drawn()
    assert len(tab.names()) == ALL


# -- one model


def test_a_model_page_has_every_score(tab):
    page = tab.go("#/model/space")
    assert page.inner_text(".facts").count("official: the authors' own file") == 1
    tables = page.locator("main .scroller table")
    assert tables.nth(0).locator("tbody tr").count() == 15
    assert tables.nth(1).locator("tbody tr").count() == 100
    row = next(
        r for r in values()["leaderboard_tasks.json"]["data"]["10shot"] if r["model"] == "space"
    )
    cells = tables.nth(1).locator("td.heat:nth-child(6)").all_inner_texts()
    scores = [cell.split("\n")[0] for cell in cells]
    assert scores == [f"{s:.3f}".replace("-", MINUS) for s in row["task_MCC"].values()]


def test_a_matrix_is_the_one_that_geneb_ci_matrices_recovers(tab):
    page = tab.go("#/model/space")
    page.select_option("#matrix", PROMOTER)
    tab.drawn()
    assert f"task={PROMOTER}" in tab.address()
    cells = [cell.replace(",", "") for cell in tab.texts(".matrix tbody td")]
    right_small, wrong_small, recall = int(cells[0]), int(cells[1]), float(cells[2])
    wrong_large, right_large = int(cells[3]), int(cells[4])
    row = next(
        r for r in values()["leaderboard_tasks.json"]["data"]["full"] if r["model"] == "space"
    )
    total = right_small + wrong_small + wrong_large + right_large
    assert (right_small + right_large) / total == pytest.approx(row["task_Acc"][PROMOTER], abs=1e-4)
    assert recall == pytest.approx(right_small / (right_small + wrong_small), abs=5e-4)


def test_history_is_text(tab):
    page = tab.go("#/model/space")
    assert tab.texts(".history li")[0].startswith(
        "2026-11-20 relabel, self-reported to verified: an audit <b>agrees</b>"
    )
    assert page.locator(".history b").count() == 0


# -- comparison


def test_comparing_up_to_four_models(tab):
    page = tab.go("#/table")
    boxes = page.locator(".scores tbody .pick input")
    for order in range(4):
        boxes.nth(order).check()
    assert page.inner_text("#chosen") == "(4)"
    boxes.nth(4).click()
    assert not boxes.nth(4).is_checked()
    assert page.inner_text("#status") == "4 models are compared already: take one out first."
    page.locator("#views").get_by_text("Compare").click()
    tab.drawn()
    assert tab.texts(".compared .model") == BY_MACRO[:4]
    assert tab.texts(".comparison thead a") == BY_MACRO[:4]
    assert page.locator("#chart-profile svg .mark").count() == 4 * 15 + 4
    assert page.locator("#add").is_disabled()
    page.get_by_role("button", name=f"Remove {BY_MACRO[1]}").click()
    tab.drawn()
    page.fill("#add", "space")
    page.get_by_role("button", name="Add", exact=True).click()
    tab.drawn()
    assert tab.texts(".compared .model") == [BY_MACRO[0], *BY_MACRO[2:4], "space"]
    assert page.locator(".comparison strong").count() == 15


def test_a_name_that_does_not_exist_cannot_be_added(tab):
    page = tab.go("#/compare")
    page.fill("#add", "nobody")
    page.keyboard.press("Enter")
    assert page.inner_text("#status") == "No model has this name: choose one from the list."


# -- plots


def test_the_front_is_that_of_diagnostics(tab):
    page = tab.go("#/plots")
    front = values()["diagnostics.json"]["size"]["full"]["pareto"]
    page.locator("figure details").first.locator("summary").click()
    marked = tab.texts("#sizes tbody tr:has(td:text-is('yes')) th")
    assert marked == [display(one["model"]) for one in front]
    assert page.locator("#chart-size circle").count() == ALL
    assert page.locator("#chart-size .on-front").count() == len(front)
    page.locator("#chart-size .on-front").first.hover()
    assert marked[0] in page.inner_text("#pointed-size")


def test_rank_flow_and_profile_follow_the_controls(tab):
    page = tab.go("#/plots?m=space")
    assert page.locator("#chart-flow g.flow").count() == ALL
    page.locator("figure details").nth(1).locator("summary").click()
    ranks = iter(tab.texts("#flows tbody td"))
    flows = dict(
        zip(tab.texts("#flows tbody th"), zip(ranks, ranks, ranks, strict=True), strict=True)
    )
    for order, regime in enumerate(("full", "10shot", "1shot")):
        ranks = values()["diagnostics.json"]["ranks"][regime]["macro"]
        assert {n: r[order] for n, r in flows.items()} == {
            display(model): str(one["rank"]) for model, one in ranks.items()
        }
    page.select_option("#y", "category:lncRNA")
    page.select_option("#size", "25000000")
    few = sum(row["params"] <= 25_000_000 for row in FULL)
    assert page.locator("#chart-size circle").count() == few
    assert page.locator("#chart-flow g.flow").count() == few
    assert "lncRNA" in page.inner_text("#chart-size")
    page.locator("#chart-size circle").first.click()
    tab.drawn()
    assert "/model/" in tab.address()


# -- downloads


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
        assert row["lncRNA"] == pytest.approx(exact[row["display"]]["cat_MCC"]["lncRNA"], abs=2e-6)
        assert row["lncRNA low"] <= row["lncRNA"] <= row["lncRNA high"]
        assert row["tie group"] >= 1
    lines = downloaded(anywhere, "#csv").split("\r\n")
    assert len(lines) == len(names) + 2
    assert [line.split(",")[1] for line in lines[1:-1]] == [f'"{name}"' for name in names]
