"""The first page: the same models, numbers and sentences as `geneb-ci recommend`."""

import itertools
import math
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


def says_what_python_says(tab: Tab, **options: str | None) -> None:
    """Hold that the page shows what `recommend` gives for species, kind, examples and memory."""
    options_by_key = {key: value for key, value in options.items() if value is not None}
    tab.go(f"#/overview?{urlencode(options_by_key)}" if options_by_key else "#/overview")
    memory = options.get("memory")
    row_advice = advice(
        options.get("examples") or "full",
        options.get("species"),
        options.get("kind"),
        float(memory) if memory else None,
        None,
        float(options.get("loss") or 0.03),
    )
    models = [choice.model for choice in row_advice.regimes[0].choices]
    assert tab.texts(".why li") == [plain(reason, models) for reason in row_advice.why], options
    rows = [row.split("\n") for row in tab.texts(".ranges tbody tr")]
    assert len(rows) == min(len(models), SHOWN)
    for number, choice in enumerate(row_advice.regimes[0].choices[:SHOWN]):
        row = " ".join(rows[number]).replace("\t", " ")
        others = [
            next(c for c in own.choices if c.model == choice.model) for own in row_advice.regimes
        ]
        assert row.startswith(display(choice.model))
        for own in others:
            numbers = f"{shown(own.score)} {shown(own.low)}{DASH}{shown(own.high)}"
            assert numbers in row
            bound = math.inf if own.loss_bound is None else own.loss_bound
            lost = (
                bound_text(bound) if bound <= row_advice.margin else f"over {row_advice.margin:g}"
            )
            assert lost in row.partition(numbers)[2], (options, row)
        assert choice.authorship in row
        for defect in choice.defects:
            assert defect in row
    enough = tab.page.locator(".ranges .enough .model").all_inner_texts()
    assert sorted(enough) == sorted(map(display, row_advice.smaller))


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


# Goes to each address, and gives the sentences that the first page then says.
SAID = """
async (addresses) => {
  const found = [];
  for (const address of addresses) {
    const changed = new Promise((resolve) => {
      addEventListener("hashchange", resolve, { once: true });
    });
    location.hash = address;
    await changed;
    while (document.querySelector("main[aria-busy]")) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    found.push([...document.querySelectorAll(".why li")].map((one) => one.innerText));
  }
  return found;
}
"""


@pytest.mark.nightly
@pytest.mark.parametrize("examples", EXAMPLES)
def test_every_sentence_that_the_page_can_say_is_that_of_python(tab, examples):
    """Of every combination of the three questions."""
    names = ("species", "kind", "examples", "memory")
    memories = [str(memory) if memory else None for memory in MEMORIES]
    requests = [
        dict(zip(names, (*question, examples, memory), strict=True))
        for question, memory in itertools.product(QUESTIONS, memories)
    ]
    questions = [
        {name: value for name, value in request.items() if value is not None}
        for request in requests
    ]
    page = tab.go("#/table")
    page_values = page.evaluate(
        SAID, [f"#/overview?{urlencode(values_by_name)}" for values_by_name in questions]
    )
    for request, sentences in zip(requests, page_values, strict=True):
        memory = float(request["memory"]) if request["memory"] else None
        row_advice = advice(examples, request["species"], request["kind"], memory)
        models = [choice.model for choice in row_advice.regimes[0].choices]
        assert sentences == [plain(reason, models) for reason in row_advice.why], request


DRAWN = """
(rows) => rows.map((row) => [...row.querySelectorAll(".bar-of")].map((bar) => {
  const [reach, dot] = [bar.querySelector(".reach"), bar.querySelector("circle")];
  return [reach.getAttribute("x1"), dot.getAttribute("cx"), reach.getAttribute("x2")].map(Number);
}))
"""


@pytest.mark.parametrize(
    ("examples", "species"), [("full", None), ("hundreds", "plants"), ("10shot", "human")]
)
def test_intervals_are_drawn_where_python_has_them(tab, examples, species):
    """To the last digit: ends and means, between the least and the greatest end of all."""
    row_advice = advice(examples, species)
    page = tab.go(f"#/overview?{urlencode({'examples': examples, 'species': species or ''})}")
    drawn = page.locator(".ranges tbody tr").evaluate_all(DRAWN)
    by_model = [{choice.model: choice for choice in own.choices} for own in row_advice.regimes]
    ends = [end for own in by_model for value in own.values() for end in (value.low, value.high)]
    least, most = min(ends), max(ends)
    for model, bars in zip(by_model[0], drawn, strict=True):
        for own, bar in zip(by_model, bars, strict=True):
            known = [own[model].low, own[model].score, own[model].high]
            places = [4 + (value - least) / (most - least) * 232 for value in known]
            assert bar == pytest.approx(places, rel=0, abs=1e-9)


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
