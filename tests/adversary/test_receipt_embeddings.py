"""Embeddings of a receipt that are not what the extractor gives: each attack, and what finds it.

Each passes where its defence is switched off. The rerun is a matrix that the test gives; all else
is what an audit does.
"""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from geneb_ci.audit.compare import embedding_outcome, embeddings
from geneb_ci.receipt.column_rule import coordinate_tolerances
from geneb_ci.receipt.direction import Probe
from geneb_ci.receipt.draw import EmbeddingCounts
from geneb_ci.receipt.embeddings import ROOM, TAU
from geneb_ci.receipt.influence import (
    TRAINING,
    DrawnPart,
    StrongestEmbeddings,
    influence_gradients,
    influence_of,
)
from geneb_ci.receipt.rounding import divided_by_scale, receipt_values
from reference_harness.data import benchmark
from reference_harness.probe.logistic import few_shot_indices
from reference_harness.probe.optimum import solve
from reference_harness.receipt.rounding import widened
from tests.receipt import attacks, audited
from tests.receipt.audited import Scored, audit, scored
from tests.receipt.test_attacks import data_of, labels_of
from tests.receipt.test_attacks import honest as convolution

Rows = np.ndarray
TASKS = ("mini_tf", "mini_splice")
SAMPLE = EmbeddingCounts(test=240, training=30, support=120, whole=False)
FEW = 4
"""Coordinates that may round otherwise in an embedding of 128."""
Off = Callable[[pytest.MonkeyPatch], object]


def by_size_of_row(rerun: Rows, scale_log2: int, _unforeseen: Rows) -> Rows:
    """Return the tolerances of records of version 1.0."""
    wide = divided_by_scale(rerun, scale_log2)
    size = np.sqrt(np.mean(wide * wide, axis=1, keepdims=True))
    return np.broadcast_to(TAU * size, wide.shape)


def without_columns(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(audited, "coordinate_tolerances", by_size_of_row)


def without(name: str, value: Any) -> Off:
    return lambda patch: patch.setattr(embedding_outcome, name, value)


def support_of(task: str, shots: int) -> Rows:
    """Return the training embeddings of the few-shot probes."""
    labels, seeds = data_of(task).train.labels, benchmark.mini().protocol.seeds
    return np.unique(np.concatenate([few_shot_indices(labels, shots, seed) for seed in seeds]))


def weights_of(rows: Rows, task: str) -> Rows:
    """Return the weights of the probe on honest embeddings, towards the upper label."""
    train = data_of(task).train.labels
    solved = solve(rows[: len(train)], train)
    weights: Rows = solved.weights[:, -1] - solved.weights[:, 0]
    return weights


def with_constant(task: str, size: float, columns: int) -> Rows:
    """Return honest embeddings beside columns of large values that do not vary."""
    rows = convolution(task)
    return np.hstack([rows, np.full((len(rows), columns), size, dtype=np.float32)])


def with_offset(task: str) -> Rows:
    """Return honest embeddings along whose last columns a fixed vector of large values was
    added."""
    rows = convolution(task).copy()
    rows[:, -16:] += np.linspace(1e5, 1e6, 16, dtype=np.float32)
    return rows


def moved_support(task: str, rows: Rows, size: float) -> Rows:
    """Move the support embeddings of 1shot in the columns that matter most, towards their
    labels."""
    moved, weights = rows.copy(), weights_of(convolution(task), task)
    best = np.argsort(-np.abs(weights[:100]))[:FEW]
    sides = attacks.signs(labels_of(task))
    for row in support_of(task, 1):
        moved[row, best] += np.float32(size) * sides[row] * np.sign(weights[best])
    return moved


def near_support(task: str, rows: Rows) -> Rows:
    """Move every coordinate of the 1shot support embeddings by twelve tolerances, either way."""
    moved, draw = rows.copy(), np.random.default_rng(0)
    for row in support_of(task, 1):
        side = draw.choice([-12, 12], size=rows.shape[1])
        moved[row] += (side * coordinate_tolerances(rows, 0)[row]).astype(np.float32)
    return moved


def neighbours(task: str) -> tuple[Rows, Rows]:
    """Return the float16 values of the first columns of honest embeddings, and the next larger
    ones."""
    half = convolution(task)[:, :FEW].astype(np.float16)
    return half, np.nextafter(half, np.float16(np.inf), dtype=np.float16)


def on_borders(task: str) -> Rows:
    """Return embeddings of an extractor that puts some columns halfway between float16 values."""
    rows, (below, above) = convolution(task).copy(), neighbours(task)
    rows[:, :FEW] = (below.astype(np.float32) + above) / 2
    return rows


def across_borders(task: str, rows: Rows) -> Rows:
    """Round those columns of few-shot support embeddings towards the label."""
    receipt, weights = widened(receipt_values(rows, 0), 0), weights_of(convolution(task), task)
    up = attacks.signs(labels_of(task))[:, None] * np.sign(weights[:FEW])[None, :] > 0
    below, above = neighbours(task)
    support = support_of(task, 10)
    receipt[support, :FEW] = np.where(up, above, below)[support]
    return receipt


def towards_less_loss(task: str, rows: Rows) -> Rows:
    """Round a coordinate of each training embedding otherwise, where it is near a border and
    pays."""
    labels, train = labels_of(task), len(data_of(task).train.labels)
    half = receipt_values(rows, 0)
    solved = solve(widened(half, 0)[:train], labels[:train])
    probe = Probe(solved.weights, solved.intercepts, solved.classes)
    own = DrawnPart(TRAINING, half[:train], half[:train], labels[:train])
    slopes = influence_gradients(own, 0, influence_of(half, 0, train, labels, probe), probe)
    towards = -np.sign(slopes)
    infinite = np.where(towards > 0, np.inf, -np.inf).astype(np.float16)
    other = np.nextafter(half[:train], infinite, dtype=np.float16)
    middle = (half[:train].astype(np.float64) + other) / 2
    near = np.abs(middle - rows[:train]) <= 0.5 * coordinate_tolerances(rows[:train], 0)
    gain = np.where(near, np.abs(slopes) * np.abs(other.astype(np.float64) - half[:train]), 0)
    best = gain.argmax(axis=1)
    rank = gain.max(axis=1).argsort()[::-1]
    for row in rank[: train // 2]:
        if gain[row, best[row]] > 0:
            half[row, best[row]] = other[row, best[row]]
    return widened(half, 0)


class Attack(NamedTuple):
    """An attack, the defence that finds it, and the words of the record."""

    rerun: Callable[[str], Rows]
    receipt: Callable[[str, Rows], Rows]
    off: Off
    words: str
    excuse: bool = False
    """Whether the extractor gives the altered embeddings in float64."""


ATTACKS: dict[str, Attack] = {
    "a constant column of 3e6": Attack(
        functools.partial(with_constant, size=3e6, columns=1),
        functools.partial(moved_support, size=2.0),
        without_columns,
        "not what the extractor gives",
    ),
    "a constant column of 3e5": Attack(
        functools.partial(with_constant, size=3e5, columns=1),
        functools.partial(moved_support, size=0.2),
        without_columns,
        "not what the extractor gives",
    ),
    "an offset along 16 columns": Attack(
        with_offset,
        functools.partial(moved_support, size=2.0),
        without_columns,
        "not what the extractor gives",
    ),
    "float64 excuses embeddings that are far": Attack(
        convolution,
        functools.partial(moved_support, size=2.0),
        lambda patch: (
            patch.setattr(embedding_outcome, "NEAR", np.inf),
            patch.setattr(embedding_outcome, "rescued_limit", lambda rows: rows),
        ),
        "tolerances from the first, 16 are allowed",
        excuse=True,
    ),
    "float64 excuses many embeddings": Attack(
        convolution,
        near_support,
        without("rescued_limit", lambda rows: rows),
        "pass only when they are computed again, alone; ",
        excuse=True,
    ),
    "columns on borders of float16": Attack(
        on_borders,
        across_borders,
        lambda patch: (
            patch.setattr(
                embedding_outcome, "pooled_mismatch_limit", lambda rows, width: rows * width
            ),
            patch.setattr(embedding_outcome, "EFFECT", np.inf),
        ),
        "drawn coordinates round otherwise in embeddings that pass",
    ),
    "training embeddings that pay, within the tolerance": Attack(
        convolution,
        towards_less_loss,
        without("EFFECT", np.inf),
        "what the training embeddings differ by lowers the loss of the test embeddings: ",
    ),
}


class Receipts:
    """Receipts of attacks and of honest extractors, each written and scored once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written: dict[str, Mapping[str, Scored]] = {}

    def of(self, name: str, rows: Callable[[str], Rows]) -> Mapping[str, Scored]:
        """Return the receipts, by task, of an extractor that gives `rows`; they share a name."""
        if name not in self._written:
            folder = self._folder / str(len(self._written))
            self._written[name] = {task: scored(folder, task, rows(task), SAMPLE) for task in TASKS}
        return self._written[name]

    def of_attack(self, name: str) -> Mapping[str, Scored]:
        """Return the receipts of an attack."""
        attack = ATTACKS[name]
        return self.of(name, lambda task: attack.receipt(task, attack.rerun(task)))


@pytest.fixture(scope="module")
def receipts(tmp_path_factory: pytest.TempPathFactory) -> Receipts:
    return Receipts(tmp_path_factory.mktemp("receipts"))


@pytest.mark.parametrize("name", ATTACKS)
def test_each_attack_passes_without_its_defence_and_is_found_by_it(
    name: str, receipts: Receipts, monkeypatch: pytest.MonkeyPatch
) -> None:
    attack = ATTACKS[name]
    written = receipts.of_attack(name)
    reruns = {task: attack.rerun(task) for task in TASKS}
    precise = reruns
    if attack.excuse:  # the extractor gives the altered embeddings in float64
        precise = {task: attack.receipt(task, reruns[task]) for task in TASKS}
    reasons = audit(written, reruns, precise=precise).reasons
    assert attack.words in reasons[0], reasons
    attack.off(monkeypatch)
    assert audit(written, reruns, precise=precise).reasons == []


LARGE_COLUMN = functools.partial(with_constant, size=3e6, columns=1)
HONEST: dict[str, Callable[[str], Rows]] = {
    "a large column": LARGE_COLUMN,
    "an offset": with_offset,
    "on borders": on_borders,
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_rows_of_the_same_extractors_agree(name: str, receipts: Receipts) -> None:
    honest = {task: HONEST[name](task) for task in TASKS}
    result = audit(receipts.of(name, HONEST[name]), honest)
    assert result.reasons == []
    assert max(task.room or 0.0 for task in result.tasks) < ROOM / 10


def test_the_attack_by_a_constant_column_pays(receipts: Receipts) -> None:
    written = receipts.of_attack("a constant column of 3e6")
    honest = receipts.of("a large column", LARGE_COLUMN)
    gains = [written[task].mcc["1shot"] - honest[task].mcc["1shot"] for task in TASKS]
    assert max(gains) > 0.1, gains


POISONED = ("mini_lncrna", "mini_mouse", "mini_tf")
"""Tasks of two classes."""
EACH = 4
"""Altered training embeddings of 360."""


@pytest.mark.nightly  # in the gate, each attack with and without its defence
def test_few_rows_that_move_the_probe_pass_a_draw_and_are_found_by_their_strength(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The altered embeddings are none that the draw has, nor of the support of few-shot probes."""
    honest = {task: convolution(task) for task in POISONED}
    before = {task: scored(tmp_path / "b", task, rows, SAMPLE) for task, rows in honest.items()}

    def altered(task: str) -> Rows:
        labels, train = labels_of(task), len(data_of(task).train.labels)
        drawn = {*before[task].drawn.drawn.rows["training"], *support_of(task, 10).tolist()}
        left = [row for row in range(train) if row not in drawn]
        return attacks.poisoned(honest[task], labels, train, left[: EACH * 9 : 9])

    receipts_of = {task: altered(task) for task in POISONED}

    def audit_outcome(folder: Path) -> tuple[list[str], list[float]]:
        written = {task: scored(folder, task, rows, SAMPLE) for task, rows in receipts_of.items()}
        gains = [written[task].mcc["full"] - before[task].mcc["full"] for task in POISONED]
        return audit(written, honest).reasons, gains

    reasons, gains = audit_outcome(tmp_path / "on")
    assert np.mean(gains) > 0.1
    assert reasons[0].startswith(f"{EACH * len(POISONED)} embeddings of ")
    assert "not what the extractor gives: training embedding" in reasons[0]
    monkeypatch.setattr(embeddings, "strongest_embeddings", lambda *_: StrongestEmbeddings([], []))
    assert audit_outcome(tmp_path / "off")[0] == []


@pytest.mark.nightly  # a forgery that passes: no defence depends on it
def test_few_rows_below_others_that_the_extractor_stretches_pass_unless_drawn(
    tmp_path: Path,
) -> None:
    """As docs/reader/verified.md says: a defence that makes this fail is an improvement."""
    task = "mini_tf"
    labels, train = labels_of(task), len(data_of(task).train.labels)
    honest = convolution(task).copy()
    middle = np.median(honest, axis=0)
    # A rule that knows no sequence, as any layer could have it.
    far = honest[:, 0] > np.quantile(honest[:, 0], 0.92)
    honest[far] = middle + 30 * (honest[far] - middle)
    before = scored(tmp_path / "b", task, honest, SAMPLE)
    again = {*before.drawn.rows, *support_of(task, 10).tolist()}
    altered = [row for row in range(train) if row not in again][: EACH * 9 : 9]
    receipt = attacks.poisoned(honest, labels, train, altered)
    receipt = attacks.below_strongest(receipt, labels, train, altered)
    after = scored(tmp_path / "w", task, receipt, SAMPLE)
    assert after.mcc["full"] - before.mcc["full"] > 0.08
    assert audit({task: after}, {task: honest}).reasons == []
