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
    Design,
    allocation,
    detection_probability,
    needed_sample_size,
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
MANY = (1_000, 50)
FEW = (20, 1_000)
PUSHED_DRAWN, PUSHED_FABRICATED = 10, 20
SHOWN_PUSHES = (1, 2, 5, 10, 20, 50)
PAGE = ROOT / "docs/research/draw.md"
BEGIN, END = "<!-- bench {} -->\n", "<!-- /bench {} -->"
TASKS = shipped_benchmark().task_ids
NONE = "0" * 64  # commitment of a draw of which only the tasks count


def made_up(*names: object) -> bytes:
    """Return a made-up beacon value, which differs between names."""
    return hashlib.sha256("/".join(map(str, (SEED, *names))).encode()).digest()


def ranked(*names: object) -> list[str]:
    """Return the tasks in the order of their tickets in one draw."""
    commitment = hashlib.sha256(b"/".join(str(name).encode() for name in names)).hexdigest()
    return [one.task for one in tickets_of(seed_of(commitment, made_up(*names)), TASKS)]


class Cell(NamedTuple):
    """One size of sample against one number of fabricated tasks."""

    drawn: int
    fabricated: int
    simulated: float
    computed: float
    draws: int

    @property
    def errors(self) -> float:
        """Difference of simulated and computed detection, in standard errors."""
        spread = math.sqrt(self.computed * (1 - self.computed) / self.draws)
        return abs(self.simulated - self.computed) / spread if spread else 0.0


def simulated(draws: int) -> list[Cell]:
    """Count how often a sample has one of the first m tasks, which stand for any m tasks."""
    place = {task: number for number, task in enumerate(TASKS)}
    caught = dict.fromkeys(((k, m) for k in TABLE_DRAWN for m in TABLE_FABRICATED), 0)
    for number in range(draws):
        order = [place[task] for task in ranked("draw", number)]
        for k in TABLE_DRAWN:
            first = min(order[:k])
            for m in TABLE_FABRICATED:
                caught[k, m] += first < m
    design = Design((len(TASKS),))
    return [
        Cell(k, m, count / draws, float(detection_probability(design, m, k)), draws)
        for (k, m), count in caught.items()
    ]


class Pushed(NamedTuple):
    """Shares of forgers that are not found up to a push."""

    push: int
    evaded_redrawn: float
    """Share of them that some draw so far missed, if each draw counts for itself."""
    evaded_union: float
    """Share of them that is not found on the union of all draws so far."""
    rerun: float
    """Mean number of tasks of the union."""
    lowered: int
    """After how many pushes a union held fewer fabricated tasks than before."""


def pushed(forgers: int, pushes: int, drawn: int, fabricated: int) -> Iterator[Pushed]:
    """Let forgers push again and again, with the same tasks fabricated each time."""
    wrong = set(TASKS[:fabricated])
    unions: list[set[str]] = [set() for _ in range(forgers)]
    missed = [False] * forgers
    lowered = 0
    for push in range(1, pushes + 1):
        for forger in range(forgers):
            union, order = unions[forger], ranked("push", forger, push)
            fresh = sampled_tasks(order, drawn)
            missed[forger] |= not wrong.intersection(fresh)
            earlier = [EarlierDraw(commitment=NONE, drawn=sorted(union))] if union else []
            grown = {*fresh, *earlier_tasks(order, fresh, earlier)}
            lowered += len(grown & wrong) < len(union & wrong)
            unions[forger] = grown
        yield Pushed(
            push,
            sum(missed) / forgers,
            sum(not union & wrong for union in unions) / forgers,
            sum(map(len, unions)) / forgers,
            lowered,
        )


def detection_table(cells: list[Cell]) -> list[str]:
    """Return the lines of computed detection, and its difference from simulated draws."""
    lines = [
        f"| drawn | {' | '.join(f'm = {m}' for m in TABLE_FABRICATED)} |",
        f"|---:|{'---:|' * len(TABLE_FABRICATED)}",
    ]
    for k in TABLE_DRAWN:
        row = [f"{c.computed:.3f}" for c in cells if c.drawn == k]
        lines.append(f"| {k} | {' | '.join(row)} |")
    design = Design((len(TASKS),))
    sizes = [str(needed_sample_size(design, m, Fraction("0.95"))) for m in TABLE_FABRICATED]
    worst = max(cell.errors for cell in cells)
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
        places = allocation(sizes, len(strata), k)
        shares = ", ".join(f"{a} of {n}" for a, n in zip(places, sizes, strict=True))
        cells = [
            f"{probability_text(detection_probability(Design(sizes, len(strata)), m, k))} "
            f"({probability_text(detection_probability(Design((len(TASKS),)), m, k))})"
            for m in (1, 5, 20)
        ]
        lines.append(f"| {k} | {shares} | {' | '.join(cells)} |")
    return [*lines, "", "Stratified at the worst placing; plain in brackets."]


def pushes_table(many: list[Pushed], few: list[Pushed]) -> list[str]:
    """Return the lines about forgers who push again."""
    lines = [
        "| pushes | evaded, each draw alone | (computed) | evaded, on the union | tasks rerun |",
        "|---:|---:|---:|---:|---:|",
    ]
    design = Design((len(TASKS),))
    once = float(detection_probability(design, PUSHED_FABRICATED, PUSHED_DRAWN))
    lines += [
        f"| {one.push} | {one.evaded_redrawn:.3f} | ({1 - once**one.push:.3f}) "
        f"| {one.evaded_union:.3f} | {one.rerun:.0f} |"
        for one in many
        if one.push in SHOWN_PUSHES
    ]
    return [
        *lines,
        "",
        (
            f"{PUSHED_FABRICATED} of {len(TASKS)} tasks fabricated, {PUSHED_DRAWN} drawn, "
            f"{MANY[0]:,} forgers. Of {FEW[0]} forgers who push {FEW[1]:,} times each, the union "
            f"found fewer fabricated tasks than before after {few[-1].lowered} of "
            f"{FEW[0] * FEW[1]:,} pushes."
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
    many = list(pushed(*MANY, PUSHED_DRAWN, PUSHED_FABRICATED))
    few = list(pushed(*FEW, PUSHED_DRAWN, PUSHED_FABRICATED))
    tables = {
        "detection": detection_table(simulated(options.draws)),
        "strata": strata_table(),
        "pushes": pushes_table(many, few),
    }
    text = PAGE.read_text(encoding="utf-8")
    for name, lines in tables.items():
        print("\n".join(lines) + "\n")
        before, rest = text.split(BEGIN.format(name))
        _, after = rest.split(END.format(name))
        text = before + BEGIN.format(name) + "\n".join(lines) + "\n" + END.format(name) + after
    if options.write:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
