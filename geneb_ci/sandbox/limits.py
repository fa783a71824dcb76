"""Limits of one run of an extractor, and the command that makes the kernel enforce some."""

import shutil
from dataclasses import asdict, dataclass

MIB = 1 << 20

TASK_SECONDS = 3600
"""Time limit of one task; the slowest public model needs less for the largest task on one GPU."""
TOKEN_BUDGET = 2048
"""Largest number of padded tokens of a batch, as by default in the harness."""
TOTAL_SECONDS = 24 * 3600
"""Time limit of all tasks of an audit: thirteen tasks that a policy draws, and as many of earlier
draws, take less, even at almost an hour each."""
MEMORY_MIB = 16 * 1024
"""Limit of resident memory on the host: 7 billion parameters in bfloat16 fit, with 2 GiB left."""
PROCESSES = 512
"""Limit of processes and threads: array libraries start one or two per core."""
TMP_MIB = 512
"""Size of each of /tmp and /dev/shm, which are scratch space, not a place for weights."""
LOG_KIB = 4096
"""Maximum size of the printed text: the progress bars of a long run fit."""
OPEN_FILES = 4096
"""Maximum open files per process: a sharded checkpoint and a pool of workers fit."""
WIDTH_MAX = 8192
"""Maximum columns of an embedding, since the time of a fit grows with them: twice the 4,096 columns
of the widest of the 41 public models and of the profile of 6-mers."""
RESULT_MIB = 8 * 1024
"""Maximum size of the result: 500,000 embeddings of 4,096 columns in float32 fit."""
HOST_FLOOR_MIB = 256
"""Memory that must stay available on the host. This limit also covers memory that is not in the
resident size of a process, such as buffers of the kernel."""

PROCESSES_SLACK = 16
"""Difference between the kernel's limit of processes and the watched limit: the launcher's fit, and
an extractor above its limit is stopped with a message before the kernel refuses threads."""
MEMORY_SLACK_MIB = 64
"""Difference between the kernel's limit of memory and the watched limit, for the same reason."""


OPTION_BY_LIMIT = {
    "seconds": "--limit-task-time",
    "total_seconds": "--limit-time",
    "memory_mib": "--limit-memory",
    "scoring_seconds": "--limit-scoring-time",
    "scoring_wall_seconds": "--limit-scoring-time",
    "scoring_memory_mib": "--limit-scoring-memory",
}
"""The option of `geneb-ci audit` that raises each limit, by the name of the limit."""


def limit_fix(limit: str) -> str:
    """Return the fix for a run that was stopped at a limit, named as in `Limits`."""
    if limit == "host_floor_mib":
        return "close other programs, or audit on a machine with more memory"
    if limit not in OPTION_BY_LIMIT:
        return "ask the contributor for an extractor below this limit, which no option raises"
    return (
        f"if the extractor is trustworthy, raise the limit with {OPTION_BY_LIMIT[limit]}; else the "
        "audit "
        "ends without a record"
    )


@dataclass(frozen=True)
class Limits:
    """Limits of one run. The names end with the units; `width` is in columns."""

    seconds: int = TASK_SECONDS
    """Seconds of one run, which embeds one task."""
    total_seconds: int = TOTAL_SECONDS
    """Seconds of all runs of an audit together; `audit.rerun` adds them up."""
    memory_mib: int = MEMORY_MIB
    """Resident memory of all processes together."""
    processes: int = PROCESSES
    """Number of processes and threads."""
    tmp_mib: int = TMP_MIB
    """Size of each of /tmp and /dev/shm."""
    log_kib: int = LOG_KIB
    """Size of the printed text."""
    open_files: int = OPEN_FILES
    """Number of open files of each process."""
    width: int = WIDTH_MAX
    """Number of columns of an embedding."""
    result_mib: int = RESULT_MIB
    """Size of the returned matrix."""
    host_floor_mib: int = HOST_FLOOR_MIB
    """Memory that must stay available on the host."""

    def __post_init__(self) -> None:
        """Raise ValueError for a limit below 1, because 0 must not switch a limit off."""
        for limit, value in asdict(self).items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                msg = f"limit {limit} is {value!r}, expected a whole number from 1"
                raise ValueError(msg)

    @property
    def kernel_processes(self) -> int:
        """Number of processes and threads at which the kernel refuses more."""
        return self.processes + PROCESSES_SLACK

    @property
    def kernel_memory_bytes(self) -> int:
        """Bytes of memory above which the kernel kills the run."""
        return (self.memory_mib + MEMORY_SLACK_MIB) * MIB

    def as_facts(self) -> dict[str, int]:
        """Return the name and value of each limit, for the record."""
        return asdict(self)


def kernel_limits(limits: Limits) -> list[str]:
    """Return the words before a command that limit its files and core dumps; [] without prlimit.

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
