"""The file of sequences beside those of a task: variants, and fresh labelled sequences."""

from typing import Annotated, Literal

from pydantic import Field

from .base import Count, Name, StrictModel


class FurtherSequence(StrictModel):
    """A sequence beside those of a task."""

    split: Literal["train", "test", "support", "fresh"]
    row: Count
    """Index in the split of the sequence that this is a variant of; of a fresh one its own. In the
    split "support", that of a training sequence of a few-shot probe."""
    kind: Name
    sequence: Annotated[str, Field(min_length=1)]
    label: int | None = None
    """Class of a fresh sequence."""


class FurtherSequences(StrictModel):
    """All further sequences of one task."""

    schema_version: Literal["1.0"] = "1.0"
    rows: list[FurtherSequence]
