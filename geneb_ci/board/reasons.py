"""Advice as sentences, and numbers as text: each is rounded once, and the page writes the same."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING

from geneb_ci.board.advice import Advice, AdviceFacts, Choice, ModelRequest
from geneb_ci.common.types import Evidence

if TYPE_CHECKING:
    from geneb_ci.board.decisions import Positions

UNIT = Decimal("0.001")
"""Scores, losses and probabilities are shown with three decimals."""
NEARLY_SURE = 0.999
"""Probabilities from here on are shown as more than this."""
_CONFIDENT = "with 95 % confidence"
_EVIDENCE = {
    Evidence.CHECKED: "Checked, but not rerun by anybody: {}.",
    Evidence.STALE: "Audited or scored for another version: {}.",
}


def score_text(value: float, unit: Decimal = UNIT) -> str:
    """Write a score, rounded half up in size; what rounds to zero has no sign."""
    rounded = Decimal(value).quantize(unit, ROUND_HALF_UP)
    return str(rounded.copy_abs() if rounded.is_zero() else rounded)


def bound_text(value: float) -> str:
    """Write an upper bound of a loss, rounded up: "0.000" only where nothing can be lost."""
    return str(Decimal(repr(value)).quantize(UNIT, ROUND_CEILING)) if value > 0 else "0.000"


def probability_text(value: float) -> str:
    """Write a probability that is a lower bound, rounded down."""
    if value >= NEARLY_SURE:
        return f"more than {NEARLY_SURE}"
    return f"at least {Decimal(repr(value)).quantize(UNIT, ROUND_FLOOR)}"


def size_text(params: int) -> str:
    """Write a parameter count for people: 500M, 1.2B, 19.7M."""
    for unit, letter in ((10**9, "B"), (10**6, "M"), (10**3, "K")):
        if params >= unit:
            return f"{float(f'{params / unit:.3g}'):g}{letter}"
    return str(params)


def interval_text(low: float, high: float) -> str:
    """Write an interval of scores."""
    return f"{score_text(low)} to {score_text(high)}"


def times_text(larger: int, smaller: int) -> str:
    """Write how many times fewer parameters a model has."""
    return str((Decimal(larger) / Decimal(smaller)).quantize(Decimal("0.1"), ROUND_HALF_UP))


def without_backticks(sentence: str) -> str:
    """Write a reason for a terminal or a caption: ids of models without their backticks."""
    return sentence.replace("`", "")


def reasons_of(advice: Advice, known: AdviceFacts, places: "Positions") -> list[str]:
    """Return why a model is recommended; ids of models are all of a contributor's text in it.

    They stand in backticks, ids of rules and published defects in brackets: the page writes them
    as links, a terminal as they are (`without_backticks`). `places`: models that meet the need,
    best first.
    """
    best = advice.best
    if best is None:
        limits = limits_text(advice.need) or "the need"
        return [f"No model ranked in the regime {advice.need.regime} meets {limits}."]
    why = [_highest(advice, best)]
    if advice.considered > 1:
        why += [_badge(advice), *_smaller(advice, best)]
    why += _elsewhere(advice, best, known, places)
    named = [best, *filter(None, (advice.within_margin, advice.on_average))]
    models = list(dict.fromkeys(choice.model for choice in named))
    why += [*_evidence(models, known), *_marks(models, known)]
    if known.is_drawn and best.model not in known.board.draws_covered:
        why.append(
            "Holds for the benchmark's training draws; the submission gives no scores by seed."
        )
    return why


def limits_text(need: ModelRequest) -> str:
    """Write the limits of a need: "at most 500M parameters and evidence audited or more"."""
    parts = []
    if need.max_params is not None:
        parts.append(f"at most {size_text(need.max_params)} parameters")
    if need.evidence is not None:
        parts.append(f"evidence {need.evidence} or more")
    return " and ".join(parts)


def _highest(advice: Advice, best: Choice) -> str:
    need = advice.need
    limits = limits_text(need)
    models = "1 model" if advice.considered == 1 else f"{advice.considered} models"
    of = f"{models}{f' with {limits}' if limits else ''}"
    where = f"{need.category or 'the mean of all categories'} in the regime {need.regime}"
    return (
        f"`{best.model}` has the highest MCC on {where}, of {of}: {score_text(best.score)}, 95 % "
        f"interval {interval_text(best.low, best.high)}."
    )


def _badge(advice: Advice) -> str:
    count = len(advice.could_be_best)
    if count == 1:
        return "It scores significantly higher than each of the others."
    return f"Could be best: {count} models, than which no other scores significantly higher."


def _smaller(advice: Advice, best: Choice) -> list[str]:
    """Return sentences on smaller models of little loss."""
    margin, within, average = f"{advice.margin:g} MCC", advice.within_margin, advice.on_average
    sentences = []
    loses = f"`{best.model}` loses {_at_most(best.loss_bound)}"
    if within is None:
        sentences.append(
            f"No model is within {margin} of the best {_CONFIDENT}; `{best.model}` scores "
            f"highest and loses {_at_most(best.loss_bound)}."
        )
    elif within.model == best.model:
        sentences.append(f"No smaller model is within {margin} of the best {_CONFIDENT}; {loses}.")
    else:
        sentences.append(
            f"`{within.model}` is the smallest model within {margin} of the best {_CONFIDENT}: "
            f"{_size(within, best)}. {_loss(within)}"
        )
    if average is not None and average.model not in {best.model, within and within.model}:
        sentences.append(
            f"`{average.model}` is the smallest model that is expected to lose at most {margin}: "
            f"{_size(average, best)}. {_loss(average)}"
        )
    return sentences


def _at_most(bound: float) -> str:
    return f"at most {bound_text(bound)}" if bound > 0 else "nothing"


def _size(choice: Choice, best: Choice) -> str:
    times = f", {times_text(best.params, choice.params)} times fewer" if choice.params else ""
    return f"{size_text(choice.params)} parameters{times}"


def _loss(choice: Choice) -> str:
    sentence = (
        f"Expected loss of `{choice.model}` against the best model: "
        f"{score_text(choice.expected_loss)} MCC; at most {bound_text(choice.loss_bound)} "
        f"{_CONFIDENT}."
    )
    if choice.best_is_better is not None:
        better = probability_text(choice.best_is_better)
        sentence += f" Probability that the highest score is better: {better}."
    return sentence


def _elsewhere(advice: Advice, best: Choice, known: AdviceFacts, places: "Positions") -> list[str]:
    """Return a sentence on the best of these over all categories, if it is another model."""
    if advice.need.category is None:
        return []
    board, macro = known.board, known.board.scores["macro"].values[places]
    highest = places[macro == macro.max()].tolist()
    overall = min(highest, key=lambda k: (board.params[k], board.models[k]))
    if board.models[overall] == best.model:
        return []
    values = board.scores[advice.need.category].values
    rank = 1 + int((values[places] > values[overall]).sum())
    return [
        f"The best of them over all categories, `{board.models[overall]}`, is number {rank} here."
    ]


def _evidence(models: Sequence[str], known: AdviceFacts) -> list[str]:
    """Return a sentence on the models that nobody has rerun."""
    by_evidence: dict[Evidence, list[str]] = {}
    for model in models:
        by_evidence.setdefault(known.evidence[model], []).append(model)
    return [
        text.format(_listed([f"`{model}`" for model in by_evidence[evidence]]))
        for evidence, text in _EVIDENCE.items()
        if evidence in by_evidence
    ]


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _marks(models: Sequence[str], known: AdviceFacts) -> list[str]:
    """Return sentences on warnings of some models and on defects of their extractors."""
    sentences = []
    for model in models:
        marks = known.marks.get(model)
        for defect, what, _ in marks.defects if marks is not None else ():
            sentences.append(f"Published defect [{defect}] of the extractor of `{model}`: {what}")
        if marks is not None and marks.warnings:
            rules = _listed([f"[{rule}]" for rule, _ in marks.warnings])
            sentences.append(f"geneb-ci check warns about `{model}`: {rules}.")
    return sentences
