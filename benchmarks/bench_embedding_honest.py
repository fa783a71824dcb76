"""Measure how often honest embeddings fail an audit by receipt, one by one or by direction."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from transformers import BertConfig, BertModel

from benchmarks.bench_embedding_power import MeasurementStore, Table, alignment_row
from geneb_ci.receipt.column_rule import (
    compare_with_rerun,
    coordinate_tolerances,
    distance_in_tolerances,
    is_own_noise,
)
from geneb_ci.receipt.direction import Stratum, direction_test
from geneb_ci.receipt.embeddings import (
    EFFECT,
    LEVEL,
    mismatch_limit,
    pooled_mismatch_limit,
    rescued_limit,
)
from geneb_ci.receipt.influence import EmbeddingInfluence, part_statistic
from geneb_ci.receipt.rounding import Float64Array, receipt_values
from reference_harness import mini
from reference_harness.extractors.huggingface import HuggingFaceExtractor
from reference_harness.receipt.rounding import rounded
from tests.harness.extractors.models import VOCABULARY, tokenizer

TASKS, TASK_EMBEDDINGS = 100, 75  # a whole audit: 45 test and 30 training embeddings in each


WIDTH, HONEST_SEQUENCES = (
    128,
    2500,
)  # sequences that are embedded in four batchings: 10,000 embeddings
OTHER_WIDTHS = {32: 500, 64: 500, 256: 500, 768: 125}  # the same of other widths, fewer embeddings
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
    distinct_sequences: dict[str, None] = {}
    for task in mini.TASKS:
        data = mini.load(task.id)
        distinct_sequences.update(dict.fromkeys([*data.train.sequences, *data.test.sequences]))
    step = max(1, len(distinct_sequences) // count)
    return tuple(distinct_sequences)[::step][:count]


class ReceiptComparison(NamedTuple):
    """Differences of honest embeddings of one width from a receipt of the same sequences."""

    rows: int
    failed: int
    deviation: float
    mismatch: int


def honest_table(store: MeasurementStore) -> Table:
    """Return the table of embeddings in four batchings, compared with a receipt of a fifth."""
    all_batchings = tuple(BATCHINGS)
    cases = [
        *((WIDTH, HONEST_SEQUENCES, (batching,)) for batching in all_batchings),
        *((*batching, all_batchings) for batching in OTHER_WIDTHS.items()),
    ]

    def line(width: int, count: int, names: tuple[str, ...]) -> str:
        comparisons = [receipt_comparison(width, count, name, store) for name in names]
        mismatch_max = max(batching.mismatch for batching in comparisons)
        return (
            f"| {width} | {names[0] if len(names) == 1 else 'all four'} "
            f"| {sum(batching.rows for batching in comparisons):,} | "
            f"{sum(batching.failed for batching in comparisons)} "
            f"| {max(batching.deviation for batching in comparisons):.1e} | {mismatch_max}, "
            f"{mismatch_limit(width)} may |"
        )

    return [
        (
            "| columns | batching | embeddings | failed | largest deviation | most coordinates of "
            "an embedding |"
        ),
        alignment_row(6),
        *(
            store.line(
                f"honest {width} {count} {' '.join(names)}",
                functools.partial(line, width, count, names),
            )
            for width, count, names in cases
        ),
    ]


def receipt_comparison(
    width: int, count: int, batching: str, store: MeasurementStore
) -> ReceiptComparison:
    """Embed sequences in one batching, and compare them with those of the default one, rounded."""
    model_folder, texts = str(bert(store.folder / f"bert-{width}", width)), list(sequences(count))
    embeddings = store.rows(
        f"bert {width} {count}",
        lambda: HuggingFaceExtractor(model_folder).extract_embeddings(texts),
    )
    other_embeddings = HuggingFaceExtractor(model_folder, **BATCHINGS[batching]).extract_embeddings(
        texts
    )
    receipt = rounded([embeddings])
    limits = coordinate_tolerances(other_embeddings, receipt.scale_log2)
    judgement = compare_with_rerun(receipt.values, other_embeddings, limits, receipt.scale_log2)
    failed = int(judgement.failed(width).sum())
    return ReceiptComparison(
        len(other_embeddings),
        failed,
        float(judgement.deviation.max()),
        int(judgement.mismatch.max()),
    )


NoiseKind = Literal["float32", "bfloat16", "nondeterministic"]
NOISE_KINDS: dict[NoiseKind, str] = {
    "float32": "float32",
    "bfloat16": "bfloat16 in a model that declares float32",
    "nondeterministic": "nondeterministic, by 1e-8 to 1e-2",
}
"""Description of each kind of embeddings. A model that declares bfloat16 is not among them: its
audit is weak before any embedding is drawn."""
REPEATS = 5
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


def rounded_to_bfloat16(values: Float64Array) -> Float64Array:
    """Return the nearest values of bfloat16."""
    return torch.from_numpy(values).to(torch.bfloat16).to(torch.float64).numpy()


class NoisyTask:
    """Made-up embeddings of a task, to which each run adds noise of its own.

    Columns vary by 0.08 to 1 of their size. Three are another: one of mean 3,001 and spread 0.065,
    which deviates by 1.8e-4; one that is 0 in nine embeddings of ten; one that is constant. In
    float32 the others deviate by up to 8e-7 of their root mean square. A model in bfloat16 gives
    values of bfloat16 alone, of which a share is the next one in another run. A nondeterministic
    one has a noise of one size.
    """

    def __init__(
        self, draw: np.random.Generator, kind: NoiseKind, noise: float, count: int
    ) -> None:
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
        values: Float64Array = self.rows + self.size * part * deviation
        values[:, 0] = self.massive + of_massive
        fired = self.fires + 1e-7 * self.size * self.draw.normal(size=self.count)
        values[:, 1] = np.where(self.fires > 0, fired, 0)
        values[:, 2] = 1
        if self.kind == "bfloat16":
            is_next = self.draw.random(values.shape) < self.noise
            steps = self.draw.choice([-1, 1], values.shape) * is_next
            values = rounded_to_bfloat16(rounded_to_bfloat16(values) * (1 + steps * 2.0**-8))
        return values.astype(np.float32)

    def influence(self, difference: Float64Array) -> EmbeddingInfluence:
        """Return the effect of differences on the loss of a made-up probe."""
        weights = self.draw.normal(size=WIDTH) / self.spread / WIDTH
        labels = self.draw.random(self.count) < self.draw.uniform(0.1, 0.9)
        residual = 1 / (1 + np.exp(-((self.rows - self.centre) @ weights))) - labels
        return EmbeddingInfluence("test", residual * (difference @ weights))


def noisy_audit(
    seed: int, tasks: int = 13, count: int = 40, kind: NoiseKind = "float32"
) -> NoisyAudit:
    """Return an audit of made-up embeddings that deviate from one another."""
    draw = np.random.default_rng(seed)
    noise = draw.uniform(0.02, 0.6) if kind == "bfloat16" else 10 ** draw.uniform(-8, -2)
    failed = mismatch = 0
    deviation, apart, parts = 0.0, 0.0, []
    for _ in range(tasks):
        task = NoisyTask(draw, kind, noise, count)
        receipt, rerun = rounded([task.run(1.0)]), task.run(0.5)
        scale = receipt.scale_log2
        limits = coordinate_tolerances(rerun, scale)
        compared_rows = compare_with_rerun(receipt.values, rerun, limits, scale)
        bad = compared_rows.failed(WIDTH)
        failed += int(bad.sum())
        mismatch += int(compared_rows.mismatch[~bad].sum())
        deviation = max(deviation, float(compared_rows.deviation.max()))
        parts.append(
            task.influence(receipt.values.astype(np.float64) - receipt_values(rerun, scale))
        )
        for repeat in (task.run(0.5), task.run(0.5)):
            pairs = zip(rerun[:REPEATS], repeat, limits, strict=False)
            apart = max(apart, *(distance_in_tolerances(*pair, scale) for pair in pairs))
    effect = part_statistic(parts).statistic
    return NoisyAudit(tasks * count, failed, deviation, mismatch, effect, apart)


def noise_table(audits: int, store: MeasurementStore) -> Table:
    """Count the verdicts on honest embeddings, as `noisy_audit` makes them."""
    return [
        (
            "| embeddings | audits | agree | weak | differ | embeddings failed | deviation | "
            "round otherwise | effect |"
        ),
        alignment_row(9),
        *(
            store.line(f"noise {kind} {audits}", functools.partial(noise_line, kind, audits))
            for kind in NOISE_KINDS
        ),
    ]


def noise_line(kind: NoiseKind, audits: int) -> str:
    """Return the table's line for a number of audits of one kind of embeddings."""
    results = [noisy_audit(seed, kind=kind) for seed in range(audits)]
    verdicts = [result.verdict for result in results]
    verdict_counts = [f"{verdicts.count(verdict):,}" for verdict in ("agrees", "weak", "differs")]
    coordinates = WIDTH * results[0].rows
    rates = [result.mismatch / coordinates for result in results]
    return (
        f"| {NOISE_KINDS[kind]} | {audits:,} | {' | '.join(verdict_counts)} "
        f"| {sum(result.failed for result in results):,} "
        f"| {max(result.deviation for result in results):.2g} "
        f"| {np.mean(rates):.2%}, {max(rates):.2%} "
        f"| {max(abs(result.effect) for result in results):.1f} |"
    )


def false_alarm_table(audits: int, store: MeasurementStore) -> Table:
    """Count significant directions of whole audits whose embeddings deviate as float32 does.

    Few coordinates differ at all: a Poisson number of 1.2 an embedding, as of 768 columns, each
    worth a weight of either sign; in the third case all embeddings deviate alike, as with other
    hardware."""
    rates = {"one coordinate in 640": 1.2, "one in 64": 12.0, "all alike, and one in 640": 1.2}

    def line(case_number: int, name: str, rate: float) -> str:
        draw = np.random.default_rng(case_number)
        alarms = sum(
            direction_test(_honest_strata(draw, rate, alike=case_number == 2), f"{seed:064x}").p
            < LEVEL
            for seed in range(audits)
        )
        return f"| {name} | {audits:,} | {alarms} | {alarms / audits:.4f} |"

    return [
        "| honest deviations | audits | false alarms | share |",
        alignment_row(4),
        *(
            store.line(
                f"alarms {name} {audits}",
                functools.partial(line, case_number, name, rate),
            )
            for case_number, (name, rate) in enumerate(rates.items())
        ),
    ]


def _honest_strata(draw: np.random.Generator, rate: float, *, alike: bool) -> Iterator[Stratum]:
    share = draw.uniform(0.05, 0.5, TASKS)
    change_counts = draw.poisson(rate, (TASKS, TASK_EMBEDDINGS))
    values = (
        draw.normal(size=change_counts.shape)
        * np.sqrt(change_counts)
        * draw.lognormal(size=(TASKS, 1))
    )
    if alike:
        values += draw.normal(size=(TASKS, 1))
    upper = draw.random(change_counts.shape) < share[:, None]
    for task in range(TASKS):
        yield Stratum(str(task), values[task], upper[task])
