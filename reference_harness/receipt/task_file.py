"""The file of one task in a receipt: `<task_id>.f16`, embeddings of train, then of test.

The file is little-endian float16 in C order without a header, so it has 2 x dim bytes for each
embedding. The embeddings are in file order of the pinned data, including repeated sequences.
"""

import hashlib
from pathlib import Path

import numpy as np

from reference_harness.errors import StateError
from reference_harness.formats.files import file_sha256, write_bytes
from reference_harness.formats.merkle import Tree, embedding_leaf
from reference_harness.formats.run_record import TaskReceipt
from reference_harness.formats.submission_terms import receipt_file

from .rounding import RoundedEmbeddings


def write_task(
    folder: Path, task_id: str, embeddings: RoundedEmbeddings, train: int
) -> TaskReceipt:
    """Write the file of a task, and return its entry in the receipt.

    The first `train` embeddings are those of the training split. Raise StateError if the folder
    cannot be written.
    """
    values = np.ascontiguousarray(embeddings.values, dtype="<f2")
    tree, digest = Tree(), hashlib.sha256()
    for index, row in enumerate(values):
        tree.add(embedding_leaf(row.data, index))
    digest.update(values.data)
    path = receipt_file(folder, task_id)
    try:
        write_bytes(path, values.data)
    except OSError as error:
        msg = f"{path}: the receipt cannot be written: {error.strerror or error}; free space or "
        msg += "pass another folder to --receipt"
        raise StateError(msg) from error
    return TaskReceipt(
        train=train,
        test=len(values) - train,
        dim=values.shape[1],
        scale_log2=embeddings.scale_log2,
        bytes=values.nbytes,
        sha256=digest.hexdigest(),
        root=tree.root().hex(),
    )


def is_written(folder: Path, task_id: str, expected: TaskReceipt) -> bool:
    """Return whether the file of a task exists with the expected bytes."""
    path = receipt_file(folder, task_id)
    try:
        return path.stat().st_size == expected.bytes and file_sha256(path) == expected.sha256
    except OSError:
        return False
