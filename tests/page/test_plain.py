"""Without JavaScript: what a reader sees of the scores, not only what the files say."""

import re
from itertools import product

import pytest
from playwright.sync_api import Page

from geneb_ci.board.page import page_files, write_page
from geneb_ci.board.site.inputs import score_text
from geneb_ci.board.site.render import INDEX_MODELS, SCORES_MARK, completed_index, site_files
from geneb_ci.common.benchmark import shipped_benchmark
from reference_harness.formats.submission import SubmissionV10
from tests.board.board import entry
from tests.page.boards import values
from tests.page.site import small_site
from tests.page.tab import STYLED
from tests.small import BENCHMARK, small

# What a reader sees of a table: each row's name and scores, of cells that show and have room.
SEEN = """
(rows) => rows.map((row) => {
  const cells = [...row.querySelectorAll('a[href*="models/"], td.heat')];
  const style = (cell) => getComputedStyle(cell);
  return cells.map((cell) => {
    const box = cell.getBoundingClientRect();
    const seen = cell.checkVisibility({ visibilityProperty: true, opacityProperty: true }) &&
      box.width > 9 && box.height > 9 && box.right <= document.documentElement.scrollWidth &&
      style(cell).color !== style(cell).backgroundColor;
    return seen ? cell.innerText : '';
  });
})
"""


def plain_table(page: Page) -> dict[str, list[str]]:
    """Return what can be read in the table of a page, by the model's name."""
    read = page.locator(".all tbody tr").evaluate_all(SEEN)
    scores_by_name = {name: scores for name, *scores in read}
    assert len(scores_by_name) == len(read)
    return scores_by_name


def scores_of(regime: str, metric: str) -> dict[str, list[str]]:
    """Return the same as leaderboard.json has it."""
    return {
        row["disp"]: [
            score_text(score)
            for score in (
                *(row[f"{part}_{metric}"] for part in ("macro", "micro")),
                *(row[f"cat_{metric}"][name] for name in shipped_benchmark().category_order),
            )
        ]
        for row in values()["leaderboard.json"]["data"][regime]
    }


TABLES = tuple(product(shipped_benchmark().regimes, shipped_benchmark().metrics))


@pytest.mark.parametrize(
    "tables",
    [
        pytest.param(TABLES[4:5], id="one table"),
        pytest.param(TABLES, id="all tables", marks=pytest.mark.nightly),
    ],
)
def test_without_scripts_every_score_of_every_category_can_be_read(browser, folder, tables):
    benchmark = shipped_benchmark()
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{folder.as_uri()}/index.html")
        for regime, metric in tables:
            page.locator(f"main a[href='scores/{regime}-{metric}.html']").click()
            heads = page.locator(".all thead th").all_inner_texts()
            assert heads[1:-1] == ["Macro", "Micro", *benchmark.category_order]
            assert plain_table(page) == scores_of(regime, metric)
            page.go_back()
        assert "Loading" not in page.inner_text("main")
        assert plain_table(page) == scores_of("full", "MCC")


UNREADABLE = (
    "noscript { display: none }",
    ".all td { visibility: hidden }",
    ".all td.heat { color: transparent; background: transparent }",
    ".all td:nth-child(9) { opacity: 0 }",
    ".plain-scores { max-width: 600px; contain: paint } .all { width: 400px; font-size: 1px }",
)


@pytest.mark.nightly  # a test of the one above
def test_a_plain_table_that_cannot_be_read_is_seen(browser, folder):
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{folder.as_uri()}/index.html")
        for rule in UNREADABLE:
            page.evaluate(STYLED, rule)
            read = page.locator(".all tbody tr").evaluate_all(SEEN)
            assert {name: scores for name, *scores in read} != scores_of("full", "MCC"), rule
        page.evaluate(STYLED, "")
        assert plain_table(page) == scores_of("full", "MCC")


@pytest.mark.nightly  # in the gate, a board of the usual size
def test_a_large_board_has_the_best_in_the_index_and_a_link_to_all(browser, tmp_path):
    many = [
        entry(SubmissionV10.model_validate(small(f"m{number}", BENCHMARK)), registry={})
        for number in range(120)
    ]
    site = small_site(many)
    files = page_files()
    assert completed_index(b"<p>a page of their own</p>", site) == b"<p>a page of their own</p>"
    files["index.html"] = completed_index(files["index.html"], site)
    write_page(tmp_path, files | site_files(site))
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{tmp_path.as_uri()}/index.html")
        best = plain_table(page)
        assert len(best) == INDEX_MODELS
        assert "70 more models are in the whole table." in page.inner_text("main")
        page.click("main a:text('the whole table')")
        every = plain_table(page)
    assert len(every) == 120
    assert list(every.items())[:INDEX_MODELS] == list(best.items())
    assert {len(scores) for scores in every.values()} == {2 + len(BENCHMARK.category_order)}


def test_a_page_lists_the_best_and_leads_to_all(monkeypatch):
    rows = [
        entry(SubmissionV10.model_validate(small(f"m{number}", BENCHMARK)), registry={})
        for number in range(7)
    ]
    whole = site_files(small_site(rows))
    monkeypatch.setattr("geneb_ci.board.site.pages.LISTED_MODELS_MAX", 5)
    cut = site_files(small_site(rows))
    task = BENCHMARK.task_ids[0]
    for name in (f"tasks/{task}.html", "scores/full-MCC.html", "categories/promoters.html"):
        names = re.findall(r'href="../models/(m[0-9]).html"', cut[name].decode())
        assert names == re.findall(r'href="../models/(m[0-9]).html"', whole[name].decode())[:5]
        assert "2 more models are" in cut[name].decode()
        assert "more models are" not in whole[name].decode()
    index = completed_index(SCORES_MARK, small_site(rows)).decode()
    assert "more models are in" not in index
