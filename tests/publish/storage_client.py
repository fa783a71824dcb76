"""The real client of the Hub's storage, hf_xet, with waits that tests can afford."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.publish.hub import HANG

QUICK = {
    "HF_XET_CLIENT_RETRY_MAX_ATTEMPTS": "1",
    "HF_XET_CLIENT_RETRY_BASE_DELAY": "10ms",
}
READ_TIMEOUT = "HF_XET_CLIENT_READ_TIMEOUT"


@pytest.fixture
def quick_storage(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[None]:
    """Begin a session in this process, since a session reads its settings once; then drop it.

    Only a server that hangs is not waited for: on a busy machine, any other takes a while.
    """
    from huggingface_hub.utils._xet import abort_xet_session

    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    timeout = "300ms" if HANG in parameters.values() else "10s"
    settings = QUICK | {READ_TIMEOUT: timeout, "HF_XET_CACHE": str(tmp_path / "xet")}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    abort_xet_session()  # type: ignore[no-untyped-call]
    yield
    abort_xet_session()  # type: ignore[no-untyped-call]


def without_ports(text: str) -> str:
    return re.sub(r"127\.0\.0\.1:\d+", "HOST", text)
