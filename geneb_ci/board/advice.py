"""Advice as typed models, whose schema is generated from them, and advice of a built board.

What is imported here is little: advice that a board has is read in a quarter of a second.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import Field, ValidationError

from geneb_ci.board.diagnostics.document import Diagnostics
from geneb_ci.board.rows import DIAGNOSTICS, LEADERBOARD, RECOMMENDATIONS, TYPES
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.finding import exact_name
from geneb_ci.common.types import EVIDENCE_ORDER, Evidence
from reference_harness.formats.base import Count, Hex64, Signed, StrictModel, Unit, first_error
from reference_harness.formats.files import NotReadable, lies_there, read_json, read_regular
from reference_harness.formats.text import quoted

if TYPE_CHECKING:
    from geneb_ci.board.uncertainty import RegimeScores


MARGIN = 0.01
"""MCC: about the standard error of a category, and what people call a small loss."""
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "G": 10**9, "T": 10**12}
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([KMBGT]?)", re.IGNORECASE)
Model = Annotated[str, Field(min_length=1)]
Loss = Annotated[float, Field(ge=0)]
BYTES_MAX = 500_000_000
"""A thousand models have 40 MB; what is larger is no board."""


def parameters(text: str) -> int:
    """Read a parameter count such as 500M, 1.2B or 86000000.

    Raises UsageProblem when it is none.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageProblem(
            f"{quoted(text)} is not a number of parameters",
            "write it as 500M, 1.2B or 86000000",
        )
    return round(float(match[1]) * _UNITS[match[2].upper()])


class ModelRequest(StrictModel):
    """The reader's requirements."""

    category: str | None
    """Null for the macro score over all categories."""
    regime: str
    max_params: Count | None
    """The most parameters a model may have; null for any number."""
    evidence: str | None
    """The least evidence; null for any but `disputed`."""


class Choice(StrictModel):
    """One model, its score for the need, and what is lost by taking it."""

    model: Model
    params: Count
    evidence: str
    score: Signed
    low: Signed
    high: Signed
    """95 % interval of the score, for the model alone."""
    expected_loss: Loss
    """Of MCC, against the best model that meets the need, with a flat prior."""
    loss_bound: Loss
    """At most, with 95 % confidence; 0 if it is the only model that could be best."""
    best_is_better: Unit | None
    """Probability that the model with the highest score is better, at least; null for itself."""
    warnings: list[str]
    """Rules of `geneb-ci check` that warn about the row."""
    defects: list[str]
    """Ids of published defects of the extractor behind the row: docs/defects.md."""


class Advice(StrictModel):
    """Which model to take for a need."""

    need: ModelRequest
    margin: Loss
    """Loss of MCC that is accepted for a smaller model."""
    considered: Count
    """Models that meet size and evidence."""
    recommended: Model | None
    """`within_margin`, or else `best`; null when no model meets size and evidence."""
    best: Choice | None
    """The highest score; of equal ones the smallest."""
    could_be_best: list[Model]
    """The models than which no other scores significantly higher, best first."""
    within_margin: Choice | None
    """The smallest model whose loss is within the margin with 95 % confidence."""
    on_average: Choice | None
    """The smallest model whose expected loss is within the margin: no guarantee."""
    why: list[str]
    """The reasons, in sentences: ids of models in backticks, those of rules and published defects
    in brackets."""


class AdvisedBenchmark(StrictModel):
    """Which benchmark definition the scores belong to."""

    name: str
    sha256: Hex64


class Recommendations(StrictModel):
    """Advice for each regime, category, size limit and evidence, in that order."""

    schema_version: Literal["2.0"]
    benchmark: AdvisedBenchmark
    margin: Loss
    advice: list[Advice]


class RowMarks(NamedTuple):
    """Warnings about a row that a reader should see before relying on it."""

    warnings: tuple[tuple[str, int], ...] = ()
    """Rule to the number of its warnings."""
    defects: tuple[tuple[str, str, str], ...] = ()
    """Id of a published defect, what goes wrong, and where it is explained."""


NO_MARKS = RowMarks()


class AdviceFacts(NamedTuple):
    """The facts of a regime that advice needs, from a board or from its published files."""

    board: "RegimeScores"
    evidence: Mapping[str, Evidence]
    """Model to its evidence."""
    is_drawn: bool
    """Whether training examples are drawn."""
    marks: Mapping[str, RowMarks]
    """Model to its marks; a model without any may be missing."""


def model_request(
    category: str | None,
    regime: str,
    max_params: int | str | None,
    evidence: str | None,
    margin: float = MARGIN,
) -> ModelRequest:
    """Return a need. Raises UsageProblem for a size, an evidence or a margin that is none."""
    most = parameters(max_params) if isinstance(max_params, str) else max_params
    if most is not None and most < 0:
        raise UsageProblem(f"max_params is {most}, expected 0 or more", "pass a larger number")
    if evidence not in {None, *EVIDENCE_ORDER}:
        raise UsageProblem(
            f"{quoted(evidence)} is not an evidence", f"name one of {', '.join(EVIDENCE_ORDER[1:])}"
        )
    if not 0 <= margin <= 1:
        raise UsageProblem(f"margin is {margin:g}, expected 0 to 1", "pass a loss of MCC")
    return ModelRequest(category=category, regime=regime, max_params=most, evidence=evidence)


def exact_need(
    need: ModelRequest, regimes: Sequence[str], categories: Sequence[str]
) -> ModelRequest:
    """Return a need with the names of the benchmark: letter case does not matter.

    Raises UsageProblem when the benchmark has no such category or regime.
    """
    category = need.category
    return need.model_copy(
        update={
            "regime": exact_name(need.regime, regimes, "regime of the benchmark"),
            "category": None
            if category is None
            else exact_name(category, categories, "category of the benchmark"),
        }
    )


def is_built(folder: Path | None) -> bool:
    """Whether a folder is one that `geneb-ci build` wrote."""
    return folder is not None and (
        lies_there(folder / DIAGNOSTICS) or lies_there(folder / LEADERBOARD)
    )


def stored_advice(folder: Path, need: ModelRequest, margin: float) -> Advice | None:
    """Return the advice that a board has for a need; None where it has to be chosen again.

    Raises UsageProblem for a file that this version does not write.
    """
    path = folder / RECOMMENDATIONS
    if margin != MARGIN or not lies_there(path):
        return None
    request = _folded(need.model_dump())
    try:
        value = read_json(read_regular(path, BYTES_MAX))
        for advice in value["advice"]:
            if _folded(advice["need"]) == request and advice["margin"] == MARGIN:
                return Advice.model_validate(advice)
    except NotReadable as error:
        raise _unusable(path, error.reason) from error
    except ValidationError as error:
        raise _unusable(path, first_error(error)) from error
    except (ValueError, KeyError, TypeError) as error:
        raise _unusable(path, "it has no list of advice") from error
    return None


def _folded(need: dict[str, Any]) -> dict[str, Any]:
    """Return a need with names in one letter case."""
    return {
        key: value.casefold() if isinstance(value, str) else value for key, value in need.items()
    }


def read_built(folder: Path, *names: str) -> dict[str, dict[str, Any]]:
    """Return files of a built board as values, by name, each of the type that this version writes.

    Raises UsageProblem for files that are missing, damaged or of another version.
    """
    return {name: _read(folder / name, TYPES.get(name, Diagnostics)) for name in names}


def _read(path: Path, type_: type[StrictModel]) -> dict[str, Any]:
    try:
        raw = read_regular(path, BYTES_MAX)
        type_.model_validate_json(raw)
        value: dict[str, Any] = read_json(raw)
    except NotReadable as error:
        if error.missing and path.name == DIAGNOSTICS:
            raise UsageProblem(
                f"{path.parent}: the board has no {DIAGNOSTICS}, which figures and advice need",
                "build it without --no-diagnostics, and give n_test of every task in the benchmark",
            ) from error
        raise _unusable(path, error.reason) from error
    except ValidationError as error:
        raise _unusable(path, first_error(error)) from error
    return value


def _unusable(path: Path, why: str) -> UsageProblem:
    return UsageProblem(
        f"{path} is not what this version of geneb-ci writes: {why}",
        "build the board again: geneb-ci build FOLDER --out DIR",
    )
