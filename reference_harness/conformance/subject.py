"""The extractor under test, called as in the harness."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from reference_harness.extractors.base import UNDECLARED
from reference_harness.loading import LoadedExtractor, load

from .result import TOLERANCES, BrokenError, difference, show

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
    def extractor(self) -> Any:  # noqa: ANN401 - it may have more than the interface
        """The object itself."""
        return self.loaded.extractor

    @cached_property
    def tolerance(self) -> float:
        """What two equal embeddings may differ by, from the declared dtype or the array's own."""
        declared = self.loaded.description["embedding"]["dtype"]
        found = str(self.embed(["ACGTACGTACGT"]).dtype) if declared == UNDECLARED else declared
        return TOLERANCES.get(found, TOLERANCES["float32"])

    def raw(self, sequences: list[str], batch_size: int = 8, *, on: Any = None) -> Any:  # noqa: ANN401
        """Call the extractor by keyword, on a copy of the list, and return what it gives."""
        extractor = self.extractor if on is None else on
        return extractor.extract_embeddings(sequences=list(sequences), batch_size=batch_size)

    def embed(
        self,
        sequences: list[str],
        batch_size: int = 8,
        *,
        on: Any = None,  # noqa: ANN401
    ) -> np.ndarray:
        """Return (n, d) embeddings; raise BrokenError for anything else."""
        found = self.raw(sequences, batch_size, on=on)
        shape = getattr(found, "shape", None)
        if (
            not isinstance(found, np.ndarray)
            or found.ndim != _MATRIX
            or len(found) != len(sequences)
        ):
            what = f"an array of shape {shape}" if shape is not None else type(found).__name__
            msg = (
                f"it gave {what} for {len(sequences)} sequences, expected a numpy array of shape "
                f"({len(sequences)}, d): return one row for each sequence"
            )
            raise BrokenError(msg, call(sequences, batch_size))
        return found

    def same(self, found: np.ndarray, expected: np.ndarray, sentence: str, example: str) -> float:
        """Return the difference; raise BrokenError when it is beyond the tolerance."""
        if found.shape != expected.shape:
            msg = f"{sentence}; widths {found.shape[-1]} and {expected.shape[-1]}"
            raise BrokenError(msg, example)
        measured = difference(found, expected)
        if measured > self.tolerance:
            raise BrokenError(sentence, example, measured)
        return measured


def call(sequences: list[str], batch_size: int = 8) -> str:
    """Write a call of the extractor as Python."""
    return f"extract_embeddings({show(sequences)}, batch_size={batch_size})"
