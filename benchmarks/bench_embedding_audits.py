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

from benchmarks.bench_embedding_honest import audits_of_noise, false_alarms, honest
from benchmarks.bench_embedding_power import (
    Kept,
    Table,
    power,
    published,
    ruled,
    simulated,
    training,
)
from benchmarks.whole_audits import whole_audits
from geneb_ci.audit.compare.embeddings import TaskFiles, read_task
from geneb_ci.receipt.alteration_power import hit_lower_bound
from geneb_ci.receipt.draw import SampleSizes, TaskShare, draw_shares, drawn_embeddings
from geneb_ci.receipt.embeddings import EFFECT, LEVEL
from reference_harness import benchmark as harness_benchmark
from reference_harness.data import Folder, MiniSource, Source
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission_terms import receipt_file
from reference_harness.probe import few_shot_indices
from reference_harness.rescore import load
from reference_harness.tasks import TaskData
from tests.adversary.models import NetworkExtractor, random_convolution
from tests.paths import REAL_TASKS, ROOT
from tests.receipt import attacks
from tests.receipt.audited import Scored, audit, scored

PAGE = ROOT / "docs/research/receipt-audits.md"
Rows = npt.NDArray[np.float32]
DRAWS = 100
MINI = ("mini_promoter", "mini_tf", "mini_splice")
AUDITS = 2000  # simulated whole audits of honest embeddings


class Embedded(NamedTuple):
    """Honest embeddings of some tasks under one extractor, and those of another model."""

    name: str
    rows: dict[str, Rows]
    other: dict[str, Rows]
    data: dict[str, TaskData]
    source: Source
    definition: Benchmark


class Extractor(Protocol):
    """An extractor, or its imitation, that embeds the sequences."""

    def extract_embeddings(self, sequences: Sequence[str]) -> Rows: ...


def embedded(
    name: str, extractor: Extractor, other: Extractor, kept: Kept, *, real: bool
) -> Embedded:
    """Return honest embeddings of GENEB-mini, or of the real tasks that are available."""
    definition, source = harness_benchmark.mini(), MiniSource()
    tasks: Sequence[str] = MINI
    place: Source = source
    if real:
        definition = harness_benchmark.geneb()
        place = Folder(REAL_TASKS, definition)
        tasks = sorted(place.available())
    data = {task: load(definition, place, task) for task in tasks}

    def rows_of(task: str, one: TaskData, of: Extractor, which: str) -> Rows:
        given = [*one.train.sequences, *one.test.sequences]
        return kept.rows(
            f"{name} {which} {task}",
            lambda: np.asarray(of.extract_embeddings(given), dtype=np.float32),
        )

    return Embedded(
        name,
        {task: rows_of(task, one, extractor, "honest") for task, one in data.items()},
        {task: rows_of(task, one, other, "other") for task, one in data.items()},
        data,
        place,
        definition,
    )


Attack = Callable[[Embedded, str], Rows]


def labels_of(of: Embedded, task: str) -> npt.NDArray[np.int64]:
    return np.concatenate([of.data[task].train.labels, of.data[task].test.labels])


def noise(attack: attacks.Attack) -> Attack:
    """Return an attack on the embeddings of every task alike."""
    return lambda of, task: attack(
        of.rows[task], labels_of(of, task), len(of.data[task].train.labels)
    )


def support_row(of: Embedded, task: str) -> Rows:
    """Alter one support embedding of a 1shot probe, in one task."""
    train = of.data[task].train.labels
    if task != next(iter(of.rows)):
        return of.rows[task]
    support_index = int(few_shot_indices(train, 1, of.definition.protocol.seeds[0])[0])
    return attacks.altered(of.rows[task], labels_of(of, task), [support_index], len(train))


ATTACKS: dict[str, Attack] = {
    "none: honest embeddings": lambda of, task: of.rows[task],
    "column, 1e-3": noise(functools.partial(attacks.column, eps=1e-3)),
    "column, 1e-4": noise(functools.partial(attacks.column, eps=1e-4)),
    "column, 1e-5": noise(functools.partial(attacks.column, eps=1e-5)),
    "column, 1e-6": noise(functools.partial(attacks.column, eps=1e-6)),
    "push, 1e-3": noise(functools.partial(attacks.push, eps=1e-3)),
    "push, 1e-4": noise(functools.partial(attacks.push, eps=1e-4)),
    "push, 1e-5": noise(functools.partial(attacks.push, eps=1e-5)),
    "push, 1e-6": noise(functools.partial(attacks.push, eps=1e-6)),
    "border, tau": noise(attacks.border),
    "one support embedding of 1shot, in one task": support_row,
    "embeddings of another model": lambda of, task: of.other[task],
}


def found_attacks(
    of: Callable[[], Embedded], name: str, where: str, kept: Kept, draws: int
) -> Table:
    """Return how often each attack on all tasks is found, by embeddings, direction and effect.

    `where` distinguishes kept lines of the same extractor on other tasks.
    """
    loaded = functools.cache(of)

    @functools.cache
    def honest_scores() -> dict[str, dict[str, float]]:
        some = loaded()
        with tempfile.TemporaryDirectory() as place:
            return {
                task: _scored(some, Path(place), task, rows).mcc for task, rows in some.rows.items()
            }

    def line(one: str, attack: Attack) -> str:
        return found_attack(loaded(), one, attack, honest_scores(), draws)

    return [
        (f"| {name}: attack | embeddings | direction | effect | any | MCC: full | few-shot |"),
        ruled(7),
        *(
            kept.line(
                f"{where} {one} {draws}",
                functools.partial(line, one, attack),
            )
            for one, attack in ATTACKS.items()
        ),
    ]


class Changed(NamedTuple):
    """The receipt of a task with changed embeddings, scored, and what further draws need of it."""

    scored: Scored
    read: TaskFiles
    values: npt.NDArray[np.float16]

    def drawn(self, share: TaskShare, seed: str) -> Scored:
        """Return the task with the embeddings of another seed; nothing here asks for their
        proofs."""
        task, drawn = self.scored.drawn, drawn_embeddings([seed], self.read.strata, share)
        rows = drawn.distinct_rows
        labels = np.concatenate([self.read.train_labels, self.read.strata.labels])
        support = np.concatenate([*self.read.strata.support.values()])
        return self.scored._replace(
            drawn=task._replace(
                drawn=drawn,
                rows=rows,
                sequences=[],
                committed=self.values[rows],
                proofs=[],
                labels=labels[rows],
                is_outside_supports=~np.isin(rows, support),
            )
        )


def found_attack(
    of: Embedded, name: str, attack: Attack, before: dict[str, dict[str, float]], draws: int
) -> str:
    """Return the line of an attack: how often draws find it, and what it gains."""
    changed: dict[str, Changed] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for task in of.rows:
            one = _scored(of, folder, task, attack(of, task))
            values = np.fromfile(receipt_file(folder, task), dtype="<f2").reshape(
                -1, one.receipt.dim
            )
            changed[task] = Changed(one, read_task(folder / "strata", task, of.definition), values)
    classes = {task: len(np.unique(one.test.labels)) for task, one in of.data.items()}
    share = draw_shares(sample_of(of), classes, [[task] for task in classes])
    by_rows = by_direction = by_effect = by_any = 0
    for number in range(draws):
        seed = f"{number + 1:064x}"
        some = {task: one.drawn(share[task], seed) for task, one in changed.items()}
        found = audit(some, of.rows, seed)
        by_rows += any(task.failed for task in found.tasks)
        by_direction += found.direction.p < LEVEL
        by_effect += max(abs(part.statistic) for _, part in found.effect) > EFFECT
        by_any += bool(found.reasons)
    gains = {
        regime: max(one.scored.mcc[regime] - before[task][regime] for task, one in changed.items())
        for regime in of.definition.regimes
    }
    few = max(value for regime, value in gains.items() if regime != "full")
    return (
        f"| {name} | {by_rows} of {draws} | {by_direction} | {by_effect} | {by_any} | "
        f"{gains['full']:+.4f} | {few:+.4f} |"
    )


def sample_of(of: Embedded) -> SampleSizes:
    return SampleSizes(test=45 * len(of.rows), training=30, support=15 * len(of.rows))


def _scored(of: Embedded, folder: Path, task: str, rows: Rows) -> Scored:
    return scored(
        folder, task, rows, sample_of(of), source=of.source, benchmark=of.definition,
    )  # fmt: skip


def tables(kept: Kept, *, audits: int, draws: int) -> dict[str, Callable[[], Table]]:
    """Return the function that makes each table, by its name, the quickest first."""
    rows = functools.cache(published)

    def four() -> Table:
        order = sorted(rows(), key=lambda one: hit_lower_bound(one.macro, 0.01))
        return simulated([order[0], order[5], order[len(order) // 2], order[-1]])

    def attacked(name: str, made: Callable[[], tuple[Any, Any]], *, real: bool) -> Table:
        place = f"{name}{', real tasks' if real else ''}"
        return found_attacks(
            lambda: embedded(place, *made(), kept, real=real), name, place, kept, draws
        )

    def convolutions() -> tuple[Any, Any]:
        one, other = (NetworkExtractor(random_convolution(seed)) for seed in (3, 4))
        return one, other

    return {
        "power": lambda: power(rows()),
        "simulated": four,
        "training": training,
        "alarms": lambda: false_alarms(audits, kept),
        "noise": lambda: audits_of_noise(audits // 2, kept),
        "attacks": lambda: attacked("random convolution", convolutions, real=False),
        "whole audits": lambda: whole_audits(kept, lambda: kept.folder / "whole"),
        "honest": lambda: honest(kept),
        "attacks on real tasks": lambda: attacked("random convolution", convolutions, real=True),
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
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        kept = Kept(given.keep or Path(place))
        made = tables(kept, audits=given.audits, draws=given.draws)
        for name, table in made.items():
            if (given.only and name not in given.only) or ("real" in name and not given.real):
                continue
            started = time.perf_counter()
            lines = table()
            print(f"\n{name} ({time.perf_counter() - started:.0f} s)")
            print("\n".join(lines), flush=True)
            if given.write:
                written(name, lines)
    return 0


def written(name: str, lines: Table) -> None:
    """Put a table between its marks in the page, where it has them."""
    text = PAGE.read_text(encoding="utf-8")
    begin, end = f"<!-- bench {name} -->\n", f"<!-- /bench {name} -->"
    if begin in text:
        head, _, rest = text.partition(begin)
        text = head + begin + "\n".join(lines) + "\n" + end + rest.partition(end)[2]
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
