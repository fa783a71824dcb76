"""Read `predictions.bin`, the predicted labels of a receipt, as untrusted bytes.

docs/reader/predictions.md has the layout.
"""

import hashlib
import itertools
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from geneb_ci.common.errors import NothingChecked
from reference_harness.formats.benchmark import CLASSES_MAX, Benchmark, Task
from reference_harness.formats.files import NotReadable, read_regular
from reference_harness.formats.submission import PredictionsFile
from reference_harness.formats.text import quoted

PREDICTIONS_FILE = "predictions.bin"
"""Name of the file of predictions in the folder of a receipt."""
MAGIC, VERSION = b"GENEBPRD", 1
HEADER, TASK_HEAD = struct.Struct(">8sHBBHH32s"), struct.Struct(">HHI")
OF_RECORD, CANONICAL = "of record", "canonical"
HEADER_BIT_BY_SET = {OF_RECORD: 1, CANONICAL: 2}
"""By name of a set of predictions, its bit in the header; sets have this order in the file."""
LABEL_BYTES = 4
"""Size of the label of a class in the file."""
PREDICTIONS_BYTES_MAX = 1 << 23
"""Largest size of the file: GENEB's 612,792 test sequences take 2 MB with both sets, and decoding
needs up to 30 times the memory."""

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
Codes: TypeAlias = "npt.NDArray[np.uint16]"
"""(..., n) indices of classes. NumPy is imported only to decode a file."""


class PredictionsRefused(NothingChecked):
    """The bytes are not predictions for this benchmark; `member` names the wrong part."""

    def __init__(self, member: str, message: str) -> None:
        super().__init__(
            message, "write the file again with `geneb-harness run --receipt DIR`, or download it"
        )
        self.member = member


class TaskPredictions(NamedTuple):
    """Predicted and true classes of one task's n test sequences, in file order."""

    labels: tuple[int, ...]
    """Labels of the classes, ascending; a code is an index of these."""
    truth: Codes
    """(n,) codes of the true classes."""
    fits: dict[str, dict[str, Codes]]
    """By set and regime, the (fits, n) codes of the predictions, of one fit or one per seed."""


class Predictions(NamedTuple):
    """The content of a file of predictions."""

    sha256: str
    """Digest of the file."""
    tasks: dict[str, TaskPredictions]


def read_predictions(
    path: Path, benchmark: Benchmark, expected: PredictionsFile | None = None
) -> Predictions:
    """Return the predictions in a file, after checking the size and digest of `expected`.

    Raises PredictionsRefused, which names the wrong part.
    """
    raw = prediction_bytes(path, expected)
    try:
        return decode_predictions(raw, benchmark)
    except PredictionsRefused as error:
        raise PredictionsRefused(error.member, f"{path}: {error.message}") from error


def prediction_bytes(path: Path, expected: PredictionsFile | None) -> bytes:
    """Return the bytes of a file of predictions, after checking the size and digest of `expected`.

    Raises PredictionsRefused.
    """
    try:
        raw = read_regular(path, PREDICTIONS_BYTES_MAX)
    except NotReadable as error:
        raise PredictionsRefused("file", f"{path}: {error.reason}") from error
    digest = hashlib.sha256(raw).hexdigest()
    if expected is not None and (len(raw), digest) != (expected.bytes, expected.sha256):
        raise PredictionsRefused(
            "file",
            f"{path}: has {len(raw):,} bytes and the sha256 {digest}; expected {expected.bytes:,} "
            f"bytes and the sha256 {expected.sha256}, as in the receipt",
        )
    return raw


def decode_predictions(raw: bytes, benchmark: Benchmark) -> Predictions:
    """Return the predictions in bytes. Raises PredictionsRefused, which names the wrong member."""
    reader = _Reader(raw)
    sets, regimes, tasks = _read_header(reader, benchmark)
    seeds = len(benchmark.protocol.seeds)
    fit_counts = {name: seeds if name in benchmark.protocol.few_shot_k else 1 for name in regimes}
    predictions: dict[str, TaskPredictions] = {}
    last_position = -1
    for _ in range(tasks):
        position, classes, rows = reader.unpack(TASK_HEAD, "head of a task")
        _require(
            last_position < position < len(benchmark.tasks), "place",
            f"a task has the index {position}; expected {last_position + 1} to "
            f"{len(benchmark.tasks) - 1}",
        )  # fmt: skip
        last_position = position
        task = benchmark.tasks[position]
        predictions[task.id] = _read_task(reader, task, (classes, rows), sets, fit_counts)
    _require(
        reader.bytes_left == 0,
        "end",
        f"{reader.bytes_left:,} bytes follow the last task; expected the end",
    )
    return Predictions(hashlib.sha256(raw).hexdigest(), predictions)


def _read_header(reader: "_Reader", benchmark: Benchmark) -> tuple[list[str], list[str], int]:
    """Return the sets, the regimes and the number of tasks."""
    magic, version, sets, regimes, seeds, tasks, digest = reader.unpack(HEADER, "header")
    _require(magic == MAGIC, "magic", f"the file begins with {magic!r}; expected {MAGIC!r}")
    _require(version == VERSION, "version", f"the file has version {version}; expected {VERSION}")
    _require(
        digest.hex() == benchmark.sha256, "benchmark",
        f"the file is for the benchmark definition {digest.hex()}; expected {benchmark.sha256}, "
        f"{benchmark.name}",
    )  # fmt: skip
    _require(
        0 < sets <= sum(HEADER_BIT_BY_SET.values()),
        "sets",
        f"the sets of predictions in the file are the bits {sets:#b}; expected 0b1, 0b10 or 0b11",
    )
    count = len(benchmark.regimes)
    _require(
        0 < regimes < 1 << count, "regimes",
        f"the regimes of the file are the bits {regimes:#b}; expected at least one of {count}",
    )  # fmt: skip
    expected = len(benchmark.protocol.seeds)
    _require(seeds == expected, "seeds", f"the file has {seeds} seeds; expected {expected}")
    _require(
        0 < tasks <= len(benchmark.tasks), "tasks",
        f"the file has {tasks} tasks; expected 1 to {len(benchmark.tasks)}",
    )  # fmt: skip
    return (
        [name for name, bit in HEADER_BIT_BY_SET.items() if sets & bit],
        [name for position, name in enumerate(benchmark.regimes) if regimes >> position & 1],
        tasks,
    )


def _read_task(
    reader: "_Reader",
    task: Task,
    size: tuple[int, int],
    set_names: list[str],
    fit_counts: dict[str, int],
) -> TaskPredictions:
    import numpy as np  # see Codes

    classes, rows = size
    task_name = quoted(task.id)
    _require(
        1 < classes <= CLASSES_MAX, "classes",
        f"{task_name} has {classes} classes; expected 2 to {CLASSES_MAX}",
    )  # fmt: skip
    expected = task.n_test
    _require(
        rows == expected if expected is not None else rows > 0, "rows",
        f"{task_name} has {rows} test sequences; expected {expected or 'at least one'}",
    )  # fmt: skip
    raw = reader.take(LABEL_BYTES * classes, f"labels of {task_name}")
    labels = np.frombuffer(raw, dtype=">i4").tolist()
    _require(
        all(label < next_label for label, next_label in itertools.pairwise(labels)), "labels",
        f"the labels of {task_name} do not ascend",
    )  # fmt: skip
    columns = 1 + len(set_names) * sum(fit_counts.values())
    truth, *predictions = _read_codes(reader, columns * rows, classes, task_name).reshape(
        columns, rows
    )
    _refuse_other_classes(truth, task)
    remaining_predictions = iter(predictions)
    by_set = {
        name_of_set: {
            regime: np.stack([next(remaining_predictions) for _ in range(count)])
            for regime, count in fit_counts.items()
        }
        for name_of_set in set_names
    }
    return TaskPredictions(tuple(labels), truth, by_set)


def _read_codes(reader: "_Reader", count: int, classes: int, task: str) -> Codes:
    """Read `count` indices of labels, each below `classes`, and the zero bits after them."""
    import numpy as np  # see Codes

    width = (classes - 1).bit_length()
    raw = reader.take(-(-count * width // 8), f"predictions of {task}")
    bits = np.unpackbits(np.frombuffer(raw, dtype=np.uint8))
    _require(
        not bits[count * width :].any(),
        "padding",
        f"the padding bits after the predictions of {task} are not zero",
    )
    codes = np.zeros(count, dtype=np.uint16)
    for column in bits[: count * width].reshape(count, width).T:
        codes = (codes << 1 | column).astype(np.uint16)
    highest = int(codes.max())
    _require(
        highest < classes, "codes", f"{task} has the code {highest}; expected less than {classes}"
    )
    return codes


def _refuse_other_classes(truth: Codes, task: Task) -> None:
    import numpy as np  # see Codes

    expected = task.test_class_counts
    counts = np.bincount(truth)
    class_counts = sorted(counts[counts > 0].tolist())
    _require(
        expected is None or class_counts == sorted(expected), "truth",
        f"{quoted(task.id)} has true classes of {class_counts} sequences; expected {expected}",
    )  # fmt: skip


def _require(condition: bool, member: str, message: str) -> None:
    if not condition:
        raise PredictionsRefused(member, message)


class _Reader:
    """Reader of bytes from the front; it raises PredictionsRefused if there are too few."""

    def __init__(self, raw: bytes) -> None:
        self._raw = memoryview(raw)
        self._offset = 0

    @property
    def bytes_left(self) -> int:
        return len(self._raw) - self._offset

    def take(self, count: int, member: str) -> memoryview:
        """Return the next `count` bytes."""
        _require(
            count <= self.bytes_left, "length",
            f"the file ends {count - self.bytes_left:,} bytes before the end of the {member}",
        )  # fmt: skip
        self._offset += count
        return self._raw[self._offset - count : self._offset]

    def unpack(self, structure: struct.Struct, member: str) -> tuple[Any, ...]:
        """Return the members of the next structure."""
        return structure.unpack(self.take(structure.size, member))
