"""The scorer of record: everything besides the embeddings that determines a score of record.

A stock fit stops early, and where it stops depends on the last bits of the features, on OpenBLAS's
kernel and threads, and on the versions of the libraries. With all of them fixed, the same
embeddings give the same bits on every machine that can run the kernel.
`reference_harness/probe/scorer.py` makes a process conform to this definition.
"""

import hashlib
import json
from typing import Annotated, Final

from pydantic import Field

from .base import Count, Hex64, Name, StrictModel

REASON_MAX = 1000
"""Maximum number of characters of the reason why scores are not of record."""

SOLVER: Final = "sklearn.linear_model.LogisticRegression(max_iter=1000), all else at its default"
"""The solver of the probe."""
FEATURES: Final = (
    "float16, to nearest even, -0 as 0, times one power of two for a task: 2^0 where its largest "
    "magnitude is 0 or from 2^-6 to 65504, else what puts that into [2^14, 2^15); widened to "
    "float32, rows of train and test in C order"
)
"""How embeddings are rounded and scaled before the fit."""
PLATFORM: Final = "Linux x86_64"
"""Operating system and processor."""
KERNEL: Final = "Haswell"
"""Kernel of OpenBLAS, set because it changes digits; every x86-64 processor with AVX2 and FMA has
it."""
THREADS: Final = 1
"""Number of threads of every numerical library."""
PACKAGES: Final = {"numpy": "2.4.6", "scipy": "1.17.1", "scikit-learn": "1.9.1"}
"""Version of each numerical package, equal to the pins in pyproject.toml for every Python."""
OPENBLAS: Final = {"numpy": "0.3.31.188.0", "scipy": "0.3.30"}
"""Version of the OpenBLAS in the wheel of each package, as threadpoolctl reports it."""


class ScorerRef(StrictModel):
    """The program that computed the scores, and why it was not the scorer of record."""

    digest: Hex64 | None = None
    """Digest of the scorer of record; null if the scores are not of record."""
    kernel: Name
    """OpenBLAS's kernel; several are separated by commas."""
    threads: Count
    """Maximum number of threads that a numerical library may use."""
    packages: dict[str, Name]
    """Version of each package."""
    openblas: dict[str, Name]
    """Version of the OpenBLAS in the wheel of each package."""
    reason: Annotated[str, Field(max_length=REASON_MAX)] | None = None
    """Why the scores are not of record; null if they are."""


def definition() -> dict[str, object]:
    """Return the properties of the scorer of record that its digest covers, by name."""
    return {
        "solver": SOLVER,
        "features": FEATURES,
        "platform": PLATFORM,
        "kernel": KERNEL,
        "threads": THREADS,
        "packages": PACKAGES,
        "openblas": OPENBLAS,
    }


def digest() -> str:
    """Return the digest of the scorer of record: SHA-256 of its properties as compact JSON."""
    definition_json = json.dumps(definition(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(definition_json.encode()).hexdigest()


def of_record() -> ScorerRef:
    """Return the scorer of record as it is written into files."""
    return ScorerRef(
        digest=digest(), kernel=KERNEL, threads=THREADS, packages=PACKAGES, openblas=OPENBLAS
    )
