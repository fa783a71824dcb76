"""Measure the largest raise that an audit by receipt does not find, and its bounds, for the docs.

    OPENBLAS_CORETYPE=Haswell OMP_NUM_THREADS=1 python -m benchmarks.bench_receipt_forger --write

Within the tolerances: tasks of two classes of GENEB-mini and of the real ones at hand, of which
2,000 training embeddings are kept. Embeddings altered at will: the published rows.
"""

import argparse
import functools
import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bench_adversary import CutSource
from benchmarks.bench_embedding_power import published
from benchmarks.tolerance_sets import GUE, MINI
from geneb_ci.receipt.draw import SampleSizes
from reference_harness import benchmark, data, probe
from reference_harness.data import MiniSource, Source
from reference_harness.extractors.kmer import KmerExtractor
from reference_harness.formats.benchmark import Benchmark
from reference_harness.tasks import TaskData
from tests.adversary import receipt_forger as forger
from tests.adversary.forger import TASKS
from tests.adversary.levers import best_division
from tests.adversary.models import NetworkExtractor, random_convolution
from tests.adversary.test_receipt_embeddings import (
    ATTACKS,
    Attack,
    moved_support,
    with_constant,
    with_offset,
)
from tests.adversary.test_receipt_embeddings import TASKS as LEVER_TASKS
from tests.adversary.test_receipt_embeddings import (
    receipts as receipts_of,
)
from tests.paths import REAL_TASKS, ROOT
from tests.receipt.audited import MINI as MINI_BENCHMARK
from tests.receipt.audited import Scored, audit, scored
from tests.receipt.test_attacks import honest as convolution

PAGE = ROOT / "docs/research/adversary.md"
BEGIN, END = "<!-- bench receipt forger -->\n", "<!-- /bench receipt forger -->"
REAL = tuple(GUE + name for name in ("mouse_3", "prom_core_tata"))
REGIMES = ("full", "10shot", "1shot")
SHARES = (1.0, 0.1, 0.03)
"""Shares of the embeddings of a part that the forger alters within the tolerances."""
PRACTICE = 5
"""Number of practice tasks of two classes that are used."""
SHOTS, SEEDS = 10, 5
DRAWS = 2
"""Audits of each forgery; one that does not find it is enough."""
SAMPLE = SampleSizes(test=240, training=30, support=120)
EXTRACTORS: dict[str, Callable[[], Any]] = {
    "4-mers": KmerExtractor,
    "random convolution": lambda: NetworkExtractor(random_convolution()),
}


class Place(NamedTuple):
    """Tasks of two classes, and their source."""

    name: str
    benchmark: Benchmark
    source: Source
    tasks: Mapping[str, TaskData]


def places() -> Iterator[Place]:
    """Yield the practice tasks, and the real ones if they are on this machine."""
    mini = benchmark.mini()
    loaded = {name: MiniSource().load(mini.by_id[name]) for name in MINI}
    two = [name for name, one in loaded.items() if len(np.unique(one.train.labels)) == 2]
    tasks = {name: loaded[name] for name in two[:PRACTICE]}
    yield Place("GENEB-mini", MINI_BENCHMARK, MiniSource(), tasks)
    if REAL_TASKS.is_dir():
        geneb = benchmark.geneb()
        source = CutSource(data.Folder(REAL_TASKS, geneb), verified=True)
        yield Place(
            "real tasks", geneb, source, {name: source.load(geneb.by_id[name]) for name in REAL}
        )


class Forged(NamedTuple):
    """The gain of a forgery within the tolerances, in the mean of some tasks, by regime."""

    gains: dict[str, float]
    is_found: bool
    """Whether every audit of it finds it."""


def forged(place: Place, rows: Mapping[str, forger.Rows], share: float, folder: Path) -> Forged:
    """Return what a forgery of a share of the embeddings gains, and whether it is found."""

    def receipts(which: Mapping[str, forger.Rows], seed: str, name: str) -> dict[str, Scored]:
        return {
            task: scored(
                folder / name, task, values, SAMPLE,
                seed=seed, source=place.source, benchmark=place.benchmark,
            )
            for task, values in which.items()
        }  # fmt: skip

    altered = {
        task: forger.within(values, place.tasks[task], share, None) for task, values in rows.items()
    }
    found, gains = [], {}
    for number in range(DRAWS):
        seed = f"{number:064x}"
        written = receipts(altered, seed, f"altered-{share}")
        found.append(bool(audit(written, rows, seed).reasons))
        if not number:
            honest = receipts(rows, seed, "honest")
            gains = {
                regime: float(
                    np.mean([written[t].mcc[regime] - honest[t].mcc[regime] for t in rows])
                )
                for regime in REGIMES
            }
    return Forged(gains, all(found))


def within_table() -> Iterator[str]:
    """Yield the table of forgeries within the tolerances."""
    regimes = ", ".join(REGIMES)
    yield f"| {regimes} | tasks | bound | forger, defences off | forger, undetected |"
    yield "|---|---:|---:|---:|---:|"
    for place in places():
        protocol = place.benchmark.protocol
        for name, make in EXTRACTORS.items():
            rows = {
                task: np.asarray(
                    make().extract_embeddings([*one.train.sequences, *one.test.sequences]),
                    dtype=np.float32,
                )
                for task, one in place.tasks.items()
            }
            with tempfile.TemporaryDirectory() as folder:
                results = [forged(place, rows, share, Path(folder)) for share in SHARES]
            bounds, best, missed = [], [], []
            for regime in REGIMES:
                shares = [
                    forger.bound_within(
                        rows[task], one, protocol.few_shot_k, protocol.seeds, regime
                    )
                    for task, one in place.tasks.items()
                ]
                gains = [one.gains[regime] for one in results if not one.is_found]
                bounds.append(f"{np.mean(shares):.4f}")
                best.append(f"{max(one.gains[regime] for one in results):+.4f}")
                missed.append(f"{max([0.0, *gains]):+.4f}")
            columns = " | ".join(", ".join(column) for column in (bounds, best, missed))
            yield f"| {name}, {place.name} | {len(rows)} | {columns} |"


SIZES = (2.0, 0.2, 0.02, 2e-3, 2e-4)
"""Distances by which embeddings are moved, as feature values."""


def levers() -> Iterator[tuple[str, Sequence[Attack]]]:
    """Yield each lever that widens what passes, with the attacks that try it at every size."""
    off = Attack(convolution, lambda _, rows: rows, lambda _: None, "")
    for name, rerun, excuse in (
        ("a constant column of 3e6", functools.partial(with_constant, size=3e6, columns=1), False),
        ("an offset along 16 columns", with_offset, False),
        ("float64 reruns that give the receipt", convolution, True),
    ):
        moved = [functools.partial(moved_support, size=size) for size in SIZES]
        yield (
            f"support embeddings moved, {name}",
            [off._replace(rerun=rerun, receipt=one, excuse=excuse) for one in moved],
        )
    yield "columns on borders of float16", [ATTACKS["columns on borders of float16"]]
    yield (
        "training embeddings rounded so that it pays",
        [ATTACKS["training embeddings that pay, within the tolerance"]],
    )


def levers_table() -> Iterator[str]:
    """Yield the table of levers: what each gains at its best size, and what of it is not found."""
    yield f"| {', '.join(REGIMES)} | forger, defences off | forger, undetected |"
    yield "|---|---:|---:|"
    for name, attacks in levers():
        best, missed = dict.fromkeys(REGIMES, 0.0), dict.fromkeys(REGIMES, 0.0)
        reruns = {task: attacks[0].rerun(task) for task in LEVER_TASKS}
        with tempfile.TemporaryDirectory() as folder:
            honest = {
                task: scored(Path(folder) / "honest", task, rows, SAMPLE)
                for task, rows in reruns.items()
            }
            for number, attack in enumerate(attacks):
                written, precise = receipts_of(Path(folder) / str(number), attack)
                is_found = bool(audit(written, reruns, precise=precise).reasons)
                for regime in REGIMES:
                    gain = float(
                        np.mean([written[t].mcc[regime] - honest[t].mcc[regime] for t in reruns])
                    )
                    best[regime] = max(best[regime], gain)
                    missed[regime] = max(missed[regime], 0.0 if is_found else gain)
        columns = [", ".join(f"{one[r]:+.4f}" for r in REGIMES) for one in (best, missed)]
        yield f"| {name} | {' | '.join(columns)} |"


def at_will_table() -> Iterator[str]:
    """Yield the table of embeddings altered at will, in the hope that none is drawn."""
    cells = [row.macro for row in published()]
    tests = [forger.by_test_rows(one) for one in cells]
    both = best_division(
        [
            forger.altered_options(
                functools.partial(forger.by_test_rows, cells[int(np.argmax(tests))]), "test"
            ),
            forger.altered_options(functools.partial(forger.by_training_rows, TASKS), "training"),
        ]
    ).raised
    training = forger.by_training_rows(TASKS)
    yield "| altered at will, missed by the standard draw with 5 % | raise of the macro MCC |"
    yield "|---|---:|"
    yield (
        f"| test embeddings, full regime: bound, worst / median of {len(cells)} rows "
        f"| {max(tests):.4f} / {np.median(tests):.4f} |"
    )
    yield f"| training embeddings: gained, no bound | {training:.4f} |"
    yield f"| the best division of both, worst row: no bound | {both:.4f} |"
    planted_rows = list(planted())
    for name, chosen in (
        ("that may be among the strongest", [gain.at_will for gain in planted_rows]),
        ("that are not among the strongest", [gain.missed for gain in planted_rows]),
    ):
        raised = forger.by_support_rows(float(np.mean(chosen)), TASKS, SHOTS, SEEDS)
        yield (
            f"| support embeddings of 10shot {name}, {np.mean(chosen):.3f} of MCC of one seed: "
            f"gained, no bound | {raised:.4f} |"
        )


def planted() -> Iterator[forger.PlantedGain]:
    """Yield what one support embedding of 10shot, altered at will, gains in each task and
    extractor."""
    for place in places():
        protocol = place.benchmark.protocol
        for make in EXTRACTORS.values():
            for one in place.tasks.values():
                sequences = [*one.train.sequences, *one.test.sequences]
                rows = np.asarray(make().extract_embeddings(sequences), dtype=np.float32)
                fits = probe.fit_indices(
                    one.train.labels, "10shot", list(protocol.seeds), dict(protocol.few_shot_k)
                )
                yield from (
                    forger.planted_gain(rows, one, fit, int(fit[0]))
                    for fit in fits
                    if fit is not None
                )


def main() -> None:
    """Measure, print, and with --write keep the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="put the tables into the docs")
    options = parser.parse_args()
    lines = []
    for line in itertools.chain(at_will_table(), [""], within_table(), [""], levers_table()):
        print(line, flush=True)
        lines.append(line)
    if options.write:
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        table = "\n".join(lines) + "\n"
        PAGE.write_text(before + BEGIN + table + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
