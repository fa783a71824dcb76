"""Advice on a model as text or JSON."""

import json
from collections.abc import Callable

from geneb_ci.build.need import size_text
from geneb_ci.build.recommend_shape import Advice, Choice
from geneb_ci.report.plain import visible

TIES_SHOWN = 10


def as_text(advice: Advice) -> str:
    """Write the choice, its ties, and the reasons."""
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


def as_json(advice: Advice) -> str:
    """Write all of it."""
    return json.dumps(advice.model_dump(mode="json"), indent=1, allow_nan=False) + "\n"


WRITERS: dict[str, Callable[[Advice], str]] = {"text": as_text, "json": as_json}
