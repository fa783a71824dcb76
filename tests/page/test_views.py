"""Every view, from disk and from a server; the overview; addresses."""

import pytest

from tests.page.rows import ALL, FULL, PROMOTER, advice, display

VIEWS = {
    "#/overview": "Which model to take",
    "#/table": "MCC, all data",
    "#/table?columns=tasks": "MCC, all data",
    "#/plots": "Plots",
    "#/compare?m=space&m=GROVER": "Comparison",
    "#/model/space": "space",
    "#/about": "Method and data",
}


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


def test_the_overview_answers_as_recommend_does(tab):
    page = tab.go("#/overview")
    page.select_option("#need", "Splice Sites")
    tab.choose("regime", "10shot")
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
    before = page.inner_text("main")
    page.evaluate("change({})")
    anywhere.drawn()
    assert anywhere.address() == place
    page.reload()
    anywhere.drawn()
    assert page.inner_text("main") == before


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
