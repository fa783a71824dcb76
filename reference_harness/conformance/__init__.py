"""Does an extractor keep the rules every embedding relies on? Nineteen properties, tried blind.

The properties need no knowledge of the model. They run in a child process with a time limit: a
crash or a hang is a failed property. That is no sandbox.
"""

from .registry import PROPERTIES, Property
from .result import TOLERANCES, PropertyResult
from .runner import LETTERS, SECONDS, UnknownPropertyError, check

__all__ = [
    "LETTERS",
    "PROPERTIES",
    "SECONDS",
    "TOLERANCES",
    "Property",
    "PropertyResult",
    "UnknownPropertyError",
    "check",
]
