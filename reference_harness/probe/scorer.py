"""Make a process the scorer of record, and refuse one that differs from its definition.

Nothing here imports NumPy before `check`, as OpenBLAS reads its variables when it is loaded. It
silently ignores a kernel that the machine lacks, or that was set too late, so the loaded one is
examined afterwards.
"""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reference_harness.errors import ScorerError
from reference_harness.formats import scorer as definitions
from reference_harness.formats.scorer import REASON_MAX, ScorerRef

THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
"""Environment variables that limit the threads of numerical libraries."""
KERNEL_VARIABLE = "OPENBLAS_CORETYPE"
"""Environment variable that selects the kernel of OpenBLAS."""
PROCESSOR_FEATURES_NEEDED = frozenset({"avx2", "fma"})
"""Instruction sets of the processor that OpenBLAS's kernel needs."""
SCORER_ADVICE = (
    "score the run on an x86-64 machine with Linux and AVX2 and the packages of `pip install "
    "'geneb-ci[harness]'`, for example with `geneb-harness receipt-rescore` from its receipt"
)


@dataclass(frozen=True)
class Scorer:
    """The scorer of record, as defined by this version of the harness."""

    ref: ScorerRef = field(default_factory=definitions.of_record)
    """The scorer as it is written into records."""

    @property
    def digest(self) -> str:
        """Digest of the definition."""
        return str(self.ref.digest)

    @property
    def description(self) -> str:
        """The definition and its digest, one line per member."""
        members = {**definitions.definition(), "digest": self.digest}
        width = max(map(len, members))
        return "\n".join(
            f"{name:<{width}}  {_definition_member_text(value)}" for name, value in members.items()
        )

    def in_use(self) -> ScorerRef:
        """Return the scorer of this process: the scorer of record, or another with the reason."""
        import numpy as np  # see the module's docstring
        import scipy
        import scipy.linalg  # loads its OpenBLAS
        import sklearn.linear_model
        from threadpoolctl import threadpool_info

        libraries = threadpool_info()
        blas = {
            owner: info
            for info in libraries
            if info["internal_api"] == "openblas" and (owner := _package_of(info["filepath"]))
        }
        return scorer_ref(
            platform=f"{platform.system()} {platform.machine()}",
            packages={
                "numpy": np.__version__,
                "scipy": scipy.__version__,
                "scikit-learn": sklearn.__version__,
            },
            blas=blas,
            threads=max((int(info["num_threads"]) for info in libraries), default=0),
        )

    def check(self) -> None:
        """Raise ScorerError unless this process is the scorer of record."""
        if reason := self.in_use().reason:
            raise ScorerError(reason)


SCORER = Scorer()


def scorer_ref(
    *,
    platform: str,
    packages: Mapping[str, str],
    blas: Mapping[str, Mapping[str, Any]],
    threads: int,
) -> ScorerRef:
    """Return the scorer of record if all is as defined, else what was found and what differs.

    `blas` has, for each package with its own OpenBLAS, the facts from threadpoolctl.
    """
    versions = {name: str(info.get("version") or "unknown") for name, info in blas.items()}
    kernels = {name: str(info.get("architecture") or "unknown") for name, info in blas.items()}
    differences = [f"{platform}, expected {definitions.PLATFORM}"] * (
        platform != definitions.PLATFORM
    )
    differences += [
        f"{name} {packages.get(name, 'not installed')}, expected {version}"
        for name, version in definitions.PACKAGES.items()
        if packages.get(name) != version
    ]
    for name, version in definitions.OPENBLAS.items():
        if name not in blas:
            differences.append(f"no OpenBLAS in the wheel of {name}, expected {version}")
        elif versions[name] != version:
            differences.append(f"OpenBLAS {versions[name]} of {name}, expected {version}")
        if name in blas and kernels[name] != definitions.KERNEL:
            differences.append(
                f"the kernel {kernels[name]} of OpenBLAS of {name}, expected {definitions.KERNEL}"
            )
    if threads != definitions.THREADS:
        differences.append(f"{threads} threads, expected {definitions.THREADS}")
    if not differences:
        return definitions.of_record()
    difference = "; ".join(differences)
    reason = f"this machine does not have the scorer of record: {difference}: {SCORER_ADVICE}"
    return ScorerRef(
        digest=None,
        kernel=", ".join(sorted(set(kernels.values()))) or "unknown",
        threads=threads,
        packages=dict(packages),
        openblas=versions,
        reason=reason[:REASON_MAX],
    )


def scoring_environment() -> dict[str, str]:
    """Return the environment variables of a process that scores, to be set before it starts.

    The kernel is set if the processor has its instructions.
    """
    variables = dict.fromkeys(THREAD_VARIABLES, str(definitions.THREADS))
    if _processor_runs_kernel():
        variables[KERNEL_VARIABLE] = definitions.KERNEL
    return variables


def set_environment() -> None:
    """Set the variables of `scoring_environment` in this process, before it imports NumPy."""
    os.environ.update(scoring_environment())


def _processor_runs_kernel(processor: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the processor has the instructions of the kernel; False if that is unknown."""
    try:
        lines = processor.read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    flags = next((line.partition(":")[2] for line in lines if line.startswith("flags")), "")
    return set(flags.split()) >= PROCESSOR_FEATURES_NEEDED


def _package_of(library: str) -> str:
    """Return the package whose wheel contains a library, by the folder of the library; "" if none.

    auditwheel puts the libraries of a wheel into the folder `<package>.libs`.
    """
    folder = Path(library).parent.name
    return folder.removesuffix(".libs") if folder.endswith(".libs") else ""


def _definition_member_text(value: object) -> str:
    """Return a member of the scorer's definition as text."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {member}" for name, member in value.items())
    return str(value)
