"""Check the properties that every extractor must have, without knowledge of the model.

The quick checks take about a minute; the full ones repeat a run's batches with thousands of
embeddings. They run in a child process with a time limit: a crash or a hang is a failed property.
This is not a sandbox.
"""

from .properties import PROPERTIES, QUICK, Property
from .result import TOLERANCES, Outcome, PropertyResult
from .runner import PROPERTY_SECONDS_MAX, SEQUENCE_LETTERS_MAX, UnknownPropertyError, check

__all__ = [
    "PROPERTIES",
    "PROPERTY_SECONDS_MAX",
    "QUICK",
    "SEQUENCE_LETTERS_MAX",
    "TOLERANCES",
    "Outcome",
    "Property",
    "PropertyResult",
    "UnknownPropertyError",
    "check",
]
