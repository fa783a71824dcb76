"""Advice as sentences, and numbers as text; the page writes the same texts."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal
from typing import Any

from geneb_ci.board.advice import (
    Advice,
    AdviceFacts,
    AdvisedModel,
    Choice,
    ModelRequest,
    RegimeAdvice,
)
from geneb_ci.common.types import Evidence
from reference_harness.formats.text import plural

SHOWN_UNIT = Decimal("0.001")
"""The last decimal with which scores and losses are shown."""
_EVIDENCE_DOUBTS = {
    Evidence.CHECKED: "nobody has rerun its scores",
    Evidence.STALE: "its audits are of another version of harness, benchmark or data",
}
"""By evidence: why a reader may doubt the scores of a row."""


def score_text(score: float, unit: Decimal = SHOWN_UNIT) -> str:
    """Return the text of a score, rounded half away from zero; a rounded zero has no sign."""
    rounded = Decimal(score).quantize(unit, ROUND_HALF_UP)
    return str(rounded.copy_abs() if rounded.is_zero() else rounded)


def bound_text(bound: float) -> str:
    """Return the text of an upper bound of a loss, rounded up: "0.000" only for exactly 0."""
    return str(Decimal(repr(bound)).quantize(SHOWN_UNIT, ROUND_CEILING)) if bound > 0 else "0.000"


def size_text(params: int) -> str:
    """Return a parameter count with three digits and a unit: 500M, 1.2B, 19.7M."""
    for unit, letter in ((10**9, "B"), (10**6, "M"), (10**3, "K")):
        if params >= unit:
            return f"{float(f'{params / unit:.3g}'):g}{letter}"
    return str(params)


def interval_text(low: float, high: float) -> str:
    """Return the text of an interval of scores."""
    return f"{score_text(low)} to {score_text(high)}"


def without_backticks(sentence: str) -> str:
    """Return a sentence for a terminal or a caption: ids of models without backticks."""
    return sentence.replace("`", "")


def examples_text(regime: str) -> str:
    """Return the name of a regime in words, with its number of training examples if it has one."""
    shots = re.fullmatch(r"(\d+)shot", regime)
    if shots:
        return f"{regime} ({plural(int(shots[1]), 'training example')} per class)"
    return f"{regime} (all training examples)" if regime == "full" else regime


def reasons_of(advice: Advice, facts: AdviceFacts) -> list[str]:
    """Return advice as sentences; the only text of contributors in them is ids of models.

    Ids of models are in backticks, ids of rules and published defects in brackets: the page turns
    them into links, and `without_backticks` prepares them for a terminal. Sentences state only how
    models score on these tasks.
    """
    if not advice.tasks:
        groups = filter(None, (advice.need.species, advice.need.category))
        return [f"No task matches {' and '.join(groups)}."]
    if not advice.regimes:
        limits = limits_text(advice.need) or "the need"
        return [f"No model ranked in {advice.need.regime} meets {limits}."]
    count = len(advice.tasks)
    highest_models = [regime_advice.highest.model for regime_advice in advice.regimes]
    sentences = [
        highest_sentence(
            regime_advice.choices[0], regime_advice.highest, regime_advice.regime, count
        )
        for regime_advice in advice.regimes
    ]
    if len(advice.regimes) > 1:
        sentences.append(gap_sentence(advice.regimes))
    if advice.considered > 1:
        sentences.append(_smaller_sentence(advice))
        highest_models += [advice.smallest.model] if advice.smallest is not None else []
    models = list(dict.fromkeys(highest_models))
    sentences += [sentence for model in models for sentence in _doubts(model, facts.rows[model])]
    if any(facts.draw_variances[regime_advice.regime] for regime_advice in advice.regimes):
        sentences.append(DRAWS_SENTENCE)
    return sentences


DRAWS_SENTENCE = (
    "Intervals cover other training draws: by the submission's scores by seed, or else by a "
    "standard deviation of 0.1 between draws, as k-mers have it on six tasks."
)
"""Sentence about what the intervals of few-shot scores cover."""


def limits_text(request: ModelRequest) -> str:
    """Return the limits of a request: "at most 500M parameters and evidence audited or more"."""
    limits = []
    if request.max_params is not None:
        limits.append(f"at most {size_text(request.max_params)} parameters")
    if request.evidence is not None:
        limits.append(f"evidence {request.evidence} or more")
    return " and ".join(limits)


def highest_sentence(choice: Choice, advised_model: AdvisedModel, regime: str, count: int) -> str:
    """Return the sentences that say which model scores highest, and on how many tasks."""
    score = f"{score_text(choice.score)}, 95 % interval {interval_text(choice.low, choice.high)}"
    subject = "this task" if count == 1 else f"these {count} tasks"
    sentence = f"Highest on {subject} with {examples_text(regime)}: `{choice.model}`, {score}."
    return f"{sentence} {dependence_text(advised_model, count, 'highest')}"


def dependence_text(advised_model: AdvisedModel, count: int, role: str) -> str:
    """Return the sentence that says how many tasks a model wins, and whether one of them decides.

    `role` is the model's role in the advice: "highest" or "the smallest".
    """
    if count == 1:
        return "This rests on one task alone."
    wins = " and ".join(
        f"{number}{f' in {regime}' if len(advised_model.wins) > 1 else ''}"
        for regime, number in advised_model.wins.items()
    )
    case_count = len(advised_model.without)
    stability = (
        f"without any one of them it stays {role}"
        if not case_count
        else f"without one of them another is {role} in {plural(case_count, 'case')}"
    )
    return f"It scores highest on {wins} of the {count} tasks; {stability}."


def gap_sentence(regimes: Sequence[RegimeAdvice]) -> str:
    """Return the sentence with the mean scores of all models in two regimes."""
    mean_of_few, mean_of_many = (
        math.fsum(choice.score for choice in regime_advice.choices) / len(regime_advice.choices)
        for regime_advice in regimes
    )
    return (
        f"Hundreds of examples lie between: the mean of these models is {score_text(mean_of_few)} "
        f"with {regimes[0].regime} and {score_text(mean_of_many)} with {regimes[1].regime}, and "
        "nothing was measured in the gap."
    )


def _smaller_sentence(advice: Advice) -> str:
    """Return the sentence about the smallest model whose loss is acceptable."""
    accepted = f"at most {advice.margin:g} with 95 % confidence"
    if advice.smallest is None:
        return f"No smaller model loses {accepted} on these tasks."
    smallest_model = advice.smallest.model
    smallest_choices = [
        next(choice for choice in regime_advice.choices if choice.model == smallest_model)
        for regime_advice in advice.regimes
    ]
    losses_text = " and ".join(
        f"{score_text(choice.below)} below the highest and at most "
        f"{bound_text(choice.loss_bound or 0)}"
        f"{f' in {regime_advice.regime}' if len(smallest_choices) > 1 else ''}"
        for choice, regime_advice in zip(smallest_choices, advice.regimes, strict=True)
    )
    count = len(advice.smaller)
    verb = "loses" if count == 1 else "lose"
    return (
        f"{plural(count, 'smaller model')} {verb} {accepted}; the smallest is `{smallest_model}`, "
        f"{size_text(smallest_choices[0].params)} parameters: {losses_text}. "
        f"{dependence_text(advice.smallest, len(advice.tasks), 'the smallest')}"
    )


def _doubts(model: str, row: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each reason to doubt the scores of a row."""
    doubt = _EVIDENCE_DOUBTS.get(Evidence(row["evidence"]))
    if doubt is not None:
        yield f"`{model}` is {row['authorship']}, and {doubt}."
    for defect in row.get("defects", ()):
        yield f"Published defect [{defect['id']}] of the extractor of `{model}`: {defect['what']}"
    if rules := [f"[{rule}]" for rule in row.get("warnings", {})]:
        yield f"geneb-ci check warns about `{model}`: {', '.join(rules)}."
