"""Runs a command of geneb-ci, and writes down what it opened and which functions it called.

`python -P traced.py OUT ARGUMENT...`: OUT becomes JSON of `opened`, path to number of times it was
opened for reading, and `calls`, the calls between functions of geneb_ci as pairs of
`<file>:<function>`, in order. Programs that the command starts are not followed.
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from unittest import mock

PACKAGE = "geneb_ci"
_names: dict[CodeType, str | None] = {}
_opened: Counter[str] = Counter()
_calls: list[tuple[str, str]] = []
_seen: list[FrameType] = []  # kept, so that no later frame has the same identity
_ids: set[int] = set()


def name_of(code: CodeType) -> str | None:
    """Return `geneb_ci/...py:function`; None for code of other packages."""
    if code not in _names:
        path = Path(code.co_filename)
        inside = PACKAGE in path.parts
        parts = (
            path.parts[len(path.parts) - path.parts[::-1].index(PACKAGE) - 1 :] if inside else ()
        )
        _names[code] = f"{'/'.join(parts)}:{code.co_name}" if inside else None
    return _names[code]


def on_call(frame: FrameType, event: str, _: object) -> None:
    """Note a call of a function of the package, with the nearest caller that is of it, too."""
    if event != "call" or (callee := name_of(frame.f_code)) is None or "<" in callee:
        return
    if id(frame) in _ids:  # a generator that goes on
        return
    caller = frame.f_back
    while caller is not None and (name_of(caller.f_code) or "<").find("<") >= 0:
        caller = caller.f_back
    if caller is not None:
        _ids.add(id(frame))
        _seen.append(frame)
        _calls.append((str(name_of(caller.f_code)), callee))


def on_event(event: str, arguments: tuple[object, ...]) -> None:
    """Count files opened for reading."""
    if event == "open" and isinstance(arguments[0], str | bytes):
        flags = arguments[2] if isinstance(arguments[2], int) else 0
        if not flags & (os.O_WRONLY | os.O_RDWR):
            _opened[os.path.realpath(os.fsdecode(arguments[0]))] += 1


def untraced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose calls are not noted: the harness calls none of the package."""

    def call(*arguments: Any, **options: Any) -> Any:
        sys.setprofile(None)
        try:
            return function(*arguments, **options)
        finally:
            sys.setprofile(on_call)

    return call


def main(out: str, arguments: list[str]) -> int:
    from geneb_ci.audit.rerun import runner
    from geneb_ci.cli.main import main as command  # before anything is traced
    from geneb_ci.harness.process import HarnessProcess

    sys.addaudithook(on_event)
    with (
        mock.patch.object(HarnessProcess, "call", untraced(HarnessProcess.call)),
        mock.patch.object(runner, "run_in_sandbox", untraced(vars(runner)["run_in_sandbox"])),
    ):
        sys.setprofile(on_call)
        try:
            return command(arguments)
        finally:
            sys.setprofile(None)
            Path(out).write_text(json.dumps({"opened": _opened, "calls": _calls}), "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
