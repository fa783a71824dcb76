"""Limit every BLAS to one thread, choose OpenBLAS's kernel, and report the BLAS in use.

The number of threads can change the result of lbfgs (92 iterations instead of 139, 4 of 810
predictions on one measured task), and two OpenBLAS pools in one process slow each other down: in
every case measured, the default was slower, up to 41 times. Nothing here imports NumPy before the
limit is set, as OpenBLAS and OpenMP read their variables when they are loaded.
"""

import os
from typing import TypedDict

from reference_harness.formats.scorer import THREADS
from reference_harness.probe import scorer


class NumericalLibrary(TypedDict):
    """A loaded numerical library."""

    library: str
    """Name of its interface, such as "openblas"."""
    version: str
    """Version of the library, or "unknown"."""
    kernel: str
    """Name of the kernels that it chose for the processor, such as "Haswell", or "unknown"."""
    threads: int


def limit_to_scorer(array_api: bool = False) -> None:
    """Limit this process to one thread per library and to the scorer's kernel, permanently.

    `array_api` lets SciPy accept arrays of other libraries, which must be set before its import.
    """
    scorer.set_environment()
    if array_api:
        os.environ["SCIPY_ARRAY_API"] = "1"
    import numpy  # noqa: F401, ICN001 - loads its BLAS, under the variables above
    import scipy.linalg  # noqa: F401 - SciPy brings a BLAS of its own
    from threadpoolctl import threadpool_limits  # after the variables

    threadpool_limits(limits=THREADS)


def loaded_libraries() -> list[NumericalLibrary]:
    """Return the numerical libraries of this process, in order of name."""
    from threadpoolctl import threadpool_info  # not before `limit_to_scorer`

    unsorted_libraries: list[NumericalLibrary] = [
        {
            "library": str(info["internal_api"]),
            "version": str(info.get("version") or "unknown"),
            "kernel": str(info.get("architecture") or "unknown"),
            "threads": int(info["num_threads"]),
        }
        for info in threadpool_info()
    ]
    return sorted(
        unsorted_libraries,
        key=lambda library: (library["library"], library["version"], library["kernel"]),
    )
