"""A file of any content ends in a sentence, whichever command reads it."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from reference_harness.cli import receipt
from reference_harness.data import benchmark
from reference_harness.errors import HarnessError
from reference_harness.other_probes import run as probes
from reference_harness.run import upgrade

READERS: dict[str, Callable[[Path], object]] = {
    "benchmark": benchmark.load,
    "upgrade": upgrade.read_submission,
    "run record": upgrade.read_record,
    "receipt": lambda path: receipt._submission_and_receipts(path, ()),
    "probe": lambda path: probes.read_receipt(f"{path}={path.parent}"),
}
CONTENTS = {
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"a":' * 50_000,
    "many digits": b'{"schema_version": ' + b"9" * 10_000 + b"}",
    "not UTF-8": b"\xff\xfe",
    "a number": b"1",
    "null members": json.dumps(dict.fromkeys(("receipt", "results", "schema_version"))).encode(),
}


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_cannot_be_read_is_named(reader: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(CONTENTS[content])
    with pytest.raises(HarnessError, match=r"file\.json(: | is )"):
        READERS[reader](path)


@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_is_too_large_is_not_read(reader: str, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(b"{")
    os.truncate(path, 1 << 40)
    with pytest.raises(HarnessError, match="has 1,099,511,627,776 bytes; the limit is "):
        READERS[reader](path)


@pytest.mark.parametrize("reader", READERS)
def test_a_pipe_is_not_waited_for(reader: str, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    os.mkfifo(path)
    with pytest.raises(HarnessError, match="is a named pipe, not a regular file"):
        READERS[reader](path)
