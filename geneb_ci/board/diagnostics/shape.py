"""diagnostics.json as typed models; its schema is generated from them.

Scores are MCC, rounded to four decimals. Rows of a list stand in the order that its text names.
"""

from typing import Annotated, Literal

from pydantic import Field

from geneb_ci.common.types import Count, Hex64, Signed, StrictModel

Share = Annotated[float, Field(ge=0, le=1)]
Difference = Annotated[float, Field(ge=-2, le=2)]
Place = Annotated[int, Field(ge=1)]
Model = Annotated[str, Field(min_length=1)]
ByModel = dict[str, "DiagnosedScore"]


class Method(StrictModel):
    """How the intervals were made; docs/uncertainty.md explains it."""

    metric: Literal["MCC"]
    confidence: Share
    draws: Place
    seed: Count
    overlap: Share
    """How alike the errors of two few-shot fits are taken to be, as a correlation."""


class ModelFacts(StrictModel):
    """What a model is, beside its scores."""

    model: Model
    display: str
    level: str
    """Trust level, computed from evidence."""
    params: Count
    """As the board shows it."""
    params_in_paper: Count | None
    """As the paper has it; null for a model that is not in the paper."""
    regimes: list[str]
    """Regimes in which it is ranked."""


class DiagnosedScore(StrictModel):
    """One score of one model."""

    score: Signed
    low: Signed
    high: Signed
    """Interval of the score."""
    rank: Place
    rank_low: Place
    rank_high: Place
    """Interval of the rank."""
    group: Place
    """Models of one number tie with the best among them; 1 is the best group."""


class Ranks(StrictModel):
    """Scores, intervals and ranks of one regime."""

    macro: dict[str, DiagnosedScore]
    """By model, best first."""
    micro: dict[str, DiagnosedScore]
    categories: dict[str, dict[str, DiagnosedScore]]
    tasks: dict[str, dict[str, tuple[Signed, Signed]]]
    """Task, then model, to the interval of the score."""
    draws_covered: list[Model]
    """Models whose intervals cover other training draws as well as other test sequences."""


class Correlation(StrictModel):
    """Spearman's rho of parameter counts and scores."""

    models: Count
    rho: Signed | None
    """Null unless at least three models have a value and two of the values differ."""
    p: Share | None
    """Chance of a rho as far from 0 if size played no part (two-sided, t distribution)."""


class Scale(StrictModel):
    """Does size pay? With the counts of one source."""

    macro: Correlation
    micro: Correlation
    categories: dict[str, Correlation]


class ScaleByCounts(StrictModel):
    """Scale correlations of one regime, by where the parameter counts come from."""

    board: Scale
    """All ranked models that have parameters, with the board's counts."""
    paper: Scale
    """The official models, with the paper's counts."""


class Winner(StrictModel):
    """Who is first in a category."""

    model: Model
    score: Signed
    ties: Count
    """How many other models do not differ significantly from it."""


class WinnerChange(StrictModel):
    """Who is first in a category in two regimes."""

    category: str
    before: Model
    after: Model
    significant: bool
    """Whether neither is in the other regime's best tie group."""


class RegimePair(StrictModel):
    """How ranks in one regime agree with those in another."""

    regimes: tuple[str, str]
    models: Count
    macro_tau: Signed | None
    """Kendall's tau-b of macro scores; null where it is not defined."""
    category_tau: dict[str, Signed | None]
    winners_changed: Count
    winners_significantly_changed: Count
    categories: Count
    """Of so many."""
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


class Retention(StrictModel):
    """What is left of a full-data score in the few-shot regimes."""

    mean_macro: dict[str, Signed]
    """Regime: mean macro score of the models ranked in every regime."""
    models: dict[str, dict[str, float | None]]
    """Model, few-shot regime: macro score over that with all data; null where that is 0 or less."""
    categories: dict[str, dict[str, float | None]]
    """Category, few-shot regime: the same for mean scores of all models."""


class DiagnosedTask(StrictModel):
    """One task in one regime, over all models."""

    task: str
    category: str
    best: Signed
    best_model: Model
    mean: Signed
    deviation: Annotated[float, Field(ge=0)]
    """Standard deviation between models."""


class Tasks(StrictModel):
    """Tasks that stand out in one regime."""

    hard: list[DiagnosedTask]
    """Those on which no model reaches `hard_below`, hardest first."""
    hard_below: Signed
    high_variance: list[DiagnosedTask]
    """Those on which models differ most, widest first."""


class ParetoModel(StrictModel):
    """A model than which no other is both no larger and better."""

    model: Model
    params: Count
    macro: Signed


class Beaten(StrictModel):
    """A model and a far smaller one that scores higher."""

    model: Model
    params: Count
    macro: Signed
    by: Model
    by_params: Count
    by_macro: Signed
    times_smaller: float
    significant: bool
    """Whether the difference is larger than its uncertainty."""


class Size(StrictModel):
    """Signed against size in one regime."""

    pareto: list[ParetoModel]
    """Smallest first."""
    beaten: list[Beaten]
    """The largest model first; by all that are five times smaller, best first."""


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


class ScoredBenchmark(StrictModel):
    """Which benchmark definition the scores belong to."""

    name: str
    sha256: Hex64


class Diagnostics(StrictModel):
    """The whole file."""

    schema_version: Literal["1.0"]
    benchmark: ScoredBenchmark
    method: Method
    models: list[ModelFacts]
    """In the order of their ids."""
    ranks: dict[str, Ranks]
    scale: dict[str, ScaleByCounts]
    stability: Stability
    retention: Retention
    tasks: dict[str, Tasks]
    size: dict[str, Size]
    pairs: dict[str, dict[str, Attribute]]
    """Regime, then attribute."""
