"""Which memorisers a small audit flags, and that no honest extractor is."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.audit.rerun.few_shot import (
    OTHERS,
    TESTS,
    VARIANTS,
    FewShotResult,
    few_shot_result,
    flagged_gains,
    gains_over_other_fits,
)
from geneb_ci.audit.rerun.honesty import (
    FRESH_MARGIN,
    VARIANT_ALARM_QUANTILE,
    VARIANT_MARGIN,
    FreshTask,
    TaskVariantDecisions,
    VariantResult,
    accuracy_loss,
    are_variants_flagged,
    difference_limit,
    fresh_power,
    fresh_result,
    fresh_text,
    loses_accuracy,
    net_error_share,
    summed_decisions,
    task_alarm_quantile,
    task_decisions,
    variant_contradiction,
    variant_result,
    variant_text,
    varied_sequence_count,
)
from reference_harness import mini
from reference_harness.data.task_data import Split, TaskData
from reference_harness.embedding.variants import (
    MAKER_OF_KIND,
    REVERSED_KIND,
    VARIANT_KINDS,
    variants_of,
)
from reference_harness.extractors.kmer import KmerExtractor
from reference_harness.formats.rescored import ChangedDecisions, Decisions, LabelledDecisions
from tests.adversary.cheats import (
    CAUGHT,
    KEYS,
    FewShotMemoriser,
    Memoriser,
    MovedTraining,
    first_quarter,
    minhash,
    whole,
    words,
)
from tests.adversary.measure import Case, both_splits, decisions_of, few_shot_indices, mean_drop
from tests.adversary.models import NetworkExtractor, RoundedExtractor, random_convolution

NAMES = ("mini_splice", "mini_histone")
CASES = [
    Case(task_data, both_splits(mini.generate(task, 77)))
    for task in mini.TASKS
    if task.id in NAMES
    for task_data in [mini.generate(task)]
]
NONCE = "0" * 64


TYPICAL = {"whole sequence", "first quarter", "one minhash", "vote of 12-mers"}
"""Keys that are tried for each change; the last is one that variants do not find."""


def found_of(
    extractor: object, cases: Sequence[Case] = CASES, *, few_shot: bool = True
) -> list[Decisions]:
    """Return the decisions on each task, as a document holds them."""
    decisions = [decisions_of(extractor, case, "a test", 160, few_shot=few_shot) for case in cases]
    return [Decisions.model_validate(decision.model_dump()) for decision in decisions]


def flags(decisions: Sequence[Decisions]) -> tuple[bool, bool]:
    """Return whether the variants flag an extractor, and whether the fresh set does."""
    fresh = fresh_result(dict(zip(NAMES, decisions, strict=True)), NONCE)
    assert fresh is not None
    named = dict(zip(NAMES, decisions, strict=True))
    return varied_in(named).memorised, fresh.dropped


def varied_in(decisions_by_task: Mapping[str, Decisions], rows: int = 160) -> VariantResult:
    """Return the result of the variants of some tasks, as an audit of tasks does."""
    decided = {name: task_decisions(member) for name, member in decisions_by_task.items()}
    return variant_result(decided, NONCE, rows, reverse=False)


@pytest.mark.parametrize(
    "key", [key if key in TYPICAL else pytest.param(key, marks=pytest.mark.nightly) for key in KEYS]
)
def test_a_fresh_set_finds_every_key_and_variants_find_those_that_a_small_change_breaks(key):
    cheat = Memoriser([case.data for case in CASES], KEYS[key])
    assert flags(found_of(cheat, few_shot=False)) == (key in CAUGHT, True)


@pytest.mark.parametrize(
    "extractor",
    [
        # In the gate, 2-mers in tests/audit/test_embedding_audit.py.
        pytest.param(KmerExtractor(k=2), id="2-mers", marks=pytest.mark.nightly),
        pytest.param(KmerExtractor(k=3), id="3-mers", marks=pytest.mark.nightly),
        pytest.param(RoundedExtractor(KmerExtractor(k=3)), id="3-mers in bfloat16"),
        pytest.param(NetworkExtractor(random_convolution()), id="a random convolution"),
    ],
)
def test_no_honest_extractor_is_flagged(extractor):
    decisions = found_of(extractor)
    assert flags(decisions) == (False, False)
    few_shot = few_shot_of(dict(zip(NAMES, decisions, strict=True)))
    assert not [gain for gain in gains_over_other_fits(few_shot) if gain.is_flagged]


@given(st.text("ACGTNacgt", min_size=12, max_size=200), st.sampled_from(sorted(MAKER_OF_KIND)))
def test_a_variant_is_another_sequence_nearly_as_long(sequence, kind):
    """Substitutions are as many as promised, crops leave a part, shifts keep the rest."""
    draws = iter(np.random.RandomState(3).random_sample(10_000).tolist())
    made = MAKER_OF_KIND[kind](sequence, lambda: next(draws))
    apart = sum(a != b for a, b in zip(made, sequence, strict=False))
    if kind == "substituted":
        letters = sum(letter.upper() in "ACGT" for letter in sequence)
        most = max(1, min(3, round(0.03 * len(sequence))))
        assert (len(made), apart) == (len(sequence), min(most, letters))
        assert [a.islower() for a in made] == [a.islower() for a in sequence]
    elif kind == "cropped":
        assert made in sequence
        assert len(sequence) - len(made) == max(1, round(0.02 * len(sequence)))
    elif kind == "shifted":
        assert made[:-3] == sequence[3:] or made[3:] == sequence[:-3]
    else:
        assert len(made) == len(sequence)


def test_the_seed_decides_rows_and_variants_and_none_is_published():
    data = mini.load("mini_splice")
    made = variants_of(data, "seed", 30)
    assert made == variants_of(data, "seed", 30)
    assert made != variants_of(data, "another", 30)
    known = {*data.train.sequences, *data.test.sequences}
    assert not known & {variant.sequence for variant in made}
    tested = [variant for variant in made if variant.split == "test"]
    assert [variant.kind for variant in tested] == list(VARIANT_KINDS) * 30
    assert len({variant.row for variant in tested}) == 30
    assert len([variant for variant in made if variant.split == "train"]) == 30
    both = variants_of(data, "seed", 5, reverse=True)
    assert [variant.kind for variant in both if variant.split == "test"] == [
        *VARIANT_KINDS,
        REVERSED_KIND,
    ] * 5
    every = variants_of(data, "seed", 10_000)
    assert len({variant.row for variant in every if variant.split == "test"}) == len(
        data.test.sequences
    )


def test_a_sequence_that_has_no_variant_gets_none():
    """All sequences of one letter are published: no substitution of one is another."""
    split = Split(["A", "C", "G", "T"], np.array([0, 1, 0, 1]))
    variants = variants_of(TaskData("t", split, split), "seed", 4)
    assert {row.kind for row in variants} <= {"shifted"}


def counts(rows: int, worse: int, better: int) -> ChangedDecisions:
    return ChangedDecisions(rows=rows, worse=worse, better=better)


def test_the_limit_is_the_margin_and_the_alarm():
    task_counts = counts(4000, 144, 116)
    assert net_error_share(task_counts) == pytest.approx(0.007)
    assert difference_limit(task_counts, VARIANT_MARGIN) == pytest.approx(
        VARIANT_MARGIN + VARIANT_ALARM_QUANTILE * 260**0.5 / 4000
    )
    assert summed_decisions([task_counts, counts(10, 1, 2)]) == counts(4010, 145, 118)
    assert not are_variants_flagged({"cropped": task_counts}, task_counts)
    assert are_variants_flagged({"cropped": task_counts}, counts(100, 40, 0))
    assert are_variants_flagged({"cropped": task_counts, "shifted": counts(1000, 90, 10)}, None)
    assert not are_variants_flagged({"shifted": counts(0, 0, 0)}, None)
    assert [varied_sequence_count(tasks) for tasks in (1, 13, 100, 1000)] == [4000, 308, 40, 40]


def test_labels_of_one_task_of_many_are_flagged_by_that_task() -> None:
    """All together would hide them; noise of a task is judged more mildly, the more there are."""

    def of_all(known: ChangedDecisions) -> VariantResult:
        parts = {
            f"t{number}": TaskVariantDecisions(
                kinds={"cropped": known if number == 0 else counts(308, 12, 11)},
                training=None,
                others={},
            )
            for number in range(13)
        }
        return variant_result(parts, NONCE, 308, reverse=False)

    known = of_all(counts(308, 90, 10))
    assert not are_variants_flagged(known.kinds, None)
    assert known.memorised
    assert "; t0, cropped D +0.2597 of at most 0.1984" in variant_text(known)
    assert variant_contradiction(known, 308) == ""
    assert not of_all(counts(308, 50, 12)).memorised
    assert [round(task_alarm_quantile(tasks), 2) for tasks in (1, 13, 100)] == [4.0, 4.57, 4.98]


def test_the_fits_of_a_few_shot_regime_count_as_one_of_them():
    first_count, five = counts(4000, 144, 116), counts(20_000, 720, 580)
    assert difference_limit(five, VARIANT_MARGIN, fits=5) == pytest.approx(
        difference_limit(first_count, VARIANT_MARGIN)
    )

    def tested(fits: int) -> FreshTask:
        public, fresh = (
            LabelledDecisions(rows=fits * rows, right=fits * right, MCC=0.0)
            for rows, right in ((1000, 800), (500, 350))
        )
        return FreshTask(public=public, fresh=fresh, fits=fits)

    assert accuracy_loss({"t": tested(5)}) == pytest.approx(
        accuracy_loss({"t": tested(1)}), rel=1e-2
    )


def test_an_honest_extractor_at_its_margin_is_flagged_in_one_audit_of_a_thousand():
    rng = np.random.RandomState(4)
    wrong = 0
    for _ in range(4000):
        worse, better, _ = rng.multinomial(2000, [0.045, 0.025, 0.93])
        wrong += are_variants_flagged({"substituted": counts(2000, int(worse), int(better))}, None)
    assert wrong <= 12


def accuracies(public: float, fresh: float, rows: int) -> dict[str, FreshTask]:
    def tested(share: float, count: int) -> LabelledDecisions:
        return LabelledDecisions(rows=count, right=round(share * count), MCC=2 * share - 1)

    return {
        name: FreshTask(public=tested(public, 1000), fresh=tested(fresh, rows))
        for name in ("a", "b")
    }


def test_a_loss_on_the_fresh_set_has_the_power_that_is_stated():
    assert accuracy_loss(accuracies(0.9, 0.8, 500))[0] == pytest.approx(0.1)
    assert not loses_accuracy(accuracies(0.9, 0.9 - FRESH_MARGIN, 500))
    assert loses_accuracy(accuracies(0.95, 0.75, 200))
    rng = np.random.RandomState(6)
    for loss, rows in ((0.15, 100), (0.2, 50), (0.1, 500)):
        flagged_count = 0
        for _ in range(1000):
            right = rng.binomial(rows, 0.75, 2)
            public = rng.binomial(1000, 0.75 + loss, 2)
            tasks = {
                str(number): FreshTask(
                    public=LabelledDecisions(rows=1000, right=int(whole), MCC=0.0),
                    fresh=LabelledDecisions(rows=rows, right=int(fresh), MCC=0.0),
                )
                for number, (fresh, whole) in enumerate(zip(right, public, strict=True))
            }
            flagged_count += loses_accuracy(tasks)
        assert flagged_count / 1000 == pytest.approx(fresh_power(loss, 2 * rows, 2000), abs=0.06)


def test_what_was_found_is_said_in_one_line():
    kinds = {"cropped": counts(100, 30, 0)}
    decisions = Decisions(
        public=LabelledDecisions(rows=100, right=90, MCC=0.8),
        kinds=kinds,
        training=counts(100, 5, 5),
        fresh=LabelledDecisions(rows=50, right=30, MCC=0.2),
        others={},
        few_shot={},
        varied={},
    )
    assert variant_text(varied_in({"t": decisions}, 100)) == (
        "variants: cropped D +0.3000 of at most 0.2391 (100 sequences); training D +0.0000 of at "
        "most 0.1565 (100 sequences)"
    )
    fresh = fresh_result({"t": decisions}, NONCE)
    assert fresh is not None
    assert fresh_text(fresh) == (
        "fresh set: 50 sequences of 1 task, accuracy -0.3000 (standard error 0.0760) and MCC "
        "-0.6000 beside the public test sequences; more than 0.05 is not explained by chance"
    )
    assert fresh_result({"t": decisions.model_copy(update={"fresh": None})}, NONCE) is None


def by_task(decisions: Sequence[Decisions]) -> dict[str, Decisions]:
    return {case.data.id: decision for case, decision in zip(BINARY, decisions, strict=True)}


BINARY = [
    Case(task_data, both_splits(mini.generate(task, 77)))
    for task in mini.TASKS
    if task.id in {"mini_histone", "mini_promoter", "mini_tf"}
    for task_data in [mini.generate(task)]
]


def test_labels_that_the_probe_of_all_rows_ignores_are_found_by_the_one_that_uses_them():
    """Its scores and decisions are those of an honest model; so said the fresh set, by it alone."""
    probe = "10shot, record"
    extractor = FewShotMemoriser([case.data for case in BINARY], first_quarter, few_shot_indices)
    decisions = found_of(extractor, BINARY, few_shot=False)
    result = varied_in(by_task(decisions))
    fresh = fresh_result(by_task(decisions), NONCE)
    assert fresh is not None
    assert not are_variants_flagged(result.kinds, None)
    assert not loses_accuracy(fresh.tasks)
    assert min(decision.others[probe].public.MCC for decision in decisions) > 0.99
    assert max(decision.public.MCC for decision in decisions) < 0.9
    assert result.memorised
    assert fresh.dropped
    assert f"; {probe}, shifted D +0." in variant_text(result)
    assert f"; by {probe} -0." in fresh_text(fresh)


@pytest.mark.parametrize(
    ("keys", "found_by_variants"),
    [
        (whole, True),
        pytest.param(first_quarter, False, marks=pytest.mark.nightly),  # found as minhash is
        (minhash, False),
    ],
)
def test_moved_training_rows_are_found_whatever_the_key(keys, found_by_variants):
    """By draws of test rows; by variants, if these break the key; and by a fresh set."""
    cheat = MovedTraining([case.data for case in BINARY], keys)
    decisions = found_of(cheat, BINARY)
    assert mean_drop(decisions) > 0.2, "what it gains in MCC"
    result = varied_in(by_task(decisions))
    assert not are_variants_flagged(result.kinds, None)
    assert result.memorised == found_by_variants
    support = few_shot_of(by_task(decisions))
    assert not flagged_gains(support, OTHERS), "every draw is of moved rows"
    assert bool(flagged_gains(support, VARIANTS)) == (keys is not minhash)
    regimes = {gain.regime for gain in flagged_gains(support, TESTS) if not gain.task}
    assert regimes == {"1shot", "10shot"}
    fresh = fresh_result(by_task(decisions), NONCE)
    assert fresh is not None
    assert fresh.dropped


def few_shot_of(decisions_by_task: Mapping[str, Decisions]) -> FewShotResult:
    """Return what few-shot probes show of some tasks, as an audit of tasks does."""
    result = few_shot_result(
        {name: member.few_shot for name, member in decisions_by_task.items()},
        {name: member.varied for name, member in decisions_by_task.items()},
    )
    assert result is not None
    return result


@pytest.mark.parametrize(
    "keys", [minhash, *(pytest.param(key, marks=pytest.mark.nightly) for key in (whole, words))]
)
def test_moved_rows_of_few_shot_probes_are_found_by_other_draws_whatever_the_key(keys):
    """Of a key that variants keep, nothing else objects. A vote of words moves other draws, too."""
    cheat = MovedTraining([case.data for case in BINARY], keys, few_shot_indices)
    decisions = found_of(cheat, BINARY)
    few_shot = few_shot_of(by_task(decisions))
    gained = flagged_gains(few_shot, OTHERS)
    regimes = {gain.regime for gain in gained if not gain.task}
    assert regimes == ({"1shot"} if keys is words else {"1shot", "10shot"})
    assert max(gain.gain for gain in gained) > 0.3, "what it gains in MCC"
    if keys is minhash:
        assert not varied_in(by_task(decisions)).memorised
        assert not flagged_gains(few_shot, VARIANTS)
