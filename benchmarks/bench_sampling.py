"""Compare simulated draws with the computed detection; `--write` puts the tables in the docs.

    python -m benchmarks.bench_sampling --write

Each draw is a real one: commitment, beacon value, seed, tickets. Only the values of the beacon are
made up, by hashing a counter, so that every run gives the same tables.
"""

import argparse
import hashlib
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from geneb_ci.audit.sampling.design import (
    TABLE_DRAWN,
    TABLE_FABRICATED,
    DrawPopulation,
    detection_probability,
    needed_sample_size,
    part_sample_sizes,
    probability_text,
    sampled_tasks,
    seed_of,
    strata_of,
    task_parts,
    tickets_of,
)
from geneb_ci.audit.sampling.plan import EarlierDraw
from geneb_ci.audit.sampling.task_draw import earlier_tasks
from geneb_ci.common.benchmark import shipped_benchmark
from tests.paths import ROOT

SEED = 20_261_121
DRAWS = 10_000
# Forgers who push again: many of them for a while, a few of them for long.
MANY_FORGERS = (1_000, 50)
FEW_FORGERS = (20, 1_000)
PUSHED_DRAWN, PUSHED_FABRICATED = 10, 20
SHOWN_PUSHES = (1, 2, 5, 10, 20, 50)
PAGE = ROOT / "docs/research/draw.md"
BEGIN, END = "<!-- bench {} -->\n", "<!-- /bench {} -->"
TASKS = shipped_benchmark().task_ids
ANY_COMMITMENT = "0" * 64  # commitment of an earlier draw, which has no effect here


def made_up_beacon(*names: object) -> bytes:
    """Return a made-up beacon value, which differs between names."""
    return hashlib.sha256("/".join(map(str, (SEED, *names))).encode()).digest()


def ranked_tasks(*names: object) -> list[str]:
    """Return the tasks in the order of their tickets in one draw."""
    commitment = hashlib.sha256(b"/".join(str(name).encode() for name in names)).hexdigest()
    return [
        ticket.task for ticket in tickets_of(seed_of(commitment, made_up_beacon(*names)), TASKS)
    ]


class SimulatedDetection(NamedTuple):
    """Detection with one size of sample and one number of fabricated tasks."""

    drawn: int
    fabricated: int
    simulated: float
    computed: float
    draws: int

    @property
    def standard_errors(self) -> float:
        """Difference of simulated and computed detection, in standard errors."""
        spread = math.sqrt(self.computed * (1 - self.computed) / self.draws)
        return abs(self.simulated - self.computed) / spread if spread else 0.0


def simulated_detections(draws: int) -> list[SimulatedDetection]:
    """Return how often samples have one of m fabricated tasks: the first m, as any m are alike."""
    index_by_task = {task: number for number, task in enumerate(TASKS)}
    caught = dict.fromkeys(((k, m) for k in TABLE_DRAWN for m in TABLE_FABRICATED), 0)
    for number in range(draws):
        order = [index_by_task[task] for task in ranked_tasks("draw", number)]
        for k in TABLE_DRAWN:
            first_index = min(order[:k])
            for m in TABLE_FABRICATED:
                caught[k, m] += first_index < m
    population = DrawPopulation((len(TASKS),))
    return [
        SimulatedDetection(
            k, m, count / draws, float(detection_probability(population, m, k)), draws
        )
        for (k, m), count in caught.items()
    ]


class PushResult(NamedTuple):
    """Shares of forgers that are not found up to a push."""

    push: int
    evaded_redrawn: float
    """Share of forgers whom at least one draw so far did not find, if each draw counts alone."""
    evaded_union: float
    """Share of forgers whom the union of all draws so far does not find."""
    rerun: float
    """Mean number of tasks of the union."""
    lowered_count: int
    """Number of pushes after which a union had fewer fabricated tasks than before."""


def push_results(forgers: int, pushes: int, drawn: int, fabricated: int) -> Iterator[PushResult]:
    """Let forgers push again and again, with the same tasks fabricated each time."""
    fabricated_tasks = set(TASKS[:fabricated])
    unions: list[set[str]] = [set() for _ in range(forgers)]
    is_missed = [False] * forgers
    lowered_count = 0
    for push in range(1, pushes + 1):
        for forger in range(forgers):
            union, order = unions[forger], ranked_tasks("push", forger, push)
            drawn_tasks = sampled_tasks(order, drawn)
            is_missed[forger] |= not fabricated_tasks.intersection(drawn_tasks)
            earlier = [EarlierDraw(commitment=ANY_COMMITMENT, drawn=sorted(union))] if union else []
            new_union = {*drawn_tasks, *earlier_tasks(order, drawn_tasks, earlier)}
            lowered_count += len(new_union & fabricated_tasks) < len(union & fabricated_tasks)
            unions[forger] = new_union
        yield PushResult(
            push,
            sum(is_missed) / forgers,
            sum(not union & fabricated_tasks for union in unions) / forgers,
            sum(map(len, unions)) / forgers,
            lowered_count,
        )


def detection_table(cells: list[SimulatedDetection]) -> list[str]:
    """Return the lines of computed detection, and its difference from simulated draws."""
    lines = [
        f"| drawn | {' | '.join(f'm = {m}' for m in TABLE_FABRICATED)} |",
        f"|---:|{'---:|' * len(TABLE_FABRICATED)}",
    ]
    for k in TABLE_DRAWN:
        row = [f"{c.computed:.3f}" for c in cells if c.drawn == k]
        lines.append(f"| {k} | {' | '.join(row)} |")
    population = DrawPopulation((len(TASKS),))
    sizes = [str(needed_sample_size(population, m, Fraction("0.95"))) for m in TABLE_FABRICATED]
    worst = max(cell.standard_errors for cell in cells)
    return [
        *lines,
        f"| needed for 95 % | {' | '.join(sizes)} |",
        "",
        (
            f"Computed; {cells[0].draws:,} simulated draws of each, seed {SEED}, lie at most "
            f"{worst:.1f} standard errors away."
        ),
    ]


def strata_table() -> list[str]:
    """Return the cost of stratification: detection of any tasks, and of the worst ones."""
    benchmark = shipped_benchmark()
    strata = strata_of(benchmark, TASKS)
    sizes = tuple(len(part) for part in task_parts(TASKS, strata))
    lines = [
        (
            "| drawn | places by category (the last: the smaller ones together) | m = 1 | m = 5 | "
            "m = 20 |"
        ),
        "|---:|---|---:|---:|---:|",
    ]
    for k in (13, 25):
        places = part_sample_sizes(sizes, len(strata), k)
        shares = ", ".join(
            f"{place_count} of {task_count}"
            for place_count, task_count in zip(places, sizes, strict=True)
        )
        cells = [
            f"{probability_text(detection_probability(DrawPopulation(sizes, len(strata)), m, k))} "
            f"({probability_text(detection_probability(DrawPopulation((len(TASKS),)), m, k))})"
            for m in (1, 5, 20)
        ]
        lines.append(f"| {k} | {shares} | {' | '.join(cells)} |")
    return [*lines, "", "Stratified at the worst placing; plain in brackets."]


def pushes_table(results_of_many: list[PushResult], results_of_few: list[PushResult]) -> list[str]:
    """Return the lines about forgers who push again."""
    lines = [
        "| pushes | evaded, each draw alone | (computed) | evaded, on the union | tasks rerun |",
        "|---:|---:|---:|---:|---:|",
    ]
    population = DrawPopulation((len(TASKS),))
    detection_of_one_draw = float(
        detection_probability(population, PUSHED_FABRICATED, PUSHED_DRAWN)
    )
    lines += [
        f"| {result.push} | {result.evaded_redrawn:.3f} | "
        f"({1 - detection_of_one_draw**result.push:.3f}) "
        f"| {result.evaded_union:.3f} | {result.rerun:.0f} |"
        for result in results_of_many
        if result.push in SHOWN_PUSHES
    ]
    return [
        *lines,
        "",
        (
            f"{PUSHED_FABRICATED} of {len(TASKS)} tasks fabricated, {PUSHED_DRAWN} drawn, "
            f"{MANY_FORGERS[0]:,} forgers. Of {FEW_FORGERS[0]} forgers who push "
            f"{FEW_FORGERS[1]:,} times each, the union "
            f"found fewer fabricated tasks than before after {results_of_few[-1].lowered_count} of "
            f"{FEW_FORGERS[0] * FEW_FORGERS[1]:,} pushes."
        ),
    ]


def main() -> None:
    """Simulate, print, and with --write keep the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--write", action="store_true", help="put the tables into docs/research/draw.md"
    )
    parser.add_argument("--draws", type=int, default=DRAWS)
    options = parser.parse_args()
    results_of_many = list(push_results(*MANY_FORGERS, PUSHED_DRAWN, PUSHED_FABRICATED))
    results_of_few = list(push_results(*FEW_FORGERS, PUSHED_DRAWN, PUSHED_FABRICATED))
    tables = {
        "detection": detection_table(simulated_detections(options.draws)),
        "strata": strata_table(),
        "pushes": pushes_table(results_of_many, results_of_few),
    }
    text = PAGE.read_text(encoding="utf-8")
    for name, lines in tables.items():
        print("\n".join(lines) + "\n")
        before, after_begin = text.split(BEGIN.format(name))
        _, after_end = after_begin.split(END.format(name))
        text = before + BEGIN.format(name) + "\n".join(lines) + "\n" + END.format(name) + after_end
    if options.write:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
