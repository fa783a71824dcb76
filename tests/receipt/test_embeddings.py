"""Files of a receipt: what is wrong with each is named, with its place."""

import hashlib
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.receipt import embeddings
from geneb_ci.receipt.embeddings import (
    EmbeddingsRefused,
    FileDigests,
    verified_digests,
)
from reference_harness.formats.submission import EmbeddingReceipt, ReceiptTask, receipt_root
from reference_harness.formats.submission_terms import receipt_file
from reference_harness.receipt.rounding import RoundedEmbeddings, rounded
from reference_harness.receipt.task_file import write_task
from tests.harness.test_harness_receipt import VECTOR, root_by_recursion

VALUES = np.array([[1, 2], [0.5, -1], [0, 65504], [3, 4], [-5, 6]], dtype=np.float16)
DIM = 2


@pytest.fixture(name="written")
def _written(tmp_path: Path) -> ReceiptTask:
    """A file as the harness writes it, of three training and two test embeddings."""
    task = write_task(tmp_path, "task", RoundedEmbeddings(VALUES, 0), 3)
    return ReceiptTask(**task.model_dump(exclude={"dim"}))


def refusal(folder: Path, receipt_task: ReceiptTask) -> tuple[str, str]:
    with pytest.raises(EmbeddingsRefused) as error:
        verified_digests(receipt_file(folder, "task"), receipt_task, DIM)
    return error.value.step, str(error.value)


@pytest.mark.parametrize("block", [1, 4, 8, 1 << 20])
def test_a_file_of_the_harness_is_read(
    tmp_path: Path, written: ReceiptTask, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(embeddings, "BLOCK_BYTES", block)
    embeddings_read = verified_digests(receipt_file(tmp_path, "task"), written, DIM)
    assert embeddings_read == FileDigests(written.sha256, bytes.fromhex(written.root))


def test_the_published_vector(tmp_path: Path) -> None:
    made = write_task(tmp_path, "task", RoundedEmbeddings(VALUES[:3], 0), 2)
    receipt_task = ReceiptTask(**made.model_dump(exclude={"dim"}))
    assert verified_digests(receipt_file(tmp_path, "task"), receipt_task, DIM).root.hex() == VECTOR


@pytest.mark.parametrize("rows", range(2, 71))
def test_files_of_every_small_size(tmp_path: Path, rows: int) -> None:
    """Both programs have a tree of their own: that of the harness grows leaf by leaf."""
    values = np.arange(1, 1 + rows * DIM, dtype=np.float16).reshape(rows, DIM)
    made = write_task(tmp_path, "task", RoundedEmbeddings(values, 0), 1)
    receipt_task = ReceiptTask(**made.model_dump(exclude={"dim"}))
    assert (
        verified_digests(receipt_file(tmp_path, "task"), receipt_task, DIM).root.hex() == made.root
    )


@given(st.integers(0, 8 * VALUES.nbytes - 1))
def test_a_flipped_bit_is_refused(tmp_path_factory: pytest.TempPathFactory, bit: int) -> None:
    folder = tmp_path_factory.mktemp("flipped")
    made = write_task(folder, "task", RoundedEmbeddings(VALUES, 0), 3)
    raw = bytearray(VALUES.astype("<f2").tobytes())
    raw[bit // 8] ^= 1 << bit % 8
    receipt_file(folder, "task").write_bytes(raw)
    receipt_task = ReceiptTask(**made.model_dump(exclude={"dim"}))
    step, _ = refusal(folder, receipt_task)
    assert step in {"files", "values"}


@pytest.mark.parametrize(
    ("altered", "step", "message"),
    [
        (VALUES[[1, 0, 2, 3, 4]], "files", "task.f16 has the sha256 "),
        (
            VALUES[:4],
            "files",
            "task.f16 has 16 bytes; expected 20: 5 embeddings of 2 numbers of 2 bytes",
        ),
        (np.vstack([VALUES, VALUES[:1]]), "files", "task.f16 has 24 bytes; expected 20"),
        (
            np.array([*VALUES[:4], [-0.0, 6]], np.float16),
            "values",
            "task.f16 has -0.0 in embedding 4, column 0; a receipt holds finite numbers",
        ),
        (
            np.array([VALUES[0], [1, np.nan], *VALUES[2:]], np.float16),
            "values",
            "task.f16 has NaN in embedding 1, column 1",
        ),
        (
            np.array([VALUES[0], [1, -np.inf], *VALUES[2:]], np.float16),
            "values",
            "task.f16 has infinity in embedding 1, column 1",
        ),
    ],
    ids=["swapped", "missing", "extra", "negative zero", "NaN", "infinity"],
)
def test_other_rows_are_refused_by_name(
    tmp_path: Path, written: ReceiptTask, altered: np.ndarray, step: str, message: str
) -> None:
    receipt_file(tmp_path, "task").write_bytes(altered.astype("<f2").tobytes())
    refusal_text = refusal(tmp_path, written)
    assert refusal_text[0] == step
    assert refusal_text[1].startswith(message)


@given(st.floats(2.0**-100, 2.0**100), st.lists(st.floats(-1, 1), min_size=4, max_size=4))
def test_every_scale_that_the_harness_takes_is_accepted(
    tmp_path_factory: pytest.TempPathFactory, largest: float, parts: list[float]
) -> None:
    folder = tmp_path_factory.mktemp("scaled")
    rows = rounded([largest * np.array([[1, parts[0]], parts[1:3], [parts[3], 0]])])
    made = write_task(folder, "task", rows, 1)
    receipt_task = ReceiptTask(**made.model_dump(exclude={"dim"}))
    assert verified_digests(receipt_file(folder, "task"), receipt_task, DIM).root.hex() == made.root


@pytest.mark.parametrize("largest", [2.0**-6, np.nextafter(2.0**-6, 0), 65504, 65504.01, 65536])
def test_the_scale_at_its_borders(tmp_path: Path, largest: float) -> None:
    made = write_task(tmp_path, "task", rounded([np.array([[largest, 0], [0, -largest]])]), 1)
    receipt_task = ReceiptTask(**made.model_dump(exclude={"dim"}))
    assert (
        verified_digests(receipt_file(tmp_path, "task"), receipt_task, DIM).root.hex() == made.root
    )


def test_another_root_is_refused(tmp_path: Path, written: ReceiptTask) -> None:
    changed_receipt = written.model_copy(update={"root": "0" * 64})
    step, message = refusal(tmp_path, changed_receipt)
    assert (step, message) == (
        "tree",
        (
            f"the embeddings of task.f16 have the Merkle root {written.root}; expected "
            f"{changed_receipt.root}, as in the receipt"
        ),
    )


def test_a_pipe_in_the_place_of_a_file_does_not_wait(tmp_path: Path, written: ReceiptTask) -> None:
    path = receipt_file(tmp_path, "task")
    path.unlink()
    os.mkfifo(path)
    assert refusal(tmp_path, written) == ("files", "task.f16 is not a regular file")


def test_the_root_is_over_the_tasks_in_the_benchmarks_order(tmp_path: Path) -> None:
    made = {
        name: write_task(tmp_path, name, RoundedEmbeddings(VALUES[scale:], scale), 1)
        for scale, name in enumerate(("b", "a", "c"), 1)
    }
    receipt = EmbeddingReceipt(
        version="1", location=None, dtype="float16", compute_dtype="float32", tf32=False,
        dim=DIM, rows=9, root="0" * 64,
        tasks={name: ReceiptTask(**made[name].model_dump(exclude={"dim"})) for name in "abc"},
    )  # fmt: skip
    leaves = [
        hashlib.sha256(
            b"\0" + name.encode() + b"\0"
            + struct.pack(">QIi", 5 - scale, DIM, scale) + bytes.fromhex(made[name].root)
        ).digest()
        for scale, name in enumerate(("b", "a", "c"), 1)
    ]  # fmt: skip
    assert receipt_root(receipt, ["b", "a", "c", "d"]) == root_by_recursion(leaves).hex()
    assert receipt_root(receipt, ["a", "b", "c"]) != root_by_recursion(leaves).hex()
