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
    gains,
)
from geneb_ci.audit.rerun.honesty import (
    ALARM,
    FreshResult,
    VariantResult,
    accuracy_loss,
    fresh_power,
    fresh_result,
    net_error_share,
    task_decisions,
    variant_result,
)
from reference_harness import benchmark, mini, probe
from reference_harness.data import Folder
from reference_harness.decisions import few_shot_draws, few_shot_scores
from reference_harness.formats.rescored import Decisions, FewShotScores
from reference_harness.tasks import TaskData
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

ROWS = 308
"""Number of varied sequences per task, as in an audit that draws 13 tasks."""
MINI_SEEDS = (mini.SEED, 11)
FRESH_SEEDS = (*MINI_SEEDS, *range(12, 20))
"""Sets that honest extractors are scored on beside fresh ones: one set has the luck of its 2,080
public test rows, 0.02 of MCC in the mean over its tasks."""
FRESH_SEED = 7_000
"""Added to the seed of a set: that of its fresh sequences."""
REAL_TRAIN_MAX, REAL_NAME = 2_000, "six real tasks"
"""Training rows kept of a real task: a fit of 1,024 columns then takes seconds."""
TEST_EPOCHS = 60
AUDITS, DRAWS = 2, 200
"""Audits of each memoriser, each with other variants, and draws of tasks from them."""
DRAWN = (5, 13)
TUNED = "trained on the test set"
MOVER_KEYS = ("whole sequence", "first quarter", "one minhash")
"""Keys of the sequences that an extractor moves."""
FEW_TASKS = 2
"""Number of tasks whose training sequences an extractor moves."""
REAL_MOVED = ("mouse_3", "prom_core_tata")
"""The real tasks whose training sequences an extractor moves."""
FEW = "first quarter, few-shot regimes alone"
"""A column that the probe of the full regime ignores; tasks of two classes."""
FALL = 0.02
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


class Trial(NamedTuple):
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
        Case(TaskData(one.id, one.train.head(REAL_TRAIN_MAX), one.test), None) for one in loaded
    ]


def measured(
    work: Path,
    name: str,
    tasks: str,
    make: Callable[[], Any],
    cases: list[Case],
    *,
    seed: int = 0,
    rows: int = ROWS,
) -> list[Decisions]:
    """Return the decisions of every task, from the folder if it has them."""
    path = work / f"{name}-{tasks}-{seed}.json".replace(" ", "_").replace(",", "")
    if not path.exists():
        started, extractor = time.perf_counter(), make()
        found = [decisions_of(extractor, case, f"audit {seed}", rows) for case in cases]
        path.write_text(json.dumps([one.model_dump() for one in found]), encoding="utf-8")
        print(f"{name}, {tasks}, {seed}: {time.perf_counter() - started:.0f} s", flush=True)
    return [Decisions.model_validate(one) for one in json.loads(path.read_text(encoding="utf-8"))]


def honest_trials(work: Path) -> Iterator[Trial]:
    sets = {f"mini {seed}": mini_cases(seed) for seed in MINI_SEEDS}
    real = {REAL_NAME: real_cases()} if REAL_TASKS.is_dir() else {}
    for tasks, cases in (sets | real).items():
        for name, make in honest().items():
            yield Trial(name, tasks, [measured(work, name, tasks, make, cases)])


def fresh_summary(work: Path, sound: Sequence[Trial]) -> str:
    """Return a sentence about the mean and largest loss of honest extractors on fresh sets."""
    others = {seed: mini_cases(seed) for seed in FRESH_SEEDS if seed not in MINI_SEEDS}
    means: list[float] = []
    errors: list[float] = []
    worst: list[float] = []
    beyond = dropped = 0
    for name, make in honest().items():
        sets = [one.audits[0] for one in sound if one.name == name and one.audits[0][0].fresh]
        for seed, cases in others.items():
            sets.append(measured(work, name, f"fresh {seed}", make, cases, rows=0))
        losses = np.array([mean_drop(one) for one in sets])
        means.append(-float(losses.mean()))
        errors.append(float(losses.std(ddof=1)) / math.sqrt(len(losses)))
        worst.append(float(losses.max()))
        results = [fresh_of(one) for one in sets]
        beyond += sum(
            loss > FALL + ALARM * error
            for loss, error in (accuracy_loss(one.tasks) for one in results)
        )
        dropped += sum(one.dropped for one in results)
    return (
        f"Over {len(FRESH_SEEDS)} sets, MCC of an honest extractor changes on fresh sequences by "
        f"{min(means):+.4f} to {max(means):+.4f} in the mean (standard error at most "
        f"{max(errors):.4f}). Of {len(FRESH_SEEDS) * len(means)} sets the worst lost "
        f"{max(worst):.3f}; {beyond} lost accuracy beyond {FALL:g} and {ALARM:g} standard errors, "
        f"{dropped} were flagged."
    )


def fresh_of(found: Sequence[Decisions]) -> FreshResult:
    """Return the result of the fresh rows of all tasks that have some."""
    result = fresh_result({f"{i}": ours(one) for i, one in enumerate(found)}, "0" * 64)
    assert result is not None
    return result


def cheat_trials(work: Path) -> Iterator[Trial]:
    tasks, cases = f"mini {mini.SEED}", mini_cases(mini.SEED)
    data = [case.data for case in cases]
    cheats: dict[str, Callable[[], Any]] = {
        name: functools.partial(Memoriser, data, keys) for name, keys in KEYS.items()
    }
    two = list(filter(_has_two_classes, data))
    cheats[FEW] = lambda: FewShotMemoriser(two, first_quarter, few_shot_indices)
    cheats[TUNED] = lambda: NetworkExtractor(trained(data, ("train", "test"), TEST_EPOCHS))
    for name, make in cheats.items():
        seeds = range(1 if name == TUNED else AUDITS)
        some = cases
        if name == FEW:
            some = [case for case in cases if _has_two_classes(case.data)]
        found = [measured(work, name, tasks, make, some, seed=seed) for seed in seeds]
        yield Trial(name, tasks, found)


def mover_trials(work: Path) -> Iterator[Trial]:
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
        yield Trial(name, tasks, [measured(work, f"moved {name}", tasks, make, cases)])


def few_shot_of(found: Sequence[Decisions]) -> list[Gain]:
    """Return the gains of few-shot probes over some tasks."""
    parts = {f"{i}": ours(one) for i, one in enumerate(found)}
    result = few_shot_result(
        {name: one.few_shot for name, one in parts.items()},
        {name: one.varied for name, one in parts.items()},
    )
    assert result is not None
    return list(gains(result))


def nearest_gain(found: Sequence[Sequence[Gain]], beside: str, *, is_mean: bool) -> str:
    """Return the gain that is nearest to its limit, or the farthest above it, and the limit."""
    own = [
        gain
        for one in found
        for gain in one
        if gain.other_fits == beside and (not gain.task) == is_mean
    ]
    largest = max(own, key=lambda gain: (gain.gain - MARGIN) / (gain.limit - MARGIN))
    return f"{largest.gain:+.3f} of {largest.limit:.3f}"


def few_shot_row(name: str, found: Sequence[Sequence[Decisions]]) -> str:
    """Return the line of one extractor, or of several."""
    found_gains = [few_shot_of(one) for one in found]
    cells = " | ".join(
        nearest_gain(found_gains, beside, is_mean=is_mean)
        for beside in (OTHERS, VARIANTS)
        for is_mean in (True, False)
    )
    flagged_few = sum(any(gain.is_flagged for gain in one) for one in found_gains)
    others = sum(map(flagged, found))
    return f"| {name} | {len(found)} | {cells} | {flagged_few} | {others} |"


def few_shot_table(work: Path) -> Iterator[str]:
    """Yield the gains of few-shot probes, of honest extractors and of those that move sequences."""
    columns = "others, mean | others, a task | variants, mean | variants, a task"
    yield f"| few-shot probes | extractors | {columns} | flagged | flagged by other variants |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    sound = itertools.groupby(honest_trials(work), key=lambda trial: trial.tasks)
    for tasks, group in sound:
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
            problem = probe.Problem(train, labels, test, data.test.labels)
            draws = few_shot_draws(labels, protocol.few_shot_k, protocol.seeds, "s0")
            scored = few_shot_scores(problem, draws)
            scores_by_task[data.id] = {
                regime: scores_of_regime.model_dump() for regime, scores_of_regime in scored.items()
            }
        path.write_text(json.dumps(scores_by_task), encoding="utf-8")
    saved = json.loads(path.read_text(encoding="utf-8"))
    scores = {
        task: {regime: FewShotScores.model_validate(value) for regime, value in by_regime.items()}
        for task, by_regime in saved.items()
    }
    result = few_shot_result(scores, {})
    assert result is not None
    return list(gains(result))


def draws_row(name: str, found: Sequence[Sequence[Gain]]) -> str:
    """Return the line of one extractor, or of several, beside draws of test sequences."""
    cells = " | ".join(nearest_gain(found, TESTS, is_mean=is_mean) for is_mean in (True, False))
    flagged_few = sum(
        any(gain.is_flagged and gain.other_fits == TESTS for gain in one) for one in found
    )
    return f"| {name} | {len(found)} | {cells} | {flagged_few} |"


def draws_table(work: Path) -> Iterator[str]:
    """Yield the gains of fits on training sequences over fits on test sequences."""
    yield "| few-shot probes | extractors | mean | a task | flagged |"
    yield "|---|---:|---:|---:|---:|"
    sets = {f"mini {seed}": mini_cases(seed) for seed in MINI_SEEDS}
    real = {REAL_NAME: real_cases()} if REAL_TASKS.is_dir() else {}
    for tasks, cases in (sets | real).items():
        sound = [gains_of_draws(work, name, tasks, make, cases) for name, make in honest().items()]
        yield draws_row(f"honest, {tasks}", sound)
    for tasks, cases in ({f"mini {mini.SEED}": sets[f"mini {mini.SEED}"]} | real).items():
        data = [case.data for case in cases]
        two = [one for one in data if one.id.endswith(REAL_MOVED)] or data[:FEW_TASKS]
        for known, some in ((f"of {FEW_TASKS} tasks", two), ("all", data)):
            make = functools.partial(MovedTraining, some, KEYS["one minhash"])
            own = [gains_of_draws(work, f"moved {known}", tasks, make, cases)]
            yield draws_row(f"training sequences moved, {known}, one minhash, {tasks}", own)


def _has_two_classes(data: TaskData) -> bool:
    return bool(data.train.labels.max() == 1)


def flagged(found: Sequence[Decisions]) -> bool:
    """Whether an audit of these tasks flags the extractor by its variants."""
    result = varied_in(found)
    return result.memorised


def varied_in(found: Sequence[Decisions]) -> VariantResult:
    """Return the result of the variants of some tasks."""
    decided = {f"{i}": task_decisions(ours(one)) for i, one in enumerate(found)}
    return variant_result(decided, "0" * 64, ROWS, reverse=False)


def ours(one: Decisions) -> Decisions:
    return Decisions.model_validate(one.model_dump())


def rates(trial: Trial, drawn: int) -> float:
    """Return the share of audits of so many drawn tasks that flag the extractor."""
    rng = random.Random(f"{trial.name}{drawn}")
    wrong = 0
    for number in range(DRAWS):
        decisions = trial.audits[number % len(trial.audits)]
        wrong += flagged(rng.sample(decisions, min(drawn, len(decisions))))
    return wrong / DRAWS


def differences(found: Sequence[Decisions]) -> list[float]:
    """Return D of each kind of variant, the largest D of other probes, and that of training."""
    result = varied_in(found)
    others = max(
        net_error_share(one) for probe in result.others.values() for one in probe.kinds.values()
    )
    refit = net_error_share(result.training) if result.training else 0.0
    return [*map(net_error_share, result.kinds.values()), others, refit]


def row(trial: Trial) -> str:
    """Return the line of a memoriser."""
    found = trial.audits[0]
    public = sum(one.public.MCC for one in found) / len(found)
    best = max(
        sum(one.others[name].public.MCC for one in found) / len(found) for name in found[0].others
    )
    shown = " | ".join(f"{one:+.3f}" for one in differences(found))
    shares = " | ".join(f"{100 * rates(trial, drawn):.0f} %" for drawn in DRAWN)
    dropped = "yes" if fresh_of(found).dropped else "no"
    return (
        f"| {trial.name} | {public:.2f}, {best:.2f} | {shown} | {shares} "
        f"| {-mean_drop(found):+.3f}, {-largest_drop(found):+.3f} | {dropped} |"
    )


def honest_rows(sound: Sequence[Trial]) -> Iterator[str]:
    """Yield a line for each set of tasks: the largest D of honest extractors, and their MCC."""
    for tasks, group in itertools.groupby(sound, key=lambda trial: trial.tasks):
        audits = [trial.audits[0] for trial in group]
        columns = zip(*map(differences, audits), strict=True)
        largest = " | ".join(f"{max(one):+.3f}" for one in columns)
        wrong = sum(map(flagged, audits))
        drops = [mean_drop(one) for one in audits if one[0].fresh]
        fresh = f"{-max(drops):+.3f} to {-min(drops):+.3f}" if drops else ""
        yield f"| {tasks} | {len(audits)} | {largest} | {wrong} | {fresh} |"


def tables(work: Path) -> list[str]:
    kinds = "substituted | cropped | shifted | other probes | training"
    shares = " | ".join(f"flagged, {n} drawn" for n in DRAWN)
    sound = list(honest_trials(work))
    return [
        *LEGEND.splitlines(),
        "",
        f"| memoriser | MCC | {kinds} | {shares} | fresh MCC | flagged |",
        "|---|---:|---:|---:|---:|---:|---:|" + "---:|" * len(DRAWN) + "---:|---|",
        *map(row, cheat_trials(work)),
        "",
        f"| tasks | honest extractors | {kinds} | flagged | fresh MCC |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
        *honest_rows(sound),
        "",
        fresh_summary(work, sound),
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
    made: dict[str, Callable[[Path], Iterable[str]]] = {DRAWS_BLOCK: draws_table}
    if not options.draws:
        made[FEW_SHOT_BLOCK] = few_shot_table
    if not options.draws and not options.few_shot:
        made[BLOCK] = tables
    for block, make in made.items():
        table = "\n".join(make(options.work)) + "\n"
        print(table)
        if options.write:
            begin, end = f"<!-- {block} -->\n", f"<!-- /{block} -->"
            before, rest = PAGE.read_text(encoding="utf-8").split(begin)
            PAGE.write_text(before + begin + table + end + rest.split(end)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
