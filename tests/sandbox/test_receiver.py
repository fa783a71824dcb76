"""The bytes of a result, as any extractor may write them: what is no matrix is refused."""

import struct

import numpy as np
import pytest

from geneb_ci.common.errors import ResultRefused
from geneb_ci.sandbox.supervise import EmbeddingsReceiver
from tests.sandbox.conftest import SMALL

ROWS = 3
NPY = b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (3, 1)}"


def header(rows: int, width: int, size: int = 4) -> bytes:
    return struct.pack("<8sHHIQQ", b"GENEBEMB", 1, size, 0, rows, width)


def received(content: bytes) -> np.ndarray:
    """Return the matrix of a result that comes in pieces. Raises ResultRefused."""
    receiver = EmbeddingsReceiver(ROWS, SMALL)
    for start in range(0, len(content), 20):
        receiver.feed(content[start : start + 20])
    return receiver.finish()


def test_a_matrix_comes_out_as_it_went_in():
    values = np.arange(6, dtype="<f4").reshape(ROWS, 2)
    assert received(header(ROWS, 2) + values.tobytes()).tolist() == values.tolist()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the result ended after 0 of 32 bytes"),
        (
            header(ROWS, 1) + np.full(ROWS, np.inf, dtype="<f4").tobytes(),
            "NaN or infinity is in 3 embeddings, of which the first has index 0",
        ),
        (header(ROWS + 1, 1), "the result has 4 embeddings, expected 3: one per sequence"),
        (
            header(ROWS, 1 << 40),
            "the embeddings have width 1,099,511,627,776, expected 1 to 60,000",
        ),
        (header(ROWS, 0), "the embeddings have width 0, expected 1 to 60,000"),
        (
            header(ROWS, 1, size=16),
            (
                "the result has a header of version 1 with numbers of 16 bytes, expected version 1 "
                "with 2, 4 or 8 bytes"
            ),
        ),
        (
            header(ROWS, 60_000, size=8),  # allowed in each number, and too much as a whole
            "the result has 1,440,000 bytes, expected at most 1,048,576",
        ),
        (header(ROWS, 2) + bytes(23), "the result ended after 55 of 56 bytes"),
        (
            header(ROWS, 2) + bytes(25),
            "the result has more than the 56 bytes that its header announces",
        ),
        (
            NPY,
            (
                "the result begins with b'\\x93NUMPY\\x01\\x00', not b'GENEBEMB' "
                "(a .npy file, which geneb-ci never loads)"
            ),
        ),
    ],
    ids=[
        *("nothing", "infinity", "a row too many", "wide", "no width", "another size", "large"),
        *("too little", "too much", "an .npy file"),
    ],
)
def test_what_is_no_matrix_is_refused(content, message):
    with pytest.raises(ResultRefused) as caught:
        received(content)
    assert caught.value.message == message
