"""The extractor under test, called as a run calls it."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from reference_harness.embedding.batching import DEFAULT_TOKEN_BUDGET
from reference_harness.embedding.extractor_calls import FILE_BATCH_SEQUENCES, Batching, to_numpy
from reference_harness.embedding.letters_read import relative_distance
from reference_harness.extractors.base import UNDECLARED
from reference_harness.loading.loader import LoadedExtractor, load
from reference_harness.run.progress import Listener, SilentListener

from .result import TOLERANCES, BrokenError, sequences_code

_MATRIX_DIMS = 2
"""Dimensions of an array of embeddings: sequences, columns."""


@dataclass
class Subject:
    """One extractor, loaded at first use and as often as `load` is called."""

    spec: str
    """The extractor: `FILE.py:CLASS`, or the name of a built-in."""
    name_model: str
    """Hub repository or folder of the weights; "" if the extractor needs none."""
    device: str
    """Device of torch on which the extractor is built."""
    folder: str | None = None
    """Folder in which the module is searched; None for the usual ones."""
    options: dict[str, Any] = field(default_factory=dict)
    """Further arguments of the extractor's constructor."""
    letters: int = 8192
    """Length of the longest sequence to try, in letters."""
    plan: list[Any] = field(
        default_factory=lambda: ["budget", DEFAULT_TOKEN_BUDGET, FILE_BATCH_SEQUENCES]
    )
    """Mode, token budget and `batch_size` of the run's batches, which the full check repeats."""

    measures_budget: bool = False
    """Whether the token budget is measured on the device."""
    listener: Listener = field(default_factory=SilentListener)
    """Receives the progress of the full check."""
    shared: dict[str, object] = field(default_factory=dict)
    """Results that several properties share, by name."""

    @property
    def batching(self) -> Batching:
        """Batching of a run with this extractor."""
        return Batching(*self.plan)

    def load(self, device: str | None = None) -> LoadedExtractor:
        """Return a newly built extractor, on the checked device unless another is given."""
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
        """The extractor object itself."""
        return self.loaded.extractor

    @cached_property
    def tolerance(self) -> float:
        """The allowed distance of equal embeddings, by their declared or actual dtype."""
        declared = self.loaded.description["embedding"]["dtype"]
        dtype = str(self.embed(["ACGTACGTACGT"]).dtype) if declared == UNDECLARED else declared
        return TOLERANCES.get(dtype, TOLERANCES["float32"])

    def output(self, sequences: list[str], batch_size: int = 8, *, on: Any = None) -> Any:
        """Return what the extractor, or the extractor `on`, returns for a copy of the list."""
        extractor = self.extractor if on is None else on
        return extractor.extract_embeddings(list(sequences), batch_size=batch_size)

    def embed(
        self,
        sequences: list[str],
        batch_size: int = 8,
        *,
        on: Any = None,
    ) -> np.ndarray:
        """Return (n, d) embeddings, converted as in a run; raise BrokenError for another shape.

        Integers are returned unchanged: the property floating-dtype checks for them.
        """
        output = self.output(sequences, batch_size, on=on)
        embeddings = _as_array(output)
        if (
            embeddings is None
            or embeddings.ndim != _MATRIX_DIMS
            or len(embeddings) != len(sequences)
        ):
            shape = getattr(output, "shape", None)
            actual = type(output).__name__ if shape is None else f"an array of shape {tuple(shape)}"
            msg = (
                f"the extractor returned {actual} for {len(sequences)} sequences, expected a numpy "
                f"array or torch tensor of shape ({len(sequences)}, d): return one embedding for "
                "each sequence"
            )
            raise BrokenError(msg, call_code(sequences, batch_size))
        return embeddings

    def checked_distance(
        self, actual: np.ndarray, expected: np.ndarray, sentence: str, example: str
    ) -> float:
        """Return the distance of two arrays of embeddings; raise BrokenError above the tolerance.

        `sentence` is the message about finite embeddings that differ. Another width, another type,
        NaN and infinity have other messages.
        """
        if actual.shape != expected.shape:
            msg = f"{sentence}; their widths are {actual.shape[-1]} and {expected.shape[-1]}"
            raise BrokenError(msg, example)
        if actual.dtype != expected.dtype:
            raise BrokenError(other_type_message(actual.dtype, expected.dtype), example)
        for rows in (actual, expected):
            if (fault := not_finite_message(rows)) is not None:
                raise BrokenError(fault, example, float("inf"))
        measured = relative_distance(actual, expected)
        if measured <= self.tolerance:
            return measured
        if measured <= TOLERANCES["bfloat16"]:
            sentence += (
                "; a distance this small may also come from half precision under a declared "
                "dtype of more digits: see computed-dtype first"
            )
        raise BrokenError(sentence, example, measured)


def other_type_message(actual: object, expected: object) -> str:
    """Return the message about two calls whose arrays have different types."""
    return (
        f"one call returns {actual} and another {expected}, expected one type for all calls: "
        "convert to float32 before returning"
    )


def not_finite_message(rows: np.ndarray) -> str | None:
    """Return the message about NaN or infinity in (n, d) or (d,) embeddings, else None."""
    rows = np.atleast_2d(rows)
    if np.isfinite(rows).all():
        return None
    is_not_finite = ~np.isfinite(rows)
    row = int(np.flatnonzero(is_not_finite.any(axis=1))[0])
    count = int(is_not_finite[row].sum())
    is_infinite = bool(np.isinf(rows[row]).any())
    advice = (
        "the largest float16 is 65,504, so compute in float32 or bfloat16, and look for a division "
        "by zero"
        if is_infinite
        else "look for a mean over no token, and for masked positions multiplied by zero "
        "(NaN times zero is NaN: use where)"
    )
    return (
        f"embedding {row} holds {'infinity' if is_infinite else 'NaN'} in {count} of "
        f"{rows.shape[1]} columns, expected finite numbers: {advice}"
    )


def _as_array(output: Any) -> np.ndarray | None:
    """Return the array that a run would read; also one of integers; None for another object."""
    try:
        return to_numpy(output)
    except TypeError:
        array = output.numpy() if hasattr(output, "numpy") else output
        return array if isinstance(array, np.ndarray) else None


def call_code(sequences: list[str], batch_size: int = 8) -> str:
    """Return a call of the extractor as Python code."""
    return f"extract_embeddings({sequences_code(sequences)}, batch_size={batch_size})"
