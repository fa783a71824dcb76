"""Commands of the product in processes of their own, without the seconds of loading modules.

A server of the standard library, `forkserver`, imports the product and its libraries once for each
test process; a command is a fork of it. So each has its own memory, environment, folder, streams
and exit code, and no module has more than its state after import, but for models of files and the
sequences of GENEB-mini: they are made once (tests/preloaded.py). A test about the interpreter
itself (what is imported when, signals, terminals, encodings, hash seeds) starts a new one.

A second server has the product of `installation()`, a copy away from the checkout. Workers of
pytest-xdist share both: `share` names the folder where one tells the others of what it started.
"""

import contextlib
import fcntl
import functools
import hashlib
import importlib
import json
import multiprocessing
import os
import resource
import runpy
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from multiprocessing import connection, forkserver
from pathlib import Path
from types import ModuleType
from typing import IO, Any, Literal

from reference_harness.extractors import BUILTINS
from reference_harness.probe.scorer import scoring_environment
from tests.harness_forks import HarnessForks
from tests.paths import ROOT

PRODUCT = ("geneb_ci", "reference_harness")
LIBRARIES = (
    "anyio", "filelock", "fsspec", "httpcore2", "httpx2", "rich._emoji_codes", "safetensors",
    "sklearn.linear_model", "sklearn.metrics", "tqdm", "yaml",
)  # fmt: skip
"""What the product imports where it is needed. Not `huggingface_hub`, which reads the environment
when it is imported, and nothing that starts a thread, such as `hf_xet`: a fork would lack it."""
TORCH = tuple(
    f"reference_harness.extractors.{name.removesuffix('.py')}"
    for name in ("huggingface", *BUILTINS["huggingface"].helpers)
)
"""Modules that import torch and transformers, and with them `huggingface_hub`."""
LAST = ROOT / "tests/preloaded.py"
"""What a server loads last; an installation has a copy."""
MODEL_FAMILIES = ("transformers.models.bert.modeling_bert",)
"""What transformers loads for the models of the tests, after the extractor."""
OF_THE_SERVER = scoring_environment()
"""Its libraries have one thread, for a fork has none of its parent's, and the kernel of the scorer:
a worker of the harness is a fork, too."""
Loaded = tuple[Path, tuple[tuple[str, str], ...] | None]
"""The folder whose product a server has; with torch, the Hub's settings that it was loaded under,
else None."""
_servers: dict[Loaded, forkserver.ForkServer] = {(ROOT, None): forkserver._forkserver}
_running: dict[Loaded, str] = {}
"""The name under which each server was told of in the shared folder."""
POLL_SECONDS = 0.005
HANG_SECONDS = 300  # no command of the tests takes a tenth of this


def run(
    module: str,
    *words: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    timeout: float = HANG_SECONDS,
    cpu_seconds: int | None = None,
    before: Path | None = None,
    allowed: frozenset[str] = frozenset(),
    torch: bool = False,
) -> "subprocess.CompletedProcess[str]":
    """Do what `python -m MODULE WORDS` does, and return what it said and its exit code.

    With `cpu_seconds` the system kills one that computes for longer, however busy the machine.
    `before` is a file whose function `install` is called before the command.
    `allowed` are numbers of servers that it may reach, beside the public ones. With `torch`, its
    server has loaded that too: 4 s once, in place of each command.

    Raises subprocess.TimeoutExpired for one that does not end.
    """
    process = start(
        *(module, *words),
        cwd=cwd, env=env, cpu_seconds=cpu_seconds, before=before, allowed=allowed, torch=torch,
    )  # fmt: skip
    try:
        output = process.communicate(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, *output)


class Started:
    """A command that runs, used as a process that `subprocess` has started."""

    def __init__(
        self, args: list[str], target: Callable[..., None], requests: tuple[Any, ...]
    ) -> None:
        self.args = args
        self._said: tuple[str, str] | None = None
        self._lock = threading.Lock()  # a second reader of an exit code finds none
        self._folder = tempfile.TemporaryDirectory()
        self._streams = [Path(self._folder.name, name) for name in ("out", "err")]
        for path in self._streams:
            path.touch(0o600)
        context = multiprocessing.get_context("forkserver")
        # A server that another worker started has that worker's processor.
        processors = frozenset(os.sched_getaffinity(0))
        answers = (*requests, *map(str, self._streams), processors)
        self._process = context.Process(target=target, args=answers)
        self._process.start()
        self.pid = self._process.pid or 0

    @property
    def returncode(self) -> int:
        """Its exit code: below 0 for a signal. Raises RuntimeError while it runs."""
        if (code := self.poll()) is None:
            raise RuntimeError(f"{self.args} runs")
        return code

    def poll(self) -> int | None:
        """Return its exit code, or None while it runs."""
        with self._lock:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code. Raises subprocess.TimeoutExpired for one that does not end."""
        if not connection.wait([self._process.sentinel], timeout):
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Return its output and errors once it has ended; raise as `wait` does."""
        self.wait(timeout)
        if self._said is None:
            output, errors = (path.read_text("utf-8") for path in self._streams)
            self._said = output, errors
            self._folder.cleanup()
        return self._said

    def lines(self) -> Iterator[str]:
        """Yield the lines of its errors as they are written."""
        with self._streams[1].open(encoding="utf-8") as stream:
            rest = ""
            while True:
                ended = self.poll() is not None
                *whole, rest = (rest + stream.read()).split("\n")
                yield from whole
                if ended:
                    return
                time.sleep(POLL_SECONDS)

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)


class InPlaceOfProcess(Started):
    """A fork in place of a process that the product starts by `python -m MODULE`, with a file for
    its output and a session of its own. Put it in place of the class `Popen` of subprocess.
    """

    def __init__(
        self,
        command: list[str],
        *,
        stdout: IO[bytes],
        env: Mapping[str, str],
        start_new_session: Literal[True],
        **_unused: object,
    ) -> None:
        at = command.index("-m")
        module, *words = command[at + 1 :]
        self._output, self._is_told = Path(stdout.name), False
        arguments = (
            str(Path.cwd()),
            dict(env),
            None,
            None,
            frozenset[str](),
            None,
            start_new_session,
        )
        request = (str(ROOT), module, tuple(words), *arguments)
        with _blank_main(), _serving((ROOT, None)):
            super().__init__(command, _command, request)

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code, once what it said is in its file."""
        code = super().wait(timeout)
        if not self._is_told:
            self._is_told = True
            self._output.write_text("".join(self.communicate()), "utf-8")
        return code


def start(
    module: str,
    *words: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    cpu_seconds: int | None = None,
    before: Path | None = None,
    allowed: frozenset[str] = frozenset(),
    code: str | None = None,
    group: bool = False,
    torch: bool = False,
) -> Started:
    """Start a command, as `run` does; `code` replaces the module.

    With `group` it and its workers are a process group of their own, as a terminal makes one.
    """
    environ = dict(os.environ if env is None else env)
    home = _home(environ)
    hub = tuple(sorted((k, v) for k, v in environ.items() if k.startswith("HF_")))
    requests = (
        str(home),
        module,
        words,
        str(cwd),
        environ,
        cpu_seconds,
        before,
        allowed,
        code,
        group,
    )
    with _blank_main(), _serving((home, hub if torch else None)):
        return Started([module, *words], _command, requests)


_shared: list[Path] = []
"""The folder that `share` named last."""


def share(folder: Path) -> None:
    """Let this process and all others that name the same folder use each other's servers."""
    _shared[:] = [folder]


@contextlib.contextmanager
def _alone(name: str) -> Iterator[Path]:
    """Give a path in the shared folder; no other process is given that of this name meanwhile."""
    path = _shared[0] / name
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield path


@functools.cache
def installation() -> Path:
    """Return a folder with a copy of the product and its data, the same for all of a run.

    Tests read it and never write to it.
    """
    with _alone("installation") as site:
        if not site.exists():
            for name in (*PRODUCT, "schemas", "leaderboard"):
                shutil.copytree(ROOT / name, site / name)
            shutil.copy(LAST, site)
    return site


def _home(scoring_environment: Mapping[str, str]) -> Path:
    """Return the folder whose product the server of a command has loaded."""
    first = scoring_environment.get("PYTHONPATH", "").split(os.pathsep)[0]
    named = bool(installation.cache_info().currsize) and first == str(installation())
    return installation() if named else ROOT


@contextlib.contextmanager
def _blank_main() -> Iterator[None]:
    """Hide this process's main module, which each fork would otherwise run again: all of pytest."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextlib.contextmanager
def served_processes() -> Iterator[None]:
    """Let the checkout's server start the processes that this block starts by `forkserver`."""
    with _blank_main(), _serving((ROOT, None)):
        yield


@contextlib.contextmanager
def _serving(loaded: Loaded) -> Iterator[None]:
    """Let the server that has loaded this start the processes of this block."""
    before = forkserver.connect_to_new_process
    forkserver.connect_to_new_process = _server(loaded).connect_to_new_process
    try:
        yield
    finally:
        forkserver.connect_to_new_process = before


class _OfAnother(forkserver.ForkServer):
    """A server that another process started: it goes on while one of them holds its pipe."""

    def __init__(self, address: str, process: int, pipe: int) -> None:
        super().__init__()
        self._forkserver_address = address
        self._forkserver_alive_fd = os.open(f"/proc/{process}/fd/{pipe}", os.O_WRONLY)

    def ensure_running(self) -> None:
        """Do nothing: it runs."""

    def _stop(self) -> None:
        os.close(self._forkserver_alive_fd)


def _server(loaded: Loaded) -> forkserver.ForkServer:
    """Return the server of this folder and these settings; start it where no worker has."""
    if loaded in _running or not _shared:
        return _started(loaded)
    name = hashlib.sha256(repr(loaded).encode()).hexdigest()[:16]
    with _alone(f"server-{name}") as name_file:
        try:
            _servers[loaded] = _OfAnother(*json.loads(name_file.read_bytes()))
        except OSError:  # nobody has started one, or that process is gone
            server: Any = _started(loaded)
            ways = (server._forkserver_address, os.getpid(), server._forkserver_alive_fd)
            name_file.write_text(json.dumps(ways), encoding="utf-8")
        _running[loaded] = name_file.name
    return _servers[loaded]


def _started(loaded: Loaded) -> forkserver.ForkServer:
    """Start a server in the folder whose product it loads, under an environment of its own."""
    home, hub = loaded
    server = _servers.setdefault(loaded, forkserver.ForkServer())
    more = () if hub is None else (*TORCH, *MODEL_FAMILIES)
    last = (__name__, f"tests.{LAST.stem}" if home == ROOT else LAST.stem)
    server.set_forkserver_preload([*LIBRARIES, *modules(), *more, *last])
    names = {**OF_THE_SERVER, "PYTHONPATH": str(home), **dict(hub or ())}
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        with contextlib.chdir(home):
            server.ensure_running()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    return server


@functools.cache
def modules() -> tuple[str, ...]:
    """Return the product's modules, but those that import torch."""
    names = (path.relative_to(ROOT) for top in PRODUCT for path in (ROOT / top).rglob("*.py"))
    dotted = (".".join(name.with_suffix("").parts).removesuffix(".__init__") for name in names)
    without = (name for name in dotted if not name.startswith(TORCH) and "__main__" not in name)
    return tuple(sorted(without))


def stop() -> None:
    """End the servers, and wait for them: their seconds count as the tests'.

    Those that other workers still use end with the last of them.
    """
    servers: list[Any] = [*_servers.values()]
    for loaded, name in _running.items():
        if not isinstance(_servers[loaded], _OfAnother):
            with _alone(name) as name_file:
                name_file.unlink()
    for server in sorted(servers, key=lambda server: not isinstance(server, _OfAnother)):
        server._stop()
    _running.clear()
    _servers.clear()
    _servers[ROOT, None] = forkserver._forkserver


def _command(
    home: str,
    module: str,
    words: tuple[str, ...],
    cwd: str,
    env: dict[str, str],
    cpu_seconds: int | None,
    before: Path | None,
    allowed: frozenset[str],
    code: str | None,
    group: bool,
    out: str,
    err: str,
    processors: frozenset[int],
) -> None:
    """Be the command, in the fork."""
    os.sched_setaffinity(0, processors)
    if group:
        os.setsid()
    if cpu_seconds is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    nothing, unused = os.pipe()
    os.close(unused)
    streams = (nothing, *(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600) for path in (out, err)))
    for number, opened in enumerate(streams):
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    own = [] if env.get("PYTHONSAFEPATH") else [cwd]  # as `-P`, and as a program on PATH
    paths = [*own, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    sys.path[:0] = paths
    if any(Path(path, PRODUCT[0]).is_dir() and path != home for path in paths):
        _forget_the_product()  # another installation of it is asked for
    if allowed:
        importlib.import_module("geneb_ci.common.addresses").IP_ADDRESSES_OF_TESTS = allowed  # type: ignore[attr-defined]
    sys.argv = [module, *words]
    # Worker processes of the harness are forks as well: a new interpreter loads every library anew.
    fork = multiprocessing.get_context("fork")
    multiprocessing.get_context = lambda _=None: fork  # type: ignore[assignment]
    if before is not None:
        runpy.run_path(str(before))["install"]()
    if not any(Path(path, PRODUCT[0]).is_dir() and path != home for path in paths):
        HarnessForks(sys.path[len(paths) :]).install()
    if code is not None:
        exec(code, {"__name__": "__main__"})  # noqa: S102 - a test's own words
        return
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _forget_the_product() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in PRODUCT]:
        del sys.modules[name]
