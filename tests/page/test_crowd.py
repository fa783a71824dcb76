"""A thousand models: every view still draws, page by page."""

import gzip

import pytest

from tests.page.boards import crowd, name_of
from tests.page.tab import opened

MODELS = 1025
FIRST_LOAD_MAX = 150_000  # bytes


@pytest.fixture
def tab(browser, crowded):
    with opened(browser, f"{crowded.as_uri()}/index.html") as opened_tab:
        yield opened_tab


def test_the_table_comes_in_pages(browser, tmp_path):
    """By night, of a thousand models."""
    assert crowd(tmp_path, 2) == 82
    with opened(browser, f"{tmp_path.as_uri()}/index.html") as tab:
        page = tab.go("#/table")
        first = tab.names()
        assert len(first) == 50
        assert page.inner_text(".pager span") == "1 to 50 of 82"
        page.get_by_role("button", name="Next").click()
        assert not set(first) & set(tab.names())
        assert page.inner_text(".pager span") == "51 to 82 of 82"
        assert page.get_by_role("button", name="Next").is_disabled()
        assert "page=2" in tab.address()
        page.fill("#search", "no. 1")
        assert page.locator(".pager").count() == 0
        assert all("no. 1" in name for name in tab.names())
        assert len(tab.names()) == 41


@pytest.mark.nightly
def test_a_thousand_models_come_in_pages(tab):
    page = tab.go("#/table")
    first = tab.names()
    assert len(first) == 50
    assert page.inner_text("#status").startswith("1,025 of 1,025 models")
    assert page.inner_text(".pager span") == "1 to 50 of 1,025"
    page.get_by_role("button", name="Next").click()
    second = tab.names()
    assert not set(first) & set(second)
    assert page.evaluate("document.activeElement.dataset.focus") == "page next"
    page.get_by_role("button", name="Last").click()
    assert page.inner_text(".pager span") == "1001 to 1025 of 1,025"
    assert page.get_by_role("button", name="Next").is_disabled()
    assert "page=21" in tab.address()
    page.fill("#search", "no. 7")
    assert page.locator(".pager").count() == 0
    assert all("no. 7" in name for name in tab.names())
    assert len(tab.names()) == 41


@pytest.mark.nightly
def test_every_row_is_on_one_page(tab):
    page = tab.go("#/table")
    seen: list[str] = []
    while True:
        seen += page.evaluate(
            "[...document.querySelectorAll('.scores tbody .name .model')].map((a) => a.title)"
        )
        if page.get_by_role("button", name="Next").is_disabled():
            break
        page.get_by_role("button", name="Next").click()
    assert len(seen) == len(set(seen)) == MODELS


PLACES = (
    "overview",
    "plots",
    "plots?plot=task",
    "plots?plot=likeness&species=human",
    "compare?m=space-3&m=GROVER-20",
    "model/space-24",
)


@pytest.mark.nightly  # in the gate, a board of the usual size
@pytest.mark.parametrize("view_address", PLACES)
def test_every_other_view_draws(tab, view_address):
    page = tab.go(f"#/{view_address}")
    assert page.locator(".fault").count() == 0
    if view_address == "plots":
        assert page.locator("#chart-ranges .part").count() == 50
        assert page.inner_text(".pager span") == "1 to 50 of 1,025"
        page = tab.go("#/plots?plot=sizes")
        assert page.locator("#chart-size circle").count() == MODELS


@pytest.mark.nightly  # in the gate, all of the page of 41 models: test_data.py
def test_the_first_load_is_small(crowded, record_property):
    """What a reader loads before the first view is drawn, compressed as a server does."""
    data = name_of("data", crowded)
    first = ("index.html", "board.css", data, "board.js")
    size = sum(len(gzip.compress((crowded / name).read_bytes(), 6)) for name in first)
    record_property("compressed_bytes", size)
    assert size <= FIRST_LOAD_MAX
