"""Renders recommendations, and figures of the paper and the board, as text or JSON."""

import json
import textwrap
from collections.abc import Callable, Sequence
from decimal import Decimal

from geneb_ci.board.advice import Advice, Choice
from geneb_ci.board.diagnostics.document import Figure
from geneb_ci.board.reasons import (
    bound_text,
    interval_text,
    score_text,
    size_text,
    without_backticks,
)
from geneb_ci.render.plain import visible
from geneb_ci.render.table import wrapped_text
from geneb_ci.render.text import escape
from reference_harness.formats.text import plural

SHOWN_MAX = 10
"""Models that could be best; a longer list helps nobody choose."""
LABEL = 16
"""Columns of the labels: "within 0.01 MCC" and a space."""
PARTS_MAX = 15
"""Lines of one figure: the categories of the benchmark and two more; JSON has all."""
COUNTED = frozenset({"tasks", "categories", "pairs"})
FORMAT_VERSION = "1.0"
INDENT = "  "


def advice_text(advice: Advice, width: int) -> str:
    """Return the recommended model, what could be best and the reasons, in `width` columns."""
    lines: list[str] = []
    if advice.best is not None and advice.recommended is not None:
        margin = f"{advice.margin:g} MCC"
        lines += _labelled("recommended", visible(advice.recommended))
        lines += _labelled("highest score", *_lines(advice.best))
        lines += _labelled("could be best", *_could(advice))
        lines += _labelled(f"within {margin}", *_other(advice, advice.within_margin))
        lines += _labelled("on average", *_other(advice, advice.on_average))
        lines.append("")
    text = "".join(f"{line}\n" for line in lines)
    return text + wrapped_text(
        "".join(f"{escape(without_backticks(reason))}\n" for reason in advice.why), width
    )


def _labelled(label: str, *texts: str) -> list[str]:
    return [
        f"{name:<{LABEL}}{text}"
        for name, text in zip((label, *[""] * len(texts)), texts, strict=False)
    ]


def _lines(choice: Choice) -> list[str]:
    """Describe a model: its name, its score and size, its loss, its marks."""
    interval, bound = interval_text(choice.low, choice.high), bound_text(choice.loss_bound)
    lines = [
        visible(choice.model),
        f"MCC {score_text(choice.score)} ({interval}), {size_text(choice.params)} parameters",
        f"{choice.evidence}; expected loss {score_text(choice.expected_loss)}, at most {bound}",
    ]
    marks = [plural(len(choice.defects), "published defect")] if choice.defects else []
    marks += [f"warnings of {plural(len(choice.warnings), 'rule')}"] if choice.warnings else []
    return [*lines, ", ".join(marks)] if marks else lines


def _could(advice: Advice) -> list[str]:
    shown = list(map(visible, advice.could_be_best[:SHOWN_MAX]))
    more = len(advice.could_be_best) - SHOWN_MAX
    return [*shown, f"and {more} more"] if more > 0 else shown


def _other(advice: Advice, choice: Choice | None) -> list[str]:
    if choice is None:
        return ["no model"]
    if advice.best is not None and choice.model == advice.best.model:
        return ["the highest score"]
    within = advice.within_margin
    if within is not None and choice is not within and choice.model == within.model:
        return ["the same"]
    return _lines(choice)


def advice_json(advice: Advice, _width: int = 0) -> str:
    """Return the recommendation as JSON."""
    return json.dumps(advice.model_dump(mode="json"), indent=1, allow_nan=False) + "\n"


ADVICE_WRITERS: dict[str, Callable[[Advice, int], str]] = {
    "text": advice_text,
    "json": advice_json,
}


def value_text(value: float | None, unit: str) -> str:
    """Write a value, rounded once: a count, or a number of three decimals."""
    if value is None:
        return "not known"
    return score_text(value, Decimal(1)) if unit in COUNTED else score_text(value)


def figures_text(figures: Sequence[Figure], width: int) -> str:
    """Return each figure with its definition, its parameters and its parts."""
    lines: list[str] = []
    for figure in figures:
        used = ", ".join(
            f"{name} {_shown(value)}" for name, value in figure.parameters.items() if value != []
        )
        lines.append(f"{figure.id}: {value_text(figure.value, figure.unit)} ({figure.unit})")
        about = f"{figure.definition} Scope {figure.scope}, {plural(figure.rows, 'row')}; {used}."
        lines += textwrap.wrap(
            visible(about),
            width,
            initial_indent=INDENT,
            subsequent_indent=INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )
        unit = "MCC" if figure.unit in COUNTED else figure.unit
        for part in figure.parts[:PARTS_MAX]:
            value = "" if part.value is None else f"{value_text(part.value, unit):>7}  "
            lines += textwrap.wrap(
                f"{value}{visible(part.name)}",
                width,
                initial_indent=INDENT * 2,
                subsequent_indent=INDENT * 2,
                break_long_words=False,
                break_on_hyphens=False,
            )
        if len(figure.parts) > PARTS_MAX:
            lines.append(f"{INDENT * 2}and {len(figure.parts) - PARTS_MAX} more")
        lines.append("")
    return "\n".join(lines[:-1]) + "\n"


def _shown(value: float | str | list[str]) -> str:
    if isinstance(value, list):
        return " ".join(value)
    return value if isinstance(value, str) else f"{value:g}"


def figures_json(figures: Sequence[Figure], _width: int = 0) -> str:
    """Return the figures as JSON."""
    value = {
        "format_version": FORMAT_VERSION,
        "findings": [figure.model_dump(mode="json") for figure in figures],
    }
    return json.dumps(value, indent=1, allow_nan=False) + "\n"


FIGURE_WRITERS: dict[str, Callable[[Sequence[Figure], int], str]] = {
    "text": figures_text,
    "json": figures_json,
}
