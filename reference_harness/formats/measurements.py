"""Measurements of a run, per task: the letters that the model reads, and its embeddings."""

import operator
from typing import Annotated, Literal

from pydantic import Field

from .base import Count, Scores, StrictModel

REASON_MAX = 300
"""Maximum number of characters of a reason."""
SENTENCE_MAX = 1000
"""Maximum number of characters of a sentence about a property."""
PROPERTIES_MAX = 100
"""Maximum number of properties of an extractor that a run reports; the harness reports five."""
NotNegative = Annotated[float, Field(ge=0)]
"""A real number from 0."""


class LettersRead(StrictModel):
    """Letters of distinct sequences that reach the model."""

    method: Literal["tokens", "changed letters"]
    """How they were counted: from the tokens of every sequence, or by changing letters.

    With "changed letters", of a few sequences, letters at an end count as unread if no change of
    them changes the embedding.
    """
    sequences: Annotated[int, Field(ge=1)]
    """Number of distinct sequences that were examined."""
    given: Annotated[int, Field(ge=1)]
    """Number of letters of these sequences."""
    read: Count
    """Number of letters in tokens of the vocabulary."""
    cut: Count
    """Number of sequences with an end that is not read."""
    tokens: Count = 0
    """Number of tokens without special ones; 0 if letters were changed."""
    unknown: Count = 0
    """Number of these that are the unknown token."""


class EmbeddingFacts(StrictModel):
    """The embeddings of the distinct sequences of a task, as scored."""

    count: Annotated[int, Field(ge=1)]
    """Number of embeddings."""
    distinct: Annotated[int, Field(ge=1)]
    """Number of different embeddings."""
    most_repeated: Annotated[int, Field(ge=1)]
    """Number of sequences with the most frequent embedding."""
    norm: NotNegative
    """Median Euclidean length."""
    spread: NotNegative
    """Median distance from the mean embedding, divided by the median length."""
    norm_spread: NotNegative
    """Standard deviation of the lengths, divided by the median length."""


class Drift(StrictModel):
    """How much embeddings of a task's first sequences change if embedded again after all others."""

    sequences: Annotated[int, Field(ge=1)]
    """Number of sequences that were embedded again."""
    difference: NotNegative
    """Largest distance of the two embeddings of a sequence, over the length of the first, to two
    decimals: they are of two batches, whose rounding differs."""


class UnitScale(StrictModel):
    """The scores of the full regime if each embedding is divided by its root mean square."""

    regime: str
    """The regime of the scores: "full"."""
    scores: Scores
    """Scores of the scaled embeddings."""


class TaskMeasured(StrictModel):
    """Measurements of one task in a run, in addition to its scores."""

    letters: LettersRead | None
    """The letters read; null if they could not be measured."""
    not_measured: Annotated[str, Field(max_length=REASON_MAX, exclude_if=operator.not_)] = ""
    """The reason if `letters` is null."""
    embeddings: EmbeddingFacts
    """Norms and repetitions of the embeddings."""
    drift: Annotated[Drift | None, Field(exclude_if=operator.not_)] = None
    """Omitted in files of older harnesses, and if embedding again failed."""
    unit_scale: UnitScale | None = None
    """Scores at unit scale; null if the task was not scored at it.

    Only the smallest task of each category is, and only if the extractor is a contributor's that
    declares no scale, and the training split has at most 4,194,304 numbers (rows times columns).
    """


class RunProperty(StrictModel):
    """Outcome of a run's check of one property of its extractor."""

    outcome: Literal["verified", "not verified", "contradicted"]
    """"not verified" means that nothing contradicts the property, and nothing shows it."""
    sentence: Annotated[str, Field(max_length=SENTENCE_MAX)]
    """What the check observed."""


def share_read(letters: LettersRead) -> float:
    """Return the share of the given letters that were read."""
    return letters.read / letters.given
