"""Limits of the rule of a row and of the directional test; reading a record needs no NumPy."""

TAU = 1e-5
"""Of the row's root mean square. Measured: float32 against float64 or in another batch differs by
8e-7 at most; the factor of 12 is for other hardware. At 1e-4, moving only what lies near a border
of rounding raised an MCC by 0.185: do not widen it."""
MISMATCH = 0.02
"""Share of a row that may differ from the rounding of the rerun. Measured: 0.16 % in the mean and
1.2 % in the worst row of float32; an attack that moves what lies within TAU of a border has 6 %."""
MISMATCH_MIN = 4
"""Coordinates that may differ however short the row is: of 64, a mean of 0.16 % makes two or more
differ in one row of 200, and five or more in none of 10^7."""
LEVEL = 0.001
"""False alarm of the directional test, of training and test rows together."""


def allowed(width: int) -> int:
    """Return how many coordinates of a row may differ from the rounding of the rerun."""
    return min(width, max(MISMATCH_MIN, int(MISMATCH * width)))


def is_within(deviation: float, mismatch: int, width: int) -> bool:
    """Return whether one row with these statistics follows the rule."""
    return deviation <= TAU and mismatch <= allowed(width)
