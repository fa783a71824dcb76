"""diagnostics.json as typed models; its schema is generated from them.

Scores are MCC. Scores and standard errors are not rounded.
"""

import operator
from typing import Annotated, Literal

from pydantic import Field

from reference_harness.formats.base import Count, Hex64, MinusOneToOne, StrictModel

Share = Annotated[float, Field(ge=0, le=1)]
"""A number from 0 to 1."""
Difference = Annotated[float, Field(ge=-2, le=2)]
"""A difference of two scores."""
Rank = Annotated[int, Field(ge=1)]
"""A rank: 1 is best."""
NotNegative = Annotated[float, Field(ge=0)]
"""A number from 0."""
ModelId = Annotated[str, Field(min_length=1)]
"""Id of a model."""


class StatisticalMethod(StrictModel):
    """Parameters of standard errors and decisions; docs/research/uncertainty.md explains them."""

    metric: Literal["MCC"]
    confidence: Share
    overlap: Share
    """Assumed correlation of the errors of two few-shot fits."""
    dependence: Literal["none", "predictions"]
    """`none`: errors of any two models count as independent; `predictions`: those of two models
    with published predictions correlate as their predictions do."""
    margin: Share
    """Loss of MCC that advice accepts for a smaller model."""


class ModelFacts(StrictModel):
    """Facts about a model that are not scores."""

    model: ModelId
    display: str
    """Name of the model on the board."""
    authorship: str
    """Whose file it is: `official` or `contributed`."""
    evidence: str
    """The evidence of the row: how others confirmed the scores."""
    params: Count
    """Number of parameters that the board shows."""
    params_in_paper: Count | None
    """Number of parameters in the paper; null for a model that is not in the paper."""
    regimes: list[str]
    """Regimes in which the model is ranked."""


class DiagnosedScore(StrictModel):
    """One score of one model."""

    score: MinusOneToOne
    error: NotNegative
    """Standard error."""
    freedom: Annotated[float, Field(gt=0)] | None
    """Degrees of freedom of the error; null if it does not depend on scores by seed."""
    low: MinusOneToOne
    """Lower end of the 95 % interval of this score."""
    high: MinusOneToOne
    """Upper end of the interval, which is not corrected for the number of models."""
    rank: Rank
    """Rank by score; 1 is best."""
    rank_low: Rank
    """Best rank that the model may have."""
    rank_high: Rank
    """Worst rank that the model may have; the ranges of all models together hold with 95 %
    confidence."""
    could_be_best: bool
    """Whether no model scores significantly higher: `rank_low` is 1."""


class ErrorCovariances(StrictModel):
    """Covariances of errors between models whose predictions are published, in squared MCC."""

    models: list[ModelId]
    """In the order of their ids."""
    scores: dict[str, list[list[float]]]
    """By "macro", "micro" or category: a list per model, with its covariances with the models
    before it."""


class RegimeRanks(StrictModel):
    """Scores, intervals and ranks of one regime."""

    models: Count
    """Number of ranked models."""
    rounded: Rank
    """Number of models for which `critical` was computed: `models` rounded up to 10, 20, 50, 100,
    ..."""
    critical: Annotated[float, Field(gt=0)]
    """Number of standard errors from which a difference is significant; the same for all pairs."""
    macro: dict[str, DiagnosedScore]
    """Macro scores by model, best first."""
    micro: dict[str, DiagnosedScore]
    """Micro scores by model, best first."""
    categories: dict[str, dict[str, DiagnosedScore]]
    """Scores by category and model, best first."""
    tasks: dict[str, dict[str, tuple[MinusOneToOne, MinusOneToOne, NotNegative, NotNegative]]]
    """By task and model: (low, high, standard error, v * v / f).

    `low` and `high` are the ends of the score's interval, v is the variance of the score, and f are
    the degrees of freedom of v; the last number is 0 if f is infinite.
    """
    is_drawn: bool
    """Whether the regime draws training examples."""
    draw_variance: NotNegative
    """Assumed variance of a task's score between training draws, for models that `draws_covered`
    does not name; 0 if the regime draws no training examples."""
    draws_covered: list[ModelId]
    """Models whose intervals cover other training draws as well as other test sequences."""
    shared: ErrorCovariances | None = Field(default=None, exclude_if=operator.not_)
    """Left out if all errors count as independent."""


class CategoryWinner(StrictModel):
    """The model with the highest score in a category."""

    model: ModelId
    score: MinusOneToOne
    """The mean score of the category."""
    could_be_best: Count
    """Number of models that could be best, including this one."""


class WinnerChange(StrictModel):
    """A category whose winner differs between two regimes."""

    category: str
    before: ModelId
    """The winner in the first regime."""
    after: ModelId
    """The winner in the second regime."""
    significant: bool
    """Whether neither winner could be best in the regime that the other wins."""


class RegimePair(StrictModel):
    """How the ranks in one regime agree with those in another."""

    regimes: tuple[str, str]
    models: Count
    """Number of models ranked in both regimes."""
    macro_tau: MinusOneToOne | None
    """Kendall's tau-b of macro scores; null if it is undefined."""
    category_tau: dict[str, MinusOneToOne | None]
    winners_changed: Count
    """Number of categories with another winner."""
    winners_significantly_changed: Count
    """Number of categories in which neither winner could be best in the other regime."""
    categories: Count
    """Number of the compared categories."""
    changes: list[WinnerChange]
    """The categories with another winner."""


class RankingStability(StrictModel):
    """Agreement of rankings between categories and between regimes."""

    category_tau: dict[str, dict[str, dict[str, MinusOneToOne | None]]]
    """By regime and two categories: Kendall's tau-b of the two rankings."""
    macro_tau: dict[str, dict[str, MinusOneToOne | None]]
    """By regime and category: Kendall's tau-b of the category's ranking and the macro ranking."""
    winners: dict[str, dict[str, CategoryWinner]]
    """By regime and category: the model that is first."""
    regime_pairs: list[RegimePair]


class ParetoModel(StrictModel):
    """A model that scores higher than every other model that is not larger."""

    model: ModelId
    params: Count
    macro: MinusOneToOne


class ScoresBySize(StrictModel):
    """The macro scores of one regime by size of the model."""

    pareto: list[ParetoModel]
    """The models that score higher than all that are not larger, smallest first."""


class ModelPair(StrictModel):
    """Two official models that differ in exactly one attribute."""

    first: ModelId
    second: ModelId
    values: tuple[str, str]
    """The value of the attribute for `first` and for `second`."""
    difference: Difference
    """Macro score of `first` minus that of `second`."""
    significant: bool
    """Whether the macro scores differ significantly."""


class ValueContrast(StrictModel):
    """Summary of all pairs of models with the same two values of an attribute."""

    values: tuple[str, str]
    """The two values of the attribute."""
    pairs: Count
    """Number of pairs."""
    mean_difference: Difference
    """Mean over the pairs of the first model's macro score minus the second's."""
    first_better: Count
    """Number of pairs in which the model with the first value scores higher."""


class AttributeComparison(StrictModel):
    """The pairs of models that differ only in one attribute, and their summaries."""

    contrasts: list[ValueContrast]
    pairs: list[ModelPair]


class Figure(StrictModel):
    """One figure of the paper or the board, with its definition and value."""

    id: Annotated[str, Field(pattern=r"^[a-z-]+$")]
    scope: Literal["paper", "board", "exclusions"]
    definition: str
    parameters: dict[str, float | int | str | list[str]]
    """Names and values of the settings that the figure depends on."""
    rows: Count
    """Number of models that the figure is computed from."""
    value: float | None
    """Null if it is undefined, or needs data that the board lacks."""
    unit: str
    """The unit of the value."""
    parts: list["FigurePart"]
    """The parts of the value, or the value for each category or task."""


class FigurePart(StrictModel):
    """One part of a figure."""

    name: str
    value: float | None


class ScoredBenchmark(StrictModel):
    """The benchmark definition to which the scores belong."""

    name: str
    sha256: Hex64


class Diagnostics(StrictModel):
    """The whole content of diagnostics.json."""

    schema_version: Literal["2.0"]
    benchmark: ScoredBenchmark
    method: StatisticalMethod
    models: list[ModelFacts]
    """In the order of their ids."""
    ranks: dict[str, RegimeRanks]
    stability: RankingStability
    size: dict[str, ScoresBySize]
    pairs: dict[str, dict[str, AttributeComparison]]
    """By regime and attribute."""
    findings: list[Figure]
    """Each figure in each scope; docs/reader/diagnostics.md explains them."""
