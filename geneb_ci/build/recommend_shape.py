"""recommendations.json as typed models; its schema is generated from them."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Score = Annotated[float, Field(ge=-1, le=1)]
Count = Annotated[int, Field(ge=0)]
Model = Annotated[str, Field(min_length=1)]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


class Need(_Shape):
    """What is asked for."""

    category: str | None
    """Null for the macro score over all categories."""
    regime: str
    max_params: Count | None
    """The most parameters a model may have; null for any number."""
    level: str | None
    """The least trust level; null for any but `disputed`."""


class Choice(_Shape):
    """One model and its score for the need."""

    model: Model
    params: Count
    level: str
    score: Score
    low: Score
    high: Score
    """Interval of the score."""


class Advice(_Shape):
    """Which model to take for a need."""

    need: Need
    considered: Count
    """Models that meet size and level."""
    best: Choice | None
    """The highest score; null when no model meets size and level."""
    ties: list[Model]
    """Other models that cannot be told from the best one, best first."""
    smallest: Choice | None
    """The smallest of the best one and its ties."""
    why: list[str]
    """The reasons, in sentences."""


class Benchmark(_Shape):
    """Which benchmark definition the scores belong to."""

    name: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Recommendations(_Shape):
    """Advice for each regime, category, size limit and level, in that order."""

    schema_version: Literal["1.0"]
    benchmark: Benchmark
    advice: list[Advice]
