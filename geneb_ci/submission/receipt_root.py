"""The root of a receipt: a Merkle tree over its tasks, in the benchmark's order.

The file of a task, `<task_id>.f16`, has the rows of the training and then of the test split, in
file order of the pinned data: float16, little-endian, in C order, without a header.
"""

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING

from geneb_ci.common.merkle import leaf_hash, root_of

if TYPE_CHECKING:
    from geneb_ci.submission.models import EmbeddingReceipt, ReceiptTask

ITEM = 2
"""Bytes of a float16."""


def task_leaf(task: str, said: "ReceiptTask", dim: int) -> bytes:
    """Return the leaf of a task: the hash of id, rows, width, scale and the root of its rows."""
    counts = struct.pack(">QIi", said.train + said.test, dim, said.scale_log2)
    return leaf_hash(task.encode() + b"\x00" + counts + bytes.fromhex(said.root))


def receipt_root(receipt: "EmbeddingReceipt", order: Sequence[str]) -> str:
    """Return the root over the tasks of a receipt, as hex digits; `order` is the benchmark's."""
    return root_of(
        [
            task_leaf(task, receipt.tasks[task], receipt.dim)
            for task in order
            if task in receipt.tasks
        ]
    ).hex()
