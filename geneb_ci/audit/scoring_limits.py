"""Limits of scoring untrusted embeddings, from what the same shape costs an honest model at most.

The harness fits probes on numbers that an extractor chose. What a fit takes depends on them: a
constant column or values of very different size make it iterate as long as it may. So the process
that fits is stopped from outside at `FACTOR` times what a slow but honest task of this shape takes.
"""

from typing import NamedTuple

from geneb_ci.sandbox.limits import MIB

FACTOR = 2
"""Limits are so often the honest maximum, for slower machines than the one that was measured."""
FLOPS = 1e9
"""Operations a second of one core: a matrix times a vector in float64 reaches 1 to 3e9."""
STEP_SECONDS = 3e-4
"""Overhead of one step of a solver, whatever the size: 0.1 to 0.2 ms were measured."""
FLOPS_A_VALUE = 4
"""Loss and gradient each multiply and add once a value of the matrix and class."""
STEPS_RECORD = 1000
"""Limit of the stock solver; unscaled features of many models reach it."""
STEPS_CANONICAL = 2500
"""The data sets measured needed up to 2,344 steps to the optimum."""
STEPS_STOPS = 96 * 96 // 2
"""Steps of the fits that look for stopping points: 96 fits, each a step longer."""
FEW_SHOT_FITS = 10
"""Two regimes of five seeds."""
FEW_SHOT_STEPS = 600
"""Steps of one such fit, of the score of record and the canonical one together, at most."""
FEW_SHOT_ROWS = 10
"""Rows a class."""
FEW_SHOT_TIMES = 4
"""Copies of a few-shot fit, plain and stressed, as a multiple of those of the full regime."""
NOISE_FLOPS = 40
"""What drawing and adding noise costs a value, as so many operations."""
START_SECONDS = 15
"""Start of the harness and of each worker: 2 to 4 s were measured."""
START_MIB = 512
"""Memory of the harness and of each worker before any matrix: 180 to 250 MiB were measured."""
MATRICES = 8
"""Matrices of float64 that a worker holds: rows, noise, their sum, splits and the solver's."""
WALL_FACTOR = 10
"""Seconds on the clock for each of the processor: other programs may use nearly all of it."""
THREADS = 64
"""Processes and threads of the harness and each worker: array libraries start some a core."""
CLASSES_UNKNOWN = 40
"""Classes of a task for which the benchmark does not list them: none of GENEB has more."""


class ScoringOptions(NamedTuple):
    """Limits of one task that replace the derived ones; None keeps those."""

    seconds: int | None = None
    memory_mib: int | None = None


DERIVED = ScoringOptions()
"""No limit is replaced."""


class ScoringLimits(NamedTuple):
    """Limits of scoring one task."""

    seconds: int
    """Of the processor, of all processes together."""
    memory_mib: int
    wall_seconds: int
    processes: int
    """Processes and threads."""


class Shape(NamedTuple):
    """What the cost of scoring a task depends on."""

    rows: int
    width: int
    classes: int


def scoring_limits(
    shape: Shape, copies: int, workers: int, options: ScoringOptions = DERIVED
) -> ScoringLimits:
    """Return the limits of scoring one task with so many jittered copies and workers."""
    seconds = options.seconds or round(FACTOR * honest_seconds(shape, copies, workers))
    each = MATRICES * shape.rows * shape.width * 8 // MIB
    memory = (workers + 1) * START_MIB + FACTOR * workers * each
    return ScoringLimits(
        seconds=seconds,
        memory_mib=options.memory_mib or memory,
        wall_seconds=WALL_FACTOR * seconds,
        processes=THREADS * (workers + 1),
    )


def honest_seconds(shape: Shape, copies: int, workers: int) -> float:
    """Return the most seconds of the processor that an honest matrix of this shape takes."""
    columns = shape.width * (shape.classes if shape.classes > 2 else 1)  # noqa: PLR2004 (one set)
    steps = (1 + 2 * copies) * STEPS_RECORD + (1 + copies) * STEPS_CANONICAL + STEPS_STOPS
    full = steps * (FLOPS_A_VALUE * shape.rows * columns / FLOPS + STEP_SECONDS)
    fits = FEW_SHOT_FITS * (1 + FEW_SHOT_TIMES * copies)
    drawn = FEW_SHOT_ROWS * shape.classes
    few = fits * FEW_SHOT_STEPS * (FLOPS_A_VALUE * drawn * columns / FLOPS + STEP_SECONDS)
    noise = fits * NOISE_FLOPS * shape.rows * shape.width / FLOPS
    return (1 + workers) * START_SECONDS + full + few + noise
