"""Renders the evidence of rows, and the confusion matrices that their scores allow."""

import csv
import io
import itertools
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from geneb_ci.audit.trust.attestation import attestation_of
from geneb_ci.audit.trust.evidence import (
    OFFICIAL_REASON,
    RepositoryEvidence,
    audits_text,
    evidence_reasons,
)
from geneb_ci.audit.trust.level import Decision
from geneb_ci.board.tables import FORMULA_GUARD, FORMULA_START
from geneb_ci.common.types import Authorship, Evidence
from geneb_ci.render.plain import visible
from geneb_ci.render.table import Table, first_that_fit, left_out_line, wrapped_text
from geneb_ci.render.text import escape
from geneb_ci.statistics.binary import RecoveredCell
from geneb_ci.submission.document import Document
from reference_harness.formats.text import plural

_AUTHORSHIP_WIDTH = max(map(len, Authorship))
"""Columns of the words for authorship."""
MATRIX_COLUMNS = (
    *("regime", "task", "seed", "n_test", "small_class", "large_class", "matrices"),
    *("small_right", "small_wrong", "large_right", "large_wrong", "MCC", "Acc", "F1"),
)
"""Column names of the recovered confusion matrices."""


class RowEvidence(NamedTuple):
    """The evidence of one submission, with its reasons."""

    model_id: str
    decision: Decision | None
    """None if the file has errors; the row is then not on the board."""
    reasons: tuple[str, ...]
    """Sentences that say why the row has this evidence."""


def row_evidence_of(
    model_id: str, file: Document, errors: int, evidence: RepositoryEvidence
) -> RowEvidence:
    """Return the row of a submission with its evidence; `errors` is its number of errors."""
    if errors:
        return RowEvidence(model_id, None, (f"{plural(errors, 'error')}: run `geneb-ci check`",))
    decision = evidence.decide(file.sha256, file.origin, file.scorer)
    return RowEvidence(model_id, decision, tuple(evidence_reasons(model_id, file, evidence)))


def row_evidence_text(
    rows: Sequence[RowEvidence], columns: int = sys.maxsize, lines_max: int = sys.maxsize
) -> str:
    """Return text for a terminal: each row with its audits, then how many rows have each evidence.

    It has at most `lines_max` lines of `columns` columns; rows beyond that are only counted.
    """
    blocks: list[list[str]] = []
    width = max(len(_evidence_text(row)) for row in rows)
    for row in rows:
        first_reason, *further_reasons = row.reasons
        authorship_text, audit_text = "", ""
        if row.decision is not None:
            first_reason = row.decision.reason
            audit_text = audits_text(row.decision)
            authorship_text = f"{row.decision.authorship:<{_AUTHORSHIP_WIDTH}}  "
            further_reasons = [line for line in further_reasons if line != OFFICIAL_REASON]
        suffix = f" ({audit_text})" if audit_text else ""
        evidence_text, model = _evidence_text(row), escape(row.model_id)
        lines = [
            f"{evidence_text:<{width}}  {authorship_text}{model}: {escape(first_reason)}{suffix}"
        ]
        lines += [f"{'':<{width}}    {escape(line)}" for line in further_reasons]
        blocks.append(wrapped_text("\n".join(lines), columns).splitlines())
    row_count_by_evidence = Counter(map(_evidence_text, rows))
    counts = [
        f"{row_count_by_evidence[evidence]} {evidence}"
        for evidence in map(str, Evidence)
        if row_count_by_evidence[evidence]
    ]
    fitting_blocks = first_that_fit(blocks, lines_max - 3)
    lines = [
        *itertools.chain(*fitting_blocks),
        *left_out_line(len(rows) - len(fitting_blocks), "row"),
    ]
    return "\n".join([*lines, "", f"{plural(len(rows), 'row')}: {', '.join(counts)}"]) + "\n"


def row_evidence_json(rows: Sequence[RowEvidence]) -> str:
    """Return the rows and their evidence as JSON."""
    document = {"schema_version": "1.0", "rows": [_row_json(row) for row in rows]}
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"


def _evidence_text(row: RowEvidence) -> str:
    """Return the evidence of a row in one word."""
    return str(Evidence.NONE if row.decision is None else row.decision.evidence)


def _row_json(row: RowEvidence) -> dict[str, Any]:
    """Return the evidence of a row as JSON."""
    decision = row.decision
    audit = asdict(decision.audit) if decision is not None and decision.audit else None
    recomputed = decision.recomputed if decision is not None else None
    statements = attestation_of(decision).every_statement if decision is not None else ()
    return {
        "model_id": row.model_id,
        "evidence": _evidence_text(row),
        "level": str(decision.level) if decision is not None else None,
        "official": decision.is_official if decision is not None else False,
        "audit": audit,
        "recomputed": recomputed.text if recomputed is not None else None,
        "attested": [statement._asdict() for statement in statements],
        "reasons": list(row.reasons),
    }


def _matrix_row(cell: RecoveredCell) -> dict[str, Any]:
    """Return the line of a cell, with the matrix nearest to its scores if any, by column name."""
    small, large = cell.classes
    cell_facts = (cell.regime, cell.task, cell.seed, small + large, small, large, cell.table_count)
    nearest = (*(cell.table or (None,) * 4), *(cell.scores or (None,) * 3))
    return dict(zip(MATRIX_COLUMNS, (*cell_facts, *nearest), strict=True))


def formula_safe(value: object) -> object:
    """Return a value for CSV: "" for None, and guarded text where it would be a formula."""
    if isinstance(value, str) and FORMULA_START.match(value):
        return FORMULA_GUARD + value
    return "" if value is None else value


def matrices_csv(cells: list[RecoveredCell]) -> str:
    """Return CSV with one line per cell."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(MATRIX_COLUMNS)
    writer.writerows(
        [formula_safe(value) for value in _matrix_row(cell).values()] for cell in cells
    )
    return stream.getvalue()


def matrices_json(cells: list[RecoveredCell]) -> str:
    """Return JSON with the matrices of each cell; none above `LISTED_TABLES_MAX` matrices."""
    rows = [
        _matrix_row(cell) | {"tables": [matrix._asdict() for matrix in cell.tables]}
        for cell in cells
    ]
    return json.dumps(rows, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def matrices_text(
    cells: list[RecoveredCell], width: int = sys.maxsize, lines_max: int = sys.maxsize
) -> str:
    """Return a table for a terminal of `width` columns: correct / total for each class.

    It has at most `lines_max` lines; if some cells do not fit, cells without a matrix come first.
    """
    columns = ("task", "seed", "matrices", "smaller class", "larger class", "MCC", "Acc", "F1")
    lines: list[tuple[str, ...]] = []
    for cell in (
        sorted(cells, key=lambda cell: cell.table_count > 0) if lines_max < sys.maxsize else cells
    ):
        correct_counts = (
            (
                f"{cell.table.small_correct}/{cell.classes.small}",
                f"{cell.table.large_correct}/{cell.classes.large}",
            )
            if cell.table
            else ("-", "-")
        )
        scores = [f"{value:.4f}" for value in cell.reported]
        seed = "" if cell.seed is None else str(cell.seed)
        lines.append((visible(cell.task), seed, str(cell.table_count), *correct_counts, *scores))
    rows = Table(columns, lines, right_aligned=frozenset(columns[1:])).fitted_rows(width)
    fitting_rows = first_that_fit(rows, lines_max - 3)
    aligned = [line for row in fitting_rows for line in row]
    aligned += left_out_line(len(rows) - len(fitting_rows), "cell")
    single_count = sum(cell.table_count == 1 for cell in cells)
    none_count = sum(cell.table_count == 0 for cell in cells)
    count = f"{plural(len(cells), 'cell')}: {single_count} with one matrix, {none_count} with none"
    return "\n".join([*aligned, "", count]) + "\n"


MATRICES_WRITERS: dict[str, Callable[[list[RecoveredCell]], str]] = {
    "text": matrices_text,
    "csv": matrices_csv,
    "json": matrices_json,
}
"""By format: the function that writes recovered confusion matrices."""
