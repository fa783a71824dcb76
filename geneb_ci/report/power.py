"""What samples find, as a table for a terminal."""

import io
from collections.abc import Mapping
from fractions import Fraction

from rich import box
from rich.console import Console
from rich.table import Table

from geneb_ci.audit.power import SHOWN_DRAWN, SHOWN_FABRICATED, Design, shown, table

WIDTH = 100  # columns


def power_table(design: Design, marked: Mapping[int, str], power: Fraction) -> str:
    """Write the chance to find one of m fabricated tasks, for the usual and the marked samples."""
    fabricated = [m for m in SHOWN_FABRICATED if m <= design.tasks]
    found = Table(
        title=f"chance to find one of m fabricated tasks among {design.tasks}",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        caption=_caption(design, power),
        caption_justify="left",
    )
    found.add_column("drawn", justify="right")
    for m in fabricated:
        found.add_column(f"m = {m}", justify="right")
    found.add_column("")
    for row in table(design, [*SHOWN_DRAWN, *marked], fabricated, power):
        cells = (shown(value) for value in row.detection)
        style = "bold" if row.drawn in marked else None
        found.add_row(str(row.drawn), *cells, marked.get(row.drawn, ""), style=style)
    console = Console(file=io.StringIO(), width=WIDTH, color_system=None)
    console.print(found)
    text = console.file.getvalue()  # type: ignore[attr-defined]  # it is the StringIO from above
    return "\n".join(line.rstrip() for line in str(text).splitlines()) + "\n"


def _caption(design: Design, power: Fraction) -> str:
    lines = []
    if design.guaranteed:
        lines.append(
            f"{design.guaranteed} larger categories have a place each; this is the worst placing"
        )
    if power < 1:
        lines.append(f"a rerun finds a drawn one with probability {float(power):g}")
    return "\n".join(lines)
