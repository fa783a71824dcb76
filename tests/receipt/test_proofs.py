"""Proofs of embeddings: every embedding of every small tree, and nothing else."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from reference_harness.formats.merkle import (
    EmbeddingTree,
    inclusion_proof,
    root_from_proof,
    root_of,
)
from tests.each import each


def leaves(size: int) -> list[bytes]:
    return [hashlib.sha256(bytes([i])).digest() for i in range(size)]


@each("size", range(1, 71))
def test_every_row_of_a_tree_is_proved(size: int) -> None:
    leaf_digests = leaves(size)
    made = EmbeddingTree(leaf_digests)
    assert made.root == root_of(leaf_digests)
    for index, leaf in enumerate(leaf_digests):
        proof = made.proof(index)
        assert proof == inclusion_proof(leaf_digests, index)
        assert root_from_proof(leaf, index, size, proof) == made.root


@given(st.integers(1, 40), st.data())
def test_what_is_changed_is_not_proved(size: int, data: st.DataObject) -> None:
    leaf_digests = leaves(size)
    made = EmbeddingTree(leaf_digests)
    index = data.draw(st.integers(0, size - 1))
    proof = made.proof(index)
    assert root_from_proof(b"x" * 32, index, size, proof) != made.root
    assert root_from_proof(leaf_digests[index], index, size, [*proof, b"x" * 32]) is None
    assert root_from_proof(leaf_digests[index], size, size, proof) is None
    if proof:
        assert root_from_proof(leaf_digests[index], index, size, proof[:-1]) is None
        other = data.draw(st.integers(0, size - 1))
        if other != index:
            assert root_from_proof(leaf_digests[index], other, size, made.proof(index)) != made.root
