"""The probe suite: some thirty ways out, tried inside the very sandbox that an audit will use."""

import contextlib
import json
import os
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path

from geneb_ci.common.errors import ExtractorRefused, SandboxLeaks
from geneb_ci.sandbox import attempts, channel, mounts
from geneb_ci.sandbox.facts import Escape
from geneb_ci.sandbox.launch import NONE, Sandbox, python_of
from geneb_ci.sandbox.limits import MIB, Limits
from geneb_ci.sandbox.supervise import supervise

SCRIPT = f"{mounts.INPUT}/attempts.py"
PLANTED = f"{mounts.INPUT}/planted.json"
LIMITS = Limits(seconds=30, memory_mib=1024, processes=64, tmp_mib=64)
PROCESSES_MAX = 8
"""Processes a sandbox may show: its own pid 1, bubblewrap's helper and the suite."""
REPORT_MAX = 1 << 16
SECRET = "GENEB_CANARY"  # noqa: S105 (the name of a variable; its value is made anew each time)
ADVICE = "run `geneb-ci doctor` to see what this machine can do"
NAMES = tuple(attempts.ATTEMPTS)


def probe_suite(sandbox: Sandbox, limits: Limits = LIMITS) -> list[Escape]:
    """Try every way out, and give what came of it, in the suite's order.

    Plants a label in a file, a secret in our own environment and two servers on the host, all for
    the length of the suite. Empty at level 0, which refuses nothing. Raises SandboxLeaks when the
    suite itself gives no usable answer.
    """
    if sandbox.kind == NONE:
        return []
    view = mounts.view({}, {SCRIPT: Path(attempts.__file__).read_bytes()})
    with _planted(sandbox) as facts:
        facts["tmp_bytes"] = limits.tmp_mib * MIB
        view.data[PLANTED] = json.dumps(facts).encode()
        report = _Report()
        inner = [python_of(sandbox, view), "-I", "-B", SCRIPT, PLANTED]
        try:
            ended = supervise(sandbox, view, limits, inner, report)
        except ExtractorRefused as error:
            raise SandboxLeaks(f"the probe suite was stopped: {error.message}", ADVICE) from error
    try:
        found = json.loads(bytes(report.data))
        escapes = [
            Escape(name=name, refused=bool(found[name][0]), detail=str(found[name][1]))
            for name in NAMES
        ]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise SandboxLeaks(
            f"the probe suite ended with code {ended.code} and no usable answer: "
            f"{channel.last_line(ended.log)}",
            ADVICE,
        ) from error
    return escapes


def refuse_leaks(sandbox: Sandbox, escapes: list[Escape]) -> None:
    """Raise SandboxLeaks when an attempt got out, or when not every one was made."""
    if sandbox.kind == NONE:
        return
    if [one.name for one in escapes] != list(NAMES):
        raise SandboxLeaks(
            f"{len(escapes)} attempts were made, the probe suite has {len(NAMES)}",
            "run the whole suite before the audit",
        )
    open_ones = [f"{one.name} ({one.detail})" for one in escapes if not one.refused]
    if open_ones:
        raise SandboxLeaks(
            f"{len(open_ones)} of {len(escapes)} attempts got out of the sandbox: "
            f"{'; '.join(open_ones)}",
            "do not audit on this machine until each is refused",
        )


class _Report:
    """Takes the suite's answer, up to a size that it never has."""

    def __init__(self) -> None:
        self.data = bytearray()

    def feed(self, piece: bytes) -> None:
        self.data += piece[: REPORT_MAX - len(self.data)]


@contextlib.contextmanager
def _planted(sandbox: Sandbox) -> Iterator[dict[str, object]]:
    """Plant what must not be found; gives what the suite is told of it, which is not the secret."""
    file = sandbox.scratch / "label"
    abstract = f"geneb-ci-{secrets.token_hex(8)}"
    before = os.environ.get(SECRET)
    os.environ[SECRET] = f"geneb-canary-{secrets.token_hex(16)}"
    file.write_text(f"geneb-canary-{secrets.token_hex(16)}\n", encoding="ascii")
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as named,
    ):
        named.bind(f"\0{abstract}")
        named.listen()
        try:
            yield {
                "port": server.getsockname()[1],
                "abstract": abstract,
                "label_file": str(file),
                "home": str(Path.home()),
                "pid": os.getpid(),
                "processes": PROCESSES_MAX,
            }
        finally:
            file.unlink()
            if before is None:
                del os.environ[SECRET]
            else:
                os.environ[SECRET] = before
