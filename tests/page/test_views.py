"""Every view, from disk and from a server; the overview; addresses."""

import shutil
from collections.abc import Callable
from urllib.parse import parse_qsl

import pytest
from playwright.sync_api import Page

from geneb_ci.board.page_data import FIGURE_PARTS_MAX
from tests.gate import gated
from tests.page.boards import name_of, values
from tests.page.rows import ALL, BY_MACRO, FULL, PROMOTER, shown
from tests.page.tab import opened

CONTROLS = {
    **{name: f"#{name}" for name in ("size", "evidence", "columns", "intervals", "scale", "scope")},
    **{name: f"#{name}" for name in ("species", "kind", "examples", "memory", "loss")},
    "q": "#search",
    "task": "#matrix",
}
VIEWS = {
    "#/overview": "Models for your task",
    "#/table": "MCC, full (all training examples)",
    "#/table?columns=tasks": "MCC, full (all training examples)",
    "#/plots": "Plots",
    "#/compare?m=space&m=GROVER": "Comparison",
    "#/findings": "Findings",
    "#/model/space": "space",
    "#/about": "Method and data",
}


def shows_every_view(visit: Callable[[str], Page]) -> None:
    for view_address, title in VIEWS.items():
        page = visit(view_address)
        assert page.inner_text("h2") == title
        assert page.title().endswith("· GENEB leaderboard")
        assert page.locator(".fault").count() == 0


@pytest.mark.nightly
def test_every_view_loads(tab):
    shows_every_view(tab.load)


@pytest.mark.nightly  # in the gate: the way with a mouse, from a server too
def test_every_view_is_drawn_from_a_server(browser, served):
    """Its policy and its types let through all scripts, once they are loaded."""
    with opened(browser, served) as tab:
        shows_every_view(tab.go)


def test_the_way_through_the_page_with_a_mouse(anywhere):
    page = anywhere.go("")
    for name, title in [
        ("Scores", "MCC, full (all training examples)"),
        ("Plots", "Plots"),
        ("Compare", "Comparison"),
        ("Method", "Method and data"),
        ("Choose", "Models for your task"),
    ]:
        page.locator("#views").get_by_text(name, exact=False).click()
        anywhere.drawn()
        assert page.inner_text("h2") == title
        assert page.locator("#views [aria-current=page]").inner_text().startswith(name)
    page.go_back()
    assert page.inner_text("h2") == "Method and data"


ADDRESSES = (
    "/table?regime=10shot&metric=Acc&size=1000000000&evidence=checked&columns=tasks%3AlncRNA",
    "/table?intervals=all&scale=table&q=nt&sort=params&order=up",
    "/plots?plot=sizes&regime=1shot&metric=F1&kind=lncRNA&m=space",
    "/overview?species=plants&kind=Promoters&examples=hundreds&memory=16&loss=0.05",
    "/compare?regime=10shot&m=space&m=GROVER&m=MutBERT&m=DNABERT-S",
    f"/model/space?metric=Acc&task={PROMOTER}",
    "/findings?scope=board&figure=hard-tasks",
)
"""Each parameter of an address is in one of the first three, but those of a single view."""


@pytest.mark.parametrize("view_address", gated(ADDRESSES, ADDRESSES[2]))
def test_an_address_brings_back_what_it_shows(tab, view_address):
    page = tab.load(f"#{view_address}")
    path, _, query = view_address.partition("?")
    for name, value in parse_qsl(query):
        if name in {"regime", "metric"}:
            assert page.locator(f"input[name={name}]:checked").input_value() == value
        elif control := CONTROLS.get(name):
            assert page.locator(control).input_value() == value
    # A link of another view takes along what was set, so the page has read all of it.
    link = page.locator("#views [data-view=table]").get_attribute("href")
    parameters = [(name, value) for name, value in parse_qsl(query) if name != "page"]
    assert sorted(parse_qsl(link.partition("?")[2])) == sorted(parameters)
    before = page.inner_text("main")
    tab.go("#/about")
    tab.go(f"#{view_address}")
    assert page.inner_text("main") == before
    assert tab.address() == f"{path}?{query}"


def test_an_address_that_makes_no_sense_shows_what_is_usual(tab):
    for path in (
        "#/nowhere?regime=none&metric=__proto__&size=-1&evidence=constructor&sort=toString",
        "#/table?regime=&page=-5&q=%E0%A4%A&columns=tasks:none&order=sideways",
        "#table",
        "#/",
        "#?",
        "#/compare?m=nobody&m=__proto__&m=space&m=space",
        "#/plots?plot=task:x&species=x",
    ):
        page = tab.go(path)
        assert (path, page.locator("h2").count()) == (path, 1)
        assert (path, page.locator(".fault").count()) == (path, 0)


def test_a_model_that_is_not_there(tab):
    page = tab.go("#/model/%3Cimg%20src=x%20onerror=alert(1)%3E")
    assert page.inner_text("main q") == "<img src=x onerror=alert(1)>"
    page.get_by_role("link", name="See all models").click()
    tab.drawn()
    assert len(tab.names()) == ALL


def test_back_and_forward_undo_and_redo_every_control(tab):
    page = tab.go("#/table")
    addresses = [tab.address()]
    tab.choose("regime", "10shot")
    addresses.append(tab.address())
    tab.choose("metric", "F1")
    addresses.append(tab.address())
    page.select_option("#size", "100000000")
    addresses.append(tab.address())
    page.get_by_role("button", name="lncRNA").click()
    addresses.append(tab.address())
    page.locator("#search").press_sequentially("nt")  # typing is one step, however many letters
    addresses.append(tab.address())
    assert len(set(addresses)) == len(addresses)
    names = tab.names()
    for address in reversed(addresses[:-1]):
        page.go_back()
        assert tab.address() == address
    assert page.locator("input[name=regime]:checked").input_value() == "full"
    assert page.input_value("#search") == ""
    assert tab.names() == BY_MACRO
    for address in addresses[1:]:
        page.go_forward()
        assert tab.address() == address
    assert page.input_value("#search") == "nt"
    assert tab.names() == names


def test_published_defects_and_warnings_are_marked(tab):
    page = tab.go("#/overview")
    row = page.locator(".ranges tbody tr").filter(has_text="MutBERT")
    assert row.get_by_text("no-truncation").get_attribute("href") == (
        "marks.html#defect-no-truncation"
    )
    address = row.get_by_text("MutBERT").first.get_attribute("href") or ""
    assert address.startswith("#/model/MutBERT")
    page = tab.go("#/model/MutBERT")
    assert "Truncation is asked for without a length" in page.inner_text(".facts")
    link = page.locator(".facts").get_by_text("What this means")
    assert link.get_attribute("href") == "marks.html#defect-no-truncation"
    page = tab.go("#/table")
    marked = page.locator(".scores tbody tr").filter(has=page.locator(".doubt"))
    names = set(marked.locator(".name .model").all_inner_texts())
    rows = {row["disp"] for row in FULL if "defects" in row or "warnings" in row}
    assert names == rows
    assert len(rows) == 10
    shown = {
        row.locator(".name .model").inner_text(): row.locator(".trust .doubt a").evaluate_all(
            "(all) => all.map((one) => one.getAttribute('href'))"
        )
        for row in marked.all()
    }
    expected = {
        row["disp"]: [
            f"marks.html#{kind}-{name}"
            for kind, names in (
                ("defect", [defect["id"] for defect in row.get("defects", [])]),
                ("rule", list(row.get("warnings", {}))),
            )
            for name in names[:1]
        ]
        for row in FULL
        if row["disp"] in rows
    }
    assert shown == expected
    assert max(map(len, expected.values())) == 2
    assert "BioFM-265M" in tab.go("#/about").inner_text("main")


@pytest.mark.parametrize("scope", gated(["paper", "board", "exclusions"], "board"))
def test_findings_are_those_of_diagnostics(tab, scope):
    page = tab.go(f"#/findings?scope={scope}")
    figures = [
        finding for finding in values()["diagnostics.json"]["findings"] if finding["scope"] == scope
    ]
    assert page.input_value("#scope") == scope
    heads = []
    for figure_text in figures:
        value = figure_text["value"]
        number = "not known" if value is None else f"{shown(value)} ({figure_text['unit']})"
        counts = figure_text["unit"] in {"tasks", "categories", "pairs"}
        heads.append(
            f"{f'{value:.0f} ' + figure_text['unit'] if counts else number} {figure_text['id']}"
        )
    assert tab.texts("main .value") == heads
    drawn = [
        figure
        for figure in figures
        if figure["parts"] or (figure["unit"] == "MCC" and figure["value"] is not None)
    ]
    for figure_text, table in zip(drawn, page.locator(".findings").all(), strict=True):
        shown_parts = [part["value"] for part in figure_text["parts"][:FIGURE_PARTS_MAX]] or [
            figure_text["value"]
        ]
        texts = table.locator("tbody .number").all_inner_texts()
        assert texts == [shown(value) for value in shown_parts if value is not None]
        assert table.locator(".part-bar").count() == len(texts)
        if not figure_text["parts"]:  # bars of single figures can be compared: 1 is full width
            width = table.locator(".part-bar rect").get_attribute("width")
            assert float(width) == pytest.approx(200 * max(figure_text["value"], 0), abs=1)
    page.locator("main h3 a").nth(1).click()
    assert (
        tab.address()
        == f"/findings?{'' if scope == 'paper' else f'scope={scope}&'}figure=hard-tasks"
    )
    assert tab.texts("main .value") == heads[1:2]


def test_a_part_that_cannot_be_had_is_said_and_asked_for_again(browser, board, served):
    name = name_of("tasks-0", board)
    with opened(browser, served) as tab:
        page = tab.go("#/table")
        page.route(f"**/{name}", lambda route: route.abort())
        page.select_option("#columns", "tasks")
        page.wait_for_selector(".fault")
        assert f"{name} could not be loaded. Reload the page." in page.inner_text(".fault")
        page.unroute(f"**/{name}")
        page.select_option("#columns", "categories")
        page.select_option("#columns", "tasks")
        page.wait_for_selector(".scores .above")
        assert all(name in fault or "ERR_FAILED" in fault for fault in tab.faults)
        assert len(tab.faults) == 2
        tab.faults.clear()


def test_a_page_without_its_data_says_so(browser, board, tmp_path):
    for name in ("index.html", "board.js", "board.css"):
        shutil.copy(board / name, tmp_path)
    with opened(browser, f"{tmp_path.as_uri()}/index.html") as tab:
        tab.page.goto(tab.home)
        tab.drawn()
        name = name_of("data", board)
        assert f"{name}, could not be loaded, nor could board-current.js" in tab.page.inner_text(
            "main .fault"
        )
        assert not tab.page.locator("#controls").is_visible()
        tab.faults.clear()
