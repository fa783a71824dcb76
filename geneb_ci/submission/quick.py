"""A quick reader for JSON without a fault, by the standard library's decoder.

The scanner, which is in Python, takes 50 times as long; it reads again whatever is refused here.
"""

import json
import math
import re
from typing import Any, NoReturn

from geneb_ci.common.finding import HIDING
from geneb_ci.submission.scanner import DEPTH_MAX, KEY_CHARS_MAX, VALUES_MAX
from geneb_ci.submission.tokens import NUMBER_CHARS_MAX, UNUSABLE

_INFINITE = (math.inf, -math.inf)
_NONZERO = re.compile(r"[^eE]*[1-9]")


class _Doubtful(Exception):  # noqa: N818 (leaves the text to the scanner, not an error)
    """The text has something that only the scanner can judge."""


def quick_value(text: str) -> Any:  # noqa: ANN401 (JSON has no narrower type)
    """Return the value of a JSON text in which `scan` finds no fault.

    It is UNUSABLE where that is in doubt: for each fault, for strings with escapes, and for
    characters that may hide text.
    """
    if "\\" in text or HIDING.search(text):
        return UNUSABLE
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError, _Doubtful):
        return UNUSABLE
    return value if _within_limits(value) else UNUSABLE


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs) or any(len(key) > KEY_CHARS_MAX for key in found):
        raise _Doubtful
    return found


def _float(token: str) -> float:
    value = float(token)
    if len(token) > NUMBER_CHARS_MAX or value in _INFINITE:
        raise _Doubtful
    if not value:
        if _NONZERO.match(token):
            raise _Doubtful
        return 0.0  # also for -0.0, as the scanner reads it
    return value


def _int(token: str) -> int:
    if len(token) > NUMBER_CHARS_MAX:
        raise _Doubtful
    return int(token)


def _word(_: str) -> NoReturn:
    raise _Doubtful


_DECODER = json.JSONDecoder(
    object_pairs_hook=_members, parse_float=_float, parse_int=_int, parse_constant=_word
)


def _within_limits(value: Any) -> bool:  # noqa: ANN401 (JSON has no narrower type)
    """Whether the scanner's limits of depth and number of values hold."""
    level, count = [value], 1
    for _ in range(DEPTH_MAX):
        inner: list[Any] = []
        for one in level:
            inner += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        count += len(inner)
        if count > VALUES_MAX:
            return False
        level = [one for one in inner if isinstance(one, dict | list)]
        if not level:
            return True
    return False
