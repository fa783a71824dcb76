"""A sandbox of each level that the tests use, and a check for processes left by a run."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from geneb_ci.common.errors import SandboxUnavailable
from geneb_ci.sandbox.launch import Sandbox
from geneb_ci.sandbox.levels import open_sandbox
from geneb_ci.sandbox.limits import Limits
from geneb_ci.sandbox.processes import NAMESPACES_FILE, surviving_pids
from geneb_ci.sandbox.run import ExtractorSpec

HOSTILE = Path(__file__).parent / "hostile"
SHORT = 3
"""Seconds for what never ends by itself: each test of it takes that long."""
SMALL = Limits(
    seconds=30, memory_mib=512, processes=48, tmp_mib=16, log_kib=256, width=60_000, result_mib=1
)
SEQUENCES = ["ACGTACGTAC", "TTTTTTTT", "ACGNNNACGT"]


def sandbox_of(level: int, folder: Path) -> Iterator[Sandbox]:
    try:
        with open_sandbox(level, folder=folder) as sandbox:
            yield sandbox
    except SandboxUnavailable as error:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(error.message)


@pytest.fixture(scope="session")
def bubblewrap_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Yield a sandbox of level 2."""
    yield from sandbox_of(2, tmp_path_factory.mktemp("audit") / "scratch")


@pytest.fixture(scope="session")
def landlock_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Yield a sandbox of level 1."""
    yield from sandbox_of(1, tmp_path_factory.mktemp("audit") / "scratch")


@pytest.fixture(params=[2, 1], ids=["level-2", "level-1"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Return the sandbox of level 2, then that of level 1: each has one trial a session."""
    name = {2: "bubblewrap_sandbox", 1: "landlock_sandbox"}[request.param]
    sandbox_of_level: Sandbox = request.getfixturevalue(name)
    return sandbox_of_level


@pytest.fixture
def nothing_left(sandbox: Sandbox) -> Iterator[None]:
    """Assert that no process of the sandbox is alive after the test."""
    (sandbox.scratch / NAMESPACES_FILE).unlink(missing_ok=True)
    yield
    if (sandbox.scratch / NAMESPACES_FILE).exists():
        assert surviving_pids(sandbox.scratch) == []
    else:  # the run ended before it was looked at for the first time
        assert started_for(sandbox.scratch) == []


def started_for(folder: Path) -> list[str]:
    """Return the command lines of the processes that name a folder."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            lines.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in lines if str(folder) in line]


def hostile(module: str, name: str, **options: str) -> ExtractorSpec:
    return ExtractorSpec(name, module=HOSTILE / f"{module}.py", options=options)
