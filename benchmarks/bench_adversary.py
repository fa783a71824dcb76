"""Measure the largest raise of a score that an audit does not find; print tables for the docs.

    python -m benchmarks.bench_adversary --work FOLDER --write

Cells are measured on real embeddings, GENEB-mini and the six real tasks; 100 tasks are drawn from
them. Measurements are kept in FOLDER.
"""

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.tolerance_sets import MINI, REAL
from geneb_ci.audit.compare import tolerance as rule
from geneb_ci.audit.compare.outcome import METRICS
from geneb_ci.audit.rerun.scoring import read_rescored
from geneb_ci.statistics.metrics import Triple
from reference_harness.data import benchmark, task_folder
from reference_harness.data.task_data import TaskData
from reference_harness.embedding.noise import Noise, jitter
from reference_harness.extractors.kmer import KmerExtractor
from reference_harness.formats.benchmark import Benchmark, Task
from reference_harness.formats.files import write_bytes, write_json
from reference_harness.formats.rescored import Rescored
from reference_harness.formats.submission_terms import Dtype
from reference_harness.rescore.scoring import RescoreRequest, distinct_sequences, rescore
from tests.adversary.forger import WEIGHTS, Cell, best_forgery, bound, pass_rate
from tests.adversary.models import NetworkExtractor, random_convolution
from tests.paths import REAL_TASKS, ROOT

PAGE = ROOT / "docs/research/adversary.md"
BEGIN, END = "<!-- bench forger -->\n", "<!-- /bench forger -->"
SAMPLE_SIZES = (5, 13, 25, 100)
HONEST_AUDITS = 500
"""Number of honest audits of each size."""
SEED = 20_261_122
REAL_TRAIN_MAX = 2_000
"""Training rows kept of a real task, so that its 32 fits on all rows take a minute."""
EXACT_CLAIM = Triple(0.0, 0.0, 0.0)
REGIMES = ("full", "10shot", "1shot")


@dataclass(frozen=True)
class CutSource:
    """A folder of tasks, of each of which `REAL_TRAIN_MAX` training rows are kept."""

    folder: task_folder.Folder
    verified: bool = False

    def available(self) -> set[str]:
        return self.folder.available()

    def load(self, task: Task) -> TaskData:
        task_data = self.folder.load(task)
        return TaskData(
            task_data.id, task_data.train.balanced_subset(REAL_TRAIN_MAX), task_data.test
        )


@dataclass(frozen=True)
class MeasuredExtractor:
    """An extractor on some tasks, at the noise of a dtype."""

    name: str
    tasks: tuple[str, ...]
    dtype: Dtype
    noisy: bool = True
    """Whether noise of the dtype is added to the rerun; in float32 none is added."""

    def benchmark_and_source(self) -> tuple[Benchmark, task_folder.Source]:
        if self.tasks[0] in MINI:
            return benchmark.mini(), task_folder.MiniSource()
        bench = benchmark.geneb()
        return bench, CutSource(task_folder.Folder(REAL_TASKS, bench))

    def rescored(self, work: Path) -> Rescored:
        """Return the scores of the embeddings and of their noisy copies, read if already saved."""
        suffix = "" if self.noisy else "-exact"
        folder = work / f"{self.name}-{len(self.tasks)}-{self.dtype}{suffix}".replace(" ", "_")
        output = folder / "rescored.json"
        if not output.exists():
            started = time.perf_counter()
            folder.mkdir(parents=True, exist_ok=True)
            bench, source = self.benchmark_and_source()
            sequences = distinct_sequences(bench, source, self.tasks)
            write_bytes(
                folder / "sequences.txt", *(f"{sequence}\n".encode() for sequence in sequences)
            )
            embeddings = np.asarray(self._extractor().extract_embeddings(sequences))
            if self.noisy and self.dtype != "float32":
                embeddings = jitter(embeddings, Noise(self.dtype, SEED, 0), "the auditor's machine")
            np.save(folder / "rows.npy", embeddings)
            request = RescoreRequest(
                benchmark=bench,
                source=source,
                tasks=self.tasks,
                sequences=folder / "sequences.txt",
                embeddings=folder / "rows.npy",
                dtype=self.dtype,
                seed=SEED,
                workers=1,
            )
            write_json(output, rescore(request).model_dump())
            print(f"{folder.name}: {time.perf_counter() - started:.0f} s", flush=True)
        return read_rescored(output)

    def _extractor(self) -> KmerExtractor | NetworkExtractor:
        return KmerExtractor() if "mers" in self.name else NetworkExtractor(random_convolution())


EXACT_POOL, EXACT_RERUN_POOL = "bfloat16, no noise", "bfloat16, no noise in the rerun"
"""Names of pools whose reruns have no noise, under the tolerances of bfloat16. In the first, honest
claims have no noise either, and the forger knows them; in the second they have noise."""
POOLS: dict[str, tuple[MeasuredExtractor, ...]] = {
    "float32": (
        MeasuredExtractor("4-mers", REAL, "float32"),
        MeasuredExtractor("convolution", REAL, "float32"),
    ),
    "bfloat16": (
        MeasuredExtractor("4-mers", REAL, "bfloat16"),
        MeasuredExtractor("convolution", REAL, "bfloat16"),
    ),
    EXACT_POOL: (
        MeasuredExtractor("4-mers", REAL, "bfloat16", noisy=False),
        MeasuredExtractor("convolution", REAL, "bfloat16", noisy=False),
    ),
    EXACT_RERUN_POOL: (
        MeasuredExtractor("4-mers", REAL, "bfloat16", noisy=False),
        MeasuredExtractor("convolution", REAL, "bfloat16", noisy=False),
    ),
    "float32, mini": (
        MeasuredExtractor("4-mers", MINI, "float32"),
        MeasuredExtractor("convolution", MINI, "float32"),
    ),
}


def cells(rescored: Rescored, regime: str) -> Iterator[Cell]:
    """Yield the cell of every task in one regime, with the tolerance that an audit computes."""
    alarm_rate = rule.alarm_rate_per_comparison(len(METRICS) * len(REGIMES) * len(rescored.tasks))
    for task in rescored.tasks.values():
        regime_scores = task.regimes[regime]
        is_few_shot = regime in rescored.few_shot_k
        base_scores = regime_scores.base.per_seed
        measured = rule.CellWithCopies(
            base_scores,
            regime_scores.base.confusion,
            regime_scores.plain,
            regime_scores.stressed,
            regime_scores.halts,
            not is_few_shot,
        )
        tolerance = rule.tolerance(measured, alarm_rate, EXACT_CLAIM)
        assert tolerance.honest is not None
        assert tolerance.honest.centre is not None
        yield Cell(
            tolerance.MCC,
            tolerance.honest.deviation.MCC,
            tolerance.honest.step.MCC,
            tolerance.honest.centre.MCC,
            honest_claims(measured, tolerance.honest.centre.MCC),
        )


def honest_claims(measured: rule.CellWithCopies, centre: float) -> tuple[float, ...]:
    """Return the scores that honest contributors may claim.

    They are those of the plain copies, spread as claims are from the centre. If all plain copies
    are equal, they are the stressed ones, with as many claims at the centre as make them rare.
    """
    base_mean = np.mean(measured.scores_by_seed.MCC)
    plain, stressed = (
        [float(np.mean(copy.per_seed.MCC) - base_mean) for copy in copies]
        for copies in (measured.plain, measured.stressed)
    )
    plain_variance = np.var(plain, ddof=1)
    if plain_variance:
        spread_ratio = math.sqrt(
            rule.claim_variance(plain, stressed) / plain_variance / (1 + 1 / len(plain))
        )
        return tuple(centre + spread_ratio * (shift - centre) for shift in plain)
    zero_count = round(len(stressed) * rule.STRESS / rule.GROWTH) - len(stressed)
    return (*stressed, *[centre] * max(zero_count, 1))


def tables(work: Path) -> list[str]:
    lines = [
        "| noise | regime | tolerance | deviation | honest flagged | "
        + " | ".join(f"{k} drawn" for k in SAMPLE_SIZES) + " |",
        "|---|---|---:|---:|---:|" + "---:|" * len(SAMPLE_SIZES),
    ]  # fmt: skip
    for name, extractors in POOLS.items():
        rescored_members = [member.rescored(work) for member in extractors]
        for regime in REGIMES:
            pool = [cell for member in rescored_members for cell in cells(member, regime)]
            if name == EXACT_POOL:
                pool = [cell._replace(shifts=(0.0,)) for cell in pool]
            lines.append(table_row(name, regime, pool))
            print(lines[-1], flush=True)
    return lines


def table_row(name: str, regime: str, pool: Sequence[Cell]) -> str:
    """Return the table's row of a regime: tolerances, honest audits flagged, best forgeries."""
    forgeries = [best_forgery(pool, drawn) for drawn in SAMPLE_SIZES]
    forgery_texts = [
        f"{forgery.raised:.4f} / {bound(pool, drawn):.4f} ({forgery.within:.4f}, "
        f"{forgery.elsewhere})"
        for forgery, drawn in zip(forgeries, SAMPLE_SIZES, strict=True)
    ]
    medians = [
        float(np.median([getattr(cell, figure) for cell in pool]))
        for figure in ("tolerance", "deviation")
    ]
    pass_rates = [
        pass_rate(pool, drawn, 0.0, WEIGHTS["alike"], SEED, HONEST_AUDITS)[0]
        for drawn in SAMPLE_SIZES
    ]
    return (
        f"| {name} | {regime} | {medians[0]:.4f} | {medians[1]:.4f} "
        f"| {100 * (1 - sum(pass_rates) / len(pass_rates)):.2f} % | {' | '.join(forgery_texts)} |"
    )


def main() -> None:
    """Measure, print, and with --write keep the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=Path, required=True, help="folder of what was computed")
    parser.add_argument("--write", action="store_true", help="put the tables into the docs")
    options = parser.parse_args()
    table = "\n".join(tables(options.work)) + "\n"
    if options.write:
        before, after_begin = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(before + BEGIN + table + END + after_begin.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
