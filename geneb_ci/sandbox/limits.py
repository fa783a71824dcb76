"""Limits of one run of an extractor, and those of them that the kernel enforces."""

import shutil
from dataclasses import asdict, dataclass

MIB = 1 << 20

SECONDS = 3600
"""An hour a task: the slowest public model embeds the largest task in less on one GPU."""
TOKEN_BUDGET = 2048
"""Padded tokens a batch: the harness's default. No limit of the machine, but of each batch."""
TOTAL_SECONDS = 24 * 3600
"""A day for all tasks of an audit: the thirteen that a policy draws, and as many of earlier draws,
take less at an hour each on average."""
MEMORY_MIB = 16 * 1024
"""Resident memory on the host: weights of 7 billion parameters in bfloat16 and room to work."""
PROCESSES = 512
"""Processes and threads: an array library starts one a core, twice over."""
TMP_MIB = 512
"""Size of /tmp and of /dev/shm, each: scratch space, not a place for weights."""
LOG_KIB = 4096
"""Printed text: progress bars of a long run fit."""
OPEN_FILES = 4096
"""Open files a process: a sharded checkpoint and a worker pool fit."""
WIDTH = 8192
"""Columns of an embedding: twice those of the widest of the 41 public models, 4,096, which is also
the profile of 6-mers. The time of a fit grows with them."""
RESULT_MIB = 8 * 1024
"""The matrix as a whole: 500,000 rows of 4,096 columns in float32 fit."""
HOST_FLOOR_MIB = 256
"""Memory that must stay available on the host, whoever uses the rest. It covers what no process's
resident size shows, such as buffers of the kernel."""

PROCESSES_SLACK = 16
"""The kernel's limit is this much above the watched one: room for the launcher's own processes, and
an extractor at its limit is stopped with a message instead of being refused threads."""
MEMORY_SLACK_MIB = 64
"""The same for memory, so that the watch, which can say why, mostly acts first."""


OPTIONS = {
    "seconds": "--limit-task-time",
    "total_seconds": "--limit-time",
    "memory_mib": "--limit-memory",
    "scoring_seconds": "--limit-scoring-time",
    "scoring_wall_seconds": "--limit-scoring-time",
    "scoring_memory_mib": "--limit-scoring-memory",
}
"""Limits that an option of `geneb-ci audit` raises."""


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
    """Of all runs of an audit together; `audit.rerun` adds them up."""
    memory_mib: int = MEMORY_MIB
    processes: int = PROCESSES
    tmp_mib: int = TMP_MIB
    log_kib: int = LOG_KIB
    open_files: int = OPEN_FILES
    width: int = WIDTH
    result_mib: int = RESULT_MIB
    host_floor_mib: int = HOST_FLOOR_MIB

    def __post_init__(self) -> None:
        """Raise ValueError for a limit below 1: none can be switched off by 0."""
        for name, value in asdict(self).items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                msg = f"limit {name} is {value!r}, expected a whole number from 1"
                raise ValueError(msg)

    @property
    def processes_held(self) -> int:
        """Processes and threads at which the kernel refuses more."""
        return self.processes + PROCESSES_SLACK

    @property
    def memory_held(self) -> int:
        """Bytes at which the kernel kills the run."""
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
