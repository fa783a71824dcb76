"""The root of a receipt, as both programs compute it."""

from pathlib import Path

import numpy as np

from geneb_ci.receipt.embeddings import receipt_root
from geneb_ci.submission.models import EmbeddingReceipt, ReceiptTask
from reference_harness.receipt.rounding import Rounded
from reference_harness.receipt.summary import root_of
from reference_harness.receipt.task_file import write_task

VALUES = np.array([[1, 2], [0.5, -1], [0, 65504], [3, 4], [-5, 6]], dtype=np.float16)
DIM = 2


def test_both_programs_have_the_same_root(tmp_path: Path) -> None:
    made = {
        name: write_task(tmp_path, name, Rounded(VALUES[scale:], scale), 1)
        for scale, name in enumerate(("b", "a", "c"), 1)
    }
    receipt = EmbeddingReceipt(
        version="1", location=None, dtype="float16", compute_dtype="float32", tf32=False,
        dim=DIM, rows=9, root="0" * 64,
        tasks={name: ReceiptTask(**made[name].model_dump(exclude={"dim"})) for name in "abc"},
    )  # fmt: skip
    assert receipt_root(receipt, ["b", "a", "c", "d"]) == root_of(made)
    assert receipt_root(receipt, ["a", "b", "c"]) != root_of(made)
