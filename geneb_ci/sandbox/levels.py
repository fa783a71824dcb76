"""The ladder of sandboxes, and what this machine can give. No level is ever dropped silently."""

import contextlib
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path

from geneb_ci.common.errors import SandboxUnavailable, UsageProblem
from geneb_ci.sandbox import bubblewrap, gvisor, mounts
from geneb_ci.sandbox.launch import BUBBLEWRAP, GVISOR, LANDLOCK, NONE, Sandbox, started
from geneb_ci.sandbox.limits import Limits
from geneb_ci.sandbox.processes import scratch

LEVELS = {
    4: "bubblewrap on a machine that is thrown away afterwards",
    3: "gVisor",
    2: "bubblewrap",
    1: "namespaces and Landlock, without bubblewrap",
    0: "no sandbox: for code of your own, and never counted",
}
KINDS = {4: BUBBLEWRAP, 3: GVISOR, 2: BUBBLEWRAP, 1: LANDLOCK, 0: NONE}
DEFAULT = 2
BUBBLEWRAP_LEAST = (0, 8)
"""The first version with --disable-userns."""
TRIAL_SECONDS = 10
TRUE = "/usr/bin/true"

FIXES = (
    "either let bubblewrap make user namespaces (an AppArmor profile for bwrap with the line "
    "`userns,`, or the setting named), or audit on a virtual machine that allows them and is "
    "thrown away afterwards (level 4, --throw-away-machine)"
)


@contextlib.contextmanager
def open_sandbox(
    level: int = DEFAULT,
    *,
    gpu: bool = False,
    throw_away_machine: bool = False,
    i_wrote_this_code: bool = False,
    folder: Path | None = None,
) -> Iterator[Sandbox]:
    """Return a sandbox of exactly the level asked for, tried out; its scratch folder is removed.

    Raises UsageProblem for a level that needs a declaration, SandboxUnavailable with the cause
    and what to do when the machine cannot give it, LeftOver when an earlier audit left anything.
    """
    if level not in LEVELS:
        raise UsageProblem(f"there is no sandbox level {level}", "levels are 0 to 4")
    if level == 0 and not i_wrote_this_code:
        raise UsageProblem(
            "level 0 is no sandbox: the extractor could do all that you can",
            "use level 2, or pass --i-wrote-this-code for code of your own; it never counts",
        )
    if throw_away_machine and level == DEFAULT:
        level = max(LEVELS)
    if level == max(LEVELS) and not throw_away_machine:
        raise UsageProblem(
            "level 4 is a promise that this machine is thrown away after the audit",
            "pass --throw-away-machine to declare it, or use level 2",
        )
    devices = mounts.gpu_devices() if gpu else ()
    if gpu and not devices:
        raise SandboxUnavailable(
            "a GPU was asked for, and /dev has no nvidia device",
            "install the driver, or audit on the CPU",
        )
    with scratch(folder) as place:
        sandbox = Sandbox(level, KINDS[level], place, devices)
        cause = trial(sandbox)
        if cause is not None:
            raise SandboxUnavailable(
                f"sandbox level {level} ({LEVELS[level]}) is not to be had: {cause}", _fix(level)
            )
        yield sandbox


def trial(sandbox: Sandbox) -> str | None:
    """Run `true`, then Python, in a sandbox; gives the exact cause where that fails, else None."""
    missing = _missing(sandbox.kind)
    if missing is not None:
        return missing
    view = mounts.view({}, {})
    limits = Limits(seconds=TRIAL_SECONDS)
    if sandbox.kind == NONE:
        return None
    for inner in ([TRUE], [view.python, "-I", "-c", "import numpy"]):
        with started(sandbox, view, limits, inner) as process:
            try:
                _, said = process.communicate(timeout=TRIAL_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                return f"{inner[0]} did not end within {TRIAL_SECONDS} s inside it"
        if process.returncode != 0:
            words = " ".join(said.decode("utf-8", "backslashreplace").split())
            settings = bubblewrap.refusing_settings()
            return "; ".join([words or f"exit code {process.returncode}", *settings])
    return None


def why_not(level: int, folder: Path) -> str | None:
    """Return why a level is not to be had on this machine, None when it is."""
    return trial(Sandbox(level, KINDS[level], folder))


def _missing(kind: str) -> str | None:
    if platform.system() != "Linux":
        return f"it needs Linux, this is {platform.system()}"
    if kind == GVISOR and gvisor.found() is None:
        return "runsc is not installed"
    if kind != BUBBLEWRAP:
        return None
    if bubblewrap.found() is None:
        return "bwrap is not installed"
    said = subprocess.run(  # noqa: S603 (a program that was found, no shell)
        [str(bubblewrap.found()), "--version"], capture_output=True, text=True, check=False, env={}
    ).stdout
    if bubblewrap.version(said) < BUBBLEWRAP_LEAST:
        return f"bubblewrap 0.8 or later is needed, found {said.strip()!r}"
    return None


def _fix(level: int) -> str:
    if KINDS[level] == GVISOR:
        return "install gVisor's runsc, or use level 2"
    if KINDS[level] == BUBBLEWRAP and bubblewrap.found() is None:
        return "install the package bubblewrap (0.8 or later), or name level 1"
    return FIXES
