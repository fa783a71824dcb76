"""Table cells and rows of pages, written in Python: templates would take ten times as long.

A board has millions of cells.
"""

import re
from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

from geneb_ci.board.site.inputs import (
    MINUS,
    RankedScore,
    Site,
    TaskColumns,
    range_text,
    score_text,
    writable,
)
from geneb_ci.board.site.links import Link, mark_links
from geneb_ci.board.site.model import ModelFact

FULL_SCALE = (0.0, 1.0)
"""Range of scores whose colours are the same on every page."""
HEAT_STEPS = 16
_HEAT = tuple(f"h{step}" for step in range(HEAT_STEPS))
_SIGNED_HEAT = (*_HEAT, _HEAT[-1], *[_HEAT[0]] * HEAT_STEPS)
"""Classes of colours on FULL_SCALE, indexed by the step, which may be negative: -16 to 16."""
_CELL = '<td class="heat %s">%.3f<small>%.3f to %.3f</small></td>'
_CELL_ALONE = '<td class="heat %s">%.3f</td>'
_NOT_RANKED = '<td class="none">not ranked</td>'
_SPECIAL = re.compile(r"""[^ !#-%(-;=?-~]""")
"""Characters other than the printable ones of ASCII that need no escaping in HTML."""


def colour_class(score: float, score_range: tuple[float, float]) -> str:
    """Return the CSS class of the colour of a score, on a scale from the lowest to the highest."""
    low, high = score_range
    step = int((score - low) / (high - low) * HEAT_STEPS) if high > low else 0
    return _HEAT[step] if 0 <= step < HEAT_STEPS else _HEAT[0 if step < 0 else -1]


def score_range(scores: Iterable[float | None]) -> tuple[float, float]:
    """Return the lowest and the highest of the known scores, for the colours of a table."""
    known_scores = [score for score in scores if score is not None]
    return min(known_scores, default=0.0), max(known_scores, default=1.0)


def score_cell(standing: RankedScore | None, score_range: tuple[float, float] = FULL_SCALE) -> str:
    """Return the cell of a score with its interval, coloured on a scale between two ends."""
    if standing is None:
        return _NOT_RANKED
    score, low, high, *_ = standing
    shade = colour_class(score, score_range)
    if low is None:
        return _with_minus_signs(_CELL_ALONE % (shade, score))
    return _with_minus_signs(_CELL % (shade, score, low, high))


def _with_minus_signs(cell: str) -> str:
    """Return a cell with minus signs as in `score_text`; it contains no other hyphens."""
    return cell.replace("-0.000", "0.000").replace("-", MINUS) if "-" in cell else cell


def _ranked_cell(standing: RankedScore | None, score_range: tuple[float, float]) -> str:
    """Return the cell of a score and the cell of its rank range."""
    if standing is None or standing.rank_low is None or standing.rank_high is None:
        return f'{score_cell(standing, score_range)}<td class="none">unknown</td>'
    ranks = range_text(standing.rank_low, standing.rank_high)
    return f'{score_cell(standing, score_range)}<td class="number">{ranks}</td>'


def mean_cells(rows: Sequence[Sequence[RankedScore | None]]) -> list[str]:
    """Return the cells of each row of a table: scores with rank ranges, on one scale of colours."""
    table_range = score_range(standing and standing.score for row in rows for standing in row)
    return ["".join([_ranked_cell(standing, table_range) for standing in row]) for row in rows]


def task_cells(columns: Iterable[TaskColumns | None], order: Sequence[int]) -> list[str]:
    """Return the cells of tasks in an order: score and interval, with a column per regime."""
    cells_by_column = [
        [_NOT_RANKED] * len(order) if column is None else _column_cells(column)
        for column in columns
    ]
    rows = list(map("".join, zip(*cells_by_column, strict=True)))
    return [rows[index] for index in order]


def model_cells(
    models: Sequence[str], columns: Iterable[tuple[Sequence[str], TaskColumns]]
) -> list[str]:
    """Return the cells of each model: score and interval, with a column per regime."""
    cells_by_column = [
        dict(zip(ranked_models, _column_cells(column), strict=True))
        for ranked_models, column in columns
    ]
    return [
        "".join([cells_by_model.get(model, _NOT_RANKED) for cells_by_model in cells_by_column])
        for model in models
    ]


def _column_cells(columns: TaskColumns) -> list[str]:
    shades = [_SIGNED_HEAT[int(score * HEAT_STEPS)] for score in columns[0]]
    cell = _CELL if len(columns) > 1 else _CELL_ALONE
    return list(map(_with_minus_signs, map(cell.__mod__, zip(shades, *columns, strict=True))))


def text_of(text: str) -> str:
    """Return a text escaped for HTML; characters that no page may contain are replaced."""
    return str(escape(writable(text))) if _SPECIAL.search(text) else text


def model_rows(rows: Iterable[tuple[str, str]], root: str, site: Site) -> Markup:
    """Return the table rows of models, from their ids and the HTML of their cells."""
    return _lines(f"<tr>{name_cell(model, root, site)}{cells}</tr>" for model, cells in rows)


def name_cell(model: str, root: str, site: Site) -> str:
    """Return the cell that names a model and links to its page."""
    marks = ", ".join(
        f'<a href="{text_of(link.address)}">{text_of(link.text)}</a>'
        for link in mark_links(site.by_id[model], root)
    )
    marks_html = f'<small class="doubt">{marks}</small>' if marks else ""
    return (
        f'<th scope="row" class="name"><a href="{root}models/{text_of(model)}.html">'
        f"<bdi>{text_of(site.names[model])}</bdi></a>{marks_html}</th>"
    )


def plain_cells(
    scores: Iterable[float | None], score_range: tuple[float, float], last_text: str
) -> str:
    """Return the cells of scores without intervals, and a last cell with a text."""
    cells = [
        '<td class="none">none</td>'
        if score is None
        else f'<td class="heat {colour_class(score, score_range)}">{score_text(score)}</td>'
        for score in scores
    ]
    return f"{''.join(cells)}<td>{text_of(last_text)}</td>"


def fact_rows(facts: Iterable[ModelFact], root: str) -> Markup:
    """Return the facts of a model with their sources, one per line."""
    return _lines(
        f"<div><dt>{text_of(fact.label)}</dt><dd><bdi>{_fact_value(fact, root)}</bdi> "
        f"<small>{text_of(fact.author)}</small></dd></div>"
        for fact in facts
    )


def _fact_value(fact: ModelFact, root: str) -> str:
    fact_text = text_of(fact.value)
    return f'<a href="{root}{text_of(fact.address)}">{fact_text}</a>' if fact.address else fact_text


def link_rows(links: Iterable[Link]) -> Markup:
    """Return list items with links to pages of third parties, one per line."""
    return _lines(
        f"<li>{outward_link(link.address, link.text, rel='noopener noreferrer nofollow ugc')}</li>"
        for link in links
    )


def outward_link(address: str, text: str, *, rel: str = "noopener") -> Markup:
    """Return a link to another site; it opens a new tab, since the board may be in a frame."""
    link = f'<a href="{text_of(address)}" target="_blank" rel="{rel}">{text_of(text)}</a>'
    return Markup(link)  # noqa: S704 (both by text_of)


def _lines(rows: Iterable[str]) -> Markup:
    """Return rows, whose texts are already escaped, each followed by a newline."""
    return Markup("".join([f"{row}\n" for row in rows]))  # noqa: S704 (by text_of, or numbers)
