"""Measure how often honest embeddings fail an audit by receipt, one by one or by direction."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from transformers import BertConfig, BertModel

from benchmarks.bench_embedding_power import Kept, Table, ruled
from geneb_ci.receipt.column_rule import distance, is_own_noise, judge, tolerances
from geneb_ci.receipt.direction import Stratum, direction_test
from geneb_ci.receipt.embeddings import (
    EFFECT,
    LEVEL,
    mismatch_limit,
    pooled_mismatch_limit,
    rescued_limit,
)
from geneb_ci.receipt.influence import EmbeddingInfluence, part_statistic
from geneb_ci.receipt.rounding import Wide, receipt_values
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
            f"| {max(one.deviation for one in found):.1e} | {most}, {mismatch_limit(width)} may |"
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


Kind = Literal["float32", "bfloat16", "nondeterministic"]
KINDS: dict[Kind, str] = {
    "float32": "float32",
    "bfloat16": "bfloat16 in a model that declares float32",
    "nondeterministic": "nondeterministic, by 1e-8 to 1e-2",
}
"""Kind of embeddings to its words. Those of a model that declares bfloat16 are weak before any is
drawn."""
REPEATED = 5
"""Embeddings of a task that are repeated twice, in other batches: 65 of an audit."""


class NoisyAudit(NamedTuple):
    """The result of an audit whose embeddings deviate as those of other hardware do."""

    rows: int
    failed: int
    deviation: float
    """The largest deviation, in tolerances."""
    mismatch: int
    effect: float
    apart: float
    """Largest distance between repeats of a sequence, in tolerances."""

    @property
    def verdict(self) -> str:
        """Return the verdict of an audit in which embeddings that fail pass in float64."""
        is_same = self.failed <= rescued_limit(
            self.rows
        ) and self.mismatch <= pooled_mismatch_limit(self.rows, WIDTH)
        if not is_same and is_own_noise(self.deviation, self.apart):
            return "weak"
        return "agrees" if is_same and abs(self.effect) <= EFFECT else "differs"


def bfloat16(values: Wide) -> Wide:
    """Return the nearest values of bfloat16."""
    return torch.from_numpy(values).to(torch.bfloat16).to(torch.float64).numpy()


class NoisyTask:
    """Made-up embeddings of a task, which each run gives with its own noise.

    Columns vary by 0.08 to 1 of their size. Three are another: one of mean 3,001 and spread 0.065,
    which deviates by 1.8e-4; one that is 0 in nine embeddings of ten; one that is constant. In
    float32 the others deviate by up to 8e-7 of their root mean square. A model in bfloat16 gives
    values of bfloat16 alone, of which a share is the next one in another run. A nondeterministic
    one has a noise of one size.
    """

    def __init__(self, draw: np.random.Generator, kind: Kind, noise: float, count: int) -> None:
        self.draw, self.kind, self.noise, self.count = draw, kind, noise, count
        share, self.centre = draw.uniform(0.08, 1.0), draw.normal(size=WIDTH)
        self.spread = share * draw.lognormal(0, 0.3, WIDTH)
        self.rows = self.centre + self.spread * draw.normal(size=(count, WIDTH))
        self.size = np.sqrt((self.rows * self.rows).mean())
        self.massive = 3001 + 0.065 * draw.normal(size=count)
        self.fires = np.where(draw.random(count) < 0.1, draw.random(count) * self.size, 0)

    def run(self, part: float) -> npt.NDArray[np.float32]:
        """Return the embeddings of one run, with a share `part` of the deviation of float32."""
        deviation = np.clip(2e-7 * self.draw.normal(size=self.rows.shape), -8e-7, 8e-7)
        of_massive = 0.9e-4 * self.draw.uniform(-1, 1, self.count)
        if self.kind == "nondeterministic":
            part, deviation = 1.0, self.noise * self.draw.normal(size=self.rows.shape)
            of_massive = 3001 * self.noise * self.draw.normal(size=self.count)
        values: Wide = self.rows + self.size * part * deviation
        values[:, 0] = self.massive + of_massive
        fired = self.fires + 1e-7 * self.size * self.draw.normal(size=self.count)
        values[:, 1] = np.where(self.fires > 0, fired, 0)
        values[:, 2] = 1
        if self.kind == "bfloat16":
            is_next = self.draw.random(values.shape) < self.noise
            steps = self.draw.choice([-1, 1], values.shape) * is_next
            values = bfloat16(bfloat16(values) * (1 + steps * 2.0**-8))
        return values.astype(np.float32)

    def influence(self, difference: Wide) -> EmbeddingInfluence:
        """Return the effect of differences on the loss of a made-up probe."""
        weights = self.draw.normal(size=WIDTH) / self.spread / WIDTH
        labels = self.draw.random(self.count) < self.draw.uniform(0.1, 0.9)
        residual = 1 / (1 + np.exp(-((self.rows - self.centre) @ weights))) - labels
        return EmbeddingInfluence("test", residual * (difference @ weights))


def noisy_audit(seed: int, tasks: int = 13, count: int = 40, kind: Kind = "float32") -> NoisyAudit:
    """Return an audit of made-up embeddings that deviate from one another."""
    draw = np.random.default_rng(seed)
    noise = draw.uniform(0.02, 0.6) if kind == "bfloat16" else 10 ** draw.uniform(-8, -2)
    failed = mismatch = 0
    deviation, apart, parts = 0.0, 0.0, []
    for _ in range(tasks):
        task = NoisyTask(draw, kind, noise, count)
        receipt, rerun = rounded([task.run(1.0)]), task.run(0.5)
        scale = receipt.scale_log2
        limits = tolerances(rerun, scale)
        compared_rows = judge(receipt.values, rerun, limits, scale)
        bad = compared_rows.failed(WIDTH)
        failed += int(bad.sum())
        mismatch += int(compared_rows.mismatch[~bad].sum())
        deviation = max(deviation, float(compared_rows.deviation.max()))
        parts.append(
            task.influence(receipt.values.astype(np.float64) - receipt_values(rerun, scale))
        )
        for repeat in (task.run(0.5), task.run(0.5)):
            pairs = zip(rerun[:REPEATED], repeat, limits, strict=False)
            apart = max(apart, *(distance(*pair, scale) for pair in pairs))
    effect = part_statistic(parts).statistic
    return NoisyAudit(tasks * count, failed, deviation, mismatch, effect, apart)


def audits_of_noise(audits: int, kept: Kept) -> Table:
    """Count the verdicts on honest embeddings, as `noisy_audit` makes them."""
    return [
        (
            "| embeddings | audits | agree | weak | differ | embeddings failed | deviation | "
            "round otherwise | effect |"
        ),
        ruled(9),
        *(
            kept.line(f"noise {kind} {audits}", functools.partial(line_of_noise, kind, audits))
            for kind in KINDS
        ),
    ]


def line_of_noise(kind: Kind, audits: int) -> str:
    """Return the line of a number of audits of one kind."""
    results = [noisy_audit(seed, kind=kind) for seed in range(audits)]
    verdicts = [result.verdict for result in results]
    counted = [f"{verdicts.count(one):,}" for one in ("agrees", "weak", "differs")]
    coordinates = WIDTH * results[0].rows
    rates = [result.mismatch / coordinates for result in results]
    return (
        f"| {KINDS[kind]} | {audits:,} | {' | '.join(counted)} "
        f"| {sum(result.failed for result in results):,} "
        f"| {max(result.deviation for result in results):.2g} "
        f"| {np.mean(rates):.2%}, {max(rates):.2%} "
        f"| {max(abs(result.effect) for result in results):.1f} |"
    )


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
