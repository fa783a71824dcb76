"""What a run measured of each task: the letters that the model read, and its embeddings."""

import operator
from typing import Annotated, Literal

from pydantic import Field

from .base import Count, Scores, StrictModel

REASON_MAX = 300
SENTENCE_MAX = 1000
PROPERTIES_MAX = 100
"""Properties of a run: it sees five for itself."""
Amount = Annotated[float, Field(ge=0)]


class LettersRead(StrictModel):
    """The letters of distinct sequences that reach the model."""

    method: Literal["tokens", "changed letters"]
    """Counted from the tokens of every sequence, or seen on a few: the letters at an end of which
    no change moves the embedding are not read."""
    sequences: Annotated[int, Field(ge=1)]
    """Distinct sequences that were looked at."""
    given: Annotated[int, Field(ge=1)]
    """Letters of these."""
    read: Count
    """Letters in tokens that the model knows."""
    cut: Count
    """Sequences of which an end is not read."""
    tokens: Count = 0
    """Tokens that are the sequences' own; 0 where letters were changed."""
    unknown: Count = 0
    """Those that are the token of what is not in the vocabulary."""


class EmbeddingFacts(StrictModel):
    """The embeddings of the distinct sequences of a task, as they were scored."""

    count: Annotated[int, Field(ge=1)]
    distinct: Annotated[int, Field(ge=1)]
    """Number of embeddings that differ from one another."""
    most_repeated: Annotated[int, Field(ge=1)]
    """Sequences that share the embedding which most of them have."""
    norm: Amount
    """Median length."""
    spread: Amount
    """Median distance from the mean of all, over the median length."""
    norm_spread: Amount
    """Standard deviation of the lengths, over the median length."""


class Drift(StrictModel):
    """The first sequences of a task, embedded again alone after all others."""

    sequences: Annotated[int, Field(ge=1)]
    difference: Amount
    """Largest distance of the two embeddings of a sequence, over the length of the first, to two
    decimals: they are of two batches, whose rounding differs."""


class UnitScale(StrictModel):
    """The scores of the full regime when each embedding is divided by its root mean square."""

    regime: str
    scores: Scores


class TaskMeasured(StrictModel):
    """Measurements of one task in a run, beside its scores."""

    letters: LettersRead | None
    """null where it could not be measured."""
    not_measured: Annotated[str, Field(max_length=REASON_MAX, exclude_if=operator.not_)] = ""
    """Why, where `letters` is null."""
    embeddings: EmbeddingFacts
    drift: Annotated[Drift | None, Field(exclude_if=operator.not_)] = None
    """Left out in files of older harnesses, and where an embedding failed."""
    unit_scale: UnitScale | None = None
    """null for a task that was not scored so: of each category the smallest task of the run is, if
    the extractor is a contributor's that declares no scale, and the training split has at most
    4,194,304 numbers (rows times columns)."""


class RunProperty(StrictModel):
    """Outcome of a run's check of one property of its extractor."""

    outcome: Literal["verified", "not verified", "contradicted"]
    """Not verified says that nothing contradicts it, and nothing shows it."""
    sentence: Annotated[str, Field(max_length=SENTENCE_MAX)]


def share_read(letters: LettersRead) -> float:
    """Return the share of the letters given that were read."""
    return letters.read / letters.given
