"""Processes of the harness that a command of tests.forked starts or becomes: forks as well.

A new interpreter loads NumPy and scikit-learn anew, and each of its workers once more: 3 s.
"""

import atexit
import contextlib
import os
import runpy
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from multiprocessing import resource_tracker, util
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

HARNESS = ("-m", "reference_harness")


class _Asked(NamedTuple):
    """What `python -m reference_harness` is asked for."""

    words: list[str]
    safe: bool
    """Whether its path has no current folder: `-P`."""


class HarnessForks:
    """Takes the place of `os.execv`, and of what `subprocess` starts programs by."""

    def __init__(self, paths: Sequence[str]) -> None:
        """Keep the path of an interpreter, without the current folder and PYTHONPATH."""
        self._paths = [*paths]
        self._named = os.environ.get("PYTHONPATH")
        self._execv = os.execv
        self._fork_exec: Any = subprocess._fork_exec  # type: ignore[attr-defined]

    def install(self) -> None:
        """Let this process start forks. What is no command of the harness is what it was."""
        vars(os).update(execv=self._instead_of_execv)
        vars(subprocess).update(_fork_exec=self._instead_of_fork_exec)

    def _asked(
        self, command: Sequence[str | bytes], environment: Mapping[str, str]
    ) -> _Asked | None:
        """Return what is asked of the product that this process has, while it has one thread."""
        first, *words = map(os.fsdecode, command)
        safe = words[:1] == ["-P"]
        module, words = tuple(words[safe : safe + 2]), words[safe + 2 :]
        same = environment.get("PYTHONPATH") == self._named and threading.active_count() == 1
        if first != sys.executable or module != HARNESS or not same:
            return None
        return _Asked(words, safe or bool(environment.get("PYTHONSAFEPATH")))

    def _instead_of_execv(self, path: str, command: list[str]) -> None:
        requests = self._asked(command, os.environ)
        if requests is None:
            self._execv(path, command)
        else:
            self._become(requests)

    def _instead_of_fork_exec(self, command: Sequence[bytes], *options: Any) -> int:
        _executables, _close, _keep, folder, listed, *pipes = options
        named = dict(os.environ)
        if listed is not None:
            named = dict(os.fsdecode(variable).split("=", 1) for variable in listed)
        requests = self._asked(command, named)
        if requests is None:
            return int(self._fork_exec(command, *options))
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        if pid := os.fork():
            return pid
        reads, _, _, writes, _, errors, *_, new_session = pipes[:10]
        with contextlib.suppress(BaseException):  # and nothing goes on as if it were the parent
            if new_session:
                os.setsid()
            for number, pipe in enumerate((reads, writes, errors)):
                if pipe != -1:
                    os.dup2(pipe, number)
            vars(resource_tracker._resource_tracker).update(_fd=None)
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            if folder is not None:
                os.chdir(folder)
            os.environ.clear()
            os.environ.update(named)
            self._become(requests)
        os._exit(255)

    def _become(self, request: _Asked) -> NoReturn:
        """Be the command, with nothing of what this process was to do at its end."""
        named = (self._named or "").split(os.pathsep)
        sys.path[:] = [
            *([] if request.safe else [str(Path.cwd())]),
            *filter(None, named),
            *self._paths,
        ]
        sys.argv = ["reference_harness", *request.words]
        util._finalizer_registry.clear()  # type: ignore[attr-defined]
        util._run_after_forkers()  # type: ignore[attr-defined]
        atexit._clear()
        for number, usual in (
            (signal.SIGINT, signal.default_int_handler),
            (signal.SIGTERM, signal.SIG_DFL),
        ):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, usual)
        sys.stdin, sys.stdout, sys.stderr = (
            open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 (for ever)
            for number, mode in enumerate("rww")
        )
        code = _run()
        util._exit_function()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(code)


def _run() -> int:
    """Run the harness, and return its exit code."""
    try:
        runpy.run_module(HARNESS[1], run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if isinstance(ended.code, int):
            return ended.code
        if ended.code is not None:
            sys.stderr.write(f"{ended.code}\n")
            return 1
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:  # noqa: BLE001 (it is told, as an interpreter does)
        traceback.print_exc()
        return 1
    return 0
