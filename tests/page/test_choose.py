"""The first page: the same models, numbers and sentences as `geneb-ci recommend`."""

import itertools
from urllib.parse import urlencode

import pytest

from geneb_ci.board.reasons import bound_text, without_backticks
from tests.board.test_recommend import EXAMPLES, MEMORIES, QUESTIONS
from tests.page.boards import advice
from tests.page.rows import DASH, MINUS, display, shown
from tests.page.tab import Tab

SHOWN = 60


def plain(sentence: str, models: list[str]) -> str:
    """Return a reason as the page shows it: names for ids, no marks, a minus for a hyphen."""
    for model in models:
        sentence = sentence.replace(f"`{model}`", display(model))
    for sign in "0123456789":
        sentence = sentence.replace(f" -{sign}", f" {MINUS}{sign}")
    return without_backticks(sentence).replace("[", "").replace("]", "")


def says_what_python_says(tab: Tab, **asked: str | None) -> None:
    """Hold that the page shows what `recommend` gives for species, kind, examples and memory."""
    given = {key: value for key, value in asked.items() if value is not None}
    tab.go(f"#/overview?{urlencode(given)}" if given else "#/overview")
    memory = asked.get("memory")
    found = advice(
        asked.get("examples") or "full",
        asked.get("species"),
        asked.get("kind"),
        float(memory) if memory else None,
        None,
        float(asked.get("loss") or 0.03),
    )
    models = [choice.model for choice in found.regimes[0].choices]
    assert tab.texts(".why li") == [plain(reason, models) for reason in found.why], asked
    rows = [row.split("\n") for row in tab.texts(".ranges tbody tr")]
    assert len(rows) == min(len(models), SHOWN)
    for number, choice in enumerate(found.regimes[0].choices[:SHOWN]):
        row = " ".join(rows[number]).replace("\t", " ")
        others = [next(c for c in own.choices if c.model == choice.model) for own in found.regimes]
        assert row.startswith(display(choice.model))
        for own in others:
            numbers = f"{shown(own.score)} {shown(own.low)}{DASH}{shown(own.high)}"
            assert numbers in row
            lost = (
                f"over {found.margin:g}" if own.loss_bound is None else bound_text(own.loss_bound)
            )
            assert lost in row.partition(numbers)[2], (asked, row)
        whose = "self-reported" if choice.authorship == "contributed" else "official"
        assert whose in row
        for defect in choice.defects:
            assert defect in row
    enough = tab.page.locator(".ranges .enough .model").all_inner_texts()
    assert sorted(enough) == sorted(map(display, found.smaller))


def test_the_page_says_what_the_command_says(tab):
    says_what_python_says(tab)
    says_what_python_says(tab, species="plants", examples="hundreds", memory="16", loss="0.1")
    says_what_python_says(tab, kind="Virus/Phage", loss="0.05")
    says_what_python_says(tab, species="maize", examples="1shot")


@pytest.mark.nightly
@pytest.mark.parametrize("examples", EXAMPLES)
def test_the_page_says_so_for_every_question(tab, examples):
    memories = itertools.cycle(MEMORIES)
    for species, kind in QUESTIONS:
        memory = next(memories)
        says_what_python_says(
            tab,
            species=species,
            kind=kind,
            examples=None if examples == "full" else examples,
            memory=str(memory) if memory else None,
        )


def test_questions_narrow_each_other_and_the_slider_names_smaller_models(tab):
    page = tab.go("#/overview")
    page.select_option("#species", "plants")
    kinds = page.locator("#kind option").all_inner_texts()
    assert kinds == ["any (10)", "Promoters (3)", "DNA Methyl. (1)", "lncRNA (6)"]
    page.select_option("#kind", "Promoters")
    tab.drawn()
    page.locator(".matching summary").click()
    tasks = tab.texts(".matching li a")
    assert tasks == ["PGB pro seq.m esculenta", "iPro Arabidopsis NonTATA", "iPro Arabidopsis TATA"]
    assert "Mean MCC over 3 tasks (plants, Promoters)" in page.inner_text(".matching summary")
    before = page.locator(".enough").count()
    page.locator("#loss").fill("0.1")
    tab.drawn()
    assert page.locator(".enough").count() > before
    assert page.inner_text("#lost") == "0.1"
    assert tab.address() == "/overview?species=plants&kind=Promoters&loss=0.1"
    page.get_by_role("link", name="Every score on these tasks").click()
    tab.drawn()
    assert page.locator(".scores thead .score").count() == 4


def test_on_a_phone_the_first_model_is_on_the_first_screen(tab):
    tab.page.set_viewport_size({"width": 390, "height": 844})
    page = tab.go("#/overview")
    box = page.locator(".ranges tbody .model").first.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 844


def test_a_reader_reaches_the_first_row_in_a_few_stops(tab):
    page = tab.load("#/overview")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # "Skip to the content"
    stops = 1
    while not page.evaluate("document.activeElement.closest('.ranges tbody') !== null"):
        page.keyboard.press("Tab")
        stops += 1
        assert stops <= 12
