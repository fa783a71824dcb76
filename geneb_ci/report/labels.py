"""Trust levels of rows with what they rest on, as text or JSON."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from geneb_ci.finding import counted
from geneb_ci.label.evidence import Evidence
from geneb_ci.label.policy import Decision, Level
from geneb_ci.label.reasons import reasons, shown_audit
from geneb_ci.report.text import escape


class Row(NamedTuple):
    """One submission."""

    model_id: str
    decision: Decision | None
    """None where the file has errors: such a row is on no board."""
    reasons: tuple[str, ...]


def row_of(model_id: str, sha256: str, errors: int, evidence: Evidence) -> Row:
    """Give the row of a submission that has so many errors."""
    if errors:
        return Row(model_id, None, (f"{counted(errors, 'error')}: `geneb-ci check` shows them",))
    return Row(model_id, evidence.decide(sha256), tuple(reasons(model_id, sha256, evidence)))


def labels_text(rows: Sequence[Row]) -> str:
    """Render for a terminal: a line a row, its audits below it, and the count of each level."""
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
    order = [*map(str, Level), _NONE]
    said = [f"{tally[level]} {level}" for level in order if tally[level]]
    return "\n".join([*lines, "", f"{counted(len(rows), 'row')}: {', '.join(said)}"]) + "\n"


def labels_json(rows: Sequence[Row]) -> str:
    """Render for a program."""
    value = {"schema_version": "1.0", "rows": [_row(row) for row in rows]}
    return json.dumps(value, indent=2, ensure_ascii=True) + "\n"


_NONE = "not on the board"


def _level(row: Row) -> str:
    return _NONE if row.decision is None else str(row.decision.level)


def _row(row: Row) -> dict[str, Any]:
    decision = row.decision
    audit = asdict(decision.audit) if decision is not None and decision.audit else None
    return {
        "model_id": row.model_id,
        "level": str(decision.level) if decision is not None else None,
        "official": decision.is_official if decision is not None else False,
        "audit": audit,
        "reasons": list(row.reasons),
    }
