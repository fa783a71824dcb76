"""Advice: what is said of each model on the matching tasks, and that no sentence says more."""

import itertools
import math
from statistics import fmean

import numpy as np
import pytest

from geneb_ci.board.advice import (
    HUNDREDS,
    Advice,
    AdviceFacts,
    AdvisedModel,
    model_request,
    parameter_count,
    with_board_names,
)
from geneb_ci.board.decisions import ScoreColumn, intervals_of, possible_losses
from geneb_ci.board.reasons import bound_text, score_text, size_text
from geneb_ci.board.recommend import advise, advise_rows
from geneb_ci.board.rows import published_tasks
from geneb_ci.board.uncertainty import RegimeScores, mean_over_tasks, task_numbers
from geneb_ci.board.variance import DRAW_DEVIATION
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import UsageProblem
from geneb_ci.models.tasks import task_notes
from reference_harness.formats.submission import SubmissionV10
from tests.board.board import entries, entry
from tests.page.boards import advice, known
from tests.paths import ROOT

REGIMES = shipped_benchmark().regimes
EXAMPLES = (*REGIMES, HUNDREDS)
MEMORIES = (None, 8, 16, 24, 48, 80)
TASKS = published_tasks(shipped_benchmark(), task_notes(find_layout(ROOT)))
GROUPS = sorted({t[k] for t in TASKS for k in ("kingdom", "species") if k in t})
CATEGORIES = shipped_benchmark().category_order
QUESTIONS = [
    (species, category)
    for species, category in itertools.product((None, *GROUPS), (None, *CATEGORIES))
    if any(
        category in {None, t["cat"]} and species in {None, t.get("species"), t.get("kingdom")}
        for t in TASKS
    )
]


def highest_of(regime: str, tasks: list[str], models: list[str]) -> str:
    """Return the model with the highest mean, computed anew from the scores of tasks."""
    board = known().boards[regime]
    index_by_model = {model: k for k, model in enumerate(board.models)}

    def key(model: str) -> tuple[float, int, str]:
        mean = math.fsum(board.tasks[task].values[index_by_model[model]] for task in tasks) / len(
            tasks
        )
        return (-round(mean, 12), board.params[index_by_model[model]], model)

    return min(models, key=key)


def wins_of(claim: AdvisedModel, regime: str, tasks: list[str], models: list[str]) -> int:
    board = known().boards[regime]
    places = [board.models.index(model) for model in models]
    own = board.models.index(claim.model)
    return sum(
        board.tasks[task].values[own] == max(board.tasks[task].values[k] for k in places)
        for task in tasks
    )


def holds(row_advice: Advice) -> None:
    """Hold that all which is said of the models follows from the scores of the tasks."""
    count = len(row_advice.tasks)
    assert count > 0
    if not row_advice.regimes:
        assert row_advice.considered == 0
        return
    models = [choice.model for choice in row_advice.regimes[0].choices]
    assert row_advice.considered == len(models)
    for own in row_advice.regimes:
        claim, regime = own.highest, own.regime
        assert claim.model == own.choices[0].model == highest_of(regime, row_advice.tasks, models)
        assert claim.wins == {regime: wins_of(claim, regime, row_advice.tasks, models)}
        others = [[t for t in row_advice.tasks if t != left] for left in row_advice.tasks]
        changed = [
            left
            for left, rest in zip(row_advice.tasks, others, strict=True)
            if rest and highest_of(regime, rest, models) != claim.model
        ]
        assert claim.without == changed
        assert [choice.score for choice in own.choices] == sorted(
            (choice.score for choice in own.choices), reverse=True
        )
    largest = max(own.choices[0].params for own in row_advice.regimes)
    bounds = [{c.model: c.loss_bound for c in own.choices} for own in row_advice.regimes]
    params = {choice.model: choice.params for choice in row_advice.regimes[0].choices}
    within = {
        model
        for model in models
        if params[model] < largest
        and all(is_within(own[model], row_advice.margin) for own in bounds)
    }
    assert set(row_advice.smaller) == within
    assert [params[model] for model in row_advice.smaller] == sorted(
        params[model] for model in within
    )
    assert (row_advice.smallest is None) == (not within)
    if row_advice.smallest is not None:
        assert row_advice.smallest.model == row_advice.smaller[0]
        for regime, wins in row_advice.smallest.wins.items():
            assert wins == wins_of(row_advice.smallest, regime, row_advice.tasks, models)
    for claim in filter(None, (*(own.highest for own in row_advice.regimes), row_advice.smallest)):
        [text] = [reason for reason in row_advice.why if is_claim(reason, claim, row_advice)]
        assert f"`{claim.model}`" in text
        assert rest(claim, count) in text
    words = " ".join(row_advice.why)
    for claimed in ("best", "significant", "answer", "recommend", "should"):
        assert claimed not in words.replace(" than ", " ")


def is_within(bound: float | None, margin: float) -> bool:
    return bound is not None and bound <= margin


def is_claim(text: str, claim: AdvisedModel, row_advice: Advice) -> bool:
    if claim is row_advice.smallest:
        return "the smallest is" in text
    return text.startswith("Highest on") and f"with {next(iter(claim.wins))}" in text


def rest(claim: AdvisedModel, count: int) -> str:
    """Return how a sentence on a claim has to end."""
    if count == 1:
        return "This rests on one task alone."
    wins = list(claim.wins.items())
    first = " and ".join(f"{n} in {r}" if len(wins) > 1 else str(n) for r, n in wins)
    cases = len(claim.without)
    steady = "any one of them it stays" if not cases else "one of them another is"
    return f"It scores highest on {first} of the {count} tasks; without {steady}"


ASKED = (
    *((None, None), ("plants", None), ("maize", None), ("human", "Promoters")),
    *((None, "Virus/Phage"), (None, "Chromatin Acc."), ("fungi", "Histone Mod.")),
)


@pytest.mark.parametrize("examples", EXAMPLES)
@pytest.mark.nightly
@pytest.mark.parametrize(("species", "category"), QUESTIONS)
def test_no_sentence_says_more_than_the_tasks(species, category, examples):
    for memory in MEMORIES:
        holds(advice(examples, species, category, memory))


@pytest.mark.parametrize("examples", ["full", HUNDREDS])
def test_no_sentence_of_some_questions_says_more_than_the_tasks(examples):
    for (species, category), memory in zip(ASKED, itertools.cycle(MEMORIES[::2]), strict=False):
        holds(advice(examples, species, category, memory))


def test_a_plant_biologist_gets_plants():
    row_advice = advice("full", "plants")
    facts = {task["id"]: task for task in known().tasks}
    assert {facts[task]["kingdom"] for task in row_advice.tasks} == {"plants"}
    assert len(row_advice.tasks) == 10
    assert advice("full", "maize").tasks == ["InstaDeepAI_plant-genomic-benchmark_lncrna.z_mays"]


def test_what_is_left_out_of_the_smaller_ones_loses_more():
    """A larger loss that is accepted names a smaller model, or the same."""
    counts = [len(advice(margin=margin).smaller) for margin in (0.0, 0.01, 0.03, 0.05, 0.1)]
    assert counts == sorted(counts)
    assert counts[0] == 0
    row_advice = advice(margin=0.05)
    small = row_advice.smallest
    assert small is not None
    chosen = next(c for c in row_advice.regimes[0].choices if c.model == small.model)
    assert chosen.loss_bound is not None
    bound = bound_text(chosen.loss_bound)
    assert f"{score_text(chosen.below)} below the highest and at most {bound}" in row_advice.why[1]


def test_the_smallest_depends_on_a_task_only_where_that_is_said():
    facts = known()
    for question in (("plants", None), (None, "Promoters")):
        row_advice = advice("full", *question, margin=0.1)
        assert row_advice.smallest is not None
        for task in row_advice.tasks:
            left = facts._replace(
                tasks=[task_facts for task_facts in facts.tasks if task_facts["id"] != task]
            )
            again = advise(row_advice.need, left, 0.1)
            model = again.smallest.model if again.smallest else None
            assert (model != row_advice.smallest.model) == (task in row_advice.smallest.without)


def test_between_two_regimes_both_are_shown_and_the_gap_is_named():
    row_advice = advice(HUNDREDS, "plants")
    assert [own.regime for own in row_advice.regimes] == ["10shot", "full"]
    few, many = (score_text(fmean(c.score for c in own.choices)) for own in row_advice.regimes)
    gap = next(
        reason for reason in row_advice.why if reason.startswith("Hundreds of examples lie between")
    )
    assert f"{few} with 10shot and {many} with full, and nothing was measured" in gap


def test_the_mean_of_one_category_is_that_of_the_board():
    for regime in REGIMES:
        board = known().boards[regime]
        places = np.arange(len(board.models))
        for category in CATEGORIES:
            tasks = shipped_benchmark().categories[category]
            own = mean_over_tasks(task_numbers(board, tasks, places).sum(axis=1), len(tasks))
            whole = board.scores[category]
            assert np.allclose(own.values, whole.values, rtol=0, atol=1e-14)
            assert np.allclose(own.variance, whole.variance, rtol=1e-12)
            assert np.array_equal(intervals_of(own)[0].round(9), intervals_of(whole)[0].round(9))


def test_an_interval_covers_other_training_draws():
    """Draws spread as k-mers do on six tasks, half of it shared by all models: 95 % hold."""
    rng = np.random.Generator(np.random.PCG64(20261127))
    models, count, fits, sets = 41, 10, 5, 300
    ids, tasks = tuple(f"m{k:02}" for k in range(models)), [f"t{k}" for k in range(count)]
    truth = rng.uniform(0.1, 0.4, (count, models))
    spreads, test_error = rng.uniform(0.017, 0.148, (sets, count, 1)), 0.03
    inside, bounded = 0, 0
    for spread in spreads:
        shared, own = rng.normal(size=(2, fits, count, models))
        shared = shared[..., :1]
        drawn = ((shared + own) * spread / math.sqrt(2)).mean(axis=0)
        seen = truth + drawn + rng.normal(size=truth.shape) * test_error
        variance = np.full(models, test_error**2)
        certain = np.full(models, np.inf)
        columns = {t: ScoreColumn(seen[k], variance, certain) for k, t in enumerate(tasks)}
        board = RegimeScores(ids, (1,) * models, {}, columns, 50, 3.992, ())
        every = np.arange(models)
        numbers = task_numbers(board, tasks, every, DRAW_DEVIATION**2 / fits)
        mean = mean_over_tasks(numbers.sum(axis=1), count)
        low, high = intervals_of(mean)
        true = truth.mean(axis=0)
        inside += int(((low <= true) & (true <= high)).sum())
        bound = possible_losses(mean, np.arange(models), board.critical).bound
        bounded += bool((true.max() - true <= bound).all())
        alone = intervals_of(mean_over_tasks(task_numbers(board, tasks, every).sum(axis=1), count))
        assert (high - low > alone[1] - alone[0]).all()
    assert inside / (sets * models) >= 0.95
    assert bounded / sets >= 0.95


def refusal(facts: AdviceFacts, **need: str) -> str:
    requests = {"category": None, "species": None, "regime": "full"} | need
    request = model_request(
        requests["category"], requests["species"], str(requests["regime"]), None, None, None, 0.03
    )
    with pytest.raises(UsageProblem) as caught:
        with_board_names(request, facts)
    return caught.value.message


def test_names_that_a_board_does_not_have_are_refused():
    facts = known()
    message = refusal(facts, category="Splice Site")
    assert message.startswith('"Splice Site" is not a category of the benchmark')
    assert refusal(facts, species="plant").startswith('"plant" is not a species or kingdom of the')
    assert refusal(facts, regime="2shot").startswith('"2shot" is not a regime of the benchmark')
    request = model_request("promoters", "HUMAN", "Hundreds", "500M", 16, "audited", 0.03)
    exact = with_board_names(request, facts)
    assert (exact.category, exact.species, exact.regime) == ("Promoters", "human", HUNDREDS)
    assert (exact.max_params, exact.evidence) == (500_000_000, "audited")
    only_full = facts._replace(draw_variances={"full": 0.0})
    assert refusal(only_full, regime=HUNDREDS).startswith('"hundreds" is not a regime')


def test_what_nothing_meets_is_said():
    none = advice("full", "maize", "Promoters")
    assert (none.regimes, none.why) == ([], ["No task matches maize and Promoters."])
    row_advice = advice("full", evidence="audited")
    assert (row_advice.considered, row_advice.regimes) == (0, [])
    assert row_advice.why == ["No model ranked in full meets evidence audited or more."]


@pytest.mark.parametrize("memory", [0, -1, math.nan, 1e9])
def test_a_memory_that_is_none_is_refused(memory):
    with pytest.raises(UsageProblem):
        model_request(None, None, "full", None, memory, None, 0.03)


def test_a_gpu_holds_twice_the_weights():
    assert model_request(None, None, "full", None, 16, None, 0.03).max_params == 4_000_000_000
    sizes = {c.params for c in advice("full", memory=8).regimes[0].choices}
    assert max(sizes) <= 2_000_000_000


def test_equal_models_are_named_by_size():
    base = entries()[0].submission
    twins = [
        SubmissionV10.model_validate(
            base.model_dump(exclude_none=True)
            | {"model_id": name, "meta": base.meta.model_dump() | {"params": n}}
        )
        for name, n in (("large", 100), ("small", 10))
    ]
    rows = [entry(row) for row in twins]
    need = model_request(None, None, "full", None, None, None, 1.0)
    notes = task_notes(find_layout(ROOT))
    advice_by_row = advise_rows(rows, shipped_benchmark(), notes, need, 1.0)
    assert [choice.model for choice in advice_by_row.regimes[0].choices] == ["small", "large"]
    assert advice_by_row.smaller == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("500M", 500_000_000),
        ("1.2b", 1_200_000_000),
        (" 86000000 ", 86_000_000),
        ("0", 0),
        ("2 K", 2000),
    ],
)
def test_parameter_counts_as_people_write_them(text, value):
    assert parameter_count(text) == value


@pytest.mark.parametrize(
    "text", ["", "M", "-5M", "5e8", "1,000", "5MM", "\u0665M", "9" * 40, "nan"]
)
def test_what_is_no_parameter_count(text):
    with pytest.raises(UsageProblem):
        parameter_count(text)


def test_parameter_counts_are_written_for_people():
    assert [size_text(n) for n in (0, 999, 1_930_000, 500_000_000, 7_000_000_000)] == [
        *("0", "999", "1.93M", "500M", "7B")
    ]
