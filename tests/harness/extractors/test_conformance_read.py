"""Conformance sees what of a sequence is read, letter by letter and strand by strand."""

from pathlib import Path

import pytest

from reference_harness.conformance import letters_and_strands
from reference_harness.conformance.child_process import property_result
from reference_harness.conformance.result import Outcome, PropertyResult
from reference_harness.conformance.subject import Subject

FAULTY = Path(__file__).parents[1] / "faulty"
CLASSES = """
import numpy as np
from .base import BaseEmbeddingExtractor

COMPLEMENT = str.maketrans("ACGT", "TGCA")

class Whole(BaseEmbeddingExtractor):
    layer, pooling, max_length, truncation, dtype = "none", "mean", None, "none", "float32"
    source = {"kind": "none", "location": "", "revision": None, "weights": {}}

    def extract_embeddings(self, sequences, batch_size=8):
        return np.array([self.row(s) for s in sequences], dtype="float32")

    def row(self, text):
        codes = np.array([[c == x for x in "ACGT"] for c in text], dtype=float)
        place = np.cos(np.arange(len(text)))[:, None]
        return np.concatenate([codes.mean(axis=0), (codes * place).mean(axis=0)])

class DropsRemainder(Whole):
    def row(self, text):
        return super().row(text[: len(text) - len(text) % 6])

class DropsFirst(Whole):
    def row(self, text):
        return super().row(text[len(text) % 8 :])

class Codons(Whole):
    def row(self, text):
        words = [text[i : i + 3] for i in range(0, len(text) - 2, 3)]
        return np.mean([super(Codons, self).row(word) for word in words], axis=0)

class EverySecond(Whole):
    def row(self, text):
        return super().row(text[::2])

class FirstLetter(Whole):
    def row(self, text):
        return super().row(text[:1])

class Hole(Whole):
    def row(self, text):
        return super().row(text[:9] + text[14:])

class Strands(Whole):
    def row(self, text):
        return super().row(text) + super().row(text[::-1].translate(COMPLEMENT))

class Declared(Strands):
    pooling = "mean of both strands"

class Canonical(Whole):
    def row(self, text):
        return super().row(min(text, text[::-1].translate(COMPLEMENT)))

class Larger(Whole):
    def row(self, text):
        both = super().row(text), super().row(text[::-1].translate(COMPLEMENT))
        return np.maximum(*both)

class Short(Whole):
    max_length, truncation = 12, "right"

    def count_tokens(self, sequences):
        return [len(s) for s in sequences]

    def row(self, text):
        return super().row(text[:12])

class Maximum(Whole):
    pooling = "max"

    def row(self, text):
        return np.array([max(map(ord, text)), ord(text[0])], dtype=float)
"""


def result(slug: str, where: str, name: str, **options: object) -> PropertyResult:
    return property_result(
        slug, Subject(f"{where}:{name}" if name else where, "", "cpu", None, {**options})
    )


@pytest.fixture
def module(tmp_path: Path) -> str:
    (tmp_path / "classes.py").write_text(CLASSES)
    return str(tmp_path / "classes.py")


@pytest.mark.parametrize(
    ("name", "outcome", "text"),
    [
        ("EverySecond", Outcome.FAILS, "of 24 letters, changing letters 2 to 24 does not"),
        ("FirstLetter", Outcome.FAILS, "of 24 letters, changing letters 2 to 24 does not"),
        ("Hole", Outcome.FAILS, "of 24 letters, changing letters 10 to 14 does not"),
        ("DropsRemainder", Outcome.NOT_VERIFIED, "Of 25 letters, changing letter 25 does not"),
        ("Codons", Outcome.NOT_VERIFIED, "Of 25 letters, changing letter 25 does not"),
        ("DropsFirst", Outcome.NOT_VERIFIED, "of 29 letters, changing letters 1 to 5 does not"),
        ("Short", Outcome.NOT_VERIFIED, "max_length is, or may be, too short for a sequence of 24"),
        ("Maximum", Outcome.NOT_VERIFIED, "which a maximum over tokens may hide"),
        ("Whole", Outcome.HOLDS, "Every letter of sequences of 24, 25, 29 is read"),
        ("Strands", Outcome.HOLDS, "Every letter of sequences of 24, 25, 29 is read"),
    ],
)
def test_a_letter_that_is_not_read_is_named(name, outcome, text, module):
    check_result = result("letters-read", module, name)
    assert check_result.outcome is outcome
    assert text in check_result.sentence


@pytest.mark.parametrize(
    ("name", "outcome", "text"),
    [
        ("Strands", Outcome.NOT_VERIFIED, "which is not declared"),
        ("Canonical", Outcome.NOT_VERIFIED, "which is not declared"),
        ("Larger", Outcome.NOT_VERIFIED, "which is not declared"),
        ("Declared", Outcome.HOLDS, "as the extractor declares"),
        ("Whole", Outcome.HOLDS, "have different embeddings"),
    ],
)
def test_both_strands_are_declared_or_named(name, outcome, text, module):
    check_result = result("strands", module, name)
    assert check_result.outcome is outcome
    assert text in check_result.sentence


@pytest.mark.parametrize("k", [1, 3, 6])
def test_k_mers_read_every_letter_of_one_strand(k):
    for slug in ("letters-read", "strands"):
        assert result(slug, "kmer", "", k=k).outcome is Outcome.HOLDS


def test_lengths_leave_a_remainder_of_every_usual_word():
    for k in (2, 3, 4, 5, 6, 8):
        assert any(
            0 < length % k <= letters_and_strands.REMAINDER_MAX
            for length in letters_and_strands.LENGTHS
        )
