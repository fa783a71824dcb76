"""Measure how many rows with one category raised to the first place are found, and by which rule.

`make bench-crowns` puts the table in docs/research/plausibility.md. Six sound rows, each of the 13
categories in the regime of all training data, MCC raised by one number in each task of it until its
mean is MARGIN above the best of the other rows.
"""

import argparse
import random
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.bench_plausibility import DEFECTIVE_ROWS, SEED, reporting_rules
from geneb_ci.audit.sampling.task_draw import LED_TASKS_MAX, led_tasks
from geneb_ci.check.rules import plausibility_rows
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.statistics.reference import ScoreTable, Vector, score_table_of
from geneb_ci.statistics.view import RowView, led_categories
from geneb_ci.submission.peers import peers_of
from tests.paths import ROOT, SUBMISSIONS

MODELS = 6
MARGIN = 0.001
STEPS = 100  # rounds of raising: scores are cut at 1, and the other cells are raised further
PAGE = ROOT / "docs/research/plausibility.md"
BEGIN, END = "<!-- bench crowns -->\n", "<!-- /bench crowns -->"


class RaisedRow(NamedTuple):
    """A public row with one category raised to the first place."""

    row_index: int
    """Index of the public row in the table."""
    category: str
    cells: tuple[int, ...]
    row: Vector


class Detection(NamedTuple):
    """Whether rules and draws detect a raised row."""

    by_crown_rule: bool
    """Whether the rule category-crown warns."""
    by_any_rule: bool
    """Whether any rule of the family warns."""
    by_draw: bool
    """Whether a task of the raised category is added to the draw."""


def public_table() -> ScoreTable:
    """Return the table of the public rows."""
    return score_table_of(peers_of(SUBMISSIONS.glob("*.json")).rows, shipped_benchmark())


def raised_rows(table: ScoreTable, models: int = MODELS) -> Iterator[RaisedRow]:
    """Yield copies of some rows, in each of which a category that was not first is raised to it."""
    benchmark = shipped_benchmark()
    sound = [i for i, name in enumerate(table.models) if name not in DEFECTIVE_ROWS]
    for row_index in sorted(random.Random(SEED).sample(sound, models)):
        row = table.vectors[row_index]
        others = [vector for i, vector in enumerate(table.vectors) if i != row_index]
        for category, tasks in benchmark.categories.items():
            cells = tuple(benchmark.task_ids.index(task) for task in tasks)
            best = max(mean(vector, cells) for vector in others) + MARGIN
            if mean(row, cells) < best:
                yield RaisedRow(row_index, category, cells, with_mean(row, cells, best))


def mean(row: Vector, cells: tuple[int, ...]) -> float:
    """Return the mean of some cells."""
    return sum(row[cell] for cell in cells) / len(cells)


def with_mean(row: Vector, cells: tuple[int, ...], mean_score: float) -> Vector:
    """Return a row with cells raised until they have this mean, none above 1."""
    scores = list(row)
    for _ in range(STEPS):
        difference = mean_score - mean(tuple(scores), cells)
        for cell in cells:
            scores[cell] = min(1.0, scores[cell] + difference)
    return tuple(scores)


def detection(table: ScoreTable, raised: RaisedRow, own_index: int | None) -> Detection:
    """Return whether a raised row is detected, in place of row `own_index` or as a new row."""
    view = RowView(shipped_benchmark(), table, raised.row, own_index)
    by_crown_rule = any(
        lead.size > plausibility_rows.CATEGORY_DEVIATIONS_MAX for lead in led_categories(view)
    )
    added_tasks = led_tasks(view, view.benchmark.task_ids)[:LED_TASKS_MAX]
    raised_tasks = {view.cell(cell)[1] for cell in raised.cells}
    by_any_rule = bool(reporting_rules(table, raised.row, own_index))
    return Detection(by_crown_rule, by_any_rule, bool(raised_tasks & set(added_tasks)))


def main() -> None:
    """Print the table, and with --write put it in the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    table = public_table()
    lines = [
        "| raised rows | crowns | `category-crown` | any rule | a task of it is drawn | either |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, replaces in (("in place of its own row", True), ("as a new row", False)):
        results = [
            detection(table, raised, raised.row_index if replaces else None)
            for raised in raised_rows(table)
        ]
        counts = [
            sum(result.by_crown_rule for result in results),
            sum(result.by_any_rule for result in results),
            sum(result.by_draw for result in results),
            sum(result.by_any_rule or result.by_draw for result in results),
        ]
        columns = " | ".join(f"{count / len(results):.0%}" for count in counts)
        lines.append(f"| {name} | {len(results)} | {columns} |")
    honest_names = [
        table.models[i]
        for i, row in enumerate(table.vectors)
        if any(
            lead.size > plausibility_rows.CATEGORY_DEVIATIONS_MAX
            for lead in led_categories(RowView(shipped_benchmark(), table, row, i))
        )
    ]
    lines.append(f"\nOf the {len(table.models)} public rows, `category-crown` names: "
                 f"{', '.join(honest_names) or 'none'}.")  # fmt: skip
    text = "\n".join(lines) + "\n"
    print(text)
    if parser.parse_args().write:
        before, after_begin = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(before + BEGIN + text + END + after_begin.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
