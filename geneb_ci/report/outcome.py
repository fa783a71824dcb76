"""What an audit found, as a table for a terminal."""

import io
from collections.abc import Iterator

from geneb_ci.audit.outcome import AuditedTask, Compared, Outcome
from geneb_ci.audit.verdict import beyond, slants
from geneb_ci.finding import counted
from geneb_ci.report.plain import visible

WIDTH = 110  # columns: the table's own width, so that a pipe shows what a terminal does
_MARKS = {"agrees": "✓", "differs": "✗"}


def outcome_text(outcome: Outcome) -> str:
    """Render an outcome: a row a task and regime, then what it means; ends with one newline."""
    from rich import box  # noqa: PLC0415 (30 ms that only this needs)
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("task", "regime", "claimed MCC", "rerun", "difference", "tolerance", ""):
        table.add_column(name, justify="left" if name in {"task", "regime", ""} else "right")
    for row in _rows(outcome):
        table.add_row(*(Text(cell) for cell in row))
    stream = io.StringIO()
    Console(file=stream, width=WIDTH, color_system=None).print(table)
    rows = [line.rstrip() for line in stream.getvalue().splitlines()]
    return "\n".join([*rows, *_summary(outcome)]) + "\n"


def _rows(outcome: Outcome) -> Iterator[tuple[str, ...]]:
    for task in outcome.tasks:
        name = visible(task.task) + ("" if task.reason == "drawn" else f" ({task.reason})")
        for regime, cell in task.regimes.items():
            yield (name, visible(regime), *_numbers(cell))
            name = ""


def _numbers(cell: Compared) -> tuple[str, ...]:
    difference = cell.claimed.MCC - cell.rescored.MCC
    said = _MARKS[cell.verdict]
    if cell.verdict == "differs":
        said += f" {_which(cell)}"
    return (
        f"{cell.claimed.MCC:.4f}",
        f"{cell.rescored.MCC:.4f}",
        f"{difference:+.4f}",
        f"{cell.tolerance.MCC:.4f}",
        said,
    )


def _which(cell: Compared) -> str:
    """Name the metrics outside their tolerance; canonical ones only where no other is."""
    if told := beyond(cell):
        return ", ".join(told)
    return f"canonical {', '.join(beyond(cell.canonical))}" if cell.canonical else ""


def _summary(outcome: Outcome) -> Iterator[str]:
    differing = [one for one in outcome.tasks if one.verdict == "differs"]
    if outcome.verdict == "agrees":
        yield (
            f"agrees: {counted(len(outcome.tasks), 'task')} rerun, each claim within its tolerance"
        )
    elif differing:
        yield f"differs: {_names(differing)} of {counted(len(outcome.tasks), 'rerun task')}"
    for regime, one in slants(outcome.tasks).items():
        if one.tells:
            side = "above" if one.share > 0 else "below"
            yield (
                f"differs: {visible(regime)}: the claims lie {side} the rerun as a whole, by "
                f"{abs(one.raised):.4f} in the mean: more than chance explains"
            )
    if outcome.decoys.order_dependent:
        yield "differs: an embedding depends on the order or the batch of its sequence"
    if outcome.decoys.memorised:
        yield "differs: sequences of the benchmark are treated otherwise than fresh ones like them"
    yield f"decoys: {visible(outcome.decoys.detail)}"
    yield from (f"note: {visible(note)}" for note in outcome.notes)


def _names(tasks: list[AuditedTask]) -> str:
    return ", ".join(visible(one.task) for one in tasks)
