"""A board that changes while somebody looks at it: no score is ever shown beside another model."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from geneb_ci.board.page import delete_former_scripts, page_files, with_data, write_page
from geneb_ci.board.page_data import page_scripts
from geneb_ci.board.rows import leaderboards
from geneb_ci.board.texts import script_part
from geneb_ci.common.benchmark import shipped_benchmark
from tests.board.board import entries
from tests.gate import gated
from tests.loopback import answering
from tests.page.boards import EVENT, name_of, tables
from tests.page.rows import FULL, shown
from tests.page.tab import Tab, opened, serving

MACRO = {row["disp"]: shown(row["macro_MCC"]) for row in FULL}
UPDATED = "The board was updated since this page was opened"
LATE = sorted((row["model"] for row in FULL), key=str.lower)[3]
"""The row that comes later, before most others: the places of all after it move."""


@cache
def files_of(*left_out: str) -> dict[str, bytes]:
    """Return the page of the public rows but some, as a build without diagnostics writes it."""
    rows = [entry for entry in entries() if entry.submission.model_id not in left_out]
    categories, tasks = leaderboards(rows, shipped_benchmark())
    values = {"leaderboard.json": categories, "leaderboard_tasks.json": tasks}
    scripts = page_scripts(values, rows, shipped_benchmark())
    return with_data(page_files(), scripts) | scripts


def put(folder: Path, *left_out: str) -> None:
    """Write a board, and delete what another one left."""
    files = files_of(*left_out)
    write_page(folder, files)
    delete_former_scripts(folder, files)


def scripts_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if script_part(path.name)}


@pytest.fixture
def board_folder(tmp_path: Path) -> Path:
    """Write the board before a row was added."""
    put(tmp_path, LATE)
    return tmp_path


def scores_are_right(tab: Tab, count: int) -> None:
    """Hold that every model stands beside its own score."""
    rows = tab.page.locator(".scores tbody tr").all()
    scores = [row.locator("td.heat").first.inner_text().split("\n")[0] for row in rows]
    score_by_name = dict(zip(tab.names(), scores, strict=True))
    assert score_by_name == {name: MACRO[name] for name in score_by_name}
    assert len(score_by_name) == count


def says_updated(tab: Tab) -> None:
    """Hold that nothing is shown but that the board was updated, and reload."""
    tab.page.wait_for_selector("main .fault")
    assert tab.page.inner_text("main .fault").startswith(UPDATED)
    assert tab.page.locator(".scores").count() == 0
    tab.faults.clear()  # the browser's own, of a file that is not there
    tab.page.click("text=Reload the page")
    tab.page.wait_for_selector("main h2")


@contextmanager
def caching(folder: Path) -> Iterator[str]:
    """Serve a folder whose files a browser may keep for an hour, and give its address."""

    class Caching(SimpleHTTPRequestHandler):
        def end_headers(self) -> None:
            self.send_header("Cache-Control", "max-age=3600")
            super().end_headers()

        def do_GET(self) -> None:
            """Send the file: two boards of one second have the same time, by which it compares."""
            del self.headers["If-Modified-Since"]
            super().do_GET()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    handler = partial(Caching, directory=folder)
    with answering(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as address:
        yield f"{address}/"


@pytest.mark.parametrize("where", gated(["disk", "server"], "server"))
def test_a_row_published_meanwhile_is_told_and_a_reload_shows_it(browser, board_folder, where):
    with serving(board_folder) as server:
        home = server if where == "server" else f"{board_folder.as_uri()}/index.html"
        with opened(browser, home) as tab:
            page = tab.go()
            put(board_folder)
            page.click("nav >> text=Scores")
            says_updated(tab)
            scores_are_right(tab, 41)
            assert tab.address() == "/table"


@pytest.mark.nightly  # in the gate, a row that is published meanwhile
def test_a_browser_that_kept_the_former_files_never_mixes_them(browser, board_folder):
    with caching(board_folder) as home, opened(browser, home) as tab:
        page = tab.go("#/table")
        scores_are_right(tab, 40)
        put(board_folder)
        tab.load("#/table")
        scores_are_right(tab, 40)  # all of it from the browser's cache
        page.select_option("#columns", "tasks")
        says_updated(tab)
        page.select_option("#columns", "categories")
        scores_are_right(tab, 41)


@pytest.mark.nightly  # of the gate is a part that is gone, above
def test_a_part_of_another_board_under_this_name_is_not_read(browser, board_folder):
    former = {name: content for name, content in files_of(LATE).items() if script_part(name)}
    name = name_of("scores-0", former)
    put(board_folder)
    with serving(board_folder) as home, opened(browser, home) as tab:
        tab.page.route(
            "**/board-scores-0.*",
            lambda route: route.fulfill(body=former[name], content_type="text/javascript"),
        )
        tab.page.goto(f"{home}#/table")
        tab.page.wait_for_selector("main .fault")
        tab.page.unroute_all()
        says_updated(tab)
        scores_are_right(tab, 41)


@pytest.mark.nightly
def test_a_former_index_says_that_the_board_was_updated(browser, board_folder):
    index = (board_folder / "index.html").read_bytes()
    put(board_folder)
    now = (board_folder / "index.html").read_bytes()
    (board_folder / "index.html").write_bytes(index)
    with serving(board_folder) as home, opened(browser, home) as tab:
        tab.page.goto(f"{home}#/table")
        tab.page.wait_for_selector("main .fault")
        (board_folder / "index.html").write_bytes(now)
        says_updated(tab)
        scores_are_right(tab, 41)


@pytest.mark.nightly  # in the gate: a part that cannot be had, in test_views.py
def test_a_network_that_fails_is_told_otherwise_and_asked_again(browser, board_folder):
    with serving(board_folder) as home, opened(browser, home) as tab:
        page = tab.go()
        page.context.set_offline(True)
        page.click("nav >> text=Scores")
        page.wait_for_selector("main .fault")
        assert "the network failed" in page.inner_text("main .fault")
        assert UPDATED not in page.inner_text("main .fault")
        page.context.set_offline(False)
        page.click("text=Try again")
        page.wait_for_selector(".scores")
        scores_are_right(tab, 40)
        tab.faults.clear()


def test_a_build_leaves_no_script_of_a_former_board(board_folder):
    before = scripts_in(board_folder)
    put(board_folder)
    after = scripts_in(board_folder)
    assert len(before) == len(after) == 9
    assert before.isdisjoint(after)
    put(board_folder, LATE)
    assert scripts_in(board_folder) == before  # the same rows, the same names
    assert {name: (board_folder / name).read_bytes() for name in before}.items() <= files_of(
        LATE
    ).items()


@pytest.mark.nightly  # in the gate the names of scripts change with the rows, below
def test_a_page_of_another_version_is_not_taken_from_a_cache(browser, board_folder):
    """Old code would read new data by the old encoding."""
    with caching(board_folder) as home, opened(browser, home) as tab:
        page = tab.go("#/table")
        code = page_files()["board.js"].replace(b"Download these rows as", b"Save as")
        files = files_of(LATE) | {"board.js": code, "index.html": page_files()["index.html"]}
        write_page(board_folder, with_data(files, files))
        page.reload()
        page.wait_for_selector("#csv")
        assert page.inner_text("#csv") == "Save as CSV"


def test_a_history_alone_makes_another_board():
    """It is in a script of its own, which a browser may keep, too."""
    values, rows = tables(), entries()
    names = [
        {*page_scripts(values, rows, shipped_benchmark(), events)} for events in (None, [EVENT])
    ]
    assert names[0] & names[1] == {"board-current.js"}
