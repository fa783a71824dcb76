"""The files of a receipt, one a task: their embeddings, the Merkle root over them, and its proofs.

`<task_id>.f16` has the embeddings of the training and then of the test split, in file order of the
pinned data: float16, little-endian, in C order, without a header. The leaf of embedding i is RFC
6962's leaf hash of the embedding's bytes and i as eight bytes, big-endian. The limits within which
an embedding is that of a rerun are here, too, where a record is read without NumPy.
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
from reference_harness.formats.submission_terms import ITEM, LARGEST, SMALL, TOP_LOG2
from reference_harness.formats.text import plural

BLOCK_BYTES = 16 << 20
"""Bytes read at once: many embeddings of any width, little memory."""
TOP = 2.0**TOP_LOG2
EXPONENT, NEGATIVE_ZERO = 0x7C00, 0x8000
"""Bits of a float16: all exponent bits are set in NaN and infinity; only the sign is in -0.0."""


FILES, VALUES, TREE = "files", "values", "tree"
"""Steps that read one task's file: its size and digest; no -0.0, NaN or infinity; its root."""
_REWRITE = "ask for a receipt that `geneb-harness run --receipt` wrote"
_FIXES = {
    FILES: "name the folder of the receipt's own files, or fetch them: geneb-ci receipt pull",
    VALUES: _REWRITE,
    TREE: _REWRITE,
}
TAU_OF_COLUMN, FLOOR = 2e-5, 2.0**-20
"""Of the spread of a column, and of the value itself: the tolerance of a coordinate is the larger.
Measured on random transformers of 2 to 12 layers, float32 in other batches or against float64: at
most 0.86 of it. Half of both would not do: 1.3 of it with 6 layers, 1.7 with 12."""
MISMATCH = 0.02
"""Share of an embedding that may differ from the rounding of the rerun. Measured: 0.16 % in the
mean and 1.2 % in the worst embedding of float32; an attack that moves what lies near a border has 6
%."""
MISMATCH_MIN = 4
"""Coordinates that may differ however short the embedding is: of 64, a mean of 0.16 % makes two or
more differ in one embedding of 200, and five or more in none of 10^7."""
POOLED = 0.005
"""Share of all drawn coordinates that may differ from the rounding of the rerun: three times the
largest honest mean. Features on borders of float16 could else follow the label in each
embedding."""
RESCUED = 0.01
"""Share of the drawn embeddings that may pass in float64 alone, or one embedding: what float64
gives is the contributor's code, and embeddings of honest models fail in one audit of many."""
NEAR = 16.0
"""Tolerances within which an embedding in float64 lies from the first rerun. Measured: 1.1."""
STRONGEST = 15
"""Training embeddings of a task that are embedded again for their influence on the test loss, and
for how far out they lie. Of 1,900 training embeddings two altered ones raised an MCC by 0.14; two
that stay below the honest ones of this rank, by 0.02: docs/research/receipt-audits.md."""
EFFECT = 5.0
"""Size of a statistic of influence, of training or of test embeddings. By chance 7 audits in a
million reach it at most, whatever the sizes of honest deviations are."""
ROOM = 0.01
"""Nats by which the tolerances may let the mean loss of the test embeddings fall, in the mean over
the tasks: more makes a receipt weak. Measured: 1e-4 on random convolutions, 4e-6 on words."""
ROOM_OF_TASK = 0.05
"""The same in any one task: the mean over 100 tasks could hide a task that a forger chose, and one
that is alone in its category has a thirteenth of the macro. Measured: below 1e-3."""
TAU = 1e-5
"""In records of version 1.0: of the embedding's root mean square, by which one column of large
values widened the tolerance of all others."""
FLIPPED, FLIPPED_MIN = 0.002, 2
"""Share of the drawn test embeddings of a regime, or their number, that may be decided right as
committed and wrong by the rerun: more makes a receipt weak, since the bound of what they raise
grows with them. Measured: 0 of 32,400 draws by noise of up to 5e-6 of an embedding's size."""
MISSED = 0.05
"""Probability that what lies beyond a bound of altered embeddings is drawn no more often than it
was."""
LEVEL = 0.001
"""In records of version 1.0: false alarm of the directional test, of training and test embeddings
together."""


def allowed(width: int) -> int:
    """Return how many coordinates of an embedding may differ from the rounding of the rerun."""
    return min(width, max(MISMATCH_MIN, int(MISMATCH * width)))


def allowed_pooled(rows: int, width: int) -> int:
    """Return how many coordinates of all drawn embeddings together may differ."""
    return max(MISMATCH_MIN, int(POOLED * rows * width))


def allowed_flipped(draws: int) -> int:
    """Return how many draws of test embeddings of a regime may be decided wrong by the rerun."""
    return max(FLIPPED_MIN, int(FLIPPED * draws))


def allowed_rescued(rows: int) -> int:
    """Return how many of the drawn embeddings may pass in float64 alone."""
    return max(1, int(RESCUED * rows))


def is_within(deviation: float, mismatch: int, width: int, limit: float = 1.0) -> bool:
    """Return whether one embedding with these statistics follows the rule.

    The deviation is in tolerances; in records of version 1.0, whose limit is `TAU`, in root mean
    squares of the embedding.
    """
    return deviation <= limit and mismatch <= allowed(width)


class EmbeddingsRefused(GenebError):  # noqa: N818 (named after what is wrong with the file)
    """A receipt is not what it has to be; `step` is the step of the verification."""

    exit_code = Exit.ERRORS

    def __init__(self, step: str, message: str, fix: str = "") -> None:
        super().__init__(message, fix or _FIXES.get(step, ""))
        self.step = step


class FileDigests(NamedTuple):
    """The digests of the bytes of a task's file."""

    sha256: str
    root: bytes


def read_embeddings(path: Path, entry: ReceiptTask, dim: int) -> FileDigests:
    """Read a task's file once, embedding by embedding, and compare it with what the receipt says.

    Raises EmbeddingsRefused, which names the first embedding that is wrong; FileNotFoundError where
    there is no file.
    """
    rows, width = entry.train + entry.test, ITEM * dim
    with _opened(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size != rows * width:
            raise EmbeddingsRefused(
                FILES,
                f"{path.name} has {size:,} bytes; expected {rows * width:,}: {rows:,} embeddings "
                f"of {plural(dim, 'number')} of 2 bytes",
            )
        digest = hashlib.sha256()
        leaves: list[bytes] = []
        step, largest = max(1, BLOCK_BYTES // width), 0.0
        # One block more than there are embeddings: a file that grows has an end here.
        while len(leaves) <= rows and (block := stream.read(step * width)):
            if len(block) % width:
                raise EmbeddingsRefused(FILES, f"{path.name} changed while it was read")
            largest = max(largest, largest_of(block, dim, len(leaves), path.name))
            digest.update(block)
            leaves += [
                leaf_hash(block[at : at + width] + struct.pack(">Q", index))
                for index, at in enumerate(range(0, len(block), width), len(leaves))
            ]
    if len(leaves) != rows:
        raise EmbeddingsRefused(FILES, f"{path.name} changed while it was read")
    content = FileDigests(digest.hexdigest(), root_of(leaves))
    if content.sha256 != entry.sha256:
        raise EmbeddingsRefused(
            FILES, f"{path.name} has the sha256 {content.sha256}; the receipt says {entry.sha256}"
        )
    _refuse_scale(entry.scale_log2, largest, path.name)
    if content.root.hex() != entry.root:
        raise EmbeddingsRefused(
            TREE, f"the embeddings of {path.name} have root {content.root.hex()}; the receipt says "
            f"{entry.root}"
        )  # fmt: skip
    return content


def _opened(path: Path) -> BinaryIO:
    """Open a regular file without waiting for the writer of a pipe."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise EmbeddingsRefused(FILES, f"{path.name} is not a regular file")
    return os.fdopen(handle, "rb")


def largest_of(block: bytes, dim: int, first: int, name: str) -> float:
    """Return the largest magnitude in embeddings of which the first has number `first`.

    Raises EmbeddingsRefused for -0.0, NaN or infinity.
    """
    import numpy as np  # slow to import, and only needed here

    bits = np.frombuffer(block, dtype="<u2")
    infinite = (bits & EXPONENT) == EXPONENT
    wrong = infinite | (bits == NEGATIVE_ZERO)
    if not wrong.any():
        # Among finite numbers of one sign, larger ones have larger bits.
        return float((bits & ~np.uint16(NEGATIVE_ZERO)).max().view(np.float16))
    at = int(np.argmax(wrong))
    kind = "-0.0" if not infinite[at] else "infinity" if bits[at] & 0x3FF == 0 else "NaN"
    raise EmbeddingsRefused(
        VALUES,
        f"{name} has {kind} in embedding {first + at // dim:,}, column {at % dim:,}; a receipt "
        "holds finite numbers, and 0.0 for zero",
    )


def _refuse_scale(scale_log2: int, largest: float, name: str) -> None:
    """Raise EmbeddingsRefused for another scale than follows from the values.

    With a scale of its own, a task would hold other embeddings for the sequences of other tasks.
    """
    feature = math.ldexp(largest, scale_log2)
    is_in_range = not largest or SMALL <= feature <= LARGEST
    if scale_log2 == 0 and is_in_range:
        return
    is_largest = TOP <= largest <= 2 * TOP  # it may have been rounded up to the end
    if scale_log2 and is_largest and (feature <= SMALL or feature >= LARGEST):
        return
    raise EmbeddingsRefused(
        VALUES,
        f"{name} has the scale 2^{scale_log2} for values up to {largest:g}; expected none for "
        f"features from {SMALL:g} to {LARGEST:g}, and else one for values up to {TOP:g} or more",
    )
