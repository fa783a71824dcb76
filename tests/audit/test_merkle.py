"""The tree of RFC 6962: known roots, a second implementation, and proofs that anybody can check."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_harness.formats.merkle import inclusion_proof, leaf_hash, root_of

# Test vectors of the reference implementations of RFC 6962 (certificate-transparency).
ENTRIES = [
    bytes.fromhex(name)
    for name in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


@pytest.mark.parametrize("size", range(9))
def test_the_roots_of_the_reference_implementations(size):
    assert root_of([leaf_hash(entry) for entry in ENTRIES[:size]]).hex() == ROOTS[size]


class Stack:
    """A second implementation: one entry after another, subtrees of equal height are joined."""

    def __init__(self) -> None:
        self.heights: list[tuple[int, bytes]] = []

    def add(self, entry: bytes) -> None:
        height, value = 0, hashlib.sha256(b"\x00" + entry).digest()
        while self.heights and self.heights[-1][0] == height:
            _, left = self.heights.pop()
            height, value = height + 1, hashlib.sha256(b"\x01" + left + value).digest()
        self.heights.append((height, value))

    def root(self) -> bytes:
        values = [value for _, value in self.heights]
        result = values.pop()
        while values:
            result = hashlib.sha256(b"\x01" + values.pop() + result).digest()
        return result


def test_a_second_implementation_gives_the_same_roots():
    stack, leaves = Stack(), []
    for number in range(1, 71):
        stack.add(b"%d" % number)
        leaves.append(leaf_hash(b"%d" % number))
        assert root_of(leaves) == stack.root()


def node(first: bytes, other: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + first + other).digest()


def included(leaf: bytes, index: int, size: int, proof: list[bytes], root: bytes) -> bool:
    """Verify an inclusion proof as RFC 9162, 2.1.3.2 describes it."""
    at, last, result = index, size - 1, leaf
    for digest in proof:
        if last == 0:
            return False
        if at % 2 or at == last:
            result = node(digest, result)
            while at % 2 == 0 and at:
                at, last = at >> 1, last >> 1
        else:
            result = node(result, digest)
        at, last = at >> 1, last >> 1
    return last == 0 and result == root


sizes = st.integers(1, 70)


@given(sizes, st.data())
def test_an_inclusion_proof_holds_for_its_own_entry_alone(size, data):
    leaves = [leaf_hash(b"%d" % index) for index in range(size)]
    index = data.draw(st.integers(0, size - 1))
    proof, root = inclusion_proof(leaves, index), root_of(leaves)
    assert included(leaves[index], index, size, proof, root)
    assert not included(leaf_hash(b"another"), index, size, proof, root)
    if proof:
        assert not included(leaves[index], index, size, proof[:-1], root)
