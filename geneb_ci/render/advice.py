"""Renders recommendations, and the figures of the paper and the board, as text or JSON."""

import json
from collections.abc import Callable, Sequence
from decimal import Decimal

from geneb_ci.board.advice import Advice, Choice
from geneb_ci.board.diagnostics.document import Figure
from geneb_ci.board.reasons import bound_text, score_text, size_text, without_backticks
from geneb_ci.common.types import Evidence
from geneb_ci.render.plain import visible
from geneb_ci.render.table import Table, wrapped_lines, wrapped_text
from geneb_ci.render.text import escape
from reference_harness.formats.text import plural

SHOWN_MODELS_MAX = 10
"""Largest number of models in the table of a regime; the JSON lists all."""
SHOWN_TASKS_MAX = 25
"""Largest number of tasks that the text lists by name."""
NAME_LETTERS_MIN = 20
"""Smallest number of letters of a model's id that are shown, however narrow the terminal is."""
WARNING_MARK = "*"
"""Written after the id of a model that has a published defect or a warning of `geneb-ci check`."""
SHOWN_PARTS_MAX = 15
"""Largest number of parts of a figure that the text lists: enough for one per category."""
COUNT_UNITS = frozenset({"tasks", "categories", "pairs"})
"""Units in which a value is a whole number."""
ADVICE_FORMAT_VERSION = "1.0"
"""Version of the JSON of advice and figures."""
INDENT = "  "
"""Beginning of a line below a heading."""


def advice_text(advice: Advice, width: int) -> str:
    """Return the tasks, the best models of each regime and the reasons, in `width` columns."""
    count = len(advice.tasks)
    task_text = ", ".join(advice.labels) if count <= SHOWN_TASKS_MAX else "--format json names them"
    line = escape(f"mean of {plural(count, 'task')}: {task_text}")
    paragraphs = [wrapped_text(f"{line}\n", width)] if count else []
    for regime_advice in advice.regimes:
        head = ("model", "size", regime_advice.regime, "95 %", "at most", "whose")
        table: list[tuple[str, ...]] = [head]
        table += [
            _choice_texts(choice, advice) for choice in regime_advice.choices[:SHOWN_MODELS_MAX]
        ]
        hidden_count = len(regime_advice.choices) - SHOWN_MODELS_MAX
        more_text = (
            f"and {hidden_count} more: --format json lists them\n" if hidden_count > 0 else ""
        )
        first_line, *lines = _with_short_names(table, width)
        text_lines = Table(first_line, lines).text_lines()
        paragraphs.append("".join(f"{line}\n" for line in text_lines) + more_text)
    if any(
        _is_marked(c)
        for regime_advice in advice.regimes
        for c in regime_advice.choices[:SHOWN_MODELS_MAX]
    ):
        paragraphs[-1] += (
            f"{WARNING_MARK} has a published defect or a warning of geneb-ci check: "
            "docs/reader/defects.md\n"
        )
    paragraph = "".join(f"{escape(without_backticks(reason))}\n" for reason in advice.why)
    return "\n".join([*paragraphs, wrapped_text(paragraph, width)])


def _choice_texts(choice: Choice, advice: Advice) -> tuple[str, ...]:
    """Return the cells of a model in the table of a regime."""
    interval = f"{score_text(choice.low)} to {score_text(choice.high)}"
    # Beyond the margin the bound is known only for some models, so it is never shown there.
    is_within = choice.loss_bound is not None and choice.loss_bound <= advice.margin
    bound = bound_text(choice.loss_bound or 0) if is_within else f"over {advice.margin:g}"
    confirmed = "" if choice.evidence == Evidence.CHECKED else f", {choice.evidence}"
    mark = WARNING_MARK if _is_marked(choice) else ""
    return (
        f"{visible(choice.model)}{mark}",
        size_text(choice.params),
        score_text(choice.score),
        interval,
        bound,
        f"{choice.authorship}{confirmed}",
    )


def _is_marked(choice: Choice) -> bool:
    """Whether a model has a published defect or a warning."""
    return bool(choice.defects or choice.warnings)


def _with_short_names(table: Sequence[tuple[str, ...]], width: int) -> list[tuple[str, ...]]:
    """Return the table with names cut so that lines fit; cut names remain distinguishable."""
    names = [line[0] for line in table]
    other_columns = sum(2 + max(map(len, column)) for column in list(zip(*table, strict=True))[1:])
    letters_max = max(NAME_LETTERS_MIN, width - other_columns)
    return [
        (_short_name(name, names, letters_max), *line[1:])
        for name, line in zip(names, table, strict=True)
    ]


def _short_name(name: str, models: Sequence[str], letters_max: int) -> str:
    """Return a name cut to `letters_max` letters, or whole if the cut name is ambiguous."""
    mark = WARNING_MARK if name.endswith(WARNING_MARK) else ""
    start = name[: letters_max - 1 - len(mark)]
    if len(name) <= letters_max or sum(other_name.startswith(start) for other_name in models) > 1:
        return name
    return f"{start}\u2026{mark}"


def advice_json(advice: Advice, _width: int = 0) -> str:
    """Return the recommendation as JSON."""
    return json.dumps(advice.model_dump(mode="json"), indent=1, allow_nan=False) + "\n"


ADVICE_WRITERS: dict[str, Callable[[Advice, int], str]] = {
    "text": advice_text,
    "json": advice_json,
}
"""By format: the function that writes advice."""


def value_text(figure: float | None, unit: str) -> str:
    """Return a figure as text: a count without decimals, others with three, None as "not known"."""
    if figure is None:
        return "not known"
    return score_text(figure, Decimal(1)) if unit in COUNT_UNITS else score_text(figure)


def figures_text(figures: Sequence[Figure], width: int) -> str:
    """Return each figure with its definition and parameters; a single one also with its parts."""
    lines: list[str] = []
    is_single_figure = len({figure.id for figure in figures}) == 1
    for figure in figures:
        parameters_text = ", ".join(
            f"{name} {_parameter_text(parameter)}"
            for name, parameter in figure.parameters.items()
            if parameter != []
        )
        lines.append(f"{figure.id}: {value_text(figure.value, figure.unit)} ({figure.unit})")
        explanation = (
            f"{figure.definition} Scope {figure.scope}, {plural(figure.rows, 'row')}; "
            f"{parameters_text}."
        )
        lines += wrapped_lines(visible(explanation), width, INDENT, INDENT)
        unit = "MCC" if figure.unit in COUNT_UNITS else figure.unit
        for part in figure.parts[:SHOWN_PARTS_MAX] if is_single_figure else ():
            number = "" if part.value is None else f"{value_text(part.value, unit):>7}  "
            lines += wrapped_lines(f"{number}{visible(part.name)}", width, INDENT * 2, INDENT * 2)
        if is_single_figure and len(figure.parts) > SHOWN_PARTS_MAX:
            lines.append(f"{INDENT * 2}and {len(figure.parts) - SHOWN_PARTS_MAX} more")
        lines.append("")
    if not is_single_figure:
        lines += [
            "To list the parts of a figure, such as tasks: `geneb-ci figures --figure NAME`",
            "",
        ]
    return "\n".join(lines[:-1]) + "\n"


def _parameter_text(parameter: float | str | list[str]) -> str:
    """Return the value of a parameter of a figure as text."""
    if isinstance(parameter, list):
        return " ".join(parameter)
    return parameter if isinstance(parameter, str) else f"{parameter:g}"


def figures_json(figures: Sequence[Figure], _width: int = 0) -> str:
    """Return the figures as JSON."""
    document = {
        "format_version": ADVICE_FORMAT_VERSION,
        "findings": [figure.model_dump(mode="json") for figure in figures],
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


FIGURE_WRITERS: dict[str, Callable[[Sequence[Figure], int], str]] = {
    "text": figures_text,
    "json": figures_json,
}
"""By format: the function that writes figures."""
