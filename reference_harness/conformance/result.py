"""The result of checking a property, and the tolerance between equal embeddings."""

import enum
from dataclasses import dataclass
from typing import Any

# Largest distance allowed between two embeddings that should be equal, over their length.
# Measured on CPU, batches of mixed length against batches of one, four architectures of two and
# four layers with random weights, three poolings: at most 1.0e-6 in float32, 2.5e-3 in float16 and
# 1.1e-2 in bfloat16. The bounds leave a factor of ten in float32 and of four in the others for
# deeper models. Embeddings that come as float64 may have been rounded to float32 (6e-8) on the way.
# Where padding leaks into an embedding, or another embedding is taken, the distance is 0.1 and
# more.
TOLERANCES = {"float64": 1e-6, "float32": 1e-5, "float16": 1e-2, "bfloat16": 4e-2}


class Outcome(enum.StrEnum):
    """The outcome of a check."""

    HOLDS = "holds"
    FAILS = "fails"
    NOT_VERIFIED = "not verified"
    """Nothing could be seen that shows whether the property holds; no failure, and no success."""


@dataclass(frozen=True, kw_only=True)
class PropertyResult:
    """The verdict on one property of one extractor."""

    property: str
    """Slug, as in `PROPERTIES`."""
    outcome: Outcome
    sentence: str
    """The observation in one sentence; if the property does not hold, also what to do."""
    example: str | None = None
    """The smallest call that shows a failure."""
    measured: float | None = None
    """Largest distance of two embeddings seen, over the length of the embedding."""
    tolerance: float | None = None
    ran: bool = True
    """False if the check could not run: not verified, and not to be taken for checked."""

    def is_refused(self) -> bool:
        """Whether a check of the extractor ends with an error: it fails, or could not be tried."""
        return self.outcome is Outcome.FAILS or not self.ran

    def as_dict(self) -> dict[str, Any]:
        """Return the frozen JSON shape of a result."""
        return {
            "property": self.property,
            "outcome": str(self.outcome),
            "ran": self.ran,
            "sentence": self.sentence,
            "example": self.example,
            "measured": self.measured,
            "tolerance": self.tolerance,
        }


class BrokenError(Exception):
    """A property does not hold: a sentence and the smallest example that shows it."""

    def __init__(
        self, sentence: str, example: str | None = None, measured: float | None = None
    ) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.example = example
        self.measured = measured


class UnverifiedError(Exception):
    """Nothing shows whether a property holds: a sentence that says why, and what was measured."""

    def __init__(self, sentence: str, measured: float | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.measured = measured


def show(sequences: list[str]) -> str:
    """Write a list of sequences as Python, long ones by their first letters and their length."""
    return "[" + ", ".join(_shortened(s) for s in sequences) + "]"


_LETTERS_MAX = 24


def _shortened(sequence: str) -> str:
    if len(sequence) <= _LETTERS_MAX:
        return repr(sequence)
    return f"{sequence[:12]!r}...({len(sequence)} letters)"
