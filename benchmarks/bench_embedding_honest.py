"""Honest embeddings of an audit by receipt: how many fail, and how often their direction is an
alarm."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import BertConfig, BertModel

from benchmarks.bench_embedding_power import Kept, Table, ruled
from geneb_ci.receipt.column_rule import judge, tolerances
from geneb_ci.receipt.direction import Stratum, direction_test
from geneb_ci.receipt.embeddings import (
    EFFECT,
    LEVEL,
    allowed,
    allowed_pooled,
    allowed_rescued,
)
from geneb_ci.receipt.influence import EmbeddingInfluence, part_statistic
from geneb_ci.receipt.rounding import rounding
from reference_harness import mini
from reference_harness.extractors.huggingface import HuggingFaceExtractor
from reference_harness.receipt.rounding import rounded
from tests.harness.extractors.models import VOCABULARY, tokenizer

TASKS, TASK_ROWS = 100, 75  # a whole audit: 45 test and 30 training embeddings in each


WIDTH, HONEST = 128, 2500  # sequences that are embedded in four batchings: 10,000 embeddings
OTHERS = {32: 500, 64: 500, 256: 500, 768: 125}  # the same of other widths, fewer embeddings
BATCHINGS: dict[str, dict[str, Any]] = {
    "file order, 8 embeddings": {"batching": "file"},
    "512 padded tokens": {"token_budget": 512},
    "8,192 padded tokens": {"token_budget": 8192},
    "equal lengths alone": {"batching": "exact"},
}


def bert(folder: Path, width: int = WIDTH) -> Path:
    """Write a random BERT of two layers, with a letter a token."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=width, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=4 * width, max_position_embeddings=512,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    tokenizer(limit=512).save_pretrained(folder)
    return folder


@functools.cache
def sequences(count: int) -> tuple[str, ...]:
    """Return distinct sequences of GENEB-mini, from all of its tasks alike."""
    found: dict[str, None] = {}
    for task in mini.TASKS:
        data = mini.load(task.id)
        found.update(dict.fromkeys([*data.train.sequences, *data.test.sequences]))
    every = max(1, len(found) // count)
    return tuple(found)[::every][:count]


class Compared(NamedTuple):
    """How honest embeddings of one width compare with a receipt."""

    rows: int
    failed: int
    deviation: float
    mismatch: int


def honest(kept: Kept) -> Table:
    """Compare embeddings in four batchings with a receipt that was written in a fifth way."""
    every = tuple(BATCHINGS)
    cases = [
        *((WIDTH, HONEST, (one,)) for one in every),
        *((*one, every) for one in OTHERS.items()),
    ]

    def line(width: int, count: int, names: tuple[str, ...]) -> str:
        found = [compared(width, count, name, kept) for name in names]
        most = max(one.mismatch for one in found)
        return (
            f"| {width} | {names[0] if len(names) == 1 else 'all four'} "
            f"| {sum(one.rows for one in found):,} | {sum(one.failed for one in found)} "
            f"| {max(one.deviation for one in found):.1e} | {most}, {allowed(width)} may |"
        )

    return [
        (
            "| columns | batching | embeddings | failed | largest deviation | most coordinates of "
            "an embedding |"
        ),
        ruled(6),
        *(
            kept.line(
                f"honest {width} {count} {' '.join(names)}",
                functools.partial(line, width, count, names),
            )
            for width, count, names in cases
        ),
    ]


def compared(width: int, count: int, batching: str, kept: Kept) -> Compared:
    """Embed sequences in one batching, and compare them with those of the default one, rounded."""
    place, given = str(bert(kept.folder / f"bert-{width}", width)), list(sequences(count))
    written = kept.rows(
        f"bert {width} {count}", lambda: HuggingFaceExtractor(place).extract_embeddings(given)
    )
    again = HuggingFaceExtractor(place, **BATCHINGS[batching]).extract_embeddings(given)
    receipt = rounded([written])
    limits = tolerances(again, receipt.scale_log2)
    found = judge(receipt.values, again, limits, receipt.scale_log2)
    failed = int(found.failed(width).sum())
    return Compared(len(again), failed, float(found.deviation.max()), int(found.mismatch.max()))


class NoisyAudit(NamedTuple):
    """Result of an audit whose embeddings deviate as those of other hardware do."""

    rows: int
    failed: int
    deviation: float
    """The largest, in tolerances."""
    mismatch: int
    effect: float

    @property
    def differs(self) -> bool:
        """Whether the audit differs, if what fails passes in float64."""
        return (
            self.failed > allowed_rescued(self.rows)
            or self.mismatch > allowed_pooled(self.rows, WIDTH)
            or abs(self.effect) > EFFECT
        )


def noisy_audit(seed: int, tasks: int = 13, count: int = 40) -> NoisyAudit:
    """Return an audit of made-up embeddings that deviate by up to 8e-7 of their root mean square.

    Columns vary by 0.08 to 1 of their size. Three of a task are another: one of mean 3,001 and
    spread 0.065, which deviates by 1.8e-4; one that is 0 in nine embeddings of ten; one that is
    constant."""
    draw = np.random.default_rng(seed)
    failed = mismatch = 0
    deviation, parts = 0.0, []
    for _ in range(tasks):
        share, centre = draw.uniform(0.08, 1.0), draw.normal(size=WIDTH)
        spread = share * draw.lognormal(0, 0.3, WIDTH)
        rows = centre + spread * draw.normal(size=(count, WIDTH))
        size = np.sqrt((rows * rows).mean())
        written, again = (
            rows + size * part * np.clip(2e-7 * draw.normal(size=rows.shape), -8e-7, 8e-7)
            for part in (1.0, 0.5)
        )
        massive = 3001 + 0.065 * draw.normal(size=count)
        fires = np.where(draw.random(count) < 0.1, draw.random(count) * size, 0)
        for values in (written, again):
            values[:, 0] = massive + 0.9e-4 * draw.uniform(-1, 1, count)
            values[:, 1] = np.where(fires > 0, fires + 1e-7 * size * draw.normal(size=count), 0)
            values[:, 2] = 1
        receipt, rerun = rounded([written.astype(np.float32)]), again.astype(np.float32)
        limits = tolerances(rerun, receipt.scale_log2)
        compared_rows = judge(receipt.values, rerun, limits, receipt.scale_log2)
        bad = compared_rows.failed(WIDTH)
        failed += int(bad.sum())
        mismatch += int(compared_rows.mismatch[~bad].sum())
        deviation = max(deviation, float(compared_rows.deviation.max()))
        difference = receipt.values.astype(np.float64) - rounding(rerun, receipt.scale_log2)
        weights = draw.normal(size=WIDTH) / spread / WIDTH
        labels = draw.random(count) < draw.uniform(0.1, 0.9)
        residual = 1 / (1 + np.exp(-((rows - centre) @ weights))) - labels
        parts.append(EmbeddingInfluence("test", residual * (difference @ weights)))
    effect = part_statistic(parts).statistic
    return NoisyAudit(tasks * count, failed, deviation, mismatch, effect)


def audits_of_noise(audits: int, kept: Kept) -> Table:
    """Count the audits that differ of honest embeddings, as `noisy_audit` makes them."""

    def line() -> str:
        results = [noisy_audit(seed) for seed in range(audits)]
        coordinates = WIDTH * results[0].rows
        rates = [result.mismatch / coordinates for result in results]
        return (
            f"| {audits:,} | {sum(result.rows for result in results):,} "
            f"| {sum(result.differs for result in results)} "
            f"| {sum(result.failed for result in results)} "
            f"| {max(result.deviation for result in results):.2f} "
            f"| {np.mean(rates):.2%}, {max(rates):.2%} "
            f"| {max(abs(result.effect) for result in results):.1f} |"
        )

    return [
        (
            "| audits | embeddings | differ | embeddings failed | deviation | round otherwise | "
            "effect |"
        ),
        ruled(7),
        kept.line(f"noise {audits}", line),
    ]


def false_alarms(audits: int, kept: Kept) -> Table:
    """Count significant directions of whole audits whose embeddings deviate as float32 does.

    Few coordinates differ at all: a Poisson number of 1.2 an embedding, as of 768 columns, each
    worth a weight of either sign; in the third case all embeddings deviate alike, as with other
    hardware."""
    cases = {"one coordinate in 640": 1.2, "one in 64": 12.0, "all alike, and one in 640": 1.2}

    def line(number: int, name: str, rate: float) -> str:
        draw = np.random.default_rng(number)
        alarms = sum(
            direction_test(_honest_strata(draw, rate, alike=number == 2), f"{seed:064x}").p < LEVEL
            for seed in range(audits)
        )
        return f"| {name} | {audits:,} | {alarms} | {alarms / audits:.4f} |"

    return [
        "| honest deviations | audits | false alarms | share |",
        ruled(4),
        *(
            kept.line(
                f"alarms {name} {audits}",
                functools.partial(line, number, name, rate),
            )
            for number, (name, rate) in enumerate(cases.items())
        ),
    ]


def _honest_strata(draw: np.random.Generator, rate: float, *, alike: bool) -> Iterator[Stratum]:
    share = draw.uniform(0.05, 0.5, TASKS)
    moved = draw.poisson(rate, (TASKS, TASK_ROWS))
    values = draw.normal(size=moved.shape) * np.sqrt(moved) * draw.lognormal(size=(TASKS, 1))
    if alike:
        values += draw.normal(size=(TASKS, 1))
    upper = draw.random(moved.shape) < share[:, None]
    for task in range(TASKS):
        yield Stratum(str(task), values[task], upper[task])
