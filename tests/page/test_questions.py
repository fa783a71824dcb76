"""What readers ask is answered in at most three steps from the first page.

A step is a link or a button by its text, or `choose` or `type` with the id of a control.
"""

import re

import pytest
from playwright.sync_api import Page

from tests.gate import gated
from tests.page.tab import opened

STEPS_MAX = 3
FACTS = "Filter by facts of the model"
LINKED = "Page to link to: links, citation, badge, code that loads it"
BIOLOGIST = {
    "Which models do well on splice sites?": (
        ["choose kind=Splice Sites"],
        "Highest on these 7 tasks",
    ),
    "And if my GPU has 8 GB?": (
        ["choose kind=Splice Sites", "choose memory=8"],
        "35 models on 7 tasks",
    ),
    "What if I have ten labelled sequences of each class?": (
        ["choose kind=Enhancers", "choose examples=10shot"],
        "10 training examples per class",
    ),
    "How do all models do in all categories?": (["Scores"], "Chromatin Acc."),
    "Which models were pretrained on plants?": (
        ["Scores", FACTS, "choose facet-pretraining=plant-genomes"],
        "2 of 41 models",
    ),
    "Which models run without a GPU?": (
        ["Scores", FACTS, "choose facet-runs_on=CPU or GPU"],
        "of 41 models",
    ),
    "How sure is a rank?": (["Scores"], "hold jointly with 95 % confidence"),
    "What does a task ask, and of which species?": (
        ["Method and data", "Mouse Enh.", "GUE mouse 0"],
        "101 letters",
    ),
    "May I use the weights in a company?": (["Scores", "GENERator-eukaryote-3b"], "mit"),
    "How do I load the model?": (
        ["Scores", "GENERator-eukaryote-3b", LINKED],
        "HuggingFaceExtractor(",
    ),
}
"""Questions of a reader, each with its steps and a text that is then on the screen."""
AUTHOR = {
    "Where does my model stand?": (["Scores", "type search=grover"], "1 of 41 models"),
    "What does the board say of my model?": (["Scores", "GROVER"], "Embedding width"),
    "What address do I link to, and how is it cited?": (
        ["Scores", "GROVER", LINKED],
        "@misc{geneb-grover",
    ),
    "Is there a badge for my README?": (["Scores", "GROVER", LINKED], "Markdown of the badge"),
    "From which file and commit are my scores?": (["Scores", "space", LINKED], "Pull request #12"),
    "How do I dispute them?": (["Scores", "GROVER", LINKED], "Dispute this row"),
    "What did others do to confirm them?": (["Scores", "GROVER"], "checked, not rerun"),
    "What would raise that?": (
        ["Method and data"],
        "an audit agrees; its sample was drawn after the submission was committed to",
    ),
    "Is a defect of the extractor known?": (
        ["Method and data"],
        "Known defects of published extractors",
    ),
    "On which tasks is my model weak?": (["Scores", "GROVER"], "Scores by task"),
}
"""Questions of the author of a model."""
ASKED = {**BIOLOGIST, **AUTHOR}


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
        expected = re.compile(rf"^\s*{re.escape(step)}\s*(\(\d+\))?$")
        shown = page.locator("a, button, summary").filter(has_text=expected, visible=True)
        shown.first.click()
    page.wait_for_selector("main:not([aria-busy]) > :is(h1, h2)", state="attached")


@pytest.mark.parametrize("question", gated(ASKED, *list(ASKED)[::10]))
def test_a_question_is_answered(browser, folder, question):
    steps, answer = ASKED[question]
    assert len(steps) <= STEPS_MAX, question
    with opened(browser, f"{folder.as_uri()}/index.html") as tab:
        page = tab.go("")
        for step in steps:
            take(page, step)
        labels = page.locator("[aria-label]").evaluate_all("(all) => all.map((o) => o.ariaLabel)")
        assert answer in "\n".join([page.inner_text("body"), *labels])
