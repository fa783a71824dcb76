"""`predictions.bin`: every predicted label of a run, in the folder of its receipt.

The layout is in docs/reader/predictions.md.
"""

import hashlib
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from reference_harness.data.task_data import Labels
from reference_harness.errors import StateError
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import write_bytes
from reference_harness.formats.submission import PredictionsFile

FILE_NAME = "predictions.bin"
MAGIC, VERSION = b"GENEBPRD", 1
HEADER, TASK_HEAD = ">8sHBBHH32s", ">HI"
"""Formats of `struct`, of the file's header and of the beginning of a task's part."""
OF_RECORD, CANONICAL = 1, 2
"""Bits for the sets of predictions, in their order in the file."""


def encoded_task(classes: Labels, truth: Labels, labels_by_fit: Sequence[Labels]) -> bytes:
    """Return a task's part of the file, without its index in the benchmark.

    `classes` are ascending; `truth` and each of `labels_by_fit` are (n,) labels, the latter in the
    order of the file.
    """
    class_indices = np.concatenate(
        [np.searchsorted(classes, labels_of_fit) for labels_of_fit in (truth, *labels_by_fit)]
    )
    width = max(1, (len(classes) - 1).bit_length())
    bit_positions = np.arange(width - 1, -1, -1, dtype=np.uint16)
    bits = (class_indices.astype(np.uint16)[:, None] >> bit_positions) & 1
    head = struct.pack(TASK_HEAD, len(classes), len(truth))
    labels = np.asarray(classes).astype(">i4").tobytes()
    return head + labels + np.packbits(bits.astype(np.uint8)).tobytes()


def encoded_file(
    benchmark: Benchmark, regimes: Sequence[str], sections: Mapping[str, bytes]
) -> bytes:
    """Return the bytes of the file; `sections` are by task id."""
    header = struct.pack(
        HEADER,
        MAGIC,
        VERSION,
        OF_RECORD,
        sum(1 << index for index, name in enumerate(benchmark.regimes) if name in regimes),
        len(benchmark.protocol.seeds),
        len(sections),
        bytes.fromhex(benchmark.sha256),
    )
    pieces = [header]
    for index, task in enumerate(benchmark.tasks):
        if task.id in sections:
            pieces += [struct.pack(">H", index), sections[task.id]]
    return b"".join(pieces)


def write_predictions(
    folder: Path, benchmark: Benchmark, regimes: Sequence[str], sections: Mapping[str, bytes]
) -> PredictionsFile:
    """Write the file into the receipt's folder, and return its entry in the receipt.

    Raise StateError if the folder cannot be written.
    """
    raw = encoded_file(benchmark, regimes, sections)
    path = folder / FILE_NAME
    try:
        write_bytes(path, raw)
    except OSError as error:
        msg = f"{path}: the predictions cannot be written: {error.strerror or error}; free space "
        msg += "or pass another folder to --receipt"
        raise StateError(msg) from error
    return PredictionsFile(bytes=len(raw), sha256=hashlib.sha256(raw).hexdigest())
