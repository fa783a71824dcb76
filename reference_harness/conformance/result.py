"""What a property's check found, and by how much two equal embeddings may differ."""

from dataclasses import dataclass
from typing import Any

import numpy as np

# Largest difference allowed between two embeddings that should be equal, over the root mean square
# of the values compared. Measured on CPU with random models of 2 to 12 layers, other batches against
# a batch of one: float32 up to 2e-6, bfloat16 up to 1.4e-2. The bound leaves a factor of four in
# bfloat16, where deeper models add rounding, and of ten elsewhere; float16 has three more bits of
# mantissa than bfloat16, float64 29 more than float32. A row that padding leaked into is off by
# 0.1 and more.
TOLERANCES = {"float64": 1e-12, "float32": 2e-5, "float16": 8e-3, "bfloat16": 6e-2}


@dataclass(frozen=True, kw_only=True)
class PropertyResult:
    """The verdict on one property of one extractor."""

    property: str
    """Slug, as in `PROPERTIES`."""
    passed: bool
    sentence: str
    """What was seen, in plain words; on failure, also what to do."""
    example: str | None = None
    """The smallest call that shows a failure."""
    measured: float | None = None
    """Largest difference seen, over the root mean square of the values."""
    tolerance: float | None = None
    ran: bool = True
    """False when the check could not run: that counts as a failure, and is none of the extractor's
    own."""

    def as_dict(self) -> dict[str, Any]:
        """Return the frozen JSON shape of a result."""
        return {
            "property": self.property,
            "passed": self.passed,
            "ran": self.ran,
            "sentence": self.sentence,
            "example": self.example,
            "measured": self.measured,
            "tolerance": self.tolerance,
        }


class BrokenError(Exception):
    """A property does not hold: a sentence and the smallest example that shows it."""

    def __init__(self, sentence: str, example: str | None = None, measured: float | None = None):
        super().__init__(sentence)
        self.sentence = sentence
        self.example = example
        self.measured = measured


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference over the root mean square of `expected`; inf for NaN."""
    scale = float(np.sqrt(np.mean(np.square(expected, dtype=np.float64))))
    worst = float(np.max(np.abs(found.astype(np.float64) - expected), initial=0.0))
    if not np.isfinite(worst) or not np.isfinite(scale):
        return float("inf")
    return worst / scale if scale else worst


def show(sequences: list[str]) -> str:
    """Write a list of sequences as Python, long ones by their first letters and their length."""
    return "[" + ", ".join(_one(s) for s in sequences) + "]"


_SHOWN = 24


def _one(sequence: str) -> str:
    if len(sequence) <= _SHOWN:
        return repr(sequence)
    return f"{sequence[:12]!r}...({len(sequence)} letters)"
