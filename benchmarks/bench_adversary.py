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
from reference_harness import benchmark, data
from reference_harness.extractors.kmer import KmerExtractor
from reference_harness.formats.benchmark import Benchmark, Task
from reference_harness.formats.files import write_bytes, write_json
from reference_harness.formats.rescored import Rescored
from reference_harness.formats.submission_terms import Dtype
from reference_harness.noise import Noise, jitter
from reference_harness.rescore import RescoreRequest, distinct, rescore
from reference_harness.tasks import TaskData
from tests.adversary.forger import WEIGHTS, Cell, best_forgery, bound, pass_rate
from tests.adversary.models import NetworkExtractor, random_convolution
from tests.paths import REAL_TASKS, ROOT

PAGE = ROOT / "docs/research/adversary.md"
BEGIN, END = "<!-- bench forger -->\n", "<!-- /bench forger -->"
DRAWN = (5, 13, 25, 100)
HONEST = 500
"""Number of honest audits of each size."""
SEED = 20_261_122
REAL_TRAIN_MAX = 2_000
"""Training rows kept of a real task, so that its 32 fits on all rows take a minute."""
NO_WIDTH = Triple(0.0, 0.0, 0.0)
REGIMES = ("full", "10shot", "1shot")


@dataclass(frozen=True)
class CutSource:
    """A folder of tasks, cut to some training rows."""

    folder: data.Folder
    verified: bool = False

    def available(self) -> set[str]:
        return self.folder.available()

    def load(self, task: Task) -> TaskData:
        one = self.folder.load(task)
        return TaskData(one.id, one.train.head(REAL_TRAIN_MAX), one.test)


@dataclass(frozen=True)
class Measured:
    """An extractor on some tasks, at the noise of a dtype."""

    name: str
    tasks: tuple[str, ...]
    dtype: Dtype
    noisy: bool = True
    """Whether the rerun has the noise of the dtype, as a claim has; in float32 no noise is
    added."""

    def place(self) -> tuple[Benchmark, data.Source]:
        if self.tasks[0] in MINI:
            return benchmark.mini(), data.MiniSource()
        bench = benchmark.geneb()
        return bench, CutSource(data.Folder(REAL_TASKS, bench))

    def rescored(self, work: Path) -> Rescored:
        """Return the scores with their copies, from the folder if it has them."""
        exact = "" if self.noisy else "-exact"
        folder = work / f"{self.name}-{len(self.tasks)}-{self.dtype}{exact}".replace(" ", "_")
        output = folder / "rescored.json"
        if not output.exists():
            started = time.perf_counter()
            folder.mkdir(parents=True, exist_ok=True)
            bench, source = self.place()
            sequences = distinct(bench, source, self.tasks)
            write_bytes(folder / "sequences.txt", *(f"{one}\n".encode() for one in sequences))
            rows = np.asarray(self._extractor().extract_embeddings(sequences))
            if self.noisy and self.dtype != "float32":
                rows = jitter(rows, Noise(self.dtype, SEED, 0), "the auditor's machine")
            np.save(folder / "rows.npy", rows)
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


EXACT, LUCKY = "bfloat16, no noise", "bfloat16, no noise in the rerun"
"""Reruns that have none, under the tolerances of bfloat16. Raises over what the code gives there,
which the forger knows; and over claims that do have the noise, which scores lower."""
POOLS: dict[str, tuple[Measured, ...]] = {
    "float32": (
        Measured("4-mers", REAL, "float32"),
        Measured("convolution", REAL, "float32"),
    ),
    "bfloat16": (
        Measured("4-mers", REAL, "bfloat16"),
        Measured("convolution", REAL, "bfloat16"),
    ),
    EXACT: (
        Measured("4-mers", REAL, "bfloat16", noisy=False),
        Measured("convolution", REAL, "bfloat16", noisy=False),
    ),
    LUCKY: (
        Measured("4-mers", REAL, "bfloat16", noisy=False),
        Measured("convolution", REAL, "bfloat16", noisy=False),
    ),
    "float32, mini": (
        Measured("4-mers", MINI, "float32"),
        Measured("convolution", MINI, "float32"),
    ),
}


def cells(found: Rescored, regime: str) -> Iterator[Cell]:
    """Yield the record's cell of every task, as `compare` measures it."""
    alarm_rate = rule.alarm_of_one(len(METRICS) * len(REGIMES) * len(found.tasks))
    for task in found.tasks.values():
        one = task.regimes[regime]
        few = regime in found.few_shot_k
        base = one.base.per_seed
        measured = rule.MeasuredScore(
            base, one.base.confusion, one.plain, one.stressed, one.halts, not few
        )
        allowed = rule.tolerance(measured, alarm_rate, NO_WIDTH)
        assert allowed.honest is not None
        assert allowed.honest.centre is not None
        yield Cell(
            allowed.MCC,
            allowed.honest.deviation.MCC,
            allowed.honest.step.MCC,
            allowed.honest.centre.MCC,
            claims(measured, allowed.honest.centre.MCC),
        )


def claims(measured: rule.MeasuredScore, centre: float) -> tuple[float, ...]:
    """Return honest claims: plain copies, as far apart as sqrt(2) times the noise makes them.

    If all plain copies are equal, stressed ones are used, as rarely as they occur.
    """
    middle = np.mean(measured.base.MCC)
    plain, stressed = (
        [float(np.mean(copy.per_seed.MCC) - middle) for copy in copies]
        for copies in (measured.plain, measured.stressed)
    )
    own = np.var(plain, ddof=1)
    if own:
        wider = math.sqrt(rule.claim_variance(plain, stressed) / own / (1 + 1 / len(plain)))
        return tuple(centre + wider * (one - centre) for one in plain)
    rare = round(len(stressed) * rule.STRESS / rule.GROWTH) - len(stressed)
    return (*stressed, *[centre] * max(rare, 1))


def tables(work: Path) -> list[str]:
    lines = [
        "| noise | regime | tolerance | deviation | honest flagged | "
        + " | ".join(f"{k} drawn" for k in DRAWN) + " |",
        "|---|---|---:|---:|---:|" + "---:|" * len(DRAWN),
    ]  # fmt: skip
    for name, members in POOLS.items():
        found = [one.rescored(work) for one in members]
        for regime in REGIMES:
            pool = [cell for one in found for cell in cells(one, regime)]
            if name == EXACT:
                pool = [cell._replace(shifts=(0.0,)) for cell in pool]
            lines.append(line(name, regime, pool))
            print(lines[-1], flush=True)
    return lines


def line(name: str, regime: str, pool: Sequence[Cell]) -> str:
    """Return the row of a regime: the raises that its cells allow, and the best forgeries."""
    best = [best_forgery(pool, drawn) for drawn in DRAWN]
    shown = [
        f"{one.raised:.4f} / {bound(pool, drawn):.4f} ({one.within:.4f}, {one.elsewhere})"
        for one, drawn in zip(best, DRAWN, strict=True)
    ]
    middle = [
        float(np.median([getattr(cell, which) for cell in pool]))
        for which in ("tolerance", "deviation")
    ]
    honest = [pass_rate(pool, drawn, 0.0, WEIGHTS["alike"], SEED, HONEST)[0] for drawn in DRAWN]
    return (
        f"| {name} | {regime} | {middle[0]:.4f} | {middle[1]:.4f} "
        f"| {100 * (1 - sum(honest) / len(honest)):.2f} % | {' | '.join(shown)} |"
    )


def main() -> None:
    """Measure, print, and with --write keep the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=Path, required=True, help="folder of what was computed")
    parser.add_argument("--write", action="store_true", help="put the tables into the docs")
    options = parser.parse_args()
    table = "\n".join(tables(options.work)) + "\n"
    if options.write:
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(before + BEGIN + table + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
