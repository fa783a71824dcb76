"""Boards that are not the public one: few rows, gaps, no class sizes, long and foreign names."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from geneb_ci.board.board import board_of, page_files_of
from geneb_ci.board.columns import Row
from geneb_ci.board.page import INDEX, SCRIPT, STYLE, page_files, write_page
from geneb_ci.board.page_data import page_scripts
from geneb_ci.board.site.render import completed_index, editions, site_files
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import PRACTICE_BENCHMARK
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import SubmissionV10, SubmissionV11
from tests.board.board import entries, entry
from tests.gate import gated
from tests.page.site import GENERATION, layout, small_site
from tests.page.tab import opened
from tests.small import BENCHMARK, small, small_v11

NAME_MAX = 80
"""What the schema of submissions allows."""
NAMES = (
    "W" * NAME_MAX,
    "\u0645\u062e\u062a\u0628\u0631 \u0627\u0644\u062c\u064a\u0646\u0648\u0645 " * 8,
    "a name of many words " * 5,
    "\u202e" + "reversed " * 8,
    "\u6df1\u5ea6\u57fa\u56e0\u7ec4" * 20,
)
REGIMES = BENCHMARK.regimes


def v10(name: str, display: str = "", benchmark: Benchmark = BENCHMARK) -> Row:
    document = small(name, benchmark)
    document["meta"]["display"] = display or name
    return entry(SubmissionV10.model_validate(document), registry={})


def of_one_regime(name: str) -> Row:
    """Return a row that has no cell but those of the regime of all data."""
    document = small_v11(name)
    gaps = {}
    for regime in REGIMES[1:]:
        gaps[regime] = dict.fromkeys(document["results"][regime], "not run")
        document["results"][regime] = {}
        document["evidence"][regime] = {}
    return entry(SubmissionV11.model_validate(document | {"gaps": gaps}), registry={})


def sized(counts: list[int] | None, n_test: int | None = 500) -> Benchmark:
    tasks = [replace(task, n_test=n_test, test_class_counts=counts) for task in BENCHMARK.tasks]
    return replace(BENCHMARK, tasks=tasks)


BOARDS: dict[str, Callable[[], tuple[list[Row], Benchmark]]] = {
    "one row": lambda: (list(entries()[:1]), shipped_benchmark()),
    "two rows": lambda: (list(entries()[:2]), shipped_benchmark()),
    "60 rows": lambda: ([v10(f"m{number}") for number in range(60)], sized([250, 250])),
    "long and foreign names": lambda: (
        [v10(f"m{number}", name[:NAME_MAX].strip()) for number, name in enumerate(NAMES)],
        sized([180, 320]),
    ),
    "one regime alone": lambda: ([of_one_regime("a"), v10("b")], sized([180, 320])),
    "only rows of one regime": lambda: ([of_one_regime("a")], sized([180, 320])),
    "no class sizes": lambda: ([v10("a"), v10("b")], sized(None)),
    "no sizes at all": lambda: ([v10("a"), v10("b")], sized(None, None)),
}
PLOTS = ("ranges", "sizes", "curves&metric=F1", "curves", "task", "likeness")
VIEWS = (
    *("overview", "table", "table?columns=tasks", "compare", "findings", "about"),
    *(f"plots?plot={plot}" for plot in PLOTS),
)
WIDTHS = (390, 1440)


IN_THE_GATE = (("only rows of one regime", WIDTHS[:1]),)
"""On a phone; with gaps, and without a second row. Long names: tests/page/test_hostile_names.py."""


@pytest.mark.parametrize(
    ("name", "widths"),
    gated([*((name, WIDTHS) for name in BOARDS), *IN_THE_GATE], *IN_THE_GATE),
)
def test_every_view_of_another_board_is_drawn_and_fits(
    browser, tmp_path, monkeypatch, name, widths
):
    rows, benchmark = BOARDS[name]()
    monkeypatch.setattr("geneb_ci.board.board.benchmark_of", lambda _: benchmark)
    board_layout = layout()
    board = board_of(rows, board_layout)
    write_page(tmp_path, page_files_of(rows, board, board_layout) | board.files)
    first = rows[0].submission.model_id
    category = next(Path(tmp_path, "categories").iterdir()).name
    static = [f"models/{first}.html", f"categories/{category}", "scores/full-MCC.html"]
    static += [f"tasks/{benchmark.task_ids[0]}.html", "marks.html"]
    wrong = []
    with opened(browser, f"{tmp_path.as_uri()}/index.html") as tab:

        def look(view: str, width: int) -> None:
            wide = tab.page.evaluate("document.documentElement.scrollWidth")
            is_wide = wide > width and not view.endswith("columns=tasks")  # a hundred columns
            if tab.page.locator(".fault").count() or is_wide:
                wrong.append((width, view, wide, tab.page.inner_text("main")[:150]))

        for width in widths:
            tab.page.set_viewport_size({"width": width, "height": 900})
            compare = "&".join(f"m={entry.submission.model_id}" for entry in rows[:3])
            for view in (*VIEWS, f"model/{first}", f"compare?{compare}"):
                tab.go(f"#/{view}")
                look(view, width)
        for view in static:
            tab.page.goto(f"{tmp_path.as_uri()}/{view}")
            assert tab.page.locator("main > h1").count() == 1
            for width in widths:
                tab.page.set_viewport_size({"width": width, "height": 900})
                look(view, width)
    assert wrong == []


def test_a_board_of_another_name_shows_nothing_of_the_public_one():
    """In all generated files; what this program and its commands are called is no such text."""
    dataset = replace(BENCHMARK.dataset, repo_id="other/tasks")
    benchmark = replace(BENCHMARK, name="A & B", harness_version="1", dataset=dataset)
    site = replace(small_site([v10("a"), v10("b")]), benchmark=benchmark)
    drawn = (SCRIPT, STYLE, INDEX)
    files = {name: raw for name, raw in page_files().items() if name in drawn}
    files[INDEX] = completed_index(files[INDEX], site)
    files |= site_files(site) | editions(site, GENERATION, {})
    files |= page_scripts(site.parsed_files, site.rows, benchmark)
    for name, raw in files.items():
        assert not re.findall(".{,40}(?:GENEB|2606[.]04525|darlednik).{,40}", raw.decode()), name
    assert b"<title>A &amp; B leaderboard</title>" in files[INDEX]
    assert b">A &amp; B <span>leaderboard</span></a></h1>" in files[INDEX]
    assert b"GENEB" in completed_index(page_files()[INDEX], small_site([v10("a")]))


@pytest.mark.nightly  # a browser
def test_baselines_are_lines_of_the_plot_where_they_have_every_task(browser, tmp_path, monkeypatch):
    """On the practice board; they are of MCC, and in no table of models."""
    mini = shipped_benchmark(PRACTICE_BENCHMARK)
    rows, board_layout = [v10("a", benchmark=mini), v10("b", benchmark=mini)], layout()
    monkeypatch.setattr("geneb_ci.board.board.benchmark_of", lambda _: mini)
    board = board_of(rows, board_layout)
    write_page(tmp_path, page_files_of(rows, board, board_layout) | board.files)
    with opened(browser, f"{tmp_path.as_uri()}/index.html") as tab:
        tab.go("#/plots?plot=sizes")
        assert tab.page.locator("#chart-size .baseline").count() == 3
        assert "kmer-4 0." in tab.page.inner_text("#chart-size")
        assert "baselines without training, which have no rank" in tab.page.inner_text("main")
        tab.go("#/plots?plot=sizes&metric=Acc")
        assert tab.page.locator("#chart-size .baseline").count() == 0
        tab.go("#/table")
        assert "kmer-4" not in tab.page.inner_text("main")
