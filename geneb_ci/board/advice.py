"""A visitor's request for a model, and the advice: the models that meet it, as typed values."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import Field, ValidationError

from geneb_ci.board.diagnostics.document import Diagnostics
from geneb_ci.board.rows import DIAGNOSTICS, LEADERBOARD, TYPE_BY_FILE
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.finding import exact_name
from geneb_ci.common.types import EVIDENCE_ORDER
from reference_harness.formats.base import Count, MinusOneToOne, StrictModel, first_error
from reference_harness.formats.files import NotReadable, path_exists, read_json, read_regular
from reference_harness.formats.text import quoted

if TYPE_CHECKING:
    from geneb_ci.board.uncertainty import RegimeScores


DEFAULT_MARGIN = 0.03
"""Loss of MCC that is accepted for a smaller model, unless a visitor names another."""
HUNDREDS = "hundreds"
"""Word in a request for more examples than few-shot regimes have, and fewer than all: the advice
then shows both kinds of regimes."""
BYTES_PER_PARAMETER = 2
"""Half precision, in which most models are run on an accelerator."""
MEMORY_FACTOR = 2
"""A model needs a GPU with at least this many times the memory of its weights."""
GIGABYTE = 10**9
"""Number of bytes of a gigabyte."""
_FACTOR_BY_UNIT = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "G": 10**9, "T": 10**12}
"""By letter after a number of parameters: what the number is multiplied by."""
_SIZE_PATTERN = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([KMBGT]?)", re.IGNORECASE)
"""A number of parameters: a number and perhaps the letter of a unit."""
ModelId = Annotated[str, Field(min_length=1)]
"""Id of a model."""
Loss = Annotated[float, Field(ge=0)]
"""A difference of MCC, 0 or more."""
TaskRecord = Mapping[str, Any]
"""A task, with the keys of leaderboard_tasks.json."""
MEMORY_GIGABYTES_MAX = 1_000_000
"""Maximum memory in gigabytes, more than any machine has."""
BOARD_FILE_BYTES_MAX = 500_000_000
"""Maximum bytes of a file of a board: with a thousand models, a file has 40 MB."""


def parameter_count(params_text: str) -> int:
    """Return the number of parameters in a text such as 500M, 1.2B or 86000000.

    Raises UsageProblem if the text has another form.
    """
    match = _SIZE_PATTERN.fullmatch(params_text.strip())
    if match is None:
        raise UsageProblem(
            f"{quoted(params_text)} is not a number of parameters",
            "write it as 500M, 1.2B or 86000000",
        )
    return round(float(match[1]) * _FACTOR_BY_UNIT[match[2].upper()])


class ModelRequest(StrictModel):
    """A visitor's requirements of a model."""

    category: str | None
    """The kind of task; null for any."""
    species: str | None
    """A species or a kingdom; null for any."""
    regime: str
    """The number of labelled examples: a regime, or `hundreds`."""
    max_params: Count | None
    """Maximum number of parameters; null for any number."""
    evidence: str | None
    """Minimum evidence; null for any except `disputed`."""


class Choice(StrictModel):
    """One model, its mean score over the tasks, and the possible loss of choosing it."""

    model: ModelId
    params: Count
    authorship: str
    evidence: str
    score: MinusOneToOne
    low: MinusOneToOne
    high: MinusOneToOne
    """95 % interval of the mean of this model, which covers other training draws as well."""
    below: Loss
    """Highest score minus the score of this model."""
    loss_bound: Loss | None
    """Upper bound, with 95 % confidence, of the loss compared with the best of these models; 0 if
    this model is the only one that could be best. Null if `below` exceeds the margin."""
    warnings: list[str]
    """Rules of `geneb-ci check` that warn about the row."""
    defects: list[str]
    """Ids of published defects of the extractor behind the row: docs/reader/defects.md."""


class AdvisedModel(StrictModel):
    """A model that the advice names, and the tasks on which its choice depends."""

    model: ModelId
    wins: dict[str, Count]
    """By regime: the number of tasks on which no other model scores higher."""
    without: list[str]
    """Tasks on which the advice depends: leaving out any one of them changes which model is
    named."""


class RegimeAdvice(StrictModel):
    """The models that meet a request, in one regime."""

    regime: str
    choices: list[Choice]
    """Ordered by descending score; the smallest of models with equal scores comes first."""
    highest: AdvisedModel
    """The model with the highest mean score."""


class Advice(StrictModel):
    """The models that meet a request, on the tasks that match it."""

    need: ModelRequest
    """The request that the advice answers."""
    margin: Loss
    """Loss of MCC that is accepted for a smaller model."""
    tasks: list[str]
    """Ids of the tasks that match species and category; all have the same weight."""
    labels: list[str]
    """Names of the matching tasks, in the order of `tasks`."""
    considered: Count
    """Number of models that meet size and evidence, and are ranked in each regime shown."""
    regimes: list[RegimeAdvice]
    """The models by regime; empty if no task or no model matches the request."""
    smaller: list[ModelId]
    """Models smaller than a highest-scoring one whose loss is within the margin with 95 %
    confidence in each regime shown, smallest first."""
    smallest: AdvisedModel | None
    """The first of `smaller`; null if that is empty."""
    why: list[str]
    """The advice in sentences: ids of models in backticks, those of rules and defects in
    brackets."""


class AdviceFacts(NamedTuple):
    """Rows, tasks and intervals of a board, from which advice is made."""

    boards: Mapping[str, "RegimeScores"]
    """By regime: the scores of all ranked models."""
    draw_variances: Mapping[str, float]
    """By regime: the assumed variance between training draws; 0 if the regime draws no examples."""
    tasks: Sequence[TaskRecord]
    """The tasks of the benchmark, in board order."""
    rows: Mapping[str, Mapping[str, Any]]
    """Facts by model, with the keys of leaderboard.json."""


def model_request(
    category: str | None,
    species: str | None,
    regime: str,
    max_params: int | str | None,
    memory: float | None,
    evidence: str | None,
    margin: float,
) -> ModelRequest:
    """Return a request; `memory` is the memory of a GPU in gigabytes: weights may fill half of it.

    Raises UsageProblem for an invalid size, memory, evidence or margin.
    """
    params_limit = parameter_count(max_params) if isinstance(max_params, str) else max_params
    if params_limit is not None and params_limit < 0:
        raise UsageProblem(
            f"max_params is {params_limit}, expected 0 or more", "pass a larger number"
        )
    if memory is not None:
        if not 0 < memory <= MEMORY_GIGABYTES_MAX:
            raise UsageProblem(
                f"memory is {memory:g} GB, expected more than 0 and "
                f"at most {MEMORY_GIGABYTES_MAX:,}",
                "pass the memory of the GPU, such as 16",
            )
        fitting_params = int(memory * GIGABYTE / MEMORY_FACTOR / BYTES_PER_PARAMETER)
        params_limit = fitting_params if params_limit is None else min(params_limit, fitting_params)
    if evidence not in {None, *EVIDENCE_ORDER}:
        raise UsageProblem(
            f"{quoted(evidence)} is not a level of evidence",
            f"name one of {', '.join(EVIDENCE_ORDER[1:])}",
        )
    if not 0 <= margin <= 1:
        raise UsageProblem(
            f"margin is {margin:g}, expected 0 to 1", "pass the accepted loss of MCC, such as 0.03"
        )
    return ModelRequest(
        category=category,
        species=species,
        regime=regime,
        max_params=params_limit,
        evidence=evidence,
    )


def with_board_names(request: ModelRequest, facts: AdviceFacts) -> ModelRequest:
    """Return a request with names as the board spells them; the case of letters does not matter.

    Raises UsageProblem if the board has no such category, species or regime.
    """
    categories = list(dict.fromkeys(task["cat"] for task in facts.tasks))
    groups = dict.fromkeys(
        task[key] for key in ("kingdom", "species") for task in facts.tasks if key in task
    )
    regimes = [
        *facts.draw_variances,
        *([HUNDREDS] if len(requested_regimes(HUNDREDS, facts)) > 1 else []),
    ]
    regime = exact_name(request.regime, regimes, "regime of the benchmark")
    spellings: dict[str, str | None] = {"regime": regime}
    if request.category is not None:
        spellings["category"] = exact_name(
            request.category, categories, "category of the benchmark"
        )
    if request.species is not None:
        fix = "" if groups else "leave out the species: tasks.toml of the policy names no species"
        meaning = "species or kingdom of the tasks"
        spellings["species"] = exact_name(request.species, list(groups), meaning, fix)
    return request.model_copy(update=spellings)


def requested_regimes(regime: str, facts: AdviceFacts) -> list[str]:
    """Return the regimes whose scores answer a request, those with fewest examples first.

    `regime` answers itself. `HUNDREDS` lies between two regimes: it returns the first few-shot
    regime and the full one.
    """
    if regime != HUNDREDS:
        return [regime]
    few_shot_regimes = [name for name, variance in facts.draw_variances.items() if variance > 0]
    full_regimes = [name for name, variance in facts.draw_variances.items() if variance == 0]
    return [*few_shot_regimes[:1], *full_regimes[:1]]


def matching_tasks(request: ModelRequest, tasks: Sequence[TaskRecord]) -> list[TaskRecord]:
    """Return the tasks of the requested species or kingdom, and category."""
    return [
        task
        for task in tasks
        if request.category in {None, task["cat"]}
        and request.species in {None, task.get("species"), task.get("kingdom")}
    ]


def has_built_board(folder: Path | None) -> bool:
    """Whether a folder contains files that `geneb-ci build` writes."""
    return folder is not None and (
        path_exists(folder / DIAGNOSTICS) or path_exists(folder / LEADERBOARD)
    )


def read_built_files(folder: Path, *file_names: str) -> dict[str, dict[str, Any]]:
    """Return the parsed contents of files of a built board, by file name.

    Raises UsageProblem for a file that is missing, damaged or of another version.
    """
    return {
        name: _read_built_file(folder / name, TYPE_BY_FILE.get(name, Diagnostics))
        for name in file_names
    }


def _read_built_file(path: Path, type_: type[StrictModel]) -> dict[str, Any]:
    """Return the parsed content of a file of a board. Raises UsageProblem if it is invalid."""
    try:
        raw = read_regular(path, BOARD_FILE_BYTES_MAX)
        type_.model_validate_json(raw)
        parsed_file: dict[str, Any] = read_json(raw)
    except NotReadable as error:
        if error.missing and path.name == DIAGNOSTICS:
            raise UsageProblem(
                f"{path.parent}: the board has no {DIAGNOSTICS}, which figures and advice need",
                "build the board without --no-diagnostics, and give n_test of every task in the "
                "benchmark",
            ) from error
        raise _unusable_file(path, error.reason) from error
    except ValidationError as error:
        raise _unusable_file(path, first_error(error)) from error
    return parsed_file


def _unusable_file(path: Path, fault: str) -> UsageProblem:
    """Return the error for a file of a board that cannot be used."""
    return UsageProblem(
        f"{path} is not what this version of geneb-ci writes: {fault}",
        "build the board again: geneb-ci build FOLDER --output DIR",
    )
