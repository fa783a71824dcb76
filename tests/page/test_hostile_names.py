"""Whatever contributors write stays text: in every view, in addresses and in downloads."""

import csv
import io
import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import Page

from geneb_ci.board.columns import COLUMNS, Row
from geneb_ci.board.page import page_files, with_data, write_page
from geneb_ci.board.page_data import page_scripts
from geneb_ci.board.rows import leaderboards
from reference_harness.formats.submission import Meta, SubmissionV10
from tests.board.board import entry
from tests.hostile.corpus import inputs
from tests.page.tab import Tab, opened
from tests.small import BENCHMARK, small

MARKUP = [
    "<script>document.title='taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "</script><script>document.title='taken'</script>",
    "<svg/onload=document.title='taken'>",
    "\"'><b id=main>taken</b>",
    "javascript:document.title='taken'",
    "{{7*7}}${document.title='taken'}",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    'a,b"c\nd',
    "\u202egnp.exe",
    "\u2028\u2029",
    "a\ud800b",
    "__proto__",
    "constructor",
    "toString",
    "../../index.html?#/about",
    "%3Cscript%3E&m=space#x",
    "\U0001d544" * 100,
    "W" * 128,
    " ",
]


def texts_of(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from texts_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_of(inner)


def corpus() -> list[str]:
    """Return every text of the hostile inputs that are JSON, shortened to what is allowed."""
    texts_found: set[str] = set()
    for data in inputs().values():
        try:
            texts_found.update(texts_of(json.loads(data)))
        except (ValueError, RecursionError):
            continue
    return sorted(text[:128] for text in texts_found if text)


HOSTILE = [*MARKUP, *corpus()]
ADDRESSED = [text for text in MARKUP if "\ud800" not in text]
"""Those that an address can hold."""
TEXTS = {c.download for c in COLUMNS if c.download and c.kind not in {"size", "count"}}


def hostile_entry(number: int, text: str) -> Row:
    """Return a row that no check would let through: the page must not need them."""
    document = small(f"m{number}", BENCHMARK)
    sound = SubmissionV10.model_validate(document)
    meta = Meta.model_construct(
        **document["meta"]
        | dict.fromkeys(("display", "url", "training_data", "submitted_by"), text)
    )
    changed = sound.model_copy(update={"meta": meta, "model_id": text})
    return entry(changed)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    entries = [hostile_entry(number, text) for number, text in enumerate(dict.fromkeys(HOSTILE))]
    categories, tasks = leaderboards(entries, BENCHMARK)
    values = {"leaderboard.json": categories, "leaderboard_tasks.json": tasks}
    scripts = page_scripts(values, entries, BENCHMARK)
    write_page(folder, with_data(page_files(), scripts) | scripts)
    return folder


@pytest.fixture
def tab(browser, hostile) -> Iterator[Tab]:
    with opened(browser, f"{hostile.as_uri()}/index.html") as opened_tab:
        yield opened_tab
        is_inert(opened_tab.page)


def is_inert(page: Page) -> None:
    """Hold that no name became markup of the view, nor ran."""
    assert page.title() != "taken"
    assert page.locator("main script, main img, main b, main style").count() == 0


def test_the_corpus_is_there():
    assert len(corpus()) > 100
    assert any("proto" in text for text in corpus())


def test_names_are_shown_as_they_are(tab):
    tab.go("#/table")
    shown: list[str] = []
    while True:
        shown += tab.page.evaluate(
            "[...document.querySelectorAll('.scores tbody .name .model')].map((a) => a.textContent)"
        )
        following = tab.page.get_by_role("button", name="Next")
        if not following.is_enabled():
            break
        following.click()
    assert sorted(map(ascii, shown)) == sorted(map(ascii, dict.fromkeys(HOSTILE)))


def test_a_page_of_a_hostile_model_is_inert(tab):
    for text in MARKUP:
        name = quote(text.replace("\ud800", "\ufffd"), safe="")
        page = tab.go(f"#/model/{name}?m={name}")
        is_inert(page)
        if "\ud800" in text:  # an address cannot hold half of a pair, so there is no such page
            assert page.inner_text("h2") == "No such model"
            continue
        assert page.locator("h2").text_content() == text
        assert page.locator(".facts code").text_content() == text
        assert (text, page.locator(".facts a").count()) == (text, 0)


COMPARED_MAX = 4


def test_hostile_models_are_compared_and_drawn(tab):
    for first in range(0, len(ADDRESSED), COMPARED_MAX):
        texts = ADDRESSED[first : first + COMPARED_MAX]
        page = tab.go("#/compare?" + "&".join(f"m={quote(text, safe='')}" for text in texts))
        assert page.locator(".compared .model").all_text_contents() == texts
        is_inert(page)
        page.locator("#views").get_by_text("Plots").click()
        tab.drawn()
        assert (texts, page.locator(".fault").count()) == (texts, 0)
        is_inert(page)


def test_only_plain_https_addresses_are_links(call):
    assert call("words.safeAddress", "https://doi.org/10.5281/zenodo.7995778") is not None
    for text in (
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "data:text/html,x",
        "http://example.org/",
        "//example.org",
        "https://user:word@example.org/",
        "file:///etc/passwd",
        "https://",
        "",
        *MARKUP,
    ):
        assert call("words.safeAddress", text) is None


def test_a_spreadsheet_runs_nothing_of_a_download(tab):
    page = tab.go("#/table")
    with page.expect_download() as waiting:
        page.click("#csv")
    raw = waiting.value.path().read_bytes().decode("utf-8", "surrogatepass")
    head, *rows = list(csv.reader(io.StringIO(raw, newline="")))
    assert len(rows) == len(dict.fromkeys(HOSTILE))
    assert len({len(row) for row in (head, *rows)}) == 1
    for row in rows:
        for field, name in zip(row, head, strict=True):
            is_text = name in TEXTS
            assert not (is_text and field.startswith(("=", "+", "-", "@", "\t", "\r")))
            assert is_text or not field or float(field) is not None
