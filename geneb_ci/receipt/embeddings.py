"""Read the files of a receipt, one per task; define the limits for comparing embeddings.

`<task_id>.f16` has the embeddings of the training and then of the test split, in file order of the
pinned data: float16, little-endian, in C order, without a header. The leaf of embedding i is RFC
6962's leaf hash of the embedding's bytes and i as eight bytes, big-endian. The limits are in this
module so that a record can be read without NumPy.
"""

import hashlib
import math
import os
import stat
import struct
from pathlib import Path
from typing import BinaryIO, NamedTuple

from geneb_ci.common.errors import Exit, GenebError
from reference_harness.formats.merkle import leaf_hash, root_of
from reference_harness.formats.submission import ReceiptTask
from reference_harness.formats.submission_terms import (
    FLOAT16_BYTES,
    FLOAT16_MAX,
    SCALED_MAGNITUDE_LOG2,
    UNSCALED_MIN,
)
from reference_harness.formats.text import plural

BLOCK_BYTES = 16 << 20
"""Number of bytes that are read at once."""
SCALED_MAGNITUDE = 2.0**SCALED_MAGNITUDE_LOG2
"""Scaled embeddings have a largest magnitude between this number and twice this number."""
EXPONENT, NEGATIVE_ZERO = 0x7C00, 0x8000
"""Bits of a float16: the exponent bits, all set in NaN and infinity, and the bits of -0.0."""
FILES, VALUES, TREE = "files", "values", "tree"
"""Steps of reading a task's file: size and digest; no -0.0, NaN or infinity; Merkle root."""
_REWRITE_FIX = "ask for a receipt that `geneb-harness run --receipt` wrote"
_FIX_BY_STEP = {
    FILES: "name the folder of this receipt's files, or download them: geneb-ci receipt pull",
    VALUES: _REWRITE_FIX,
    TREE: _REWRITE_FIX,
}
TAU_OF_COLUMN, FLOOR = 2e-5, 2.0**-20
"""The tolerance of a coordinate: `TAU_OF_COLUMN` times the spread of its column, or `FLOOR` times
its magnitude if that is larger. Measured on random transformers of 2 to 12 layers, float32 in other
batches or against float64: deviations of at most 0.86 tolerances. With half of both factors, 1.3
tolerances with 6 layers and 1.7 with 12."""
MISMATCH = 0.02
"""Share of the coordinates of an embedding that may differ from the rounded rerun. Measured in
float32: 0.16 % in the mean and 1.2 % in the worst embedding; an attack on values near a rounding
border changes 6 %."""
MISMATCH_MIN = 4
"""Number of coordinates that may differ in an embedding of any width: of 64, with a mean of 0.16 %,
two or more differ in one embedding of 200, and five or more in none of 10^7."""
POOLED = 0.005
"""Share of all drawn coordinates that may differ from the rounded rerun: three times the largest
honest mean. Otherwise features near rounding borders could follow the label in every embedding."""
RESCUED = 0.01
"""Share of the drawn embeddings, but at least one, that may be rescued: fail, and pass when
computed again in float64. The contributor's code decides the second result; honest embeddings
rarely fail."""
NEAR = 16.0
"""Largest distance of a repeated embedding from the first rerun, in tolerances. Measured: 1.1."""
STRONGEST = 15
"""Number of training embeddings of a task that are always embedded again for their influence on the
test loss, and as many for their distance from the others. Two altered embeddings of 1,900 raised an
MCC by 0.14, but by 0.02 if they ranked below these: docs/research/receipt-audits.md."""
EFFECT = 5.0
"""Largest absolute value of the statistic of influence, of training or of test embeddings, with
which an audit agrees. By chance at most 7 audits in a million exceed it, whatever the sizes of
honest deviations are."""
ROOM = 0.01
"""Largest room: by how much the mean test loss can fall within the tolerances, in nats, averaged
over the tasks. With more room, a receipt is weak. Measured: 1e-4 on random convolutions, 4e-6 on
words."""
ROOM_OF_TASK = 0.05
"""Largest room of a single task, in nats: the mean over 100 tasks could hide one forged task, whose
weight in the macro may be a thirteenth. Measured: below 1e-3."""
TAU = 1e-5
"""Tolerance in records of version 1.0, as a share of the root mean square of the embedding. A
single column of large values widened the tolerance of all columns."""
FLIPPED, FLIPPED_MIN = 0.002, 2
"""Share of the draws of a regime, and number allowed in any case, whose test embedding may be
predicted right as committed and wrong as rerun. With more, the bound of the raise is too large and
the receipt weak. Measured: 0 of 32,400 draws with noise of up to 5e-6 of an embedding's size."""
MISSED = 0.05
"""Probability that a draw hits no altered embedding although alterations raise the MCC by more than
the stated bound."""
LEVEL = 0.001
"""False-alarm rate of the directional test, over training and test embeddings together."""


def mismatch_limit(width: int) -> int:
    """Return how many coordinates of one embedding may differ from the rounded rerun."""
    return min(width, max(MISMATCH_MIN, int(MISMATCH * width)))


def pooled_mismatch_limit(embeddings: int, width: int) -> int:
    """Return how many coordinates of all drawn embeddings together may differ."""
    return max(MISMATCH_MIN, int(POOLED * embeddings * width))


def flipped_limit(draws: int) -> int:
    """Return how many draws of a regime may be predicted right as committed and wrong as rerun."""
    return max(FLIPPED_MIN, int(FLIPPED * draws))


def rescued_limit(drawn: int) -> int:
    """Return how many drawn embeddings may be rescued: fail, and pass when computed again."""
    return max(1, int(RESCUED * drawn))


def is_within(deviation: float, mismatch: int, width: int, limit: float = 1.0) -> bool:
    """Whether an embedding with this deviation and mismatch agrees with its rerun.

    The deviation is in tolerances; in records of version 1.0, whose limit is `TAU`, in root mean
    squares of the embedding.
    """
    return deviation <= limit and mismatch <= mismatch_limit(width)


class EmbeddingsRefused(GenebError):  # noqa: N818 (named after what is wrong with the file)
    """A file of a receipt is invalid; `step` names the step of reading that found the error."""

    exit_code = Exit.ERRORS

    def __init__(self, step: str, message: str, fix: str = "") -> None:
        super().__init__(message, fix or _FIX_BY_STEP.get(step, ""))
        self.step = step


class FileDigests(NamedTuple):
    """The digests of the bytes of a task's file."""

    sha256: str
    root: bytes
    """Merkle root of the embeddings."""


def verified_digests(path: Path, expected: ReceiptTask, dim: int) -> FileDigests:
    """Return the digests of a task's file, after comparing the file with the receipt.

    The file is read once, embedding by embedding. Raises EmbeddingsRefused, which names the first
    wrong embedding, and OSError.
    """
    rows, row_bytes = expected.train + expected.test, FLOAT16_BYTES * dim
    with _open_regular_file(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size != rows * row_bytes:
            raise EmbeddingsRefused(
                FILES,
                f"{path.name} has {size:,} bytes; expected {rows * row_bytes:,}: {rows:,} "
                f"embeddings of {plural(dim, 'number')} of 2 bytes",
            )
        digest = hashlib.sha256()
        leaves: list[bytes] = []
        block_rows, largest = max(1, BLOCK_BYTES // row_bytes), 0.0
        # At most one block more than expected, so that reading a growing file ends.
        while len(leaves) <= rows and (block := stream.read(block_rows * row_bytes)):
            if len(block) % row_bytes:
                raise EmbeddingsRefused(FILES, f"{path.name} changed while it was read")
            largest = max(largest, largest_magnitude(block, dim, len(leaves), path.name))
            digest.update(block)
            leaves += [
                leaf_hash(block[start : start + row_bytes] + struct.pack(">Q", index))
                for index, start in enumerate(range(0, len(block), row_bytes), len(leaves))
            ]
    if len(leaves) != rows:
        raise EmbeddingsRefused(FILES, f"{path.name} changed while it was read")
    digests = FileDigests(digest.hexdigest(), root_of(leaves))
    if digests.sha256 != expected.sha256:
        raise EmbeddingsRefused(
            FILES,
            f"{path.name} has the sha256 {digests.sha256}; expected {expected.sha256}, as in the "
            "receipt",
        )
    _refuse_scale(expected.scale_log2, largest, path.name)
    if digests.root.hex() != expected.root:
        raise EmbeddingsRefused(
            TREE,
            f"the embeddings of {path.name} have the Merkle root {digests.root.hex()}; expected "
            f"{expected.root}, as in the receipt",
        )
    return digests


def _open_regular_file(path: Path) -> BinaryIO:
    """Open a regular file, without blocking if it is a pipe."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise EmbeddingsRefused(FILES, f"{path.name} is not a regular file")
    return os.fdopen(handle, "rb")


def largest_magnitude(block: bytes, dim: int, first: int, file: str) -> float:
    """Return the largest magnitude in a block of embeddings; `first` is the index of the first.

    Raises EmbeddingsRefused for -0.0, NaN or infinity.
    """
    import numpy as np  # slow to import, and only needed here

    bits = np.frombuffer(block, dtype="<u2")
    is_infinite = (bits & EXPONENT) == EXPONENT
    is_invalid = is_infinite | (bits == NEGATIVE_ZERO)
    if not is_invalid.any():
        # Among finite numbers of one sign, larger ones have larger bits.
        return float((bits & ~np.uint16(NEGATIVE_ZERO)).max().view(np.float16))
    index = int(np.argmax(is_invalid))
    number = "-0.0" if not is_infinite[index] else "infinity" if bits[index] & 0x3FF == 0 else "NaN"
    raise EmbeddingsRefused(
        VALUES,
        f"{file} has {number} in embedding {first + index // dim:,}, column {index % dim:,}; a "
        "receipt holds finite numbers, and 0.0 for zero",
    )


def _refuse_scale(scale_log2: int, largest: float, file: str) -> None:
    """Raise EmbeddingsRefused unless the scale follows from the largest magnitude in the file.

    Otherwise equal sequences of two tasks could have different embeddings.
    """
    largest_feature = math.ldexp(largest, scale_log2)
    is_in_range = not largest or UNSCALED_MIN <= largest_feature <= FLOAT16_MAX
    if scale_log2 == 0 and is_in_range:
        return
    is_scaled_to_top = (
        SCALED_MAGNITUDE <= largest <= 2 * SCALED_MAGNITUDE
    )  # rounding may have made it the upper end
    if (
        scale_log2
        and is_scaled_to_top
        and (largest_feature <= UNSCALED_MIN or largest_feature >= FLOAT16_MAX)
    ):
        return
    raise EmbeddingsRefused(
        VALUES,
        f"{file} has the scale 2^{scale_log2} and the largest stored value {largest:g}, so its "
        f"largest feature is {largest_feature:g}; expected the scale 2^0 for a largest feature "
        f"of 0 or from {UNSCALED_MIN:g} to {FLOAT16_MAX:g}, otherwise a scale with which the "
        f"largest stored value is {SCALED_MAGNITUDE:g} to {2 * SCALED_MAGNITUDE:g}",
    )
