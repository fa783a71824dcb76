"""k-mer frequencies against their definition, written out."""

import itertools
import random

import numpy as np
import pytest

from reference_harness.extractors import kmer
from reference_harness.extractors.base import ExtractorError
from reference_harness.extractors.kmer import KmerExtractor

AWKWARD = [
    "",
    "A",
    "ACG",
    "ACGT",
    "NNNNNN",
    "acgtACGTn",
    "ACGU",
    "AC\nGT",
    "ÄCGTACGT",
    "\U0001f600ACGTA",
]


def by_definition(sequences: list[str], k: int) -> np.ndarray:
    words = ["".join(letters) for letters in itertools.product("ACGT", repeat=k)]
    rows = np.zeros((len(sequences), len(words)), dtype=np.float32)
    for row, sequence in zip(rows, sequences, strict=True):
        counts = dict.fromkeys(words, 0)
        for i in range(len(sequence) - k + 1):
            window = "".join(c.upper() if c.isascii() else c for c in sequence[i : i + k])
            if window in counts:
                counts[window] += 1
        total = sum(counts.values())
        if total:
            row[:] = [np.float32(count) / np.float32(total) for count in counts.values()]
    return rows


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6])
def test_it_equals_its_definition_bit_for_bit(k):
    draw = random.Random(k)
    sequences = AWKWARD + [
        "".join(draw.choices("ACGTacgtNRYU-", [9] * 4 + [1] * 9, k=draw.randint(0, 200)))
        for _ in range(60)
    ]
    embeddings = KmerExtractor(k=k).extract_embeddings(sequences=sequences, batch_size=8)
    assert embeddings.dtype == np.float32
    np.testing.assert_array_equal(embeddings, by_definition(sequences, k))


def test_it_does_not_depend_on_how_it_is_cut(monkeypatch):
    draw = random.Random(1)
    sequences = AWKWARD + ["".join(draw.choices("ACGT", k=draw.randint(0, 90))) for _ in range(90)]
    expected = KmerExtractor().extract_embeddings(sequences)
    for letters, cells in ((1, 1), (50, 1 << 20), (1 << 16, 700)):
        monkeypatch.setattr(kmer, "CHUNK_LETTERS", letters)
        monkeypatch.setattr(kmer, "CHUNK_COUNTS", cells)
        np.testing.assert_array_equal(KmerExtractor().extract_embeddings(sequences), expected)


def test_no_sequence_gives_no_row():
    assert KmerExtractor().extract_embeddings([]).shape == (0, 256)


@pytest.mark.parametrize("k", [0, 11, "4", 4.0, True])
def test_a_wrong_k_is_refused(k):
    with pytest.raises(ExtractorError, match=r"expected an integer from 1 to 10"):
        KmerExtractor(k=k)
