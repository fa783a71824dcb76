"""The real client of the Hub's storage, hf_xet, with waits that tests can afford."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

QUICK = {
    "HF_XET_CLIENT_RETRY_MAX_ATTEMPTS": "1",
    "HF_XET_CLIENT_RETRY_BASE_DELAY": "10ms",
    "HF_XET_CLIENT_READ_TIMEOUT": "300ms",
}


@pytest.fixture
def quick_storage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Begin a session in this process, since a session reads its settings once; then drop it."""
    from huggingface_hub.utils._xet import abort_xet_session

    for name, value in (QUICK | {"HF_XET_CACHE": str(tmp_path / "xet")}).items():
        monkeypatch.setenv(name, value)
    abort_xet_session()  # type: ignore[no-untyped-call]
    yield
    abort_xet_session()  # type: ignore[no-untyped-call]


def without_ports(text: str) -> str:
    return re.sub(r"127\.0\.0\.1:\d+", "HOST", text)
