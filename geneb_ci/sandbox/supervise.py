"""Supervises one run from outside: output, time, processes, memory, and that all of it ends."""

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Sequence
from typing import IO, NamedTuple, Protocol

from geneb_ci.common.errors import ExtractorRefused, LimitExceeded, StillRunning
from geneb_ci.sandbox import channel, processes
from geneb_ci.sandbox.launch import Sandbox, started
from geneb_ci.sandbox.limits import MIB, Limits, advice
from geneb_ci.sandbox.mounts import SandboxView
from geneb_ci.sandbox.processes import Process, remember

TICK = 0.03
"""Seconds between two checks: one core fills some 60 MiB in that time."""
SHARE = 10
"""Checks may take a tenth of the time; on a machine with many processes they are rarer."""
RAREST = 0.5
"""Seconds between two checks at most: a fork bomb slows them down, and must not make them rare."""
KILL_SECONDS = 5.0
"""Seconds to wait for the end of killed processes. One inside a system call, such as of a GPU
driver, ends late."""
FILES_EVERY = 10
"""Checks between two counts of files in memory, which are slower."""
PIECE = 1 << 18
KIB = 1024


class Sink(Protocol):
    """Receiver of the bytes of the result; raises to refuse them."""

    def feed(self, piece: bytes) -> None:
        """Take some bytes."""


class Ended(NamedTuple):
    """End of a run that was not stopped."""

    code: int
    """Exit code; negative or above 128 for a signal."""
    log: bytes
    peak: int
    """Largest memory that a check found, in bytes; a check follows each `TICK`."""


def supervise(
    sandbox: Sandbox, view: SandboxView, limits: Limits, inner: Sequence[str], sink: Sink
) -> Ended:
    """Run a command to its end or to its first limit, and end all of its processes.

    Raises LimitExceeded, or what the sink raised, with what was printed as `log`; StillRunning
    when a process outlives its kill.
    """
    with started(sandbox, view, limits, inner) as process:
        watch = _Watch(sandbox, process, limits, sink)
        try:
            watch.until_the_end()
        except ExtractorRefused as error:
            error.log = channel.visible_log(bytes(watch.log))
            raise
        finally:
            watch.kill()
    return Ended(process.returncode, bytes(watch.log), watch.peak)


class _Watch:
    def __init__(
        self, sandbox: Sandbox, process: "subprocess.Popen[bytes]", limits: Limits, sink: Sink
    ) -> None:
        self._sandbox = sandbox
        self._process = process
        self._limits = limits
        self._sink = sink
        self._deadline = time.monotonic() + limits.seconds
        self._next_look = 0.0
        self._looks = 0
        self._seen: dict[tuple[int, int], Process] = {}
        self.log = bytearray()
        self.peak = 0

    def until_the_end(self) -> None:
        """Read both pipes and check the processes until all have ended."""
        with selectors.DefaultSelector() as selector:
            takers = ((self._process.stdout, self._result), (self._process.stderr, self._printed))
            for stream, take in takers:
                selector.register(_open(stream), selectors.EVENT_READ, take)
            while selector.get_map() or self._process.poll() is None:
                ready = selector.select(TICK)
                for key, _ in ready:
                    piece = os.read(key.fd, PIECE)
                    if piece:
                        key.data(piece)
                    else:
                        selector.unregister(key.fileobj)
                if not selector.get_map():
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        self._process.wait(TICK)
                self._look()

    def kill(self) -> None:
        """Kill what is left and wait for its end. Raises StillRunning."""
        # Twice: a process forked between the list and the kill is in the second list.
        for _ in range(2):
            for one in processes.descendants(self._process.pid):
                self._seen[one.pid, one.started] = one
            left = processes.kill(list(self._seen.values()), KILL_SECONDS)
        self._process.kill()
        self._process.wait()
        if left:
            raise StillRunning(
                f"{len(left)} processes of the sandbox still run after SIGKILL: "
                f"{', '.join(str(one.pid) for one in left)}",
                "restart the machine before the next audit",
            )

    def _result(self, piece: bytes) -> None:
        self._sink.feed(piece)

    def _printed(self, piece: bytes) -> None:
        most = self._limits.log_kib * KIB
        self.log += piece[: most - len(self.log) + 1]
        if len(self.log) > most:
            del self.log[most:]
            raise self._stopped("log_kib", f"it printed more than {self._limits.log_kib} KiB")

    def _look(self) -> None:
        now = time.monotonic()
        late = now > self._deadline
        if now < self._next_look and not late:
            return
        found = processes.descendants(self._process.pid)
        if self._looks == 0 and found:
            remember(self._sandbox.scratch, found)
        self._seen |= {(one.pid, one.started): one for one in found}
        self._check(found)
        if late:
            raise self._stopped("seconds", f"it ran longer than {self._limits.seconds} s")
        self._looks += bool(found)
        cost = time.monotonic() - now
        self._next_look = now + min(RAREST, max(TICK, SHARE * cost))

    def _check(self, found: list[Process]) -> None:
        threads = sum(one.threads for one in found)
        if threads > self._limits.processes:
            raise self._stopped(
                "processes",
                f"it had {threads} processes and threads, more than {self._limits.processes}",
            )
        most = self._limits.memory_mib * MIB
        files = processes.memory_files(found) if self._looks % FILES_EVERY == 0 else 0
        taken = processes.held(found, most - files) + files
        self.peak = max(self.peak, taken)
        if taken > most:
            raise self._stopped(
                "memory_mib", f"it used {taken // MIB} MiB, more than {self._limits.memory_mib}"
            )
        if (left := processes.available()) < self._limits.host_floor_mib * MIB:
            raise self._stopped(
                "host_floor_mib",
                f"the machine has {left // MIB} MiB left, less than {self._limits.host_floor_mib}",
            )

    @staticmethod
    def _stopped(limit: str, what: str) -> LimitExceeded:
        return LimitExceeded(limit, f"the extractor was stopped: {what}", advice(limit))


def _open(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        msg = "the process has no pipe"
        raise AssertionError(msg)
    return stream
