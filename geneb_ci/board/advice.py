"""Typed models of a visitor's need, and of the models that meet it on the matching tasks."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import Field, ValidationError

from geneb_ci.board.diagnostics.document import Diagnostics
from geneb_ci.board.rows import DIAGNOSTICS, LEADERBOARD, TYPES
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.finding import exact_name
from geneb_ci.common.types import EVIDENCE_ORDER
from reference_harness.formats.base import Count, Signed, StrictModel, first_error
from reference_harness.formats.files import NotReadable, lies_there, read_json, read_regular
from reference_harness.formats.text import quoted

if TYPE_CHECKING:
    from geneb_ci.board.uncertainty import RegimeScores


MARGIN = 0.03
"""Loss of MCC that is accepted for a smaller model, unless a visitor names another."""
HUNDREDS = "hundreds"
"""Labelled examples between those of a few-shot regime and of all data: both are shown."""
BYTES_A_PARAMETER = 2
"""Half precision, in which most models are run on an accelerator."""
MEMORY_SHARE = 2
"""A model fits a GPU whose memory is so many times its weights: a run needs more than these."""
GIGABYTE = 10**9
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "G": 10**9, "T": 10**12}
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([KMBGT]?)", re.IGNORECASE)
Model = Annotated[str, Field(min_length=1)]
Loss = Annotated[float, Field(ge=0)]
TaskRecord = Mapping[str, Any]
"""A task as leaderboard_tasks.json has it."""
MEMORY_MAX = 1_000_000
"""Gigabytes; no machine has as much."""
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
    """The kind of task; null for any."""
    species: str | None
    """A species or a kingdom; null for any."""
    regime: str
    """The labelled examples: a regime, or `hundreds`."""
    max_params: Count | None
    """The most parameters a model may have; null for any number."""
    evidence: str | None
    """The least evidence; null for any but `disputed`."""


class Choice(StrictModel):
    """One model, its mean over the tasks, and what is lost by taking it."""

    model: Model
    params: Count
    authorship: str
    evidence: str
    score: Signed
    low: Signed
    high: Signed
    """95 % interval of the mean, for the model alone; between training draws, too."""
    below: Loss
    """Below the highest."""
    loss_bound: Loss | None
    """At most, with 95 % confidence, against the best of these models; 0 if it is the only one that
    could be best. Null where the model scores further below than the margin."""
    warnings: list[str]
    """Rules of `geneb-ci check` that warn about the row."""
    defects: list[str]
    """Ids of published defects of the extractor behind the row: docs/reader/defects.md."""


class Claim(StrictModel):
    """A model that is named, and how much that rests on."""

    model: Model
    wins: dict[str, Count]
    """Regime to the number of the tasks on which none of the models scores higher."""
    without: list[str]
    """The tasks without any one of which another model, or none, would be named."""


class RegimeAdvice(StrictModel):
    """The models in one regime."""

    regime: str
    choices: list[Choice]
    """Highest score first; of equal ones the smallest."""
    highest: Claim


class Advice(StrictModel):
    """The models that meet a need, on the tasks that match it."""

    need: ModelRequest
    margin: Loss
    """Loss of MCC that is accepted for a smaller model."""
    tasks: list[str]
    """Ids of the tasks that match species and category, all of which count alike."""
    labels: list[str]
    """Names of these tasks."""
    considered: Count
    """Models that meet size and evidence, and are ranked in each regime shown."""
    regimes: list[RegimeAdvice]
    """Empty where no task matches, or no model."""
    smaller: list[Model]
    """Models smaller than a highest one whose loss is within the margin with 95 % confidence in
    each regime shown, smallest first."""
    smallest: Claim | None
    """The first of these."""
    why: list[str]
    """The same in sentences: ids of models in backticks, those of rules and defects in brackets."""


class AdviceFacts(NamedTuple):
    """Rows, tasks and intervals of a board or of its published files, from which advice is made."""

    boards: Mapping[str, "RegimeScores"]
    draw_variances: Mapping[str, float]
    """Regime to the variance between training draws that is assumed; 0 without draws."""
    tasks: Sequence[TaskRecord]
    """In board order."""
    rows: Mapping[str, Mapping[str, Any]]
    """Model to its facts, with the keys of leaderboard.json."""


def model_request(
    category: str | None,
    species: str | None,
    regime: str,
    max_params: int | str | None,
    memory: float | None,
    evidence: str | None,
    margin: float,
) -> ModelRequest:
    """Return a need.

    `memory` is that of the GPU in gigabytes: the weights of a model take half of it or less.
    Raises UsageProblem for a size, a memory, an evidence or a margin that is none.
    """
    most = parameters(max_params) if isinstance(max_params, str) else max_params
    if most is not None and most < 0:
        raise UsageProblem(f"max_params is {most}, expected 0 or more", "pass a larger number")
    if memory is not None:
        if not 0 < memory <= MEMORY_MAX:
            raise UsageProblem(
                f"memory is {memory:g} GB, expected more than 0", "pass that of the GPU, such as 16"
            )
        fitting = int(memory * GIGABYTE / MEMORY_SHARE / BYTES_A_PARAMETER)
        most = fitting if most is None else min(most, fitting)
    if evidence not in {None, *EVIDENCE_ORDER}:
        raise UsageProblem(
            f"{quoted(evidence)} is not an evidence", f"name one of {', '.join(EVIDENCE_ORDER[1:])}"
        )
    if not 0 <= margin <= 1:
        raise UsageProblem(f"margin is {margin:g}, expected 0 to 1", "pass a loss of MCC")
    return ModelRequest(
        category=category, species=species, regime=regime, max_params=most, evidence=evidence
    )


def exact_need(request: ModelRequest, facts: AdviceFacts) -> ModelRequest:
    """Return a request with names as the board writes them; letter case does not matter.

    Raises UsageProblem when it has no such category, species or regime.
    """
    categories = list(dict.fromkeys(task["cat"] for task in facts.tasks))
    groups = dict.fromkeys(
        task[key] for key in ("kingdom", "species") for task in facts.tasks if key in task
    )
    regimes = [*facts.draw_variances, *([HUNDREDS] if len(regimes_of(HUNDREDS, facts)) > 1 else [])]
    regime = exact_name(request.regime, regimes, "regime of the benchmark")
    exact: dict[str, str | None] = {"regime": regime}
    if request.category is not None:
        exact["category"] = exact_name(request.category, categories, "category of the benchmark")
    if request.species is not None:
        fix = "" if groups else "ask for none: the policy's tasks.toml names none"
        meaning = "species or kingdom of the tasks"
        exact["species"] = exact_name(request.species, list(groups), meaning, fix)
    return request.model_copy(update=exact)


def regimes_of(regime: str, facts: AdviceFacts) -> list[str]:
    """Return the regimes that are shown for some number of labelled examples, the fewest first."""
    if regime != HUNDREDS:
        return [regime]
    few = [name for name, variance in facts.draw_variances.items() if variance > 0]
    many = [name for name, variance in facts.draw_variances.items() if variance == 0]
    return [*few[:1], *many[:1]]


def matching_tasks(request: ModelRequest, tasks: Sequence[TaskRecord]) -> list[TaskRecord]:
    """Return the tasks of a species, or kingdom, and a category."""
    return [
        task
        for task in tasks
        if request.category in {None, task["cat"]}
        and request.species in {None, task.get("species"), task.get("kingdom")}
    ]


def is_built(folder: Path | None) -> bool:
    """Whether a folder is one that `geneb-ci build` wrote."""
    return folder is not None and (
        lies_there(folder / DIAGNOSTICS) or lies_there(folder / LEADERBOARD)
    )


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
        "build the board again: geneb-ci build FOLDER --output DIR",
    )
