"""Tables of ranks for a terminal of 80 columns, and in Markdown."""

import io
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from reference_harness.formats.files import dumps
from reference_harness.formats.text import plural

from .report import Agreement, Probes

TERMINAL_COLUMNS = 80
NAME_COLUMNS_MIN = 12  # columns; the name of a model is folded rather than cut


class RankTable(NamedTuple):
    """A table with a title."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def rank_tables(probes: Probes) -> Iterable[RankTable]:
    """Yield a table of ranks per regime, then one of the agreement between kinds of probe."""
    for regime, by_kind in probes.standings.items():
        order = sorted(by_kind[probes.kinds[0]].items(), key=lambda item: (item[1].rank, item[0]))
        yield RankTable(
            f"{regime}: macro MCC of {plural(len(probes.tasks), 'task')}, and rank",
            ("model", *probes.kinds),
            [
                (
                    name,
                    *(
                        f"{by_kind[kind][name].macro:.3f} {by_kind[kind][name].rank:>2}"
                        for kind in probes.kinds
                    ),
                )
                for name, _ in order
            ],
        )
    rows = [
        (regime, pair.second, _tau_text(pair), f"{pair.swapped} of {pair.pairs}")
        for regime, pairs in probes.agreement.items()
        for pair in pairs
        if pair.first == probes.kinds[0]
    ]
    if rows and len(probes.receipts) > 1:
        yield RankTable(
            f"Agreement of the order of models with that of {probes.kinds[0]}",
            ("regime", "probe", "Kendall's tau", "pairs in opposite order"),
            rows,
        )


def _tau_text(pair: Agreement) -> str:
    """Return Kendall's tau-b with two decimals, or "undefined"."""
    return "undefined" if pair.tau is None else f"{pair.tau:.2f}"


def as_text(probes: Probes) -> str:
    """Return the tables for a terminal."""
    stream = io.StringIO()
    console = Console(file=stream, width=TERMINAL_COLUMNS, color_system=None)
    for rank_table in rank_tables(probes):
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for index, column in enumerate(rank_table.columns):
            is_number = bool(index) and column != "probe"
            table.add_column(
                column,
                justify="right" if is_number else "left",
                overflow="fold",
                no_wrap=is_number,
                min_width=None if index else min(NAME_COLUMNS_MIN, TERMINAL_COLUMNS),
            )
        for row in rank_table.rows:
            table.add_row(*map(Text, row))  # names of models are not markup
        console.print(Text(rank_table.title))
        console.print()
        console.print(table)
        console.print()
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()).rstrip() + "\n"


def as_markdown(probes: Probes) -> str:
    """Return the tables as Markdown."""
    lines: list[str] = []
    for rank_table in rank_tables(probes):
        rule = ["---", *("---" if name == "probe" else "---:" for name in rank_table.columns[1:])]
        lines += [f"**{rank_table.title}**", ""]
        lines += [
            f"| {' | '.join(_escaped(cell) for cell in row)} |"
            for row in (rank_table.columns, rule, *rank_table.rows)
        ]
        lines.append("")
    return "\n".join(lines)


def _escaped(cell: str) -> str:
    """Return the Markdown of one table cell; ids may be any text, as the file was not checked."""
    return " ".join(cell.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def as_json(probes: Probes) -> str:
    """Return the result as JSON."""
    return dumps(probes.model_dump()).decode()


WRITERS: dict[str, Callable[[Probes], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "json": as_json,
}
"""Function that writes the result, by format."""
