"""A pytest session that has collected its tests, and forks for each mutant.

Imports and collection cost more than most tests do, so they happen once. In the fork the function
that a mutant changes gets the code of the mutated source. What is no function's (constants,
classes) cannot be changed so: `server` imports those anew.

A job is a line `{"tests": [files or tests], "file", "scope", "source", "result"}` on the input; the
answer is a line `{"end": ...}`.
"""

import importlib
import inspect
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

from tools.mutants.clone import ROOT
from tools.mutants.targets import FILES

CPU_S = 20
"""Processor seconds after which a test hangs, if it takes a quarter of that without a mutant."""
WALL_S = 400
"""Seconds that one test may take, on however busy a machine."""


class Cannot(Exception):  # noqa: N818
    """The mutant is not inside a function that can be given other code."""


def patch(file: str, scope: list[str], source: str) -> None:
    """Return the function that a mutant lies in the code of the mutated source. Raises Cannot."""
    name = file.removesuffix(".py").replace("/", ".")
    code: CodeType = compile(source, str(ROOT / file), "exec")
    found: Any = importlib.import_module(name)
    for part in scope:
        code = next(
            one for one in code.co_consts if isinstance(one, CodeType) and one.co_name == part
        )
        found = _plain(inspect.getattr_static(found, part))
        if isinstance(found, FunctionType):
            if found.__code__.co_name != code.co_name:
                raise Cannot(part)
            found.__code__ = code
            return
    raise Cannot(".".join(scope))


def _plain(found: Any) -> Any:
    """Return the function beneath its decorators."""
    while not isinstance(found, FunctionType | type):
        for name in ("fget", "func", "__func__", "wrapped", "__wrapped__"):
            if hasattr(found, name):
                found = getattr(found, name)
                break
        else:
            raise Cannot(repr(found))
    return inspect.unwrap(found) if isinstance(found, FunctionType) else found


class Called:
    """Notes which targets run while tests are collected: what they made then is no mutant's."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.targets = {str(ROOT / file): file for file in FILES}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call: `sys.setprofile` asks for this."""
        if event == "call" and frame.f_code.co_name != "<module>":
            file = self.targets.get(frame.f_code.co_filename)
            if file is not None and frame.f_code.co_flags & inspect.CO_NEWLOCALS:
                self.files.add(file)


class Session:
    """The loop that takes the place of pytest's own."""

    def __init__(self, answers: int, called: Called) -> None:
        self.answers = os.fdopen(answers, "w")
        self.called = called
        self.failed: list[str] = []
        self.ran = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what failed."""
        if report.failed:
            self.failed.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Serve jobs until the input ends."""
        sys.setprofile(None)
        self.say(end="ready", called=sorted(self.called.files), tests=len(session.items))
        by_file: dict[str, list[pytest.Item]] = {}
        for item in session.items:
            by_file.setdefault(item.nodeid.partition("::")[0], []).append(item)
        for line in sys.stdin:
            job = json.loads(line)
            base = tempfile.mkdtemp(prefix="geneb-mutant-")
            pid = os.fork()
            if pid == 0:
                self.child(session, by_file, job, Path(base))
            _, status = os.waitpid(pid, 0)
            at = Path(base, "test")
            test = at.read_text(encoding="utf-8") if at.is_file() else ""
            shutil.rmtree(base, ignore_errors=True)
            self.say(end="exit" if os.WIFEXITED(status) else "time", test=test)
        return True

    def say(self, **words: object) -> None:
        """Answer."""
        self.answers.write(json.dumps(words) + "\n")
        self.answers.flush()

    def child(
        self,
        session: pytest.Session,
        by_file: dict[str, list[pytest.Item]],
        job: dict[str, Any],
        base: Path,
    ) -> None:
        """Run the tests of a job until one fails; this process then ends."""
        result: dict[str, Any] = {"status": "error"}
        try:
            os.setsid()
            log = os.open(base / "log", os.O_RDWR | os.O_CREAT)
            for stream in (0, 1, 2):
                os.dup2(log, stream)
            factory: Any = vars(session.config)["_tmp_path_factory"]
            factory._basetemp = base / "tmp"  # noqa: SLF001 (or each fork leaves its files)
            (base / "tmp").mkdir()
            if job["file"]:
                patch(job["file"], job["scope"], job["source"])
            wanted = list(self.wanted(by_file, job["tests"]))
            for item, following in zip(wanted, [*wanted[1:], None], strict=True):
                _limit()
                (base / "test").write_text(item.nodeid, encoding="utf-8")
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                self.ran += 1
                if self.failed or _used() > job["budget"]:
                    break
            status = "done" if self.failed or self.ran == len(wanted) else "stopped"
            result = {"status": status, "failed": self.failed, "cpu": _used()}
        except Cannot:
            result = {"status": "cannot"}
        except BaseException:  # noqa: BLE001 (this process must not go on as a session)
            result = {"status": "error", "why": traceback.format_exc()}
        finally:
            Path(job["result"]).write_text(json.dumps(result), encoding="utf-8")
            signal.setitimer(signal.ITIMER_REAL, 0)
            os._exit(0)

    @staticmethod
    def wanted(by_file: dict[str, list[pytest.Item]], names: list[str]) -> Iterator[pytest.Item]:
        """Yield the tests of files or of names, in the order asked for."""
        for name in names:
            file = name.partition("::")[0]
            items = by_file.get(file, [])
            yield from (item for item in items if name in (file, item.nodeid))


def _used() -> float:
    """Return the processor seconds of this process and of those it started."""
    own, children = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _limit() -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + CPU_S
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, hard))
    signal.setitimer(signal.ITIMER_REAL, WALL_S)


def main(files: list[str]) -> None:
    """Collect the tests of some files, and serve."""
    answers = os.dup(1)
    os.dup2(2, 1)
    called = Called()
    sys.setprofile(called)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--capture=no", "--tb=no"]
    pytest.main([*options, *files], plugins=[Session(answers, called)])


if __name__ == "__main__":
    main(sys.argv[1:])
