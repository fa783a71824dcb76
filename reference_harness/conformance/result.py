"""The result of checking a property, and the tolerance between equal embeddings."""

import enum
from dataclasses import dataclass
from typing import Any

TOLERANCES = {"float64": 1e-6, "float32": 1e-5, "float16": 1e-2, "bfloat16": 4e-2}
"""Largest allowed distance between two embeddings that should be equal, divided by their length.
Measured on CPU between batches of mixed lengths and batches of one, with four architectures of two
and four layers, random weights and three poolings: at most 1.0e-6 in float32, 2.5e-3 in float16 and
1.1e-2 in bfloat16. The bounds leave a factor of ten in float32 and of four in the others for deeper
models. Embeddings in float64 may have been rounded to float32 (6e-8) before. If padding changes an
embedding, or another sequence's is returned, the distance is above 0.1."""


class Outcome(enum.StrEnum):
    """The outcome of a check."""

    HOLDS = "holds"
    """The property holds."""
    FAILS = "fails"
    """The property does not hold."""
    NOT_VERIFIED = "not verified"
    """The check could not find out whether the property holds: neither a failure nor a success."""


@dataclass(frozen=True, kw_only=True)
class PropertyResult:
    """The result of checking one property of one extractor."""

    property: str
    """Slug, as in `PROPERTIES`."""
    outcome: Outcome
    """Whether the property holds."""
    sentence: str
    """The observation in one sentence; if the property does not hold, also what to do."""
    example: str | None = None
    """The smallest call that shows a failure."""
    measured: float | None = None
    """Largest distance seen between embeddings that should be equal, divided by their length."""
    tolerance: float | None = None
    """Largest distance that would be allowed; None if none was measured."""
    ran: bool = True
    """False if the check could not run; the outcome is then "not verified"."""

    def is_refused(self) -> bool:
        """Whether the whole check fails by this result: a failure, or a check that did not run."""
        return self.outcome is Outcome.FAILS or not self.ran

    def as_dict(self) -> dict[str, Any]:
        """Return the result as a JSON object, whose members are the same in every version."""
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
    """A property does not hold; the error has a sentence and the smallest example that shows it."""

    def __init__(
        self, sentence: str, example: str | None = None, distance: float | None = None
    ) -> None:
        """Store the sentence, the smallest example, and the distance that was measured."""
        super().__init__(sentence)
        self.sentence = sentence
        self.example = example
        self.distance = distance
        """Largest distance seen, as `PropertyResult.measured`; None if none was computed."""


class UnverifiedError(Exception):
    """A check cannot find out whether a property holds; the error has the reason and a distance."""

    def __init__(self, sentence: str, distance: float | None = None) -> None:
        """Store the reason, and the distance that was measured."""
        super().__init__(sentence)
        self.sentence = sentence
        self.distance = distance
        """Largest distance seen, as `PropertyResult.measured`; None if none was computed."""


def sequences_code(sequences: list[str]) -> str:
    """Return a list of sequences as Python code; long ones are shortened."""
    return "[" + ", ".join(_shortened(s) for s in sequences) + "]"


_LETTERS_SHOWN = 24
"""Number of letters above which a sequence in a message is shortened."""


def _shortened(sequence: str) -> str:
    """Return a sequence as Python code, with the number of letters if it is long."""
    if len(sequence) <= _LETTERS_SHOWN:
        return repr(sequence)
    return f"{sequence[:12]!r}...({len(sequence)} letters)"
