"""Each question of docs/reader/questions.md is answered in at most three steps."""

import re

import pytest
from playwright.sync_api import Page

from tests.gate import gated
from tests.page.tab import opened
from tests.paths import ROOT

STEPS_MAX = 3
TEXT = (ROOT / "docs/reader/questions.md").read_text("utf-8")
ROW = re.compile(r"^\| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)


def questions(reader: str) -> list[tuple[str, list[str], str]]:
    part = TEXT.partition(f"<!-- {reader} -->")[2].partition(f"<!-- /{reader} -->")[0]
    found = ROW.findall(part)[1:]
    return [(asked, steps.split("; "), answer) for asked, steps, answer in found]


QUESTIONS = [*questions("biologist"), *questions("author")]


def take(page: Page, step: str) -> None:
    verb, _, rest = step.partition(" ")
    name, _, value = rest.partition("=")
    if verb == "choose" and name == "regime":
        page.check(f"input[name=regime][value='{value}']", force=True)
    elif verb == "choose":
        page.select_option(f"#{name}", value)
    elif verb == "type":
        page.fill(f"#{name}", value)
    else:
        wanted = re.compile(rf"^\s*{re.escape(step)}\s*(\(\d+\))?$")
        shown = page.locator("a, button, summary").filter(has_text=wanted, visible=True)
        shown.first.click()
    page.wait_for_selector("main:not([aria-busy]) > :is(h1, h2)", state="attached")


def test_there_are_ten_of_each():
    assert len(questions("biologist")) == len(questions("author")) == 10


ASKED = {asked: (steps, answer) for asked, steps, answer in QUESTIONS}


@pytest.mark.parametrize("asked", gated(ASKED, *list(ASKED)[::10]))
def test_a_question_is_answered(browser, folder, asked):
    steps, answer = ASKED[asked]
    assert len(steps) <= STEPS_MAX, asked
    with opened(browser, f"{folder.as_uri()}/index.html") as tab:
        page = tab.go("")
        for step in steps:
            take(page, step)
        labels = page.locator("[aria-label]").evaluate_all("(all) => all.map((o) => o.ariaLabel)")
        assert answer in "\n".join([page.inner_text("body"), *labels])
