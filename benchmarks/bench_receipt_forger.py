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
from benchmarks.bench_embedding_power import published_rows
from benchmarks.tolerance_sets import GUE, MINI
from geneb_ci.receipt.draw import EmbeddingCounts
from reference_harness.data import benchmark, task_folder
from reference_harness.data.task_data import TaskData
from reference_harness.data.task_folder import MiniSource, Source
from reference_harness.extractors.kmer import KmerExtractor
from reference_harness.formats.benchmark import Benchmark
from reference_harness.probe import logistic
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
PRACTICE_TASKS = 5
"""Number of practice tasks of two classes that are used."""
SHOTS, SEEDS = 10, 5
DRAWS = 2
"""Audits of each forgery; one that does not find it is enough."""
SAMPLE = EmbeddingCounts(test=240, training=30, support=120, whole=False)
EXTRACTORS: dict[str, Callable[[], Any]] = {
    "4-mers": KmerExtractor,
    "random convolution": lambda: NetworkExtractor(random_convolution()),
}


class TaskSet(NamedTuple):
    """Tasks of two classes, and their source."""

    name: str
    benchmark: Benchmark
    source: Source
    tasks: Mapping[str, TaskData]


def task_sets() -> Iterator[TaskSet]:
    """Yield the practice tasks, and the real ones if they are on this machine."""
    mini = benchmark.mini()
    tasks_by_name = {name: MiniSource().load(mini.by_id[name]) for name in MINI}
    two_class_names = [
        name
        for name, task_data in tasks_by_name.items()
        if len(np.unique(task_data.train.labels)) == 2
    ]
    tasks = {name: tasks_by_name[name] for name in two_class_names[:PRACTICE_TASKS]}
    yield TaskSet("GENEB-mini", MINI_BENCHMARK, MiniSource(), tasks)
    if REAL_TASKS.is_dir():
        geneb = benchmark.geneb()
        source = CutSource(task_folder.Folder(REAL_TASKS, geneb), verified=True)
        yield TaskSet(
            "real tasks", geneb, source, {name: source.load(geneb.by_id[name]) for name in REAL}
        )


class ForgeryResult(NamedTuple):
    """The gain of a forgery within the tolerances, in the mean of some tasks, by regime."""

    gains: dict[str, float]
    is_found: bool
    """Whether every audit of it finds it."""


def forgery_result(
    task_set: TaskSet, rows: Mapping[str, forger.Rows], share: float, folder: Path
) -> ForgeryResult:
    """Return what a forgery of a share of the embeddings gains, and whether it is found."""

    def receipts(
        rows_by_task: Mapping[str, forger.Rows], seed: str, name: str
    ) -> dict[str, Scored]:
        return {
            task: scored(
                folder / name, task, values, SAMPLE,
                seed=seed, source=task_set.source, benchmark=task_set.benchmark,
            )
            for task, values in rows_by_task.items()
        }  # fmt: skip

    altered = {
        task: forger.within(values, task_set.tasks[task], share, None)
        for task, values in rows.items()
    }
    is_found_by_draw, gains = [], {}
    for number in range(DRAWS):
        seed = f"{number:064x}"
        altered_receipts = receipts(altered, seed, f"altered-{share}")
        is_found_by_draw.append(bool(audit(altered_receipts, rows, seed).reasons))
        if not number:
            honest_receipts = receipts(rows, seed, "honest")
            gains = {
                regime: float(
                    np.mean(
                        [
                            altered_receipts[t].mcc[regime] - honest_receipts[t].mcc[regime]
                            for t in rows
                        ]
                    )
                )
                for regime in REGIMES
            }
    return ForgeryResult(gains, all(is_found_by_draw))


def within_table() -> Iterator[str]:
    """Yield the table of forgeries within the tolerances."""
    regimes = ", ".join(REGIMES)
    yield f"| {regimes} | tasks | bound | forger, defences off | forger, undetected |"
    yield "|---|---:|---:|---:|---:|"
    for task_set in task_sets():
        protocol = task_set.benchmark.protocol
        for name, make_extractor in EXTRACTORS.items():
            rows = {
                task: np.asarray(
                    make_extractor().extract_embeddings(
                        [*one.train.sequences, *one.test.sequences]
                    ),
                    dtype=np.float32,
                )
                for task, one in task_set.tasks.items()
            }
            with tempfile.TemporaryDirectory() as folder:
                results = [forgery_result(task_set, rows, share, Path(folder)) for share in SHARES]
            bounds, raises_without_defences, undetected_raises = [], [], []
            for regime in REGIMES:
                task_bounds = [
                    forger.bound_within(
                        rows[task], one, protocol.few_shot_k, protocol.seeds, regime
                    )
                    for task, one in task_set.tasks.items()
                ]
                undetected_gains = [one.gains[regime] for one in results if not one.is_found]
                bounds.append(f"{np.mean(task_bounds):.4f}")
                raises_without_defences.append(f"{max(one.gains[regime] for one in results):+.4f}")
                undetected_raises.append(f"{max([0.0, *undetected_gains]):+.4f}")
            columns = " | ".join(
                ", ".join(column) for column in (bounds, raises_without_defences, undetected_raises)
            )
            yield f"| {name}, {task_set.name} | {len(rows)} | {columns} |"


MOVE_SIZES = (2.0, 0.2, 0.02, 2e-3, 2e-4)
"""Distances by which embeddings are moved, as feature values."""


def attacks_by_lever() -> Iterator[tuple[str, Sequence[Attack]]]:
    """Yield each lever that widens what passes, with the attacks that try it at every size."""
    without_attack = Attack(convolution, lambda _, rows: rows, lambda _: None, "")
    for name, rerun, is_excused in (
        ("a constant column of 3e6", functools.partial(with_constant, size=3e6, columns=1), False),
        ("an offset along 16 columns", with_offset, False),
        ("float64 reruns that give the receipt", convolution, True),
    ):
        receipt_changes = [functools.partial(moved_support, size=size) for size in MOVE_SIZES]
        yield (
            f"support embeddings moved, {name}",
            [
                without_attack._replace(rerun=rerun, receipt=change, excuse=is_excused)
                for change in receipt_changes
            ],
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
    for name, attacks in attacks_by_lever():
        raises_without_defences, undetected_raises = (
            dict.fromkeys(REGIMES, 0.0),
            dict.fromkeys(REGIMES, 0.0),
        )
        reruns = {task: attacks[0].rerun(task) for task in LEVER_TASKS}
        with tempfile.TemporaryDirectory() as folder:
            honest_receipts = {
                task: scored(Path(folder) / "honest", task, rows, SAMPLE)
                for task, rows in reruns.items()
            }
            for number, attack in enumerate(attacks):
                altered_receipts, float64_reruns = receipts_of(Path(folder) / str(number), attack)
                is_found = bool(audit(altered_receipts, reruns, precise=float64_reruns).reasons)
                for regime in REGIMES:
                    gain = float(
                        np.mean(
                            [
                                altered_receipts[t].mcc[regime] - honest_receipts[t].mcc[regime]
                                for t in reruns
                            ]
                        )
                    )
                    raises_without_defences[regime] = max(raises_without_defences[regime], gain)
                    undetected_raises[regime] = max(
                        undetected_raises[regime], 0.0 if is_found else gain
                    )
        columns = [
            ", ".join(f"{raises[regime]:+.4f}" for regime in REGIMES)
            for raises in (raises_without_defences, undetected_raises)
        ]
        yield f"| {name} | {' | '.join(columns)} |"


def at_will_table() -> Iterator[str]:
    """Yield the table of embeddings altered at will, in the hope that none is drawn."""
    cells_by_row = [row.macro for row in published_rows()]
    test_raises = [forger.by_test_rows(cells) for cells in cells_by_row]
    both_raise = best_division(
        [
            forger.altered_options(
                functools.partial(forger.by_test_rows, cells_by_row[int(np.argmax(test_raises))]),
                "test",
            ),
            forger.altered_options(functools.partial(forger.by_training_rows, TASKS), "training"),
        ]
    ).raised
    training_raise = forger.by_training_rows(TASKS)
    yield "| altered at will, missed by the standard draw with 5 % | raise of the macro MCC |"
    yield "|---|---:|"
    yield (
        f"| test embeddings, full regime: bound, worst / median of {len(cells_by_row)} rows "
        f"| {max(test_raises):.4f} / {np.median(test_raises):.4f} |"
    )
    yield f"| training embeddings: gained, no bound | {training_raise:.4f} |"
    yield f"| the best division of both, worst row: no bound | {both_raise:.4f} |"
    gains_by_task = list(planted_gains())
    for name, gains in (
        ("that may be among the strongest", [gain.at_will for gain in gains_by_task]),
        ("that are not among the strongest", [gain.missed for gain in gains_by_task]),
    ):
        support_raise = forger.by_support_rows(float(np.mean(gains)), TASKS, SHOTS, SEEDS)
        yield (
            f"| support embeddings of 10shot {name}, {np.mean(gains):.3f} of MCC of one seed: "
            f"gained, no bound | {support_raise:.4f} |"
        )


def planted_gains() -> Iterator[forger.PlantedGain]:
    """Yield what one support embedding of 10shot, altered at will, gains in each task and
    extractor."""
    for task_set in task_sets():
        protocol = task_set.benchmark.protocol
        for make_extractor in EXTRACTORS.values():
            for task_data in task_set.tasks.values():
                sequences = [*task_data.train.sequences, *task_data.test.sequences]
                rows = np.asarray(make_extractor().extract_embeddings(sequences), dtype=np.float32)
                fits = logistic.fit_indices(
                    task_data.train.labels,
                    "10shot",
                    list(protocol.seeds),
                    dict(protocol.few_shot_k),
                )
                yield from (
                    forger.planted_gain(rows, task_data, fit, int(fit[0]))
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
        before, after_begin = PAGE.read_text(encoding="utf-8").split(BEGIN)
        table = "\n".join(lines) + "\n"
        PAGE.write_text(before + BEGIN + table + END + after_begin.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
