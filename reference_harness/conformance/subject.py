"""The extractor under test, called as in the harness."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from reference_harness.batching import TOKEN_BUDGET
from reference_harness.embed import FILE_BATCH, Batching, to_numpy
from reference_harness.extractors.base import UNDECLARED
from reference_harness.loading import LoadedExtractor, load
from reference_harness.progress import Listener, SilentListener
from reference_harness.reach import difference

from .result import TOLERANCES, BrokenError, show

_MATRIX = 2


@dataclass
class Subject:
    """One extractor, loaded at first use, and again on request."""

    spec: str
    name_model: str
    device: str
    folder: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    letters: int = 8192
    """The longest sequence to try."""
    plan: list[Any] = field(default_factory=lambda: ["budget", TOKEN_BUDGET, FILE_BATCH])
    """Mode, token budget and embeddings of the run's batches, which the full check repeats."""

    measured: bool = False
    """Whether the token budget is measured, as a run's then is."""
    listener: Listener = field(default_factory=SilentListener)
    """Receives the progress of the full check."""
    shared: dict[str, object] = field(default_factory=dict)
    """Results that several properties share."""

    @property
    def batching(self) -> Batching:
        """Batching of a run of this extractor."""
        return Batching(*self.plan)

    def load(self, device: str | None = None) -> LoadedExtractor:
        """Build the extractor once more."""
        return load(
            self.spec,
            self.name_model,
            device or self.device,
            folder=self.folder,
            **self.options,
        )

    @cached_property
    def loaded(self) -> LoadedExtractor:
        """The extractor that all properties share."""
        return self.load()

    @property
    def extractor(self) -> Any:  # it may have more than the interface
        """The object itself."""
        return self.loaded.extractor

    @cached_property
    def tolerance(self) -> float:
        """The allowed difference of equal embeddings, by the declared dtype or the array's own."""
        declared = self.loaded.description["embedding"]["dtype"]
        dtype = str(self.embed(["ACGTACGTACGT"]).dtype) if declared == UNDECLARED else declared
        return TOLERANCES.get(dtype, TOLERANCES["float32"])

    def raw(self, sequences: list[str], batch_size: int = 8, *, on: Any = None) -> Any:
        """Call the extractor as a run does, on a copy of the list, and return what it gives."""
        extractor = self.extractor if on is None else on
        return extractor.extract_embeddings(list(sequences), batch_size=batch_size)

    def embed(
        self,
        sequences: list[str],
        batch_size: int = 8,
        *,
        on: Any = None,
    ) -> np.ndarray:
        """Return (n, d) embeddings, read as a run reads them; raise BrokenError for anything else.

        Integers are passed on: that the run refuses them is for `floating-dtype` to say.
        """
        output = self.raw(sequences, batch_size, on=on)
        rows = _array(output)
        if rows is None or rows.ndim != _MATRIX or len(rows) != len(sequences):
            shape = getattr(output, "shape", None)
            result = type(output).__name__ if shape is None else f"an array of shape {tuple(shape)}"
            msg = (
                f"it gave {result} for {len(sequences)} sequences, expected a numpy array or torch "
                f"tensor of shape ({len(sequences)}, d): return one embedding for each sequence"
            )
            raise BrokenError(msg, call(sequences, batch_size))
        return rows

    def same(self, actual: np.ndarray, expected: np.ndarray, sentence: str, example: str) -> float:
        """Return the difference; raise BrokenError when it is beyond the tolerance.

        Embeddings of another width, of another type, or with NaN have sentences of their own: the
        advice of `sentence` is about finite embeddings that differ.
        """
        if actual.shape != expected.shape:
            msg = f"{sentence}; widths {actual.shape[-1]} and {expected.shape[-1]}"
            raise BrokenError(msg, example)
        if actual.dtype != expected.dtype:
            raise BrokenError(other_type(actual.dtype, expected.dtype), example)
        for rows in (actual, expected):
            if (fault := not_finite(rows)) is not None:
                raise BrokenError(fault, example, float("inf"))
        measured = difference(actual, expected)
        if measured <= self.tolerance:
            return measured
        if measured <= TOLERANCES["bfloat16"]:
            sentence += (
                "; a distance this small may also be the rounding of half precision, under a "
                "declared dtype of more digits: see computed-dtype first"
            )
        raise BrokenError(sentence, example, measured)


def other_type(actual: object, expected: object) -> str:
    """Return the sentence about two calls whose arrays have different types."""
    return (
        f"one call gives {actual} and another {expected}, expected one type for every call, as the "
        "cache of a run holds one: convert to float32 before returning"
    )


def not_finite(rows: np.ndarray) -> str | None:
    """Return the objection to (n, d) or (d,) embeddings with NaN or infinity, else None."""
    rows = np.atleast_2d(rows)
    if np.isfinite(rows).all():
        return None
    bad = ~np.isfinite(rows)
    row = int(np.flatnonzero(bad.any(axis=1))[0])
    count = int(bad[row].sum())
    infinite = bool(np.isinf(rows[row]).any())
    advice = (
        "float16 ends at 65,504, so compute in float32 or bfloat16, and look for a division by zero"
        if infinite
        else "look for a mean over no token, and for masked positions that are multiplied by zero "
        "(NaN times zero is NaN: use where)"
    )
    return (
        f"embedding {row} holds {'infinity' if infinite else 'NaN'} in {count} of {rows.shape[1]} "
        f"columns, expected finite numbers: {advice}"
    )


def _array(output: Any) -> np.ndarray | None:
    """Return the array that a run would read; integers as they are; None for another object."""
    try:
        return to_numpy(output)
    except TypeError:
        array = output.numpy() if hasattr(output, "numpy") else output
        return array if isinstance(array, np.ndarray) else None


def call(sequences: list[str], batch_size: int = 8) -> str:
    """Write a call of the extractor as Python."""
    return f"extract_embeddings({show(sequences)}, batch_size={batch_size})"
