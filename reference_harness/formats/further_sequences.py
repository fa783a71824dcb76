"""The file of further sequences: variants of a task's sequences, and new labelled ones."""

from typing import Annotated, Literal

from pydantic import Field

from .base import Count, Name, StrictModel


class FurtherSequence(StrictModel):
    """A variant of a task's sequence, or a fresh sequence."""

    split: Literal["train", "test", "support", "fresh"]
    """Part of the task for which the sequence was made."""
    row: Count
    """Index of the original sequence in its split; of a fresh sequence, a running number.

    For the split "support", the index is one in the training split.
    """
    kind: Name
    """How the sequence was made, such as the name of a kind of variant."""
    sequence: Annotated[str, Field(min_length=1)]
    """The letters."""
    label: int | None = None
    """Class of a fresh sequence; None for a variant."""


class FurtherSequences(StrictModel):
    """Sequences that an audit embeds beside those of one task: variants of them, and fresh ones."""

    schema_version: Literal["1.0"] = "1.0"
    rows: list[FurtherSequence]
    """The sequences; the embedding at index i of their file is that of sequence i."""
