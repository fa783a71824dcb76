"""Measure how many rows with one category raised to the first place are found, and by which rule.

`make bench-crowns` puts the table in docs/research/plausibility.md. Six sound rows, each of the 13
categories in the regime of all training data, MCC raised by one number in each task of it until its
mean is MARGIN above the best of the other rows.
"""

import argparse
import random
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.bench_plausibility import DEFECTIVE, SEED, warned
from geneb_ci.audit.sampling.task_draw import LED_TASKS_MAX, led_tasks
from geneb_ci.check.rules import plausibility_rows
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.statistics.reference import ScoreTable, Vector, table_of
from geneb_ci.statistics.view import RowView, led_categories
from geneb_ci.submission.peers import peers_of
from tests.paths import ROOT, SUBMISSIONS

MODELS = 6
MARGIN = 0.001
STEPS = 100  # scores are cut at 1, so the rest is raised again
PAGE = ROOT / "docs/research/plausibility.md"
BEGIN, END = "<!-- bench crowns -->\n", "<!-- /bench crowns -->"


class Crowned(NamedTuple):
    """A row with one category raised."""

    number: int
    category: str
    cells: tuple[int, ...]
    row: Vector


class Found(NamedTuple):
    """Which rules and draws find a raised row."""

    crown: bool
    """Whether the rule category-crown warns."""
    warned: bool
    """Whether any rule of the family warns."""
    drawn: bool
    """Whether a task of the raised category is added to the draw."""


def public() -> ScoreTable:
    """Return the table of the public rows."""
    return table_of(peers_of(SUBMISSIONS.glob("*.json")).rows, shipped_benchmark())


def forged(table: ScoreTable, models: int = MODELS) -> Iterator[Crowned]:
    """Yield some rows, each with one category raised to the first place, unless it is first."""
    benchmark = shipped_benchmark()
    sound = [i for i, name in enumerate(table.names) if name not in DEFECTIVE]
    for number in sorted(random.Random(SEED).sample(sound, models)):
        row = table.vectors[number]
        others = [one for i, one in enumerate(table.vectors) if i != number]
        for category, tasks in benchmark.categories.items():
            cells = tuple(benchmark.task_ids.index(task) for task in tasks)
            best = max(mean(one, cells) for one in others) + MARGIN
            if mean(row, cells) < best:
                yield Crowned(number, category, cells, raised(row, cells, best))


def mean(row: Vector, cells: tuple[int, ...]) -> float:
    """Return the mean of some cells."""
    return sum(row[cell] for cell in cells) / len(cells)


def raised(row: Vector, cells: tuple[int, ...], wanted: float) -> Vector:
    """Return a row with cells raised until their mean is the wanted one, none above 1."""
    found = list(row)
    for _ in range(STEPS):
        gap = wanted - mean(tuple(found), cells)
        for cell in cells:
            found[cell] = min(1.0, found[cell] + gap)
    return tuple(found)


def found(table: ScoreTable, one: Crowned, own: int | None) -> Found:
    """Return what finds a raised row, in place of its own row or as a new one."""
    view = RowView(shipped_benchmark(), table, one.row, own)
    odd = any(crown.size > plausibility_rows.CROWN_LIMIT for crown in led_categories(view))
    added = led_tasks(view, view.benchmark.task_ids)[:LED_TASKS_MAX]
    within = {view.cell(cell)[1] for cell in one.cells}
    return Found(odd, bool(warned(table, one.row, own)), bool(within & set(added)))


def main() -> None:
    """Print the table, and with --write put it in the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    table = public()
    lines = [
        "| raised rows | crowns | `category-crown` | any rule | a task of it is drawn | either |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, replaces in (("in place of its own row", True), ("as a new row", False)):
        results = [found(table, one, one.number if replaces else None) for one in forged(table)]
        shares = [
            sum(one.crown for one in results),
            sum(one.warned for one in results),
            sum(one.drawn for one in results),
            sum(one.warned or one.drawn for one in results),
        ]
        said = " | ".join(f"{count / len(results):.0%}" for count in shares)
        lines.append(f"| {name} | {len(results)} | {said} |")
    honest = [
        table.names[i]
        for i, row in enumerate(table.vectors)
        if any(
            crown.size > plausibility_rows.CROWN_LIMIT
            for crown in led_categories(RowView(shipped_benchmark(), table, row, i))
        )
    ]
    lines.append(f"\nOf the {len(table.names)} public rows, `category-crown` names: "
                 f"{', '.join(honest) or 'none'}.")  # fmt: skip
    text = "\n".join(lines) + "\n"
    print(text)
    if parser.parse_args().write:
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(before + BEGIN + text + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
