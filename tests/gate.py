"""Which cases of a test gate a change, and which are left to the night."""

from collections.abc import Iterable
from typing import Any

import pytest


def gated(cases: Iterable[Any], *in_the_gate: Any) -> list[Any]:
    """Return the cases as parameters; those that are not named for the gate are nightly.

    Raises ValueError for a name of the gate that is no case.
    """
    every = list(cases)
    if absent := [case for case in in_the_gate if case not in every]:
        raise ValueError(f"no case: {absent}")
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=() if case in in_the_gate else pytest.mark.nightly,
        )
        for case in every
    ]
