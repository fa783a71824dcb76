"""Measure power and false alarms of audits by receipt; `--write` puts the tables in the docs.

`--real` adds the real tasks of this machine. Gains are differences of MCC.
"""

import argparse
import functools
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from benchmarks.bench_embedding_honest import false_alarm_table, honest_table, noise_table
from benchmarks.bench_embedding_power import (
    MeasurementStore,
    Table,
    alignment_row,
    power_table,
    published_rows,
    simulation_table,
    training_table,
)
from benchmarks.whole_audits import whole_audits
from geneb_ci.audit.compare.embeddings import TaskFiles, read_task_files
from geneb_ci.receipt.alteration_power import hit_lower_bound
from geneb_ci.receipt.draw import EmbeddingCounts, TaskShare, draw_shares, drawn_embeddings
from geneb_ci.receipt.embeddings import EFFECT, LEVEL
from reference_harness.data import benchmark as harness_benchmark
from reference_harness.data.task_data import TaskData
from reference_harness.data.task_folder import Folder, MiniSource, Source
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission_terms import receipt_file
from reference_harness.probe.logistic import few_shot_indices
from reference_harness.rescore.scoring import load_task
from tests.adversary.models import NetworkExtractor, random_convolution
from tests.paths import REAL_TASKS, ROOT
from tests.receipt import attacks
from tests.receipt.audited import Scored, audit, scored

PAGE = ROOT / "docs/research/receipt-audits.md"
Rows = npt.NDArray[np.float32]
DRAWS = 100
MINI = ("mini_promoter", "mini_tf", "mini_splice")
AUDITS = 2000  # simulated whole audits of honest embeddings


class EmbeddedTasks(NamedTuple):
    """Honest embeddings of some tasks by one extractor, and those by another extractor."""

    name: str
    rows: dict[str, Rows]
    other: dict[str, Rows]
    data: dict[str, TaskData]
    source: Source
    definition: Benchmark


class Extractor(Protocol):
    """An extractor, or its imitation, that embeds the sequences."""

    def extract_embeddings(self, sequences: Sequence[str]) -> Rows: ...


def embedded_tasks(
    name: str, extractor: Extractor, other: Extractor, store: MeasurementStore, *, real: bool
) -> EmbeddedTasks:
    """Return honest embeddings of GENEB-mini, or of the real tasks that are available."""
    definition, source = harness_benchmark.mini(), MiniSource()
    tasks: Sequence[str] = MINI
    source_of_data: Source = source
    if real:
        definition = harness_benchmark.geneb()
        source_of_data = Folder(REAL_TASKS, definition)
        tasks = sorted(source_of_data.available())
    data = {task: load_task(definition, source_of_data, task) for task in tasks}

    def rows_of(
        task: str, task_data: TaskData, task_extractor: Extractor, extractor_role: str
    ) -> Rows:
        sequences = [*task_data.train.sequences, *task_data.test.sequences]
        return store.rows(
            f"{name} {extractor_role} {task}",
            lambda: np.asarray(task_extractor.extract_embeddings(sequences), dtype=np.float32),
        )

    return EmbeddedTasks(
        name,
        {task: rows_of(task, task_data, extractor, "honest") for task, task_data in data.items()},
        {task: rows_of(task, task_data, other, "other") for task, task_data in data.items()},
        data,
        source_of_data,
        definition,
    )


Attack = Callable[[EmbeddedTasks, str], Rows]


def labels_of(embedded: EmbeddedTasks, task: str) -> npt.NDArray[np.int64]:
    return np.concatenate([embedded.data[task].train.labels, embedded.data[task].test.labels])


def on_every_task(attack: attacks.Attack) -> Attack:
    """Return the attack that alters the embeddings of every task alike."""
    return lambda embedded, task: attack(
        embedded.rows[task], labels_of(embedded, task), len(embedded.data[task].train.labels)
    )


def support_row(embedded: EmbeddedTasks, task: str) -> Rows:
    """Alter one support embedding of a 1shot probe, in one task."""
    train_labels = embedded.data[task].train.labels
    if task != next(iter(embedded.rows)):
        return embedded.rows[task]
    support_index = int(few_shot_indices(train_labels, 1, embedded.definition.protocol.seeds[0])[0])
    return attacks.altered(
        embedded.rows[task], labels_of(embedded, task), [support_index], len(train_labels)
    )


ATTACKS: dict[str, Attack] = {
    "none: honest embeddings": lambda embedded, task: embedded.rows[task],
    "column, 1e-3": on_every_task(functools.partial(attacks.column, eps=1e-3)),
    "column, 1e-4": on_every_task(functools.partial(attacks.column, eps=1e-4)),
    "column, 1e-5": on_every_task(functools.partial(attacks.column, eps=1e-5)),
    "column, 1e-6": on_every_task(functools.partial(attacks.column, eps=1e-6)),
    "push, 1e-3": on_every_task(functools.partial(attacks.push, eps=1e-3)),
    "push, 1e-4": on_every_task(functools.partial(attacks.push, eps=1e-4)),
    "push, 1e-5": on_every_task(functools.partial(attacks.push, eps=1e-5)),
    "push, 1e-6": on_every_task(functools.partial(attacks.push, eps=1e-6)),
    "border, tau": on_every_task(attacks.border),
    "one support embedding of 1shot, in one task": support_row,
    "embeddings of another model": lambda of, task: of.other[task],
}


def attacks_table(
    load_tasks: Callable[[], EmbeddedTasks],
    extractor_name: str,
    store_key: str,
    store: MeasurementStore,
    draws: int,
) -> Table:
    """Return the table of how often audits find each attack, by embeddings, direction and effect.

    `store_key` distinguishes stored lines of the same extractor on other tasks.
    """
    loaded = functools.cache(load_tasks)

    @functools.cache
    def honest_scores() -> dict[str, dict[str, float]]:
        embedded = loaded()
        with tempfile.TemporaryDirectory() as folder_name:
            return {
                task: _scored(embedded, Path(folder_name), task, rows).mcc
                for task, rows in embedded.rows.items()
            }

    def line(attack_name: str, attack: Attack) -> str:
        return attack_line(loaded(), attack_name, attack, honest_scores(), draws)

    return [
        (
            f"| {extractor_name}: attack | embeddings | direction | effect | any | MCC: full | "
            "few-shot |"
        ),
        alignment_row(7),
        *(
            store.line(
                f"{store_key} {attack_name} {draws}",
                functools.partial(line, attack_name, attack),
            )
            for attack_name, attack in ATTACKS.items()
        ),
    ]


class ChangedReceipt(NamedTuple):
    """The scored receipt of a task with changed embeddings, and the files that further draws
    need."""

    scored: Scored
    read: TaskFiles
    values: npt.NDArray[np.float16]

    def drawn(self, share: TaskShare, seed: str) -> Scored:
        """Return the task with the embeddings that another seed draws, without proofs."""
        task, drawn_rows = self.scored.drawn, drawn_embeddings([seed], self.read.strata, share)
        rows = drawn_rows.distinct_rows
        labels = np.concatenate([self.read.train_labels, self.read.strata.labels])
        support = np.concatenate([*self.read.strata.support.values()])
        return self.scored._replace(
            drawn=task._replace(
                drawn=drawn_rows,
                rows=rows,
                sequences=[],
                committed=self.values[rows],
                proofs=[],
                labels=labels[rows],
                is_outside_supports=~np.isin(rows, support),
            )
        )


def attack_line(
    embedded: EmbeddedTasks,
    name: str,
    attack: Attack,
    honest_scores: dict[str, dict[str, float]],
    draws: int,
) -> str:
    """Return the line of an attack: how often draws find it, and what it gains."""
    changed_receipts: dict[str, ChangedReceipt] = {}
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        for task in embedded.rows:
            scored_task = _scored(embedded, folder, task, attack(embedded, task))
            values = np.fromfile(receipt_file(folder, task), dtype="<f2").reshape(
                -1, scored_task.receipt.dim
            )
            changed_receipts[task] = ChangedReceipt(
                scored_task, read_task_files(folder / "strata", task, embedded.definition), values
            )
    classes = {task: len(np.unique(data.test.labels)) for task, data in embedded.data.items()}
    share = draw_shares(sample_of(embedded), classes, [[task] for task in classes])
    by_rows = by_direction = by_effect = by_any = 0
    for number in range(draws):
        seed = f"{number + 1:064x}"
        drawn_tasks = {
            task: receipt.drawn(share[task], seed) for task, receipt in changed_receipts.items()
        }
        outcome = audit(drawn_tasks, embedded.rows, seed)
        by_rows += any(task.failed for task in outcome.tasks)
        by_direction += outcome.direction.p < LEVEL
        by_effect += max(abs(part.statistic) for _, part in outcome.effect) > EFFECT
        by_any += bool(outcome.reasons)
    gains = {
        regime: max(
            one.scored.mcc[regime] - honest_scores[task][regime]
            for task, one in changed_receipts.items()
        )
        for regime in embedded.definition.regimes
    }
    few_shot_gain = max(value for regime, value in gains.items() if regime != "full")
    return (
        f"| {name} | {by_rows} of {draws} | {by_direction} | {by_effect} | {by_any} | "
        f"{gains['full']:+.4f} | {few_shot_gain:+.4f} |"
    )


def sample_of(embedded: EmbeddedTasks) -> EmbeddingCounts:
    models = len(embedded.rows)
    return EmbeddingCounts(test=45 * models, training=30, support=15 * models, whole=False)


def _scored(embedded: EmbeddedTasks, folder: Path, task: str, rows: Rows) -> Scored:
    return scored(
        folder,
        task,
        rows,
        sample_of(embedded),
        source=embedded.source,
        benchmark=embedded.definition,
    )


def tables(store: MeasurementStore, *, audits: int, draws: int) -> dict[str, Callable[[], Table]]:
    """Return the function that makes each table, by its name, the quickest first."""
    cached_rows = functools.cache(published_rows)

    def four_rows() -> Table:
        order = sorted(cached_rows(), key=lambda row: hit_lower_bound(row.macro, 0.01))
        return simulation_table([order[0], order[5], order[len(order) // 2], order[-1]])

    def attacks_on(
        name: str, make_extractors: Callable[[], tuple[Any, Any]], *, real: bool
    ) -> Table:
        label = f"{name}{', real tasks' if real else ''}"
        return attacks_table(
            lambda: embedded_tasks(label, *make_extractors(), store, real=real),
            name,
            label,
            store,
            draws,
        )

    def convolutions() -> tuple[Any, Any]:
        first, other = (NetworkExtractor(random_convolution(seed)) for seed in (3, 4))
        return first, other

    return {
        "power": lambda: power_table(cached_rows()),
        "simulated": four_rows,
        "training": training_table,
        "alarms": lambda: false_alarm_table(audits, store),
        "noise": lambda: noise_table(audits // 2, store),
        "attacks": lambda: attacks_on("random convolution", convolutions, real=False),
        "whole audits": lambda: whole_audits(store, lambda: store.folder / "whole"),
        "honest": lambda: honest_table(store),
        "attacks on real tasks": lambda: attacks_on("random convolution", convolutions, real=True),
    }


def main() -> int:
    """Print the tables; with `--write`, put them between their marks in the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--only", action="append", help="Name of a table; repeatable.")
    parser.add_argument("--audits", type=int, default=AUDITS)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="Folder in which measurements are kept."
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder_name:
        store = MeasurementStore(options.keep or Path(folder_name))
        table_functions = tables(store, audits=options.audits, draws=options.draws)
        for name, table in table_functions.items():
            if (options.only and name not in options.only) or ("real" in name and not options.real):
                continue
            started = time.perf_counter()
            lines = table()
            print(f"\n{name} ({time.perf_counter() - started:.0f} s)")
            print("\n".join(lines), flush=True)
            if options.write:
                write_table(name, lines)
    return 0


def write_table(name: str, lines: Table) -> None:
    """Put a table between its marks in the page, where it has them."""
    text = PAGE.read_text(encoding="utf-8")
    begin, end = f"<!-- bench {name} -->\n", f"<!-- /bench {name} -->"
    if begin in text:
        head, _, after_begin = text.partition(begin)
        text = head + begin + "\n".join(lines) + "\n" + end + after_begin.partition(end)[2]
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
