"""Renders trust levels, recommendations and recovered matrices as text, CSV or JSON."""

import csv
import io
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from geneb_ci.audit.trust import Decision
from geneb_ci.audit.trust_evidence import RepositoryEvidence, reasons, shown_audit
from geneb_ci.board.matrices import Recovered
from geneb_ci.board.recommend import Advice, Choice, size_text
from geneb_ci.common.finding import plural
from geneb_ci.common.types import TrustLevel
from geneb_ci.render.plain import visible
from geneb_ci.render.tables import Table
from geneb_ci.render.text import escape


class LabelRow(NamedTuple):
    """One submission."""

    model_id: str
    decision: Decision | None
    """None if the file has errors; the row is then not on the board."""
    reasons: tuple[str, ...]


def row_of(model_id: str, sha256: str, errors: int, evidence: RepositoryEvidence) -> LabelRow:
    """Return the row of a submission with its trust level; `errors` is its number of errors."""
    if errors:
        return LabelRow(model_id, None, (f"{plural(errors, 'error')}: run `geneb-ci check`",))
    return LabelRow(model_id, evidence.decide(sha256), tuple(reasons(model_id, sha256, evidence)))


def labels_text(rows: Sequence[LabelRow]) -> str:
    """Return text for a terminal: each row with its audits, then the count of each level."""
    lines: list[str] = []
    width = max(len(_level(row)) for row in rows)
    for row in rows:
        first, *others = row.reasons
        first = first.removeprefix(f"{_level(row)}: ")
        audited = shown_audit(row.decision) if row.decision is not None else ""
        tail = f" ({audited})" if audited else ""
        lines.append(f"{_level(row):<{width}}  {escape(row.model_id)}: {escape(first)}{tail}")
        lines += [f"{'':<{width}}    {escape(line)}" for line in others]
    tally = Counter(map(_level, rows))
    order = [*map(str, TrustLevel), _NONE]
    said = [f"{tally[level]} {level}" for level in order if tally[level]]
    return "\n".join([*lines, "", f"{plural(len(rows), 'row')}: {', '.join(said)}"]) + "\n"


def labels_json(rows: Sequence[LabelRow]) -> str:
    """Return JSON."""
    value = {"schema_version": "1.0", "rows": [_label_row(row) for row in rows]}
    return json.dumps(value, indent=2, ensure_ascii=True) + "\n"


_NONE = "not on the board"


def _level(row: LabelRow) -> str:
    return _NONE if row.decision is None else str(row.decision.level)


def _label_row(row: LabelRow) -> dict[str, Any]:
    decision = row.decision
    audit = asdict(decision.audit) if decision is not None and decision.audit else None
    return {
        "model_id": row.model_id,
        "level": str(decision.level) if decision is not None else None,
        "official": decision.is_official if decision is not None else False,
        "audit": audit,
        "reasons": list(row.reasons),
    }


TIES_SHOWN = 10


def advice_text(advice: Advice) -> str:
    """Return the recommended model, its ties and the reasons as text."""
    lines = []
    if advice.best and advice.smallest:
        lines.append(f"best      {_line(advice.best)}")
        shown = ", ".join(map(visible, advice.ties[:TIES_SHOWN]))
        more = len(advice.ties) - TIES_SHOWN
        lines.append(f"ties      {shown or 'none'}{f' and {more} more' if more > 0 else ''}")
        lines.append(f"smallest  {_line(advice.smallest)}")
        lines.append("")
    return "\n".join([*lines, *map(visible, advice.why)]) + "\n"


def _line(choice: Choice) -> str:
    return (
        f"{visible(choice.model)}  MCC {choice.score:.3f} ({choice.low:.3f} to {choice.high:.3f}), "
        f"{size_text(choice.params)} parameters, {visible(choice.level)}"
    )


def advice_json(advice: Advice) -> str:
    """Return the recommendation as JSON."""
    return json.dumps(advice.model_dump(mode="json"), indent=1, allow_nan=False) + "\n"


ADVICE_WRITERS: dict[str, Callable[[Advice], str]] = {"text": advice_text, "json": advice_json}


COLUMNS = (
    *("regime", "task", "seed", "n_test", "small_class", "large_class", "matrices"),
    *("small_right", "small_wrong", "large_right", "large_wrong", "MCC", "Acc", "F1"),
)
# Spreadsheets evaluate a string that begins with one of these as a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def _matrix_row(cell: Recovered) -> dict[str, Any]:
    """Return one row: a cell and the matrix nearest to its scores, if there is one."""
    small, large = cell.classes
    known = (cell.regime, cell.task, cell.seed, small + large, small, large, cell.matrices)
    found = (*(cell.table or (None,) * 4), *(cell.scores or (None,) * 3))
    return dict(zip(COLUMNS, (*known, *found), strict=True))


def neutral(value: object) -> object:
    """Prefix a string that a spreadsheet would evaluate as a formula."""
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return "" if value is None else value


def matrices_csv(cells: list[Recovered]) -> str:
    """Return CSV with one line per cell."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([neutral(value) for value in _matrix_row(cell).values()] for cell in cells)
    return stream.getvalue()


def matrices_json(cells: list[Recovered]) -> str:
    """Return JSON with every matrix of a cell, up to a limit."""
    rows = [
        _matrix_row(cell) | {"tables": [one._asdict() for one in cell.tables]} for cell in cells
    ]
    return json.dumps(rows, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def matrices_text(cells: list[Recovered], width: int = sys.maxsize) -> str:
    """Return a table for a terminal of `width` columns: correct / total for each class."""
    columns = ("task", "seed", "matrices", "smaller class", "larger class", "MCC", "Acc", "F1")
    lines: list[tuple[str, ...]] = []
    for cell in cells:
        right = (
            (
                f"{cell.table.small_right}/{cell.classes.small}",
                f"{cell.table.large_right}/{cell.classes.large}",
            )
            if cell.table
            else ("-", "-")
        )
        values = [f"{value:.4f}" for value in cell.printed]
        seed = "" if cell.seed is None else str(cell.seed)
        lines.append((visible(cell.task), seed, str(cell.matrices), *right, *values))
    rows = Table(columns, lines, right=frozenset(columns[1:])).fitted_rows(width)
    aligned = [line for row in rows for line in row]
    one = sum(cell.matrices == 1 for cell in cells)
    none = sum(cell.matrices == 0 for cell in cells)
    count = f"{plural(len(cells), 'cell')}: {one} with one matrix, {none} with none"
    return "\n".join([*aligned, "", count]) + "\n"


MATRICES_WRITERS: dict[str, Callable[[list[Recovered]], str]] = {
    "text": matrices_text,
    "csv": matrices_csv,
    "json": matrices_json,
}
