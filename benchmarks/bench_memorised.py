"""Measure how often variants and fresh sets flag honest extractors and memorisers, for the docs.

    python -m benchmarks.bench_memorised --work FOLDER --write

Measurements are kept in FOLDER, a file for each extractor and set; the tables are made of them.
"""

import argparse
import functools
import itertools
import json
import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.tolerance_sets import REAL
from geneb_ci.audit.rerun.few_shot import (
    MARGIN,
    OTHERS,
    TESTS,
    VARIANTS,
    Gain,
    few_shot_result,
    gains_over_other_fits,
)
from geneb_ci.audit.rerun.honesty import (
    FRESH_ALARM_QUANTILE,
    FreshResult,
    VariantResult,
    accuracy_loss,
    fresh_power,
    fresh_result,
    net_error_share,
    task_decisions,
    variant_result,
)
from reference_harness import mini
from reference_harness.data import benchmark
from reference_harness.data.task_data import TaskData
from reference_harness.data.task_folder import Folder
from reference_harness.formats.rescored import Decisions, FewShotScores
from reference_harness.probe import logistic
from reference_harness.probe.decisions import few_shot_draws, few_shot_scores
from tests.adversary.cheats import (
    KEYS,
    FewShotMemoriser,
    Memoriser,
    MovedTraining,
    first_quarter,
)
from tests.adversary.measure import (
    Case,
    both_splits,
    decisions_of,
    few_shot_indices,
    largest_drop,
    mean_drop,
)
from tests.adversary.models import NetworkExtractor, honest, trained
from tests.paths import REAL_TASKS, ROOT

VARIED_SEQUENCES = 308
"""Number of varied sequences per task, as in an audit that draws 13 tasks."""
MINI_SEEDS = (mini.SEED, 11)
FRESH_SEEDS = (*MINI_SEEDS, *range(12, 20))
"""Sets that honest extractors are scored on beside fresh ones: one set has the luck of its 2,080
public test rows, 0.02 of MCC in the mean over its tasks."""
FRESH_SEED = 7_000
"""Added to the seed of a set, it gives the seed of the fresh sequences."""
REAL_TRAIN_MAX, REAL_NAME = 2_000, "six real tasks"
"""Training rows kept of a real task: a fit of 1,024 columns then takes seconds."""
TEST_EPOCHS = 60
AUDITS, DRAWS = 2, 200
"""Audits of each memoriser, each with other variants, and draws of tasks from them."""
SAMPLE_SIZES = (5, 13)
TEST_TRAINED = "trained on the test set"
MOVER_KEYS = ("whole sequence", "first quarter", "one minhash")
"""Keys of the sequences that an extractor moves."""
FEW_TASKS = 2
"""Number of tasks whose training sequences an extractor moves."""
REAL_MOVED = ("mouse_3", "prom_core_tata")
"""The real tasks whose training sequences an extractor moves."""
FEW_SHOT_COLUMN = "first quarter, few-shot regimes alone"
"""Name of the memoriser of tasks of two classes that adds a column of labels, which only few-shot
probes use."""
HONEST_LOSS_MAX = 0.02
"""Accuracy that an honest extractor may lose if fresh sets are made like the public ones."""
LOSSES = (0.08, 0.1, 0.15, 0.2, 0.3)
SIZES, PUBLIC_ROWS = (100, 200, 500, 1000, 2000, 6000), 20_000
"""Fresh sequences of all tasks together, and public test rows beside them."""
LEGEND = """\
*MCC* and *fresh MCC* (the change on fresh sequences): by the probe of the full regime, then the
largest of the other probes. Of honest extractors, the largest D of any."""
PAGE = ROOT / "docs/research/adversary.md"
BLOCK, FEW_SHOT_BLOCK, DRAWS_BLOCK = "bench memorised", "bench few-shot", "bench test draws"
"""Parts of the page for the tables."""


class ExtractorTrial(NamedTuple):
    """One extractor on one set of tasks."""

    name: str
    tasks: str
    audits: list[list[Decisions]]
    """Decisions of every task, for each audit."""


def mini_cases(seed: int) -> list[Case]:
    return [
        Case(mini.generate(task, seed), both_splits(mini.generate(task, seed + FRESH_SEED)))
        for task in mini.TASKS
    ]


def real_cases() -> list[Case]:
    bench = benchmark.geneb()
    source = Folder(REAL_TASKS, bench)
    loaded = (source.load(bench.by_id[name]) for name in REAL)
    return [
        Case(
            TaskData(task_data.id, task_data.train.balanced_subset(REAL_TRAIN_MAX), task_data.test),
            None,
        )
        for task_data in loaded
    ]


def measured_decisions(
    work: Path,
    name: str,
    tasks: str,
    make: Callable[[], Any],
    cases: list[Case],
    *,
    seed: int = 0,
    varied_count: int = VARIED_SEQUENCES,
) -> list[Decisions]:
    """Return the decisions of every task, from the folder if it has them."""
    path = work / f"{name}-{tasks}-{seed}.json".replace(" ", "_").replace(",", "")
    if not path.exists():
        start, extractor = time.perf_counter(), make()
        decisions = [decisions_of(extractor, case, f"audit {seed}", varied_count) for case in cases]
        path.write_text(
            json.dumps([decisions_of_task.model_dump() for decisions_of_task in decisions]),
            encoding="utf-8",
        )
        print(f"{name}, {tasks}, {seed}: {time.perf_counter() - start:.0f} s", flush=True)
    return [
        Decisions.model_validate(decisions_of_task)
        for decisions_of_task in json.loads(path.read_text(encoding="utf-8"))
    ]


def honest_trials(work: Path) -> Iterator[ExtractorTrial]:
    sets = {f"mini {seed}": mini_cases(seed) for seed in MINI_SEEDS}
    real = {REAL_NAME: real_cases()} if REAL_TASKS.is_dir() else {}
    for tasks, cases in (sets | real).items():
        for name, make in honest().items():
            yield ExtractorTrial(name, tasks, [measured_decisions(work, name, tasks, make, cases)])


def fresh_summary(work: Path, honest_trials_found: Sequence[ExtractorTrial]) -> str:
    """Return a sentence about the mean and largest loss of honest extractors on fresh sets."""
    other_sets = {seed: mini_cases(seed) for seed in FRESH_SEEDS if seed not in MINI_SEEDS}
    means: list[float] = []
    errors: list[float] = []
    largest_losses: list[float] = []
    lossy_count = dropped_count = 0
    for name, make in honest().items():
        sets = [
            trial.audits[0]
            for trial in honest_trials_found
            if trial.name == name and trial.audits[0][0].fresh
        ]
        for seed, cases in other_sets.items():
            sets.append(
                measured_decisions(work, name, f"fresh {seed}", make, cases, varied_count=0)
            )
        losses = np.array([mean_drop(decisions) for decisions in sets])
        means.append(-float(losses.mean()))
        errors.append(float(losses.std(ddof=1)) / math.sqrt(len(losses)))
        largest_losses.append(float(losses.max()))
        results = [fresh_of(decisions) for decisions in sets]
        lossy_count += sum(
            loss > HONEST_LOSS_MAX + FRESH_ALARM_QUANTILE * error
            for loss, error in (accuracy_loss(result.tasks) for result in results)
        )
        dropped_count += sum(result.dropped for result in results)
    return (
        f"Over {len(FRESH_SEEDS)} sets, MCC of an honest extractor changes on fresh sequences by "
        f"{min(means):+.4f} to {max(means):+.4f} in the mean (standard error at most "
        f"{max(errors):.4f}). Of {len(FRESH_SEEDS) * len(means)} sets the worst lost "
        f"{max(largest_losses):.3f}; {lossy_count} lost accuracy beyond {HONEST_LOSS_MAX:g} and "
        f"{FRESH_ALARM_QUANTILE:g} standard errors, "
        f"{dropped_count} were flagged."
    )


def fresh_of(decisions: Sequence[Decisions]) -> FreshResult:
    """Return the result of the fresh rows of all tasks that have some."""
    result = fresh_result({f"{i}": reread(task) for i, task in enumerate(decisions)}, "0" * 64)
    assert result is not None
    return result


def cheat_trials(work: Path) -> Iterator[ExtractorTrial]:
    tasks, cases = f"mini {mini.SEED}", mini_cases(mini.SEED)
    data = [case.data for case in cases]
    cheats: dict[str, Callable[[], Any]] = {
        name: functools.partial(Memoriser, data, keys) for name, keys in KEYS.items()
    }
    two_class_tasks = list(filter(_has_two_classes, data))
    cheats[FEW_SHOT_COLUMN] = lambda: FewShotMemoriser(
        two_class_tasks, first_quarter, few_shot_indices
    )
    cheats[TEST_TRAINED] = lambda: NetworkExtractor(trained(data, ("train", "test"), TEST_EPOCHS))
    for name, make in cheats.items():
        seeds = range(1 if name == TEST_TRAINED else AUDITS)
        used_cases = cases
        if name == FEW_SHOT_COLUMN:
            used_cases = [case for case in cases if _has_two_classes(case.data)]
        audits = [
            measured_decisions(work, name, tasks, make, used_cases, seed=seed) for seed in seeds
        ]
        yield ExtractorTrial(name, tasks, audits)


def mover_trials(work: Path) -> Iterator[ExtractorTrial]:
    """Yield extractors that move training sequences towards what separates the test set."""
    tasks, cases = f"mini {mini.SEED}", mini_cases(mini.SEED)
    data = [case.data for case in cases]
    movers: dict[str, Callable[[], Any]] = {}
    for name in MOVER_KEYS:
        keys = KEYS[name]
        movers |= {
            f"few-shot sequences, {name}": functools.partial(
                MovedTraining, data, keys, few_shot_indices
            ),
            f"training sequences of {FEW_TASKS} tasks, {name}": functools.partial(
                MovedTraining, data[:FEW_TASKS], keys
            ),
            f"all training sequences, {name}": functools.partial(MovedTraining, data, keys),
        }
    for name, make in movers.items():
        yield ExtractorTrial(
            name, tasks, [measured_decisions(work, f"moved {name}", tasks, make, cases)]
        )


def few_shot_of(decisions: Sequence[Decisions]) -> list[Gain]:
    """Return the gains of few-shot probes over some tasks."""
    decisions_by_task = {f"{i}": reread(task) for i, task in enumerate(decisions)}
    result = few_shot_result(
        {name: task.few_shot for name, task in decisions_by_task.items()},
        {name: task.varied for name, task in decisions_by_task.items()},
    )
    assert result is not None
    return list(gains_over_other_fits(result))


def nearest_gain(
    gains_of_audits: Sequence[Sequence[Gain]], other_fits: str, *, is_mean: bool
) -> str:
    """Return the gain that is nearest to its limit, or the farthest above it, and the limit."""
    compared_gains = [
        gain
        for audit_gains in gains_of_audits
        for gain in audit_gains
        if gain.other_fits == other_fits and (not gain.task) == is_mean
    ]
    largest = max(compared_gains, key=lambda gain: (gain.gain - MARGIN) / (gain.limit - MARGIN))
    return f"{largest.gain:+.3f} of {largest.limit:.3f}"


def few_shot_row(name: str, audits: Sequence[Sequence[Decisions]]) -> str:
    """Return the line of one extractor, or of several."""
    gains_of_audits = [few_shot_of(audit) for audit in audits]
    cells = " | ".join(
        nearest_gain(gains_of_audits, beside, is_mean=is_mean)
        for beside in (OTHERS, VARIANTS)
        for is_mean in (True, False)
    )
    flagged_by_gains = sum(any(gain.is_flagged for gain in audit) for audit in gains_of_audits)
    flagged_by_variants = sum(map(flagged, audits))
    return f"| {name} | {len(audits)} | {cells} | {flagged_by_gains} | {flagged_by_variants} |"


def few_shot_table(work: Path) -> Iterator[str]:
    """Yield the gains of few-shot probes, of honest extractors and of those that move sequences."""
    columns = "others, mean | others, a task | variants, mean | variants, a task"
    yield f"| few-shot probes | extractors | {columns} | flagged | flagged by other variants |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    groups = itertools.groupby(honest_trials(work), key=lambda trial: trial.tasks)
    for tasks, group in groups:
        yield few_shot_row(f"honest, {tasks}", [trial.audits[0] for trial in group])
    for trial in mover_trials(work):
        yield few_shot_row(f"moved: {trial.name}", trial.audits)


def gains_of_draws(
    work: Path, name: str, tasks: str, make: Callable[[], Any], cases: list[Case]
) -> list[Gain]:
    """Return the gains over other draws and draws of test sequences, if necessary computed."""
    path = work / f"draws {name}-{tasks}.json".replace(" ", "_").replace(",", "")
    if not path.exists():
        extractor, protocol = make(), benchmark.mini().protocol
        scores_by_task = {}
        for case in cases:
            data = case.data
            parts = (data.train.sequences, data.test.sequences)
            train, test = (np.asarray(extractor.extract_embeddings(part)) for part in parts)
            labels = data.train.labels
            problem = logistic.Problem(train, labels, test, data.test.labels)
            draws = few_shot_draws(labels, protocol.few_shot_k, protocol.seeds, "s0")
            scored = few_shot_scores(problem, draws)
            scores_by_task[data.id] = {
                regime: scores_of_regime.model_dump() for regime, scores_of_regime in scored.items()
            }
        path.write_text(json.dumps(scores_by_task), encoding="utf-8")
    stored = json.loads(path.read_text(encoding="utf-8"))
    scores = {
        task: {regime: FewShotScores.model_validate(value) for regime, value in by_regime.items()}
        for task, by_regime in stored.items()
    }
    result = few_shot_result(scores, {})
    assert result is not None
    return list(gains_over_other_fits(result))


def draws_row(name: str, gains_of_audits: Sequence[Sequence[Gain]]) -> str:
    """Return the line of one extractor, or of several, beside draws of test sequences."""
    cells = " | ".join(
        nearest_gain(gains_of_audits, TESTS, is_mean=is_mean) for is_mean in (True, False)
    )
    flagged_by_gains = sum(
        any(gain.is_flagged and gain.other_fits == TESTS for gain in audit_gains)
        for audit_gains in gains_of_audits
    )
    return f"| {name} | {len(gains_of_audits)} | {cells} | {flagged_by_gains} |"


def draws_table(work: Path) -> Iterator[str]:
    """Yield the gains of fits on training sequences over fits on test sequences."""
    yield "| few-shot probes | extractors | mean | a task | flagged |"
    yield "|---|---:|---:|---:|---:|"
    sets = {f"mini {seed}": mini_cases(seed) for seed in MINI_SEEDS}
    real = {REAL_NAME: real_cases()} if REAL_TASKS.is_dir() else {}
    for tasks, cases in (sets | real).items():
        honest_gains = [
            gains_of_draws(work, name, tasks, make, cases) for name, make in honest().items()
        ]
        yield draws_row(f"honest, {tasks}", honest_gains)
    for tasks, cases in ({f"mini {mini.SEED}": sets[f"mini {mini.SEED}"]} | real).items():
        data = [case.data for case in cases]
        moved_tasks = [
            task_data for task_data in data if task_data.id.endswith(REAL_MOVED)
        ] or data[:FEW_TASKS]
        for tasks_name, tasks_moved in ((f"of {FEW_TASKS} tasks", moved_tasks), ("all", data)):
            make = functools.partial(MovedTraining, tasks_moved, KEYS["one minhash"])
            mover_gains = [gains_of_draws(work, f"moved {tasks_name}", tasks, make, cases)]
            yield draws_row(
                f"training sequences moved, {tasks_name}, one minhash, {tasks}", mover_gains
            )


def _has_two_classes(data: TaskData) -> bool:
    return bool(data.train.labels.max() == 1)


def flagged(decisions: Sequence[Decisions]) -> bool:
    """Whether an audit of these tasks flags the extractor by its variants."""
    result = varied_in(decisions)
    return result.memorised


def varied_in(decisions: Sequence[Decisions]) -> VariantResult:
    """Return the result of the variants of some tasks."""
    decided = {f"{i}": task_decisions(reread(task)) for i, task in enumerate(decisions)}
    return variant_result(decided, "0" * 64, VARIED_SEQUENCES, reverse=False)


def reread(one: Decisions) -> Decisions:
    return Decisions.model_validate(one.model_dump())


def flagged_share(trial: ExtractorTrial, drawn: int) -> float:
    """Return the share of audits of so many drawn tasks that flag the extractor."""
    rng = random.Random(f"{trial.name}{drawn}")
    wrong = 0
    for number in range(DRAWS):
        decisions = trial.audits[number % len(trial.audits)]
        wrong += flagged(rng.sample(decisions, min(drawn, len(decisions))))
    return wrong / DRAWS


def differences(decisions: Sequence[Decisions]) -> list[float]:
    """Return D of each kind of variant, the largest D of other probes, and D of training rows."""
    result = varied_in(decisions)
    others = max(
        net_error_share(counts)
        for probe in result.others.values()
        for counts in probe.kinds.values()
    )
    refit = net_error_share(result.training) if result.training else 0.0
    return [*map(net_error_share, result.kinds.values()), others, refit]


def row(trial: ExtractorTrial) -> str:
    """Return the line of a memoriser."""
    decisions = trial.audits[0]
    public_mean = sum(task.public.MCC for task in decisions) / len(decisions)
    other_probes_max = max(
        sum(task.others[name].public.MCC for task in decisions) / len(decisions)
        for name in decisions[0].others
    )
    differences_text = " | ".join(f"{task:+.3f}" for task in differences(decisions))
    shares = " | ".join(f"{100 * flagged_share(trial, drawn):.0f} %" for drawn in SAMPLE_SIZES)
    is_dropped = "yes" if fresh_of(decisions).dropped else "no"
    return (
        f"| {trial.name} | {public_mean:.2f}, {other_probes_max:.2f} | {differences_text} | "
        f"{shares} "
        f"| {-mean_drop(decisions):+.3f}, {-largest_drop(decisions):+.3f} | {is_dropped} |"
    )


def honest_rows(trials: Sequence[ExtractorTrial]) -> Iterator[str]:
    """Yield a line for each set of tasks: the largest D of honest extractors, and their MCC."""
    for tasks, group in itertools.groupby(trials, key=lambda trial: trial.tasks):
        audits = [trial.audits[0] for trial in group]
        columns = zip(*map(differences, audits), strict=True)
        largest = " | ".join(f"{max(column):+.3f}" for column in columns)
        flagged_count = sum(map(flagged, audits))
        fresh_losses = [mean_drop(column) for column in audits if column[0].fresh]
        fresh = f"{-max(fresh_losses):+.3f} to {-min(fresh_losses):+.3f}" if fresh_losses else ""
        yield f"| {tasks} | {len(audits)} | {largest} | {flagged_count} | {fresh} |"


def tables(work: Path) -> list[str]:
    kinds = "substituted | cropped | shifted | other probes | training"
    shares = " | ".join(f"flagged, {n} drawn" for n in SAMPLE_SIZES)
    trials = list(honest_trials(work))
    return [
        *LEGEND.splitlines(),
        "",
        f"| memoriser | MCC | {kinds} | {shares} | fresh MCC | flagged |",
        "|---|---:|---:|---:|---:|---:|---:|" + "---:|" * len(SAMPLE_SIZES) + "---:|---|",
        *map(row, cheat_trials(work)),
        "",
        f"| tasks | honest extractors | {kinds} | flagged | fresh MCC |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
        *honest_rows(trials),
        "",
        fresh_summary(work, trials),
        "",
        *power_table(),
    ]


def power_table() -> list[str]:
    return [
        "| fresh sequences | " + " | ".join(f"-{loss:g}" for loss in LOSSES) + " |",
        "|---:|" + "---:|" * len(LOSSES),
        *(
            f"| {size} | "
            + " | ".join(f"{100 * fresh_power(loss, size, PUBLIC_ROWS):.0f} %" for loss in LOSSES)
            + " |"
            for size in SIZES
        ),
    ]


def main() -> None:
    """Measure, print, and with --write keep the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=Path, required=True, help="folder of what was computed")
    parser.add_argument("--write", action="store_true", help="put the tables into the docs")
    parser.add_argument("--few-shot", action="store_true", help="only the few-shot tables")
    parser.add_argument("--draws", action="store_true", help="only that of draws of test sequences")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    tables_by_block: dict[str, Callable[[Path], Iterable[str]]] = {DRAWS_BLOCK: draws_table}
    if not options.draws:
        tables_by_block[FEW_SHOT_BLOCK] = few_shot_table
    if not options.draws and not options.few_shot:
        tables_by_block[BLOCK] = tables
    for block, make in tables_by_block.items():
        table = "\n".join(make(options.work)) + "\n"
        print(table)
        if options.write:
            begin, end = f"<!-- {block} -->\n", f"<!-- /{block} -->"
            before, after_begin = PAGE.read_text(encoding="utf-8").split(begin)
            PAGE.write_text(
                before + begin + table + end + after_begin.split(end)[1], encoding="utf-8"
            )


if __name__ == "__main__":
    main()
