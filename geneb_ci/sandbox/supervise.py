"""Supervise one run from outside: check its output, time, processes and memory, and end it."""

import contextlib
import os
import re
import selectors
import struct
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, NamedTuple, Protocol

from geneb_ci.common.errors import ExtractorRefused, LimitExceeded, ResultRefused, StillRunning
from geneb_ci.sandbox import processes
from geneb_ci.sandbox.launch import Sandbox, start_sandboxed
from geneb_ci.sandbox.limits import MIB, Limits, limit_fix
from geneb_ci.sandbox.mounts import SandboxView
from geneb_ci.sandbox.processes import Process, save_namespaces
from reference_harness.formats.text import plural

if TYPE_CHECKING:
    import numpy as np


ATTEMPT_PREFIX = "attempt: "
"""Start of the worker's lines about calls that foreign code attempted, such as `socket.connect`;
any code inside can print such lines."""
CALL_NAME_PATTERN = re.compile(r"[A-Za-z_]{1,20}(\.[A-Za-z_]{1,20}){0,3}", re.ASCII)
"""Name of a call in a line about attempts, so that a forged line puts no other text into a
record."""
CALL_NAMES_MAX = 40
"""Largest number of names of attempted calls in a record."""
TOKEN_BUDGET_PATTERN = re.compile(r"token budget: (0|[1-9][0-9]{0,8})", re.ASCII)
"""The worker's line about the padded tokens of a batch."""
LETTERS_PATTERN = re.compile(rb"^letters embedded: ([0-9]{1,12})\n", re.MULTILINE)
"""The worker's line about its progress."""
LINE_CHARACTERS_MAX = 400
"""Number of characters of a printed line that are shown."""
LOG_LINES_MAX = 200
"""Number of printed lines that are shown, from the last."""


def visible_log(raw: bytes) -> str:
    """Return the last lines of a log, each after a bar, with every character visible.

    The bar prevents the runner of GitHub Actions from executing a line that begins with `::`;
    `##[`, which it executes anywhere in a line, is escaped.
    """
    lines = raw.decode("utf-8", "backslashreplace").splitlines()[-LOG_LINES_MAX:]
    return "\n".join(f"| {_visible_line(line)}" for line in lines)


def last_line(raw: bytes) -> str:
    """Return the last printed line that is not empty and not about attempted calls, or ""."""
    lines = [line for line in raw.decode("utf-8", "backslashreplace").splitlines() if line.strip()]
    printed_lines = [line for line in lines if not line.startswith(ATTEMPT_PREFIX)]
    return _visible_line(printed_lines[-1]) if printed_lines else ""


def noted_attempts(raw: bytes) -> list[str]:
    """Return the names of calls in a log's lines about attempts, sorted and without repetition."""
    lines = raw.decode("utf-8", "backslashreplace").splitlines()
    notes = {line.removeprefix(ATTEMPT_PREFIX) for line in lines if line.startswith(ATTEMPT_PREFIX)}
    return sorted(note for note in notes if CALL_NAME_PATTERN.fullmatch(note))[:CALL_NAMES_MAX]


def token_budget(raw: bytes) -> int:
    """Return the padded tokens per batch in the last line that states them; 0 without one."""
    lines = raw.decode("utf-8", "backslashreplace").splitlines()
    budgets = [match[1] for line in lines if (match := TOKEN_BUDGET_PATTERN.fullmatch(line))]
    return int(budgets[-1]) if budgets else 0


def _visible_line(line: str) -> str:
    """Return a printed line with every character visible, cut to `LINE_CHARACTERS_MAX`."""
    printable = "".join(
        c if c.isprintable() else ascii(c)[1:-1] for c in line[:LINE_CHARACTERS_MAX]
    )
    return printable.replace("##[", r"\x23#[")


RESULT_START = b"GENEBEMB"
"""First bytes of the result of a run."""
RESULT_VERSION = 1
RESULT_HEADER = struct.Struct("<8sHHIQQ")
"""Header of the result: first bytes, version, dtype, reserved bytes, embeddings and columns."""
DTYPE_BY_CODE = {2: "<f2", 4: "<f4", 8: "<f8"}
"""By number of bytes in the header, the dtype of the result."""

_FORMAT_BY_START = {
    b"\x80": "a pickle, which geneb-ci never loads",
    b"\x93NUMPY": "a .npy file, which geneb-ci never loads",
    b"PK": "a zip archive, which geneb-ci never loads",
}
"""Formats other than that of a result, by the first bytes."""
_EMBEDDINGS_FIX = (
    "ask the contributor for an extractor that returns its embeddings, and that writes nothing to "
    "file descriptors"
)
_SMALLER_FIX = "ask the contributor for an extractor whose embeddings have fewer numbers"


class EmbeddingsReceiver:
    """Receiver of the bytes of the embeddings of one run, whose number is `rows`.

    `feed` raises as soon as the bytes cannot be valid.
    """

    def __init__(self, rows: int, limits: Limits) -> None:
        self._rows = rows
        self._limits = limits
        self._data = bytearray()
        self._expected = RESULT_HEADER.size
        self._shape: tuple[int, int, int] | None = None
        """Embeddings, columns and bytes of a number, as in the header; None until it has
        arrived."""

    def feed(self, piece: bytes) -> None:
        """Add the next bytes. Raises ResultRefused if they cannot belong to a valid result."""
        self._data += piece
        if self._shape is None and len(self._data) >= RESULT_HEADER.size:
            self._shape = self._read_header()
            rows, width, size = self._shape
            self._expected = RESULT_HEADER.size + rows * width * size
        if self._shape is not None and len(self._data) > self._expected:
            raise _result_refused(
                f"the result has more than the {self._expected:,} bytes that its header announces"
            )

    def finish(self) -> "np.ndarray":
        """Return the embeddings (n, d) after the end of the stream.

        Raises ResultRefused if bytes are missing, or a number is not finite.
        """
        import numpy as np  # slow to import, and only needed here

        if self._shape is None or len(self._data) < self._expected:
            form = _format_clause(bytes(self._data[:8]))
            raise _result_refused(
                f"the result ended after {len(self._data):,} of {self._expected:,} bytes{form}"
            )
        rows, width, number_bytes = self._shape
        embeddings = np.frombuffer(
            self._data, dtype=DTYPE_BY_CODE[number_bytes], offset=RESULT_HEADER.size
        )
        embeddings = embeddings.reshape(rows, width)
        is_finite = np.isfinite(embeddings).all(axis=1)
        if not is_finite.all():
            raise _result_refused(
                f"NaN or infinity is in {plural(int((~is_finite).sum()), 'embedding')}, of which "
                f"the first has index {int(np.flatnonzero(~is_finite)[0])}",
                "ask the contributor for an extractor that returns finite numbers",
            )
        return embeddings

    def _read_header(self) -> tuple[int, int, int]:
        """Return embeddings, columns and bytes of a number. Raises ResultRefused if invalid."""
        magic, version, number_bytes, reserved, rows, width = RESULT_HEADER.unpack_from(self._data)
        if magic != RESULT_START:
            raise _result_refused(
                f"the result begins with {magic!r}, not {RESULT_START!r}{_format_clause(magic)}"
            )
        if version != RESULT_VERSION or reserved != 0 or number_bytes not in DTYPE_BY_CODE:
            raise _result_refused(
                f"the result has a header of version {version} with numbers of {number_bytes} "
                f"bytes, expected version {RESULT_VERSION} with 2, 4 or 8 bytes"
            )
        if rows != self._rows:
            raise _result_refused(
                f"the result has {rows:,} embeddings, expected {self._rows:,}: one per sequence",
                "ask the contributor for an extractor that returns one embedding per sequence",
            )
        if not 1 <= width <= self._limits.width:
            raise _result_refused(
                f"the embeddings have width {width:,}, expected 1 to {self._limits.width:,}",
                _SMALLER_FIX,
            )
        result_bytes, bytes_max = rows * width * number_bytes, self._limits.result_mib * MIB
        if result_bytes > bytes_max:
            raise _result_refused(
                f"the result has {result_bytes:,} bytes, expected at most {bytes_max:,}",
                _SMALLER_FIX,
            )
        return rows, width, number_bytes


def _format_clause(start: bytes) -> str:
    """Return the format of bytes that begin so, in parentheses; "" if it is not known."""
    for magic, format_name in _FORMAT_BY_START.items():
        if start.startswith(magic):
            return f" ({format_name})"
    return ""


def _result_refused(message: str, fix: str = _EMBEDDINGS_FIX) -> ResultRefused:
    return ResultRefused(message, fix)


CHECK_SECONDS_MIN = 0.03
"""Minimum seconds between two checks: one core fills some 60 MiB of memory in this time."""
CHECK_SHARE = 10
"""Ratio of the pause after a check to its duration, so that checks take at most about a tenth of
the time on a machine with many processes."""
CHECK_SECONDS_MAX = 0.5
"""Maximum seconds between two checks, so that a fork bomb, which slows checks down, cannot make
them rare."""
KILL_SECONDS = 5.0
"""Seconds to wait for the end of killed processes: a process inside a system call, such as of a GPU
driver, ends late."""
CHECKS_PER_FILE_COUNT = 10
"""Number of checks from one count of the files in memory, which is slow, to the next."""
PIECE_BYTES = 1 << 18
"""Number of bytes of the output that are read at once."""
KIB = 1024


class ByteReceiver(Protocol):
    """Receiver of the bytes of the result, which may raise an error to refuse them."""

    def feed(self, piece: bytes) -> None:
        """Add the next bytes."""


class EndedProcess(NamedTuple):
    """The result of a process that ended by itself."""

    code: int
    """Exit code; negative or above 128 for a signal."""
    log: bytes
    """The printed text."""
    peak: int
    """Largest memory that a check measured, in bytes."""


def supervise(
    sandbox: Sandbox,
    view: SandboxView,
    limits: Limits,
    command: Sequence[str],
    sink: ByteReceiver,
    progress: Callable[[int], object] = lambda _letters: None,
) -> EndedProcess:
    """Run a command to its end or to its first limit, and end all of its processes.

    `progress` is called with each number of embedded letters that the command prints.

    Raises LimitExceeded, or the error of the sink, with the printed text as `log`; StillRunning
    if a process survives SIGKILL.
    """
    with start_sandboxed(sandbox, view, limits, command) as process:
        watch = _RunWatcher(sandbox, process, limits, sink, progress)
        try:
            watch.run_to_end()
        except ExtractorRefused as error:
            error.log = visible_log(bytes(watch.log))
            raise
        finally:
            watch.kill()
    return EndedProcess(process.returncode, bytes(watch.log), watch.peak)


class _RunWatcher:
    """Reader of a run's output, which also checks its time, processes and memory."""

    def __init__(
        self,
        sandbox: Sandbox,
        process: "subprocess.Popen[bytes]",
        limits: Limits,
        sink: ByteReceiver,
        progress: Callable[[int], object],
    ) -> None:
        self._sandbox = sandbox
        self._process = process
        self._limits = limits
        self._sink = sink
        self._progress = progress
        self._deadline = time.monotonic() + limits.seconds
        self._next_check = 0.0
        self._check_count = 0
        self._processes_seen: dict[tuple[int, int], Process] = {}
        self.log = bytearray()
        self.peak = 0

    def run_to_end(self) -> None:
        """Read both pipes and check the processes until all have ended."""
        with selectors.DefaultSelector() as selector:
            handlers = (
                (self._process.stdout, self._receive_result),
                (self._process.stderr, self._receive_log),
            )
            for stream, handle in handlers:
                selector.register(_required_pipe(stream), selectors.EVENT_READ, handle)
            while selector.get_map() or self._process.poll() is None:
                events = selector.select(CHECK_SECONDS_MIN)
                for key, _ in events:
                    piece = os.read(key.fd, PIECE_BYTES)
                    if piece:
                        key.data(piece)
                    else:
                        selector.unregister(key.fileobj)
                if not selector.get_map():
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        self._process.wait(CHECK_SECONDS_MIN)
                self._check_if_due()

    def kill(self) -> None:
        """Kill the remaining processes and wait until they end. Raises StillRunning."""
        # Twice: a process forked between the list and the kill is in the second list.
        for _ in range(2):
            for process in processes.descendants(self._process.pid):
                self._processes_seen[process.pid, process.started] = process
            survivors = processes.kill(list(self._processes_seen.values()), KILL_SECONDS)
        self._process.kill()
        self._process.wait()
        if survivors:
            raise StillRunning(
                "processes of the sandbox did not end after SIGKILL: "
                f"{', '.join(str(process.pid) for process in survivors)}",
                "restart the machine before the next audit",
            )

    def _receive_result(self, piece: bytes) -> None:
        self._sink.feed(piece)

    def _receive_log(self, piece: bytes) -> None:
        """Add printed text to the log. Raises LimitExceeded if it is too long."""
        bytes_max = self._limits.log_kib * KIB
        self.log += piece[: bytes_max - len(self.log) + 1]
        if len(self.log) > bytes_max:
            del self.log[bytes_max:]
            raise self._limit_exceeded(
                "log_kib", f"it printed more than {self._limits.log_kib} KiB"
            )
        for number in LETTERS_PATTERN.findall(piece):
            self._progress(int(number))

    def _check_if_due(self) -> None:
        """Check the running processes, unless the last check was too short a time ago."""
        now = time.monotonic()
        is_late = now > self._deadline
        if now < self._next_check and not is_late:
            return
        running = processes.descendants(self._process.pid)
        if self._check_count == 0 and running:
            save_namespaces(self._sandbox.scratch, running)
        self._processes_seen |= {(process.pid, process.started): process for process in running}
        self._check(running)
        if is_late:
            raise self._limit_exceeded("seconds", f"it ran longer than {self._limits.seconds} s")
        self._check_count += bool(running)
        cost = time.monotonic() - now
        self._next_check = now + min(CHECK_SECONDS_MAX, max(CHECK_SECONDS_MIN, CHECK_SHARE * cost))

    def _check(self, running: list[Process]) -> None:
        """Raise LimitExceeded if the running processes exceed a limit of number or memory."""
        threads = sum(process.threads for process in running)
        if threads > self._limits.processes:
            raise self._limit_exceeded(
                "processes",
                f"it had {threads} processes and threads, more than {self._limits.processes}",
            )
        bytes_max = self._limits.memory_mib * MIB
        file_bytes = (
            processes.memory_file_bytes(running)
            if self._check_count % CHECKS_PER_FILE_COUNT == 0
            else 0
        )
        used_bytes = processes.used_memory(running, bytes_max - file_bytes) + file_bytes
        self.peak = max(self.peak, used_bytes)
        if used_bytes > bytes_max:
            raise self._limit_exceeded(
                "memory_mib",
                f"it used {used_bytes // MIB} MiB, more than {self._limits.memory_mib} MiB",
            )
        available, floor_mib = processes.available_memory(), self._limits.host_floor_mib
        if available < floor_mib * MIB:
            raise self._limit_exceeded(
                "host_floor_mib",
                f"the machine has {available // MIB} MiB left, less than {floor_mib} MiB",
            )

    @staticmethod
    def _limit_exceeded(limit: str, excess: str) -> LimitExceeded:
        return LimitExceeded(limit, f"the extractor was stopped: {excess}", limit_fix(limit))


def _required_pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        msg = "the process has no pipe"
        raise AssertionError(msg)
    return stream
