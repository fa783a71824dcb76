"""Limits every BLAS to one thread and names OpenBLAS's kernel; reports which BLAS is used.

The thread count can change what stock lbfgs gives (92 against 139 iterations, 4 of 810 predictions
on one task measured), and two OpenBLAS pools in one process spin against each other: the default
was slower in every case measured, up to 41 times. Nothing here imports NumPy before the limit is
set, for OpenBLAS and OpenMP read their variables when they are loaded.
"""

import os
from typing import TypedDict

from reference_harness import scorer
from reference_harness.formats.scorer import THREADS


class Library(TypedDict):
    """One numerical library that is loaded."""

    library: str
    version: str
    kernel: str
    threads: int


def hold_to_scorer(array_api: bool = False) -> None:
    """Limit this process to one thread a library and to the kernel of the scorer, permanently.

    `array_api` readies SciPy for arrays of other libraries, which it decides when it is imported.
    """
    scorer.hold()
    if array_api:
        os.environ["SCIPY_ARRAY_API"] = "1"
    import numpy  # noqa: F401, ICN001 - loads its BLAS, under the variables above
    import scipy.linalg  # noqa: F401 - SciPy brings a BLAS of its own
    from threadpoolctl import threadpool_limits  # after the variables

    threadpool_limits(limits=THREADS)


def libraries() -> list[Library]:
    """Return the numerical libraries of this process, in order of name."""
    from threadpoolctl import threadpool_info  # not before `hold_to_scorer`

    listed: list[Library] = [
        {
            "library": str(info["internal_api"]),
            "version": str(info.get("version") or "unknown"),
            "kernel": str(info.get("architecture") or "unknown"),
            "threads": int(info["num_threads"]),
        }
        for info in threadpool_info()
    ]
    return sorted(
        listed, key=lambda library: (library["library"], library["version"], library["kernel"])
    )
