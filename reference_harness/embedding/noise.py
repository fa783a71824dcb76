"""Numerical noise: the effect of another batch, kernel or machine on an embedding.

Rounding errors are proportional to the rounded number, and a matrix product spreads those of its
largest terms over all columns. So the noise of column j of an embedding x is normal with standard
deviation

  d u sqrt(x_j^2 + mean(x^2)),    u = 2^-p, the unit roundoff of p significand bits,

where d is `DEVIATION_IN_ROUNDOFFS`, and the sum is rounded to the type of the features.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reference_harness.formats.submission_terms import Dtype

UNIT_ROUNDOFF: dict[str, float] = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
}
"""Largest relative error of rounding to nearest, by type: significands of 53, 24, 11 and 8 bits."""

DEVIATION_IN_ROUNDOFFS: dict[str, float] = {
    "float64": 1.4,
    "float32": 1.4,
    "float16": 1.05,
    "bfloat16": 1.05,
}
"""Standard deviation d of the noise in units of roundoff, by type. Claim and rerun have independent
noise, so the difference of an embedding between them has a deviation of 2 d u of its root mean
square, as in the largest measured difference. Measured on random BERTs (rms 0.6, four layers):
other batches in float32 change a value by up to 8e-8 in the mean, a deviation of 2.8 u, in bfloat16
by up to 7e-4, 0.4 u. bfloat16 differs from float32 by up to 4e-3, 2.1 u, which is used, since
contributor and auditor rarely have the same machine. float64 and float16 were not measured. """

STRESS_FACTOR = 8.0
"""Noise of the stressed copies divided by the plain noise. A fit that stops one step earlier for
one plain copy in a thousand (a threshold three deviations away) does so for one stressed copy in
three, so that few copies show every outcome that an honest rerun may have."""
VALUES_AT_ONCE = 1 << 22
"""Number of values jittered at once: 32 MiB of float64, whatever the size of the task."""

Embeddings = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Noise:
    """Parameters of the noise of one jittered copy of a task's embeddings."""

    dtype: Dtype
    seed: int
    copy: int
    """Number of the copy, from 0."""
    factor: float = 1.0
    """Noise of the copy divided by the plain noise."""


def jitter(embeddings: Embeddings, noise: Noise, task_id: str) -> Embeddings:
    """Return the (n, d) embeddings with noise, in their type.

    The generator depends on seed, task, copy and multiple, and is used in the order of the
    embeddings: the noise of the first embeddings does not depend on later ones.
    """
    seed_text = f"{noise.seed}\n{task_id}\n{noise.copy}\n{noise.factor!r}".encode()
    words = np.frombuffer(hashlib.sha256(seed_text).digest(), dtype="<u4")
    generator = np.random.RandomState(words)
    scale = noise.factor * DEVIATION_IN_ROUNDOFFS[noise.dtype] * UNIT_ROUNDOFF[noise.dtype]
    jittered = np.empty_like(embeddings)
    limits = np.finfo(embeddings.dtype)
    step = max(1, VALUES_AT_ONCE // embeddings.shape[1])
    for start in range(0, len(embeddings), step):
        block = embeddings[start : start + step].astype(np.float64)
        deviation = np.sqrt(block * block + np.mean(block * block, axis=1, keepdims=True))
        deviation *= scale
        deviation *= generator.standard_normal(block.shape)
        block += deviation
        # Noise on the largest number of the type must not make it infinite.
        np.clip(block, limits.min, limits.max, out=block)
        jittered[start : start + step] = block
    return jittered
