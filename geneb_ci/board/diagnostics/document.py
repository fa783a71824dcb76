"""diagnostics.json as typed models; its schema is generated from them.

Scores are MCC and standard errors as computed, so that a reader rounds once. Rows of a list stand
in the order that its text names.
"""

import operator
from typing import Annotated, Literal

from pydantic import Field

from reference_harness.formats.base import Count, Hex64, Signed, StrictModel

Share = Annotated[float, Field(ge=0, le=1)]
Difference = Annotated[float, Field(ge=-2, le=2)]
Rank = Annotated[int, Field(ge=1)]
NotNegative = Annotated[float, Field(ge=0)]
Model = Annotated[str, Field(min_length=1)]


class Method(StrictModel):
    """How standard errors and decisions were made; docs/research/uncertainty.md explains it."""

    metric: Literal["MCC"]
    confidence: Share
    overlap: Share
    """How alike the errors of two few-shot fits are taken to be, as a correlation."""
    dependence: Literal["none", "predictions"]
    """Errors of two models count as independent, or, where the predictions of both are published,
    as these correlate."""
    margin: Share
    """Loss of MCC that advice accepts for a smaller model."""


class ModelFacts(StrictModel):
    """Facts about a model, beside its scores."""

    model: Model
    display: str
    authorship: str
    """Whose file it is: official or contributed."""
    evidence: str
    """The evidence by others for the scores."""
    params: Count
    """Number of parameters that the board shows."""
    params_in_paper: Count | None
    """As the paper has it; null for a model that is not in the paper."""
    regimes: list[str]
    """Regimes in which it is ranked."""


class DiagnosedScore(StrictModel):
    """One score of one model."""

    score: Signed
    error: NotNegative
    """Standard error."""
    freedom: Annotated[float, Field(gt=0)] | None
    """Degrees of freedom of the error, where scores by seed have a part in it."""
    low: Signed
    high: Signed
    """95 % interval of the score, for the model alone."""
    rank: Rank
    """By score alone; 1 is best."""
    rank_low: Rank
    rank_high: Rank
    """All rank ranges of a score hold jointly with 95 % confidence."""
    could_be_best: bool
    """Whether no model scores significantly higher: `rank_low` is 1."""


class Shared(StrictModel):
    """The errors that models share whose predictions are published, in squared MCC."""

    models: list[Model]
    """In the order of their ids."""
    scores: dict[str, list[list[float]]]
    """"macro", "micro" or category: the covariances of each model with those before it."""


class Ranks(StrictModel):
    """Scores, intervals and ranks of one regime."""

    models: Count
    """Ranked models."""
    rounded: Rank
    """That number rounded up to 10, 20, 50, 100, ...: `critical` depends on it."""
    critical: Annotated[float, Field(gt=0)]
    """Standard errors of a difference that make it significant, for every pair of the board."""
    macro: dict[str, DiagnosedScore]
    """By model, best first."""
    micro: dict[str, DiagnosedScore]
    categories: dict[str, dict[str, DiagnosedScore]]
    tasks: dict[str, dict[str, tuple[Signed, Signed, NotNegative, NotNegative]]]
    """Task, then model, to both ends of the interval of the score, its standard error, and the
    square of its variance over the degrees of freedom, 0 where no seed has a part in it."""
    is_drawn: bool
    """Whether training examples are drawn."""
    draw_variance: NotNegative
    """Variance of a task's score between training draws that is assumed of the models that
    `draws_covered` does not name; 0 where no training examples are drawn."""
    draws_covered: list[Model]
    """Models whose intervals cover other training draws as well as other test sequences."""
    shared: Shared | None = Field(default=None, exclude_if=operator.not_)
    """Left out where errors count as independent."""


class Winner(StrictModel):
    """Who is first in a category."""

    model: Model
    score: Signed
    could_be_best: Count
    """How many models could be best, this one included."""


class WinnerChange(StrictModel):
    """Who is first in a category in two regimes."""

    category: str
    before: Model
    after: Model
    significant: bool
    """Whether neither could be best in the other regime."""


class RegimePair(StrictModel):
    """Agreement of the ranks in one regime with those in another."""

    regimes: tuple[str, str]
    models: Count
    macro_tau: Signed | None
    """Kendall's tau-b of macro scores; null where it is not defined."""
    category_tau: dict[str, Signed | None]
    winners_changed: Count
    winners_significantly_changed: Count
    categories: Count
    """Number of the compared categories."""
    changes: list[WinnerChange]


class Stability(StrictModel):
    """Whether one rank speaks for all."""

    category_tau: dict[str, dict[str, dict[str, Signed | None]]]
    """Regime, category, category: Kendall's tau-b of the two rankings."""
    macro_tau: dict[str, dict[str, Signed | None]]
    """Regime, category: Kendall's tau-b of the category's ranking and the macro ranking."""
    winners: dict[str, dict[str, Winner]]
    """Regime, category."""
    regime_pairs: list[RegimePair]


class ParetoModel(StrictModel):
    """A model than which no other is both no larger and better."""

    model: Model
    params: Count
    macro: Signed


class Size(StrictModel):
    """Signed against size in one regime."""

    pareto: list[ParetoModel]
    """Smallest first."""


class Pair(StrictModel):
    """Two official models that differ in one attribute."""

    first: Model
    second: Model
    values: tuple[str, str]
    """The attribute of each."""
    difference: Difference
    """Macro score of the first less that of the second."""
    significant: bool


class Contrast(StrictModel):
    """All pairs of two values of an attribute."""

    values: tuple[str, str]
    pairs: Count
    mean_difference: Difference
    first_better: Count


class Attribute(StrictModel):
    """Pairs that are alike in all attributes but one."""

    contrasts: list[Contrast]
    pairs: list[Pair]


class Figure(StrictModel):
    """One figure of the paper or the board: what it means, of which rows, and its value."""

    id: Annotated[str, Field(pattern=r"^[a-z-]+$")]
    scope: Literal["paper", "board", "exclusions"]
    definition: str
    parameters: dict[str, float | int | str | list[str]]
    """The settings that the figure depends on, with the values used."""
    rows: Count
    """Models that it is computed from."""
    value: float | None
    """Null where it is not defined, or needs more than the board has."""
    unit: str
    """The unit of the value."""
    parts: list["FigurePart"]
    """The parts of the value, or the same for each category or task."""


class FigurePart(StrictModel):
    """A line of a figure."""

    name: str
    value: float | None


class ScoredBenchmark(StrictModel):
    """Which benchmark definition the scores belong to."""

    name: str
    sha256: Hex64


class Diagnostics(StrictModel):
    """The whole file."""

    schema_version: Literal["2.0"]
    benchmark: ScoredBenchmark
    method: Method
    models: list[ModelFacts]
    """In the order of their ids."""
    ranks: dict[str, Ranks]
    stability: Stability
    size: dict[str, Size]
    pairs: dict[str, dict[str, Attribute]]
    """Regime, then attribute."""
    findings: list[Figure]
    """Each figure in each scope: docs/reader/diagnostics.md."""
