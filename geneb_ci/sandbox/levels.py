"""The levels of the sandbox, each tried on this machine before use; a level is never lowered."""

import contextlib
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path

from geneb_ci.common.errors import SandboxUnavailable, UsageProblem
from geneb_ci.sandbox import mounts
from geneb_ci.sandbox.launch import (
    BUBBLEWRAP,
    GVISOR,
    LANDLOCK,
    NONE,
    PYTHON_FLAGS,
    Sandbox,
    start_sandboxed,
)
from geneb_ci.sandbox.limits import Limits
from geneb_ci.sandbox.processes import scratch

LEVELS = {
    4: "bubblewrap on a machine that is deleted afterwards",
    3: "gVisor",
    2: "bubblewrap",
    1: "namespaces and Landlock, without bubblewrap",
    0: "no sandbox: for your own code only; such an audit never counts",
}
"""Text that says how each level of the sandbox confines the extractor."""
KIND_BY_LEVEL = {4: BUBBLEWRAP, 3: GVISOR, 2: BUBBLEWRAP, 1: LANDLOCK, 0: NONE}
"""The kind of sandbox that confines the extractor, by level."""
DEFAULT_LEVEL = 2
BUBBLEWRAP_VERSION_MIN = (0, 8)
"""The first version with --disable-userns."""
TRIAL_SECONDS = 60
"""Time limit of a trial. Importing NumPy takes half a second, and more than 10 s on two cores with
twenty busy processes."""
TRUE_PROGRAM = "/usr/bin/true"
"""The program of the first trial, which does nothing."""
TRACEBACK_START = "Traceback (most recent call last):"
IMPORT_PROGRAM = "import numpy, reference_harness.worker"
"""Python code of the second trial: the imports of every run."""
CUDA_PROGRAM = """\
import ctypes, sys
error = ctypes.CDLL("libcuda.so.1").cuInit(0)
sys.exit(f"the driver's cuInit ended with error {error}" if error else 0)
"""
"""Python code of the trial of a GPU. Without this trial, a run would fail only after the draw."""
CUDA_FIX = (
    "run `nvidia-smi` outside the sandbox: if it fails, repair the driver; if it works, pass "
    "--level 2, since level 1 hides /proc from the driver, or audit on the CPU: --device cpu"
)

NAMESPACES_FIX = (
    "allow bubblewrap to make user namespaces, by an AppArmor profile for bwrap with the line "
    "`userns,` or by the kernel setting that bwrap's message names; or audit on a virtual machine "
    "that allows user namespaces and is deleted afterwards (--throw-away-machine)"
)

LANDLOCK_FIX = (
    "allow user namespaces (the kernel setting that the message names), or install bubblewrap 0.8 "
    "or later and pass --level 2"
)


@contextlib.contextmanager
def open_sandbox(
    level: int = DEFAULT_LEVEL,
    *,
    gpu: bool = False,
    throw_away_machine: bool = False,
    i_wrote_this_code: bool = False,
    folder: Path | None = None,
) -> Iterator[Sandbox]:
    """Yield a sandbox of exactly the requested level, after a trial run.

    `folder` is the scratch folder, by default that of this user; it is made at the start and
    removed at the end. Raises UsageProblem for a level that needs a declaration,
    SandboxUnavailable if the level does not work on this machine, and LeftOver if processes or the
    folder of an earlier audit exist.
    """
    if level not in LEVELS:
        raise UsageProblem(
            f"sandbox level {level}, expected 0 to 4", "pass --level with a number from 0 to 4"
        )
    if level == 0 and not i_wrote_this_code:
        raise UsageProblem(
            "level 0 is not a sandbox: the extractor can do whatever you can",
            "pass --level 2, or for your own code --i-wrote-this-code: an audit at level 0 never "
            "counts",
        )
    if throw_away_machine and level == DEFAULT_LEVEL:
        level = max(LEVELS)
    if level == max(LEVELS) and not throw_away_machine:
        raise UsageProblem(
            "level 4 needs a machine that is deleted after the audit",
            "pass --throw-away-machine to declare that, or pass --level 2",
        )
    devices = mounts.gpu_devices() if gpu else ()
    if gpu and not devices:
        raise SandboxUnavailable(
            "--device cuda needs a GPU; /dev has no nvidia device",
            "install the driver, or leave out --device cuda",
        )
    with scratch(folder) as own_folder:
        sandbox = Sandbox(level, KIND_BY_LEVEL[level], own_folder, devices)
        cause = trial_failure(sandbox)
        if cause is not None:
            raise SandboxUnavailable(
                f"sandbox level {level} ({LEVELS[level]}) does not work on this machine: {cause}",
                _level_fix(level),
            )
        cause = trial_failure(sandbox, CUDA_PROGRAM) if devices else None
        if cause is not None:
            raise SandboxUnavailable(
                f"the GPU does not work in sandbox level {level} ({LEVELS[level]}): {cause}",
                CUDA_FIX,
            )
        yield sandbox


def trial_failure(sandbox: Sandbox, program: str = IMPORT_PROGRAM) -> str | None:
    """Return why `true` or a Python program fails in a sandbox.

    None if both work, and at level 0.
    """
    missing = _missing_requirement(sandbox.kind)
    if missing is not None:
        return missing
    view = mounts.sandbox_view({}, {})
    limits = Limits(seconds=TRIAL_SECONDS)
    if sandbox.kind == NONE:
        return None
    for command in ([TRUE_PROGRAM], [view.python, *PYTHON_FLAGS, "-c", program]):
        with start_sandboxed(sandbox, view, limits, command) as process:
            try:
                _, printed = process.communicate(timeout=TRIAL_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                return f"{command[0]} did not end within {TRIAL_SECONDS} s inside the sandbox"
        if process.returncode != 0:
            printed_text = printed.decode("utf-8", "backslashreplace")
            lines = [line for line in printed_text.splitlines() if line.strip()]
            # Only the last line of a traceback has the cause.
            cause_lines = lines[-1:] if lines[:1] == [TRACEBACK_START] else lines
            cause = " ".join(" ".join(cause_lines).split())
            settings = mounts.refusing_settings()
            return "; ".join([cause or f"exit code {process.returncode}", *settings])
    return None


def level_failure(level: int, folder: Path) -> str | None:
    """Return why a level does not work on this machine; None if it works."""
    return trial_failure(Sandbox(level, KIND_BY_LEVEL[level], folder))


def _missing_requirement(kind: str) -> str | None:
    """Return what a kind of sandbox lacks on this machine; None if nothing is missing."""
    if platform.system() != "Linux":
        return f"the sandbox needs Linux; this is {platform.system()}"
    if kind == GVISOR and mounts.gvisor_path() is None:
        return "runsc is not installed"
    if kind != BUBBLEWRAP:
        return None
    if mounts.bubblewrap_path() is None:
        return "bwrap is not installed"
    version = subprocess.run(  # noqa: S603 (a program that was found, no shell)
        [str(mounts.bubblewrap_path()), "--version"],
        capture_output=True,
        text=True,
        check=False,
        env={},
    ).stdout
    if mounts.bubblewrap_version(version) < BUBBLEWRAP_VERSION_MIN:
        return f"bubblewrap 0.8 or later is needed, found {version.strip()!r}"
    return None


def _level_fix(level: int) -> str:
    """Return the fix for a level that does not work on this machine."""
    kind = KIND_BY_LEVEL[level]
    if platform.system() != "Linux":
        return "audit on a machine with Linux"
    if kind == GVISOR:
        verb = "install" if mounts.gvisor_path() is None else "repair"
        return f"{verb} runsc of gVisor, or pass --level 2"
    if kind == LANDLOCK:
        return LANDLOCK_FIX
    if _missing_requirement(kind) is not None:
        return "install the package bubblewrap (0.8 or later), or pass --level 1"
    return NAMESPACES_FIX
