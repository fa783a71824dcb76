"""Influence of deviations on the loss of the test embeddings: against refits, chance, and
alterations."""

import numpy as np
import pytest

from geneb_ci.receipt.direction import Labels, Probe
from geneb_ci.receipt.embeddings import EFFECT, STRONGEST, pooled_mismatch_limit
from geneb_ci.receipt.influence import (
    FEATURE_MAX,
    TEST,
    TRAINING,
    DrawnPart,
    EmbeddingInfluence,
    influence_gradients,
    influence_of,
    influence_on_loss,
    largest_loss_reduction,
    part_statistic,
    probabilities_and_residuals,
    strongest_embeddings,
    too_large_reason,
)
from geneb_ci.receipt.rounding import Float64Array
from reference_harness.probe.optimum import SolvedProbe, solve

TRAIN, WIDTH = 200, 12


def example(classes: int) -> tuple[np.ndarray, Labels]:
    """Return (360, 12) embeddings, some along a constant, and labels that follow from them."""
    draw = np.random.default_rng(classes)
    rows = (draw.normal(size=(TRAIN + 160, WIDTH)) + 3).astype(np.float16)
    decision = (rows.astype(np.float64) - 3) @ draw.normal(size=(WIDTH, classes))
    return rows, (decision + draw.gumbel(size=decision.shape)).argmax(axis=1)


def probe_of(rows: np.ndarray, labels: Labels) -> tuple[SolvedProbe, Probe]:
    solved = solve(rows[:TRAIN], labels[:TRAIN])
    return solved, Probe(solved.weights, solved.intercepts, solved.classes)


def loss(solved: SolvedProbe, test: Float64Array, labels: Labels) -> float:
    decision = test @ solved.weights + solved.intercepts
    probabilities, _ = probabilities_and_residuals(decision, labels, solved.classes)
    return float(-np.log(probabilities[np.arange(len(labels)), labels]).mean())


@pytest.mark.parametrize("classes", [2, 3])
def test_it_is_what_a_refit_shows(classes: int) -> None:
    rows, labels = example(classes)
    solved, probe = probe_of(rows.astype(np.float32), labels)
    influence = influence_of(rows, 0, TRAIN, labels, probe)
    wide, draw = rows.astype(np.float64), np.random.default_rng(0)
    before = loss(solved, wide[TRAIN:], labels[TRAIN:])
    for part, row in ((TRAINING, 3), (TRAINING, 7), (TEST, TRAIN + 3)):
        own = DrawnPart(part, rows[[row]], rows[[row]], labels[[row]])
        expected = influence_gradients(own, 0, influence, probe)[0]
        step = draw.normal(size=WIDTH) * 1e-3
        moved = wide.copy()
        moved[row] += step
        again, _ = probe_of(moved, labels)
        change = loss(again, moved[TRAIN:], labels[TRAIN:]) - before
        assert change == pytest.approx(float(expected @ step), rel=0.03)


def mixed(classes: int, width: int = 100) -> tuple[np.ndarray, Labels]:
    """Return embeddings whose columns are mixed from parts of sizes 300 to 0.1, and labels."""
    draw = np.random.default_rng(classes)
    parts = draw.normal(size=(TRAIN + 160, width))
    decision = parts @ draw.normal(size=(width, classes)) / 2
    turned, _ = np.linalg.qr(draw.normal(size=(width, width)))
    rows = (parts * np.geomspace(300, 0.1, width) @ turned).astype(np.float16)
    return rows, (decision + draw.gumbel(size=decision.shape)).argmax(axis=1)


@pytest.mark.parametrize("classes", [2, 3])
def test_an_extractor_that_mixes_its_columns_hides_no_influence(classes: int) -> None:
    """A short search names others as the strongest: beside H^-1 of the gradient, by all of H."""
    rows, labels = mixed(classes)
    _, probe = probe_of(rows.astype(np.float32), labels)
    result, short = (
        influence_of(rows, 0, TRAIN, labels, probe, by_steps=by_steps) for by_steps in (False, True)
    )
    features = np.hstack([rows.astype(np.float64) - result.centre, np.ones((len(rows), 1))])
    decision = features[:, :-1] @ probe.weights + probe.intercepts + result.centre @ probe.weights
    chances, residual = probabilities_and_residuals(decision, labels, probe.classes)
    gradient = features[TRAIN:].T @ residual[TRAIN:] / (len(rows) - TRAIN)
    h = np.vstack([result.weights, result.intercepts])
    moved = features[:TRAIN] @ h
    bent = chances[:TRAIN] * (moved - (chances[:TRAIN] * moved).sum(axis=1, keepdims=True))
    product = features[:TRAIN].T @ bent + np.vstack([result.weights, 0 * result.intercepts])
    free = slice(int(classes == 2), None)
    assert product[:, free] == pytest.approx(gradient[:, free], abs=1e-4 * np.abs(gradient).max())
    by_short, strongest = (
        set(strongest_embeddings(rows[:TRAIN], 0, labels[:TRAIN], own, probe).rows)
        for own in (short, result)
    )
    assert len(strongest - by_short) > STRONGEST // 5


def test_a_scale_changes_the_features_and_nothing_else() -> None:
    rows, labels = example(2)
    _, probe = probe_of(np.ldexp(rows.astype(np.float32), 3), labels)
    by_scale = influence_of(rows, 3, TRAIN, labels, probe)
    _, small = probe_of(rows.astype(np.float32), labels)
    plain = influence_of(np.ldexp(rows, 3), 0, TRAIN, labels, probe)
    assert by_scale.weights == pytest.approx(plain.weights, rel=1e-6)
    assert not np.allclose(by_scale.weights, influence_of(rows, 0, TRAIN, labels, small).weights)


def test_features_too_large_for_float32_are_named_and_the_largest_have_an_influence() -> None:
    rows, labels = example(2)
    scale = int(np.log2(FEATURE_MAX / np.abs(rows.astype(np.float64)).max()))
    assert too_large_reason(rows, scale) == ""
    # Nothing is sure at this size: no probability is 0 or 1.
    weights = np.ldexp(np.random.default_rng(0).standard_normal((rows.shape[1], 2)), -scale)
    probe = Probe(weights, np.zeros(2), np.array([0, 1]))
    influence = influence_of(rows, scale, TRAIN, labels, probe)
    assert np.isfinite(influence.weights).all()
    assert influence.weights.any()
    assert "expected at most 1.1e+15" in too_large_reason(rows, scale + 1)


@pytest.mark.parametrize("classes", [2, 3])
def test_training_rows_that_lower_the_loss_are_found_and_noise_is_not(classes: int) -> None:
    rows, labels = example(classes)
    _, probe = probe_of(rows.astype(np.float32), labels)
    influence = influence_of(rows, 0, TRAIN, labels, probe)
    own, draw = slice(0, 60), np.random.default_rng(1)
    slopes = influence_gradients(
        DrawnPart(TRAINING, rows[own], rows[own], labels[own]), 0, influence, probe
    )
    step = np.spacing(rows[own])
    for direction, least, most in (
        (-np.sign(slopes), -99.0, -EFFECT),
        (np.sign(slopes), EFFECT, 99.0),
        (draw.choice([-1, 0, 1], size=slopes.shape), -EFFECT, EFFECT),
    ):
        committed = rows[own] + (direction * step).astype(np.float16)
        part = DrawnPart(TRAINING, committed, rows[own], labels[own])
        (statistic,) = [part_statistic([influence_on_loss(part, 0, influence, probe)])]
        assert least <= statistic.statistic <= most
        assert statistic.rows == 60


def test_what_tolerances_permit_is_what_the_best_alteration_within_them_does() -> None:
    """Every value lies halfway between two of float16, so that each may be either."""
    rows, labels = example(2)
    _, probe = probe_of(rows.astype(np.float32), labels)
    influence = influence_of(rows, 0, TRAIN, labels, probe)
    own = DrawnPart(TRAINING, rows[:TRAIN], rows[:TRAIN], labels[:TRAIN])
    slopes = influence_gradients(own, 0, influence, probe)
    above = np.nextafter(rows[:TRAIN], np.float16(np.inf), dtype=np.float16)
    halfway = (rows[:TRAIN].astype(np.float64) + above) / 2
    tight = np.full(halfway.shape, 1e-9)
    room = largest_loss_reduction(own, halfway, tight, slopes, 0, TRAIN)
    gains = np.abs(slopes * (above.astype(np.float64) - rows[:TRAIN]))
    most = pooled_mismatch_limit(*gains.shape)
    assert room == pytest.approx(np.sort(gains, axis=None)[-most:].sum())
    assert largest_loss_reduction(own, halfway, tight, slopes, 0, 3 * TRAIN) == pytest.approx(
        3 * room
    )
    assert (
        largest_loss_reduction(own, rows[:TRAIN].astype(np.float64), tight, slopes, 0, TRAIN) == 0
    )
    nothing = DrawnPart(TRAINING, rows[:0], rows[:0], labels[:0])
    assert largest_loss_reduction(nothing, halfway[:0], tight[:0], slopes[:0], 0, TRAIN) == 0


def test_a_row_that_is_no_number_and_one_that_does_not_differ_have_no_influence() -> None:
    rows, labels = example(2)
    _, probe = probe_of(rows.astype(np.float32), labels)
    influence = influence_of(rows, 0, TRAIN, labels, probe)
    part = DrawnPart(TRAINING, rows[:3], rows[:3] + np.float16(0.25), labels[:3])
    part.rounded[1] = rows[1]
    part.rounded[2, 4] = np.inf
    values = influence_on_loss(part, 0, influence, probe).influences
    assert (values != 0).tolist() == [True, False, False]


@pytest.mark.nightly  # a simulation
def test_chance_reaches_the_limit_in_no_audit_of_a_thousand() -> None:
    """Of few embeddings and many, of sizes that differ by orders of magnitude."""
    draw = np.random.default_rng(2)
    largest = []
    for rows in (3, 30, 300):
        for _ in range(1000):
            sizes = draw.lognormal(sigma=2, size=(4, rows)) * draw.choice([-1, 0, 1], (4, rows))
            parts = [EmbeddingInfluence(TEST, values) for values in sizes]
            largest.append(abs(part_statistic(parts).statistic))
    assert max(largest) < EFFECT
    assert np.std(largest[-1000:]) > 0.5
    assert part_statistic([]).statistic == 0


@pytest.mark.parametrize("classes", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_the_strongest_rows_are_those_whose_removal_changes_the_loss_most(classes: int) -> None:
    rows, labels = example(classes)
    rows[5] *= 20
    solved, probe = probe_of(rows.astype(np.float32), labels)
    influence = influence_of(rows, 0, TRAIN, labels, probe)
    strongest = strongest_embeddings(rows[:TRAIN], 0, labels[:TRAIN], influence, probe)
    assert strongest.by_distance[0] == 5
    assert len(strongest.by_influence) == len(strongest.by_distance) == 2 * STRONGEST
    test = rows[TRAIN:].astype(np.float64)
    before, changes = loss(solved, test, labels[TRAIN:]), []
    for row in range(TRAIN):
        others = np.delete(np.arange(TRAIN), row)
        again = solve(rows[others].astype(np.float32), labels[others])
        changes.append(abs(loss(again, test, labels[TRAIN:]) - before))
    most = np.argsort(changes)[::-1][: STRONGEST // 2].tolist()
    assert set(most) <= set(strongest.rows)


def test_another_machine_may_name_rows_that_are_nearly_as_strong() -> None:
    rows, labels = example(2)
    _, probe = probe_of(rows.astype(np.float32), labels)
    influence = influence_of(rows, 0, TRAIN, labels, probe)
    strongest = strongest_embeddings(rows[:TRAIN], 0, labels[:TRAIN], influence, probe)
    own, first = set(strongest.rows), strongest.by_influence[0]
    assert strongest.allows(strongest.rows)
    (next_one,) = [row for row in strongest.by_influence[STRONGEST:] if row not in own][:1]
    assert strongest.allows([*own, next_one])
    assert not strongest.allows([row for row in own if row != first])
    weak = set(range(TRAIN)) - {*strongest.by_influence, *strongest.by_distance}
    assert not strongest.allows([*own, min(weak)])
