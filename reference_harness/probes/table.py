"""Tables of ranks for a terminal of 80 columns, and as Markdown."""

import io
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from reference_harness.formats.files import dumps
from reference_harness.formats.text import plural

from .report import Agreement, Probes

WIDTH = 80
NAME_MIN = 12  # columns; the name of a model is folded rather than cut


class RankTable(NamedTuple):
    """One table under a line of text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def parts(found: Probes) -> Iterable[RankTable]:
    """Yield a table of ranks for each regime, then how far the kinds of probe agree."""
    for regime, by_kind in found.standings.items():
        order = sorted(by_kind[found.kinds[0]].items(), key=lambda one: (one[1].rank, one[0]))
        yield RankTable(
            f"{regime}: macro MCC of {plural(len(found.tasks), 'task')}, and rank",
            ("model", *found.kinds),
            [
                (
                    name,
                    *(
                        f"{by_kind[kind][name].macro:.3f} {by_kind[kind][name].rank:>2}"
                        for kind in found.kinds
                    ),
                )
                for name, _ in order
            ],
        )
    rows = [
        (regime, one.second, _tau(one), f"{one.swapped} of {one.pairs}")
        for regime, pairs in found.agreement.items()
        for one in pairs
        if one.first == found.kinds[0]
    ]
    if rows and len(found.receipts) > 1:
        yield RankTable(
            f"How far the order of the models agrees with that of {found.kinds[0]}",
            ("regime", "probe", "Kendall's tau", "pairs in the other order"),
            rows,
        )


def _tau(one: Agreement) -> str:
    return "undefined" if one.tau is None else f"{one.tau:.2f}"


def text(found: Probes) -> str:
    """Return the tables for a terminal."""
    stream = io.StringIO()
    console = Console(file=stream, width=WIDTH, color_system=None)
    for part in parts(found):
        made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for index, name in enumerate(part.columns):
            right = bool(index) and name != "probe"
            made.add_column(
                name,
                justify="right" if right else "left",
                overflow="fold",
                no_wrap=right,
                min_width=None if index else min(NAME_MIN, WIDTH),
            )
        for row in part.rows:
            made.add_row(*map(Text, row))  # a model's name is no markup
        console.print(Text(part.title))
        console.print()
        console.print(made)
        console.print()
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()).rstrip() + "\n"


def markdown(found: Probes) -> str:
    """Return the tables as Markdown."""
    lines: list[str] = []
    for part in parts(found):
        rule = ["---", *("---" if name == "probe" else "---:" for name in part.columns[1:])]
        lines += [f"**{part.title}**", ""]
        lines += [
            f"| {' | '.join(_escaped(cell) for cell in row)} |"
            for row in (part.columns, rule, *part.rows)
        ]
        lines.append("")
    return "\n".join(lines)


def _escaped(cell: str) -> str:
    """Return a cell that stays one cell: an id is any text until `geneb-ci check` has seen it."""
    return " ".join(cell.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def as_json(found: Probes) -> str:
    """Return all of it as JSON."""
    return dumps(found.model_dump()).decode()


WRITERS: dict[str, Callable[[Probes], str]] = {"text": text, "markdown": markdown, "json": as_json}
