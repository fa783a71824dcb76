"""The pages that stand alone, as tests look at them: of the public rows, with a history."""

import functools
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from geneb_ci.board.columns import Row
from geneb_ci.board.page import page_files, with_data, write_page
from geneb_ci.board.rows import leaderboards
from geneb_ci.board.site.inputs import Site, SourceCommit, site_of
from geneb_ci.board.site.render import completed_index, editions, site_files
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import Layout, LayoutKind
from tests.board.board import POLICY, entries
from tests.page.boards import EVENT, public_scripts, table_files, values
from tests.paths import PUBLIC, SUBMISSIONS
from tests.small import BENCHMARK

COMMIT = "abcdef0123" * 4
GENERATION = "5a" * 32
REPOSITORY = "https://github.com/example/board"
ADDRESS = "https://board.example"
SPACE = "https://huggingface.co/spaces/owner/name"
EVENTS = (
    EVENT | {"kind": "include", "why": "Add space (#12)", "former_level": None},
    EVENT,
)


def layout(**more: Any) -> Layout:
    """Return the layout of the public rows, with the addresses that a setting gives."""
    arguments: dict[str, Any] = {"submissions": SUBMISSIONS, "repository": REPOSITORY}
    arguments |= {"site": ADDRESS, "space": SPACE, "root": PUBLIC}
    return Layout(LayoutKind.GENEB_CI, policy=POLICY, **arguments | more)


def public_site(rows: list[Row] | None = None, **more: Any) -> Site:
    built = SourceCommit(COMMIT, "2026-11-20T08:30:00Z", EVENTS)
    return site_of(rows or entries(), values(), shipped_benchmark(), layout(**more), built)


def small_site(rows: list[Row], **more: Any) -> Site:
    """Return the pages' inputs of made-up rows on three tasks, without diagnostics."""
    categories, tasks = leaderboards(rows, BENCHMARK)
    files = {"leaderboard.json": categories, "leaderboard_tasks.json": tasks}
    built = SourceCommit(COMMIT, "2026-11-20T08:30:00Z", more.pop("events", ()))
    return site_of(rows, files, BENCHMARK, layout(**more), built)


def write_site(folder: Path, rows: list[Row] | None = None, **more: Any) -> Site:
    """Write the board of the public rows, or of `rows` with the same scores, with every page."""
    site = public_site(rows, **more)
    scripts = public_scripts(EVENTS, rows)
    files = with_data(page_files(), scripts) | scripts
    files["index.html"] = completed_index(files["index.html"], site)
    files |= dict.fromkeys(("leaderboard.json", "leaderboard_tasks.json"), b"{}") | table_files()
    write_page(folder, files | site_files(site) | editions(site, GENERATION, {}))
    return site


class Tags(HTMLParser):
    """Elements of a page with their attributes, and what they contain as text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.data: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.data.append(data)

    def values(self, tag: str, name: str) -> list[str]:
        return [attrs[name] for result, attrs in self.found if result == tag and name in attrs]


@functools.cache
def tags_of(text: str) -> Tags:
    """Return the elements of a page; several tests look at each."""
    return Tags(text)


def json_ld(text: str) -> str:
    """Return the description of a page for search engines, as it stands there."""
    script_match = re.search(r'<script type="application/ld\+json">(.*?)</script>', text, re.DOTALL)
    assert script_match
    return script_match[1]
