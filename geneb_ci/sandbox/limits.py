"""Limits of one run of an extractor, and the command that makes the kernel enforce some."""

import shutil
from dataclasses import asdict, dataclass

MIB = 1 << 20

SECONDS = 3600
"""Time of one task: the slowest public model embeds the largest task on one GPU in less."""
TOKEN_BUDGET = 2048
"""Padded tokens per batch, by default as in the harness; it limits each batch, not the machine."""
TOTAL_SECONDS = 24 * 3600
"""Time of all tasks of an audit: the thirteen that a policy draws, and as many of earlier draws,
take less, even at almost an hour each."""
MEMORY_MIB = 16 * 1024
"""Resident memory on the host: weights of 7 billion parameters in bfloat16 fit, with 2 GiB left."""
PROCESSES = 512
"""Processes and threads: array libraries start one or two per core."""
TMP_MIB = 512
"""Size of /tmp and of /dev/shm, each: they are scratch space, not a place for weights."""
LOG_KIB = 4096
"""Size of the printed text: the progress bars of a long run fit."""
OPEN_FILES = 4096
"""Open files per process: a sharded checkpoint and a pool of workers fit."""
WIDTH = 8192
"""Columns of an embedding: twice as many as the widest of the 41 public models and the profile of
6-mers have, 4,096. The time of a fit grows with them."""
RESULT_MIB = 8 * 1024
"""Size of the whole matrix: 500,000 embeddings of 4,096 columns in float32 fit."""
HOST_FLOOR_MIB = 256
"""Memory that must stay available on the host, whatever uses the rest. It covers memory that is in
no process's resident size, such as buffers of the kernel."""

PROCESSES_SLACK = 16
"""Difference between the kernel's limit and the watched one, so that the launcher's processes fit,
and an extractor above its limit is stopped with a message before the kernel refuses threads."""
MEMORY_SLACK_MIB = 64
"""Difference between the kernel's limit of memory and the watched one, for the same reason."""


OPTIONS = {
    "seconds": "--limit-task-time",
    "total_seconds": "--limit-time",
    "memory_mib": "--limit-memory",
    "scoring_seconds": "--limit-scoring-time",
    "scoring_wall_seconds": "--limit-scoring-time",
    "scoring_memory_mib": "--limit-scoring-memory",
}
"""Option of `geneb-ci audit` that raises a limit, by the limit's name."""


def advice(limit: str) -> str:
    """Return the fix for a run that was stopped at a limit, named as in `Limits`."""
    if limit == "host_floor_mib":
        return "close other programs, or audit on a machine with more memory"
    if limit not in OPTIONS:
        return "this limit is fixed: ask the contributor for an extractor that stays below it"
    return (
        f"if the extractor is trustworthy, raise the limit by {OPTIONS[limit]}; else the audit "
        "ends without a record"
    )


@dataclass(frozen=True)
class Limits:
    """Limits of one run; each name ends in its unit where it has one."""

    seconds: int = SECONDS
    """Seconds of one run, which embeds one task."""
    total_seconds: int = TOTAL_SECONDS
    """Seconds of all runs of an audit together, which `audit.rerun` adds up."""
    memory_mib: int = MEMORY_MIB
    processes: int = PROCESSES
    tmp_mib: int = TMP_MIB
    log_kib: int = LOG_KIB
    open_files: int = OPEN_FILES
    width: int = WIDTH
    result_mib: int = RESULT_MIB
    host_floor_mib: int = HOST_FLOOR_MIB

    def __post_init__(self) -> None:
        """Raise ValueError for a limit below 1, because 0 must not switch a limit off."""
        for name, value in asdict(self).items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                msg = f"limit {name} is {value!r}, expected a whole number from 1"
                raise ValueError(msg)

    @property
    def processes_held(self) -> int:
        """Number of processes and threads above which the kernel refuses more."""
        return self.processes + PROCESSES_SLACK

    @property
    def memory_held(self) -> int:
        """Bytes of memory above which the kernel kills the run."""
        return (self.memory_mib + MEMORY_SLACK_MIB) * MIB

    def as_facts(self) -> dict[str, int]:
        """Return the name and value of each limit, for the record."""
        return asdict(self)


def kernel_limits(limits: Limits) -> list[str]:
    """Return the command prefix that limits files and core dumps.

    The core limit is 1, not 0: a machine whose core pattern is a pipe ignores 0, and would pass the
    dump to a program outside the sandbox (fs/coredump.c). Address space is not limited, since a
    CUDA context reserves far more than it uses.
    """
    program = shutil.which("prlimit")
    if program is None:
        return []
    return [
        program,
        "--core=1",
        f"--fsize={limits.tmp_mib * MIB}",
        f"--nofile={limits.open_files}",
        "--",
    ]
