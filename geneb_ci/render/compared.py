"""Renders the comparison of two models as terminal text, CSV, JSON or a plot."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from html import escape

from geneb_ci.receipt.compared import TASKS_MIN, ComparedRegime, ComparedScore, scores_with_regime
from geneb_ci.render.plain import log_safe_json, visible
from geneb_ci.render.table import Table, wrapped_text
from reference_harness.formats.text import plural

TEXT_WIDTH = 80
"""Columns of the text."""
NAME_COLUMNS_MAX = 64
"""Maximum number of columns of a model's name in a line of text."""
PRINTED_PROBABILITY_MIN = 0.001
"""Smallest probability that is printed as a number, and not as "< 0.001"."""
_COLUMNS = ("score", "tasks", "a", "b", "a - b", "95 % interval", "P(a better)")
"""Column names of the tables in the text."""
_CSV_COLUMNS = (
    "regime",
    "score",
    "tasks",
    "a",
    "b",
    "difference",
    "low",
    "high",
    "probability",
    "over",
)
"""Column names of the CSV."""
_ROW_HEIGHT, _NAMES_WIDTH, _PLOT_WIDTH, _NUMBERS_WIDTH = 18, 250, 360, 90
"""Pixels of the plot: the height of a row; the widths for names, differences and numbers."""


def compared_text(
    names: tuple[str, str], comparisons: Mapping[str, ComparedRegime], *, by_task: bool = False
) -> str:
    """Return the comparison for a terminal: one table per regime, with its tasks if `by_task`."""
    lines = [
        f"{letter}: {visible(name, NAME_COLUMNS_MAX)}"
        for letter, name in zip("ab", names, strict=True)
    ]
    for regime, regime_comparison in comparisons.items():
        scores = (
            (*regime_comparison.scores, *regime_comparison.by_task)
            if by_task
            else regime_comparison.scores
        )
        rows = [_score_texts(score) for score in scores]
        heading = f"{regime}: MCC; intervals from {regime_comparison.over} drawn again"
        if any(score.interval is None for score in scores):
            heading += f" (none for fewer than {TASKS_MIN} tasks)"
        lines += ["", heading]
        lines += Table(_COLUMNS, rows, frozenset(_COLUMNS[1:])).text_lines()
        if regime_comparison.paired is not None:
            macro = regime_comparison.paired.macro
            lines.append(
                f"standard error of macro: {macro.se:.4f}, without pairing {macro.unpaired_se:.4f}"
            )
            lines += _mcnemar_lines(regime_comparison) if by_task else []
    notes = (
        "\nEach interval is for one comparison alone; none is corrected for multiple comparisons."
    )
    if any(regime_comparison.paired is None for regime_comparison in comparisons.values()):
        notes += (
            " Intervals from tasks drawn again show how the mean would vary with other tasks. To "
            "draw test sequences instead, pass both files as FILE=DIR, with the folder of "
            "predictions."
        )
    return "\n".join(lines) + "\n" + wrapped_text(notes, TEXT_WIDTH)


def _score_texts(score: ComparedScore) -> tuple[str, ...]:
    """Return the cells of a score in the tables of the text."""
    numbers = (f"{score.a:.4f}", f"{score.b:.4f}", f"{score.difference:+.4f}")
    if score.interval is None:
        return (score.name, str(score.tasks), *numbers, "-", "-")
    low, high, probability = score.interval
    return (
        score.name,
        str(score.tasks),
        *numbers,
        f"{low:+.4f} to {high:+.4f}",
        _probability_text(probability),
    )


def _probability_text(probability: float) -> str:
    """Return a probability with three decimals, or as "< 0.001" or "> 0.999"."""
    if probability > 1 - PRINTED_PROBABILITY_MIN:
        return "> 0.999"
    return "< 0.001" if probability < PRINTED_PROBABILITY_MIN else f"{probability:.3f}"


def _mcnemar_lines(regime: ComparedRegime) -> list[str]:
    """Return the lines of McNemar's exact test for each task with a single fit."""
    cells = regime.paired.cells if regime.paired is not None else {}
    fit_by_task = {
        task: cell.discordant[0] for task, cell in cells.items() if len(cell.discordant) == 1
    }
    if not fit_by_task:
        return [
            "no McNemar test is shown, since few-shot fits share test sequences;",
            "--format json has a test for each fit",
        ]
    rows = [
        (
            task,
            str(fit.only_a),
            str(fit.only_b),
            "< 0.001" if fit.p < PRINTED_PROBABILITY_MIN else f"{fit.p:.3f}",
        )
        for task, fit in fit_by_task.items()
    ]
    columns = ("task", "only a", "only b", "p")
    return [
        "",
        (
            "sequences that only one model classifies correctly; McNemar's p, "
            f"{plural(len(rows), 'test')}"
        ),
        *Table(columns, rows, frozenset(columns[1:])).text_lines(),
    ]


def compared_csv(
    names: tuple[str, str], comparisons: Mapping[str, ComparedRegime], *, by_task: bool = True
) -> str:
    """Return the comparison as CSV: one line per score, always including the scores of tasks."""
    del names, by_task
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow(_CSV_COLUMNS)
    for regime, over, score in scores_with_regime(comparisons):
        interval = score.interval or ("", "", "")
        numbers = (score.tasks, score.a, score.b, score.difference)
        writer.writerow((regime, score.name, *numbers, *interval, over))
    return output.getvalue()


def compared_json(
    names: tuple[str, str], comparisons: Mapping[str, ComparedRegime], *, by_task: bool = True
) -> str:
    """Return the comparison as JSON, always by task, with McNemar's test of every fit."""
    del by_task
    regimes: dict[str, dict[str, object]] = {}
    for regime, regime_comparison in comparisons.items():
        regimes[regime] = {
            "over": regime_comparison.over,
            "scores": [_score_json(score) for score in regime_comparison.scores],
            "tasks": [_score_json(score) for score in regime_comparison.by_task],
        }
        if regime_comparison.paired is not None:
            regimes[regime]["paired"] = {
                "macro": regime_comparison.paired.macro._asdict(),
                "tasks": {
                    task: {
                        "difference": cell.difference,
                        "se": cell.se,
                        "covariance": cell.covariance,
                        "fits": [fit._asdict() | {"p": fit.p} for fit in cell.discordant],
                    }
                    for task, cell in regime_comparison.paired.cells.items()
                },
            }
    return log_safe_json({"a": names[0], "b": names[1], "regimes": regimes})


def _score_json(score: ComparedScore) -> dict[str, object]:
    """Return a score with its difference and interval as JSON."""
    interval = score.interval._asdict() if score.interval is not None else None
    return score._asdict() | {"difference": score.difference, "interval": interval}


def compared_svg(
    names: tuple[str, str], comparisons: Mapping[str, ComparedRegime], *, by_task: bool = False
) -> str:
    """Return a plot with one row per score: its difference and interval."""
    rows: list[tuple[str, ComparedScore | None]] = []
    for regime, regime_comparison in comparisons.items():
        rows.append((f"{regime}, intervals from {regime_comparison.over} drawn again", None))
        rows += [
            (score.name, score)
            for score in (*regime_comparison.scores, *regime_comparison.by_task * by_task)
        ]
    largest_end = (
        max((max(map(abs, _interval_points(score))) for _, score in rows if score), default=0.0)
        or 1.0
    )
    first, second = (visible(name, NAME_COLUMNS_MAX) for name in names)
    title = f"MCC of {first} minus that of {second}"
    height, width = _ROW_HEIGHT * (len(rows) + 2), _NAMES_WIDTH + _PLOT_WIDTH + _NUMBERS_WIDTH
    middle = _NAMES_WIDTH + _PLOT_WIDTH / 2
    elements = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"',
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<title>{escape(title)}</title><rect width="100%" height="100%" fill="white"/>',
        f'<text x="4" y="14" font-weight="bold">{escape(title)}</text>',
        f'<path d="M{middle} {_ROW_HEIGHT * 1.5}V{height}" stroke="#999" stroke-dasharray="3 3"/>',
    ]
    for number, (score_name, score) in enumerate(rows, 2):
        y = _ROW_HEIGHT * number
        weight = "" if score else ' font-weight="bold"'
        shown_name = escape(visible(score_name, NAME_COLUMNS_MAX))
        elements.append(f'<text x="4" y="{y + 4}"{weight}>{shown_name}</text>')
        if score is not None:
            low, difference, high = (
                middle + end / largest_end * _PLOT_WIDTH / 2 for end in _interval_points(score)
            )
            elements.append(
                f'<path d="M{low:.1f} {y}H{high:.1f}" stroke="#2563a8" stroke-width="2"/>'
            )
            elements.append(f'<circle cx="{difference:.1f}" cy="{y}" r="4" fill="#2563a8"/>')
            numbers_x = _NAMES_WIDTH + _PLOT_WIDTH + 12
            elements.append(f'<text x="{numbers_x}" y="{y + 4}">{score.difference:+.4f}</text>')
    return "\n".join([*elements, "</svg>"]) + "\n"


def _interval_points(score: ComparedScore) -> Sequence[float]:
    """Return lower end, difference and upper end; without interval, thrice the difference."""
    low, high = score.interval[:2] if score.interval is not None else (score.difference,) * 2
    return low, score.difference, high


COMPARED_WRITERS: dict[str, Callable[..., str]] = {
    "text": compared_text,
    "csv": compared_csv,
    "json": compared_json,
    "svg": compared_svg,
}
"""By format: the function that renders a comparison."""
