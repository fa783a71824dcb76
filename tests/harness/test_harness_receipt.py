"""Receipts as the harness writes and scores them: rounding, trees, runs, resuming."""

import hashlib
import json
import re
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reference_harness.errors import ProbeError
from reference_harness.formats import merkle
from reference_harness.formats.run_record import TaskReceipt
from reference_harness.formats.submission_terms import FLOAT16_MAX, UNSCALED_MIN
from reference_harness.receipt import rounding
from reference_harness.receipt.cells import DigestPairs, unequal_embeddings
from reference_harness.receipt.rounding import WidenedEmbeddings, rounded, widened
from tests.each import each
from tests.harness.support import COMMAND_SECONDS, Harness

VECTOR = "ec627aacc4f7aaae01b58dc67db233af66888a5cc8c51a61582cd67e15b95364"
"""Root of the rows (1, 2), (0.5, -1), (0, 65504)."""
RUN = ("run", "--tasks", "mini_tf,mini_splice", "--output", "record.json", "--quiet")
WRITTEN = (*RUN, "--submission", "sub.json", "--receipt", "receipt")


def root_by_recursion(leaves: list[bytes]) -> bytes:
    """RFC 6962's definition, as it stands there."""
    if len(leaves) == 1:
        return leaves[0]
    left = 1
    while left * 2 < len(leaves):
        left *= 2
    parts = root_by_recursion(leaves[:left]) + root_by_recursion(leaves[left:])
    return hashlib.sha256(b"\x01" + parts).digest()


def test_the_published_vector() -> None:
    rows = np.array([[1, 2], [0.5, -1], [0, 65504]], dtype="<f2")
    leaves = [merkle.embedding_leaf(row.data, index) for index, row in enumerate(rows)]
    assert [leaf.hex()[:8] for leaf in leaves] == ["b77527f5", "be4a1cf7", "57496d6c"]
    assert merkle.Tree(leaves).root().hex() == VECTOR


@each("size", range(1, 71))
def test_trees_of_every_small_size(size: int) -> None:
    leaves = [hashlib.sha256(bytes([i])).digest() for i in range(size)]
    assert merkle.Tree(leaves).root() == root_by_recursion(leaves)


def test_a_tree_needs_a_leaf() -> None:
    with pytest.raises(ValueError, match="no leaves"):
        merkle.Tree().root()


def test_the_leaf_of_a_task_holds_all_that_names_it() -> None:
    expected = b"\x00task\x00" + struct.pack(">QIi", 7, 3, -2) + b"r" * 32
    assert merkle.task_leaf("task", 7, 3, -2, b"r" * 32) == hashlib.sha256(expected).digest()


@given(
    st.lists(
        st.floats(-(2.0**100), 2.0**100, width=32, allow_subnormal=False), min_size=2, max_size=12
    ).map(lambda values: np.array(values[: len(values) // 2 * 2], np.float32).reshape(-1, 2))
)
@example(np.array([[0.0, 65489.0]], np.float32))
def test_rounding_is_the_nearest_half_and_never_a_negative_zero(x: Any) -> None:
    rounded_rows = rounded([x])
    assert rounded_rows.values.dtype == np.float16
    assert np.isfinite(rounded_rows.values).all()
    assert not np.signbit(rounded_rows.values[rounded_rows.values == 0]).any()
    exact = np.ldexp(x.astype(np.float64), -rounded_rows.scale_log2)
    back = rounded_rows.values.astype(np.float64)
    # From 2**15 on, all have one spacing; that of the largest overflows.
    half = (
        np.spacing(np.minimum(np.abs(rounded_rows.values), np.float16(2**15))).astype(np.float64)
        / 2
    )
    assert (np.abs(exact - back) <= half).all()
    assert np.array_equal(
        widened(rounded_rows.values, rounded_rows.scale_log2), WidenedEmbeddings(*rounded_rows)[:]
    )


@pytest.mark.parametrize(
    ("largest", "scale"),
    [(0.0, 0), (1.0, 0), (FLOAT16_MAX, 0), (UNSCALED_MIN, 0), (65_505.0, 1), (2.0**-7, -21)],
)
def test_a_scale_is_taken_only_where_one_is_needed(largest: float, scale: int) -> None:
    assert rounding.scale_log2_of_magnitude(largest) == scale
    assert largest == 0.0 or largest / 2.0**scale <= FLOAT16_MAX


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(ProbeError, match="NaN or infinity"):
        rounded([np.ones((2, 2), np.float32), np.array([[1.0, value]], np.float32)])


def test_what_no_scale_holds_is_refused() -> None:
    with pytest.raises(ProbeError, match="the largest value of the embeddings is 1e"):
        rounded([np.array([[1e200]])])


def read(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Harness:
    harness = Harness(tmp_path_factory.mktemp("receipt"))
    done = harness(*WRITTEN)
    assert (done.returncode, done.stderr) == (0, "")
    return harness


def test_a_run_writes_what_its_submission_says(made: Harness) -> None:
    submission = read(made.folder / "sub.json")
    receipt = submission["receipt"]
    assert submission["schema_version"] == "1.2"
    assert (receipt["compute_dtype"], receipt["tf32"], receipt["rows"]) == ("float32", False, 1040)
    leaves = []
    for name, task in receipt["tasks"].items():
        raw = (made.folder / "receipt" / f"{name}.f16").read_bytes()
        assert hashlib.sha256(raw).hexdigest() == task["sha256"]
        rows = np.frombuffer(raw, "<f2").reshape(-1, receipt["dim"])
        assert len(rows) == task["train"] + task["test"]
        tree_root = merkle.Tree(
            merkle.embedding_leaf(row.data, i) for i, row in enumerate(rows)
        ).root()
        assert tree_root.hex() == task["root"]
        leaves.append(merkle.task_leaf(name, len(rows), 256, task["scale_log2"], tree_root))
    assert merkle.Tree(leaves).root().hex() == receipt["root"]


def test_a_submission_says_what_embedding_took(made: Harness, tmp_path: Path) -> None:
    """Of what this run embedded alone: with every embedding in the cache it measured nothing."""
    record, submission = read(made.folder / "record.json"), read(made.folder / "sub.json")
    tasks = [task for task in record["tasks"].values() if task["embedded_now"]]
    cost = submission["run"]["embedding_cost"]
    assert cost["letters"] == sum(task["embedded_letters"] for task in tasks) > 0
    assert cost["seconds"] == pytest.approx(sum(task["embed_seconds"] for task in tasks))
    assert cost["peak_memory_bytes"] == max(task["peak_memory"] for task in tasks) > 10_000_000
    shutil.copytree(made.folder / "cache", tmp_path / "cache")
    assert Harness(tmp_path)(*WRITTEN).returncode == 0
    assert "embedding_cost" not in read(tmp_path / "sub.json")["run"]


def test_what_a_receipt_takes_is_said_before_it_is_spent(tmp_path: Path) -> None:
    """Rows at once, bytes and time with the first of the tasks."""
    words = [word for word in WRITTEN if word != "--quiet"]
    lines = Harness(tmp_path)(*words, "--jobs", "1").stderr.splitlines()
    rows = "receipt: 1,040 embeddings of 2 tasks"
    before, after = (index for index, line in enumerate(lines) if line.startswith(rows))
    assert (before, lines[0]) == (0, f"{rows}, 2 bytes per number")
    assert re.fullmatch(
        rf"{rows}, 256 numbers each: 0\.5 MB; about 1 min left at the speed of mini_(tf|splice)",
        lines[after],
    )
    assert after == 2, "before the second task is finished"


def test_the_cells_of_the_files_are_those_of_the_run(made: Harness) -> None:
    done = made(
        "receipt-cells", "--submission", "sub.json", "--receipt", "receipt",
        "--tasks", "mini_tf,mini_splice", "--output", "cells.json", "--quiet",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    cells, submission = read(made.folder / "cells.json"), read(made.folder / "sub.json")
    evidence, results = submission["evidence"], submission["results"]
    assert cells["unequal"] == []
    for task, member in cells["tasks"].items():
        assert member["regimes"] == {}, "no canonical score is claimed"
        for regime, cell in member["record"].items():
            claim = evidence[regime][task]
            for key in ("confusion", "predictions_sha256", "per_seed"):
                assert cell[key] == claim[key]
            assert cell["scores"] == results[regime][task]


def test_the_rounded_rows_are_what_is_scored(made: Harness, tmp_path: Path) -> None:
    """A receipt with other rows has other predictions."""
    receipt = made.folder / "receipt"
    moved = tmp_path / "receipt"
    moved.mkdir()
    for file in receipt.iterdir():
        rows = np.fromfile(file, "<f2")
        (moved / file.name).write_bytes(rows[::-1].astype("<f2").tobytes())
    done = made(
        "receipt-cells", "--submission", "sub.json", "--receipt", moved, "--tasks", "mini_tf",
        "--output", tmp_path / "cells.json", "--quiet",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    cells = read(tmp_path / "cells.json")["tasks"]["mini_tf"]["record"]
    evidence = read(made.folder / "sub.json")["evidence"]
    assert any(
        cells[regime]["predictions_sha256"] != evidence[regime]["mini_tf"]["predictions_sha256"]
        for regime in cells
    )


def test_equal_sequences_with_unequal_rows_are_counted() -> None:
    def named(sequences: list[int], rows: list[int]) -> DigestPairs:
        first, two = (np.array([[n] * 16 for n in each], np.uint8) for each in (sequences, rows))
        return DigestPairs(first, two)

    task_receipts_by_name = {
        name: TaskReceipt(
            train=1, test=1, dim=1, scale_log2=scale, bytes=4, sha256="0" * 64, root="0" * 64
        )
        for name, scale in (("a", 0), ("b", 0), ("c", 1))
    }
    receipts_by_task = {
        "a": named([1, 1], [5, 5]),
        "b": named([1, 2], [5, 6]),
        "c": named([1, 3], [9, 9]),
    }
    assert unequal_embeddings(receipts_by_task, task_receipts_by_name) == []
    receipts_by_task["b"] = named([1, 2], [6, 6])
    assert unequal_embeddings(receipts_by_task, task_receipts_by_name) == [
        "1 sequence has embeddings that differ, in a, b"
    ]


def test_a_stopped_run_goes_on_and_repairs_what_is_gone(made: Harness, tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    shutil.copytree(made.folder, tmp_path, dirs_exist_ok=True)
    whole = {file.name: file.read_bytes() for file in (tmp_path / "receipt").iterdir()}
    before = read(tmp_path / "sub.json")
    # As a kill between the last task and the record leaves it, with a file damaged since.
    for name in ("record.json", "sub.json"):
        (tmp_path / name).unlink()
    code = (
        "import reference_harness.cli.run as c; c._write_files = lambda *_: (_ for _ in ()).throw("
        "KeyboardInterrupt()); from reference_harness.cli.main import main; main()"
    )
    process = harness.start(*WRITTEN, code=code)
    _, message = process.communicate(COMMAND_SECONDS)
    assert process.returncode == 130, message
    damaged = tmp_path / "receipt" / "mini_tf.f16"
    damaged.write_bytes(b"\x00" * damaged.stat().st_size)
    done = harness(*WRITTEN, "--resume")
    assert (done.returncode, done.stderr) == (0, "")
    assert {file.name: file.read_bytes() for file in (tmp_path / "receipt").iterdir()} == whole
    after = read(tmp_path / "sub.json")
    assert after["receipt"] == before["receipt"]
    assert after["evidence"] == before["evidence"]


def test_a_format_without_receipts_contradicts_one(harness: Harness) -> None:
    done = harness(*WRITTEN, "--format-version", "1.1")
    assert done.returncode == 2
    assert (
        "--receipt needs submission format 1.2, not 1.1: pass --format-version 1.2" in done.stderr
    )
