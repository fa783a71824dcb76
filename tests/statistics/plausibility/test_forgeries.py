"""Constructed forgeries, each against the public rows; every warning that it gets."""

import random

import pytest

from geneb_ci.render.formats import finding_sentence
from tests.statistics.plausibility.conftest import Judge, changed, public, rules_of

OTHER = "nucleotide-transformer-2.5b-multi-species"


def test_a_sound_row_under_test(judge: Judge) -> None:
    assert judge(public("GROVER")) == ()


def test_copied_with_noise(judge: Judge) -> None:
    noise = random.Random(7)
    copy = changed(public("GROVER", "brand-new"), lambda _r, _t, x: x + noise.gauss(0, 1e-4))
    (finding,) = judge(copy)
    assert finding.rule == "near-copy"
    assert finding.score == 8.3
    assert finding.message == (
        '300 of 300 scores are within 0.001 of those of "GROVER" (0 are equal)'
    )
    assert finding.expected == "below 12 %, as of any two different models"


@pytest.mark.parametrize("digits", [3, 4])
def test_copied_and_rounded(judge: Judge, digits: int) -> None:
    findings = judge(changed(public("GROVER", "x"), lambda _r, _t, x: round(x, digits)))
    assert [f.score for f in findings if f.rule == "near-copy"] == [8.3]
    assert rules_of(findings) == {"near-copy", "round-numbers"}, "F1 kept its digits"


def test_a_fifth_copied(judge: Judge) -> None:
    """Sixty cells of one row among those of another."""
    source, drawn = public(OTHER)["results"], random.Random(3)
    mixed = changed(
        public("GROVER"), lambda r, t, x: source[r][t]["MCC"] if drawn.random() < 0.2 else x
    )
    copies = [finding for finding in judge(mixed) if finding.rule == "near-copy"]
    assert [OTHER in finding.message for finding in copies] == [True]


def test_identical_rows_are_left_to_their_own_rule(judge: Judge) -> None:
    assert "near-copy" not in rules_of(judge(public("GROVER", "brand-new")))


def test_a_constant_gain(judge: Judge) -> None:
    gained = changed(public("GROVER", "better"), lambda _r, _t, x: x + 0.03)
    findings = judge(gained)
    affine = [finding for finding in findings if finding.rule == "uniform-gain"]
    assert [finding.pointer for finding in affine] == [
        "/results/full",
        "/results/10shot",
        "/results/1shot",
    ]
    assert affine[0].message.endswith(
        'that of "GROVER" +0.0300, with residuals of 0.0000 (root mean square)'
    )
    assert {finding.score for finding in affine} == {10.0}


def test_scaled_by_a_factor(judge: Judge) -> None:
    findings = judge(changed(public("GROVER", "better"), lambda _r, _t, x: x * 1.02))
    message = (
        'every score is 1.0200 x that of "GROVER" +0.0000, with residuals of 0.0000 '
        "(root mean square)"
    )
    assert message in {finding.message for finding in findings}


def test_better_than_every_row(judge: Judge) -> None:
    top = changed(public("GENERator-eukaryote-3b-base"), lambda _r, _t, x: x + 0.15)
    assert "uniform-gain" in rules_of(judge(top))


def test_one_cell_raised(judge: Judge) -> None:
    """MCC 0.15 higher in one cell: three cells of five are found, see the docs."""
    task = "deep4mc_A.thaliana_4mC"
    forged = changed(public(OTHER), lambda r, t, x: x + 0.15 if (r, t) == ("full", task) else x)
    (finding,) = judge(forged)
    assert finding.rule == "implausible-cell"
    assert finding.pointer == f"/results/full/{task}/MCC"
    assert finding.score >= 1


def test_one_of_two_twins_raised(judge: Judge) -> None:
    task = "leannmlindsey_GUE_emp_H3K9ac"
    forged = changed(public("GROVER"), lambda r, t, x: x + 0.12 if (r, t) == ("full", task) else x)
    findings = judge(forged)
    assert "nested-tasks" in rules_of(findings)
    (finding,) = (f for f in findings if f.rule == "nested-tasks")
    assert "InstaDeepAI_nucleotide_transformer_downstream_tasks_H3K9ac" in finding.pointer


def test_a_part_below_its_union(judge: Judge) -> None:
    task = "leannmlindsey_GUE_prom_core_all"
    forged = changed(public("GROVER"), lambda r, t, x: x + 0.1 if (r, t) == ("full", task) else x)
    assert "nested-tasks" in rules_of(judge(forged))


def test_two_rows_averaged(judge: Judge) -> None:
    second = public(OTHER)["results"]
    mean = changed(public("GROVER", "mean"), lambda r, t, x: (x + second[r][t]["MCC"]) / 2)
    (finding,) = judge(mean)
    assert finding.rule == "blended-rows"
    assert '"GROVER"' in finding.message
    assert OTHER in finding.message


def test_regimes_swapped(judge: Judge) -> None:
    document = public("GROVER")
    results = document["results"]
    results["full"], results["1shot"] = results["1shot"], results["full"]
    findings = judge(document)
    assert [f.pointer for f in findings if f.rule == "regimes-out-of-order"] == [
        "/results/10shot",
        "/results/1shot",
        "/results/1shot",
    ]
    assert "few-shot-above-full" in rules_of(findings)


def test_few_shot_above_full(judge: Judge) -> None:
    task = "leannmlindsey_GUE_human_tf_0"
    document = public("GROVER")
    document["results"]["10shot"][task] = {"MCC": 0.96, "Acc": 0.98, "F1": 0.98}
    assert rules_of(judge(document)) == {"few-shot-above-full", "implausible-cell"}


@pytest.mark.parametrize(
    ("regime", "task", "accuracy", "is_detected"),
    [
        ("full", "leannmlindsey_GUE_mouse_0", 0.5, True),
        ("full", "leannmlindsey_GUE_mouse_0", 0.51, False),
        ("full", "deep4mc_E.coli_4mC", 3101 / 3721, False),
        ("full", "leannmlindsey_GUE_virus_covid", 0.13, True),
    ],
    ids=["one-class", "no-share-of-a-class", "as-in-other-rows", "many-classes"],
)
def test_constant_predictions(
    judge: Judge, regime: str, task: str, accuracy: float, is_detected: bool
) -> None:
    document = public("GROVER")
    document["results"][regime][task] |= {"MCC": 0.0, "Acc": accuracy}
    assert ("constant-predictions" in rules_of(judge(document))) is is_detected


def rounded(digits: int, share: float) -> tuple[str, dict[str, object]]:
    drawn = random.Random(5)
    document = public("GROVER")
    for tasks in document["results"].values():
        for scores in tasks.values():
            for metric in scores:
                if drawn.random() < share:
                    scores[metric] = round(scores[metric], digits)
    return "GROVER", document


@pytest.mark.parametrize(
    ("digits", "share", "is_detected"),
    [(2, 1.0, True), (3, 1.0, False), (4, 1.0, False), (3, 0.05, True), (4, 0.02, True)],
)
def test_round_numbers(judge: Judge, digits: int, share: float, is_detected: bool) -> None:
    _, document = rounded(digits, share)
    assert ("round-numbers" in rules_of(judge(document))) is is_detected


def test_last_digits_five_and_zero(judge: Judge) -> None:
    document = public("GROVER")
    for tasks in document["results"].values():
        for number, scores in enumerate(tasks.values()):
            for metric in scores:
                step = 200 if number % 3 == 0 else 1000
                scores[metric] = round(round(scores[metric] * step) / step, 3)
    (finding,) = (f for f in judge(document) if f.rule == "round-numbers")
    assert "end in 0 or 5 at decimal 3" in finding.message


@pytest.mark.parametrize(
    ("params", "is_detected"),
    [(87_101, True), (87_101_793, False), (8_710_179_300_000, True), (0, False)],
)
def test_size_against_width(judge: Judge, params: int, is_detected: bool) -> None:
    document = public("GROVER")
    document["meta"]["params"] = params
    assert ("size-against-width" in rules_of(judge(document))) is is_detected


def test_scores_are_shown_and_bounded(judge: Judge) -> None:
    document = changed(public("GROVER"), lambda r, _t, x: 1 - x if r == "1shot" else x)
    findings = judge(document)
    assert len(findings) > 10
    assert all(1 <= finding.score <= 10 for finding in findings)
    assert all(
        finding_sentence(finding).endswith(f" (finding score {finding.score:g})")
        for finding in findings
    )
