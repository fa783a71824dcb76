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
"""The scale of colours that is the same on every page: from its lowest to its highest score."""
HEAT_STEPS = 16
"""Number of colours of scores."""
_HEAT_CLASSES = tuple(f"h{step}" for step in range(HEAT_STEPS))
"""CSS classes of the colours of scores, the lowest first."""
_SIGNED_HEAT_CLASSES = (*_HEAT_CLASSES, _HEAT_CLASSES[-1], *[_HEAT_CLASSES[0]] * HEAT_STEPS)
"""CSS classes of the colours on FULL_SCALE, by step; the step may be negative: -16 to 16."""
_SCORE_CELL = '<td class="heat %s">%.3f<small>%.3f to %.3f</small></td>'
"""HTML of a cell with colour, score and interval."""
_SCORE_CELL_WITHOUT_INTERVAL = '<td class="heat %s">%.3f</td>'
"""HTML of a cell with colour and score."""
_NOT_RANKED_CELL = '<td class="none">not ranked</td>'
"""HTML of a cell without a score."""
_SPECIAL_CHARACTER = re.compile(r"""[^ !#-%(-;=?-~]""")
"""Any character that HTML must escape, or that is not printable ASCII."""


def colour_class(score: float, score_range: tuple[float, float]) -> str:
    """Return the CSS class of the colour of a score, on a scale from the lowest to the highest."""
    low, high = score_range
    step = int((score - low) / (high - low) * HEAT_STEPS) if high > low else 0
    return _HEAT_CLASSES[step] if 0 <= step < HEAT_STEPS else _HEAT_CLASSES[0 if step < 0 else -1]


def score_range(scores: Iterable[float | None]) -> tuple[float, float]:
    """Return the lowest and highest of the known scores: the ends of a table's scale of colours."""
    known_scores = [score for score in scores if score is not None]
    return min(known_scores, default=0.0), max(known_scores, default=1.0)


def score_cell(standing: RankedScore | None, score_range: tuple[float, float] = FULL_SCALE) -> str:
    """Return the cell of a score with its interval, coloured by its position in `score_range`."""
    if standing is None:
        return _NOT_RANKED_CELL
    score, low, high, *_ = standing
    shade = colour_class(score, score_range)
    if low is None:
        return _with_minus_signs(_SCORE_CELL_WITHOUT_INTERVAL % (shade, score))
    return _with_minus_signs(_SCORE_CELL % (shade, score, low, high))


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
    """Return the cells of each task: score and interval in each regime.

    `columns` has the scores of each regime; `order` has the indices of the tasks to return.
    """
    cells_by_column = [
        [_NOT_RANKED_CELL] * len(order) if column is None else _column_cells(column)
        for column in columns
    ]
    rows = list(map("".join, zip(*cells_by_column, strict=True)))
    return [rows[index] for index in order]


def model_cells(
    models: Sequence[str], columns: Iterable[tuple[Sequence[str], TaskColumns]]
) -> list[str]:
    """Return the cells of each model: score and interval in each regime.

    `columns` has for each regime the ranked models and their scores.
    """
    cells_by_column = [
        dict(zip(ranked_models, _column_cells(column), strict=True))
        for ranked_models, column in columns
    ]
    return [
        "".join([cells_by_model.get(model, _NOT_RANKED_CELL) for cells_by_model in cells_by_column])
        for model in models
    ]


def _column_cells(columns: TaskColumns) -> list[str]:
    """Return the cell of each score of some columns, with its interval if that is known."""
    shades = [_SIGNED_HEAT_CLASSES[int(score * HEAT_STEPS)] for score in columns[0]]
    cell = _SCORE_CELL if len(columns) > 1 else _SCORE_CELL_WITHOUT_INTERVAL
    return list(map(_with_minus_signs, map(cell.__mod__, zip(shades, *columns, strict=True))))


def html_text(text: str) -> str:
    """Return a text escaped for HTML; characters that no page may contain are replaced."""
    return str(escape(writable(text))) if _SPECIAL_CHARACTER.search(text) else text


def model_rows(rows: Iterable[tuple[str, str]], root: str, site: Site) -> Markup:
    """Return the table rows of models, from their ids and the HTML of their cells."""
    return _lines(f"<tr>{name_cell(model, root, site)}{cells}</tr>" for model, cells in rows)


def name_cell(model: str, root: str, site: Site) -> str:
    """Return the cell with the name of a model, which links to the model's page."""
    marks = ", ".join(
        f'<a href="{html_text(link.address)}">{html_text(link.text)}</a>'
        for link in mark_links(site.by_id[model], root)
    )
    marks_html = f'<small class="doubt">{marks}</small>' if marks else ""
    return (
        f'<th scope="row" class="name"><a href="{root}models/{html_text(model)}.html">'
        f"<bdi>{html_text(site.names[model])}</bdi></a>{marks_html}</th>"
    )


def plain_cells(
    scores: Iterable[float | None], score_range: tuple[float, float], last_text: str
) -> str:
    """Return the cells of scores without intervals, and a last cell with `last_text`."""
    cells = [
        '<td class="none">none</td>'
        if score is None
        else f'<td class="heat {colour_class(score, score_range)}">{score_text(score)}</td>'
        for score in scores
    ]
    return f"{''.join(cells)}<td>{html_text(last_text)}</td>"


def fact_rows(facts: Iterable[ModelFact], root: str) -> Markup:
    """Return the HTML of a model's facts with their sources, one per line."""
    return _lines(
        f"<div><dt>{html_text(fact.label)}</dt><dd><bdi>{_fact_value(fact, root)}</bdi> "
        f"<small>{html_text(fact.author)}</small></dd></div>"
        for fact in facts
    )


def _fact_value(fact: ModelFact, root: str) -> str:
    """Return the value of a fact as HTML, linked to its explanation if there is one."""
    fact_text = html_text(fact.value)
    return (
        f'<a href="{root}{html_text(fact.address)}">{fact_text}</a>' if fact.address else fact_text
    )


def link_rows(links: Iterable[Link]) -> Markup:
    """Return list items with links to pages of third parties, one per line."""
    return _lines(
        f"<li>{outward_link(link.address, link.text, rel='noopener noreferrer nofollow ugc')}</li>"
        for link in links
    )


def outward_link(address: str, text: str, *, rel: str = "noopener") -> Markup:
    """Return a link to another site; it opens a new tab, since the board may be in a frame."""
    link = f'<a href="{html_text(address)}" target="_blank" rel="{rel}">{html_text(text)}</a>'
    return Markup(link)  # noqa: S704 (both by html_text)


def _lines(rows: Iterable[str]) -> Markup:
    """Return rows, whose texts are already escaped, each followed by a newline."""
    return Markup("".join([f"{row}\n" for row in rows]))  # noqa: S704 (by html_text, or numbers)
