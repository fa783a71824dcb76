"""Integers of a range, denser towards its ends."""

import math


def spread(first: int, last: int, steps: int) -> list[int]:
    """Give up to `steps` + 1 integers from first to last, both among them, ascending.

    Their gaps shrink towards both ends as those of Chebyshev's points do, since there the square
    root in MCC bends most.
    """
    turn, length = math.pi / steps, last - first
    return sorted({first + round(length * (1 - math.cos(turn * k)) / 2) for k in range(steps + 1)})
