"""Start one process in a sandbox, with an empty environment and without our file descriptors.

It also collects the facts about a sandbox for the audit record.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from geneb_ci.sandbox import confine, mounts, seccomp
from geneb_ci.sandbox.limits import MIB, Limits, kernel_limits
from geneb_ci.sandbox.mounts import SandboxView
from geneb_ci.sandbox.processes import kernel_prefix
from reference_harness.formats.base import Name, StrictModel

SCRATCH_FOLDERS = ("/tmp", "/dev/shm")  # noqa: S108 (the sandbox's own)
"""Folders of the sandbox in memory, which may be written."""
HARMLESS_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
"""Device files of the host that every sandbox may use."""
READABLE_PROC_FILES = ("/proc/cpuinfo", "/proc/meminfo")
"""Files that array libraries read. The rest of /proc is hidden, since it shows the host."""


def landlock_command() -> list[str]:
    """Return the command that confines at level 1; the descriptor of the plan is to be appended."""
    return [sys.executable, "-I", "-S", "-B", str(Path(confine.__file__).resolve())]


def landlock_plan(
    view: SandboxView, limits: Limits, data: dict[str, int], program: bytes, command: Sequence[str]
) -> bytes:
    """Return the plan that `confine.py` follows at level 1, as JSON.

    `data` maps a path inside to a descriptor with the content; `program` is the filter of system
    calls.
    """
    links, folders = mounts.system_links()
    return json.dumps({
        "inside": mounts.MOUNT_FOLDER,
        "folders": view.folders,
        "data": data,
        "scratch": SCRATCH_FOLDERS,
        "readable": [
            *folders, *links, *mounts.system_paths(), *READABLE_PROC_FILES, mounts.MOUNT_FOLDER,
        ],
        "devices": [*HARMLESS_DEVICES, *view.devices],
        "tmp_bytes": limits.tmp_mib * MIB,
        "open_files": limits.open_files,
        "folder": SCRATCH_FOLDERS[0],
        "program": program.hex(),
        "environment": view.environment,
        "command": list(command),
    }).encode()  # fmt: skip


NONE, LANDLOCK, BUBBLEWRAP, GVISOR = "none", "landlock", "bubblewrap", "gvisor"


@dataclass(frozen=True)
class Sandbox:
    """A sandbox of one level that works on this machine; `levels.open_sandbox` makes one."""

    level: int
    """How strongly it confines, 0 to 4."""
    kind: str
    """`bubblewrap`, `landlock`, `gvisor` or `none`."""
    scratch: Path
    """A folder on the host for files of the sandbox, removed when the audit ends."""
    devices: tuple[str, ...] = ()
    """GPU device files of the host that the sandbox can use."""

    def visible_path(self, view: SandboxView) -> Callable[[str], str]:
        """Return a function that turns a path of the view into the path that the process sees."""
        if self.kind != NONE:
            return lambda path: path
        folders = {path: Path(source) for path, source in view.folders.items()}

        def host_path(path: str) -> str:
            for inside_path, source in folders.items():
                if path == inside_path or path.startswith(f"{inside_path}/"):
                    return str(source) + path[len(inside_path) :]
            return str(self.scratch / "data" / Path(path).name)

        return host_path


@contextlib.contextmanager
def start_sandboxed(
    sandbox: Sandbox, view: SandboxView, limits: Limits, command: Sequence[str]
) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a command in a sandbox, and yield its process, which the caller must end.

    Its standard output and error are pipes; its environment and standard input are empty. It
    inherits only these descriptors and those that the setup of the sandbox needs.
    """
    view = replace(view, devices=sandbox.devices)
    with contextlib.ExitStack() as stack:
        argv, descriptors, environment = _command_descriptors_and_environment(
            sandbox, view, limits, command, stack
        )
        prefix = stack.enter_context(kernel_prefix(limits))
        # `env` comes last: systemd-run needs an environment of its own.
        assignments = [f"{name}={value}" for name, value in sorted(environment.items())]
        with subprocess.Popen(  # noqa: S603 (built here, no shell)
            [
                *prefix,
                *kernel_limits(limits),
                *(["/usr/bin/env", *assignments] if assignments else []),
                *argv,
            ],
            env={},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            close_fds=True,
            pass_fds=descriptors,
            start_new_session=True,
            cwd="/",
            bufsize=0,
        ) as process:
            yield process


def _command_descriptors_and_environment(
    sandbox: Sandbox,
    view: SandboxView,
    limits: Limits,
    command: Sequence[str],
    stack: contextlib.ExitStack,
) -> tuple[list[str], list[int], dict[str, str]]:
    """Return the command line, the descriptors to pass and the environment of a process."""
    if sandbox.kind == NONE:
        return list(command), [], _set_up_unconfined(sandbox, view)
    if sandbox.kind == GVISOR:
        folder = sandbox.scratch / "bundle"
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        mounts.gvisor_bundle(folder, view, limits, command)
        return mounts.gvisor_command(folder, gpu=bool(sandbox.devices)), [], {}
    data_descriptors = {path: _memory_file(content, stack) for path, content in view.data.items()}
    program = seccomp.filter_program()
    if sandbox.kind == LANDLOCK:
        plan = _memory_file(landlock_plan(view, limits, data_descriptors, program, command), stack)
        return [*landlock_command(), str(plan)], [plan, *data_descriptors.values()], {}
    filter_descriptor = _memory_file(program, stack)
    options = mounts.bubblewrap_options(view, limits, data_descriptors, filter_descriptor)
    options_descriptor = _memory_file("".join(f"{word}\0" for word in options).encode(), stack)
    argv = [str(mounts.bubblewrap_path()), "--args", str(options_descriptor), "--", *command]
    return argv, [options_descriptor, filter_descriptor, *data_descriptors.values()], {}


def _memory_file(content: bytes, stack: contextlib.ExitStack) -> int:
    """Return a descriptor, at offset 0, of an anonymous file with this content."""
    descriptor = os.memfd_create("geneb-audit")
    stack.callback(os.close, descriptor)
    with os.fdopen(os.dup(descriptor), "wb") as stream:
        stream.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _set_up_unconfined(sandbox: Sandbox, view: SandboxView) -> dict[str, str]:
    """Write the files of a view to the host, for level 0, and return the environment."""
    folder = sandbox.scratch / "data"
    folder.mkdir(exist_ok=True)
    for path, content in view.data.items():
        (folder / Path(path).name).write_bytes(content)
    path_of = sandbox.visible_path(view)
    environment = dict(view.environment)
    environment["PYTHONPATH"] = ":".join(
        path_of(path) if path in view.folders else str(_host_parent(path, view))
        for path in environment["PYTHONPATH"].split(":")
    )
    environment.pop("LD_LIBRARY_PATH", None)
    return environment


def _host_parent(path: str, view: SandboxView) -> Path:
    """Return the folder of the host that contains the folder shown below `path`."""
    inside_path = next(name for name in view.folders if name.startswith(f"{path}/"))
    return Path(view.folders[inside_path]).parent


PYTHON_FLAGS = ("-s", "-P", "-B")
"""Options of Python in the sandbox: import neither from the user's folder nor from the current one,
and write no bytecode. The option `-I` would ignore PYTHONPATH, which has the packages."""


def python_of(sandbox: Sandbox, view: SandboxView) -> str:
    """Return the path of the Python interpreter to run in the sandbox."""
    return sys.executable if sandbox.kind == NONE else view.python


class Escape(StrictModel):
    """One attempt of the escape suite to leave the sandbox."""

    name: Name
    refused: bool
    """Whether the sandbox refused the attempt."""
    detail: str
    """Error of the refusal, or what the attempt reached."""


class SandboxFacts(StrictModel):
    """The sandbox in which the extractor ran."""

    level: Annotated[int, Field(ge=0, le=4)]
    kind: Name
    """bubblewrap, landlock, gvisor, or none."""
    escapes: list[Escape]
    """Results of the escape suite in the same sandbox before the audit; empty only at level 0."""
    gpu: bool
    """Whether the sandbox could use GPUs."""
    limits: dict[str, int]
    """Name of a limit, which ends in its unit, such as memory_mib, to its value. total_seconds and
    token_budget are missing in older records. The latter is the number of padded tokens in a batch,
    the smallest of all runs as the worker inside printed it; it is missing if unknown."""


def sandbox_facts(
    sandbox: Sandbox,
    escapes: list[Escape],
    limits: Limits,
    token_budget: int | None,
    scoring: Mapping[str, int] | None = None,
) -> SandboxFacts:
    """Return the facts of a sandbox for the audit record.

    `token_budget` is in padded tokens; None: it is left out. `scoring` has the limits outside the
    sandbox, with which the embeddings were scored.
    """
    return SandboxFacts(
        level=sandbox.level,
        kind=sandbox.kind,
        escapes=escapes,
        gpu=bool(sandbox.devices),
        limits={
            **limits.as_facts(),
            **({} if token_budget is None else {"token_budget": token_budget}),
            **(scoring or {}),
        },
    )
