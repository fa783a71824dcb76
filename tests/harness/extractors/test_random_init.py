"""The transformer with random weights: the same numbers everywhere, and no more than that."""

import numpy as np

from reference_harness.extractors.random_init import LENGTH_MAX, WIDTH, RandomInitExtractor

SEQUENCES = ["ACGT" * 5, "acgtn" * 4, "T" * 31, "", "ACGT" * 300]


def test_embeddings_are_those_of_the_seed():
    first, second = (RandomInitExtractor().extract_embeddings(SEQUENCES) for _ in range(2))
    assert first.shape == (len(SEQUENCES), WIDTH)
    np.testing.assert_array_equal(first, second)
    # The first two columns of the first sequence: another NumPy draws and multiplies the same.
    np.testing.assert_allclose(first[0, :2], EXPECTED, rtol=1e-4)
    alone = np.vstack([RandomInitExtractor().extract_embeddings([s]) for s in SEQUENCES])
    np.testing.assert_allclose(first, alone, rtol=1e-4, atol=1e-6)


def test_the_order_of_letters_counts_and_what_is_cut_does_not():
    extractor = RandomInitExtractor()
    forward, backward, lower = extractor.extract_embeddings(["AACCGGT", "TGGCCAA", "aaccggt"])
    assert np.abs(forward - backward).max() > 0.01
    np.testing.assert_array_equal(forward, lower)
    long = "ACGTTGCA" * (LENGTH_MAX // 8)
    np.testing.assert_array_equal(*extractor.extract_embeddings([long, long + "GGG"]))


def test_the_letters_read_are_counted():
    reading = RandomInitExtractor().read_letters(["ACGTN", "A" * (LENGTH_MAX + 6)])
    assert reading == (LENGTH_MAX + 11, LENGTH_MAX + 4, 1, LENGTH_MAX + 5, 1)


EXPECTED = [0.799776, -0.05751459]
