"""Where a row would stand, and what an audit of it would take: the tables of the comment."""

from collections.abc import Sequence

from geneb_ci.forge.verdict import (
    AuditEstimate,
    Comparison,
    Neighbour,
    PullVerdict,
    Standing,
)
from geneb_ci.report.markdown import cell

_NEAREST = 2


def place(pull: PullVerdict) -> str:
    """Render what is known of a sound row; "" where nothing is."""
    parts = []
    if pull.comparison is not None:
        parts.append(_categories(pull.comparison))
    if pull.standings:
        parts.append(_regimes(pull.standings))
    if pull.neighbour is not None:
        parts.append(_neighbour(pull.neighbour))
    standing = "\n### Where it stands\n\n" + "\n".join(parts) if parts else ""
    return standing + (_audit(pull.audit) if pull.audit is not None else "")


def _categories(table: Comparison) -> str:
    names = [_column(number, name, table.best) for number, name in enumerate(table.models)]
    head = [f"{cell(table.metric)}, {cell(table.regime)}", *names]
    rows = [[cell(row.category), *(f"{s:.3f}" for s in row.scores)] for row in table.categories]
    return _table(head, rows)


def _column(number: int, name: str, best: str) -> str:
    if number == 0:
        return "this row, the best" if name == best else "this row"
    near = "near" if number <= _NEAREST else ""
    said = ", ".join(word for word in (near, "best" if name == best else "") if word)
    return f"{said}: {cell(name)}"


def _regimes(standings: Sequence[Standing]) -> str:
    columns = [
        ["regime", *(cell(standing.regime) for standing in standings)],
        ["mean of the categories", *(f"{standing.score:.3f}" for standing in standings)],
        ["rank", *(f"{standing.rank} of {standing.rows}" for standing in standings)],
        ["rank before", *map(_before, standings)],
    ]
    if any(standing.ties is not None for standing in standings):
        columns.append(["within noise of", *map(_ties, standings)])
    head, *rows = zip(*columns, strict=True)
    return _table(head, rows)


def _before(standing: Standing) -> str:
    if standing.before is None:
        return "new row"
    return "the same" if standing.before == standing.rank else str(standing.before)


def _ties(standing: Standing) -> str:
    if standing.ties is None:
        return "not known"
    if standing.ties == 0:
        return "no other row"
    names = ", ".join(map(cell, standing.tied_with))
    left = standing.ties - len(standing.tied_with)
    return f"{names} and {left:,} more" if left > 0 else names


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _neighbour(near: Neighbour) -> str:
    return (
        f"Nearest neighbour: {cell(near.model)}, with {near.near:,} of {near.cells:,} scores "
        f"within the noise of a rerun; {near.limit:,} would make it a copy.\n"
    )


def _audit(audit: AuditEstimate) -> str:
    data = f"about {audit.sequences:,} test sequences, and " if audit.sequences else ""
    return (
        f"\n### What an audit would take, and find\n\n{audit.drawn} of {audit.tasks} tasks, drawn "
        f"at random after the submission is fixed: {data}the training sequences of those tasks, to "
        f"embed and score. With made-up scores in {audit.fabricated} of the {audit.tasks}, the "
        f"draw holds at least one of them in {audit.detection:.1%} of cases.\n"
    )
