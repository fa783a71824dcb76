"""How a need is worded: parameter counts for people, and levels from least to most trust."""

import re

from geneb_ci.errors import UsageProblem
from geneb_ci.finding import shown

TRUST = ("self-reported", "verified", "reproduced", "official")
"""Levels from least to most trust; a row of another level, such as `stale`, meets none of them."""
NEVER = "disputed"
"""The level of a row whose audit failed: no advice for any need names it."""
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "G": 10**9, "T": 10**12}
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([KMBGT]?)", re.IGNORECASE)


def parameters(text: str) -> int:
    """Read a parameter count such as 500M, 1.2B or 86000000.

    Raises UsageProblem when it is none.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageProblem(
            f"{shown(text)} is not a number of parameters",
            "write it as 500M, 1.2B or 86000000",
        )
    return round(float(match[1]) * _UNITS[match[2].upper()])


def size_text(params: int) -> str:
    """Write a parameter count for people: 500M, 1.2B, 19.7M."""
    for unit in ("B", "M", "K"):
        if params >= _UNITS[unit]:
            return f"{params / _UNITS[unit]:.3g}{unit}"
    return str(params)
