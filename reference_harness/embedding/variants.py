"""Variants of sequences: changed so little that the label, and an honest decision, stay the same.

An extractor that looks up published sequences finds no variant. The choice of sequences and
variants follows from a seed; only `RandomState.random_sample` is used, whose stream is fixed by
NumPy's policy, so everyone with the seed makes the same variants.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from reference_harness.data.statistics import reverse_complement
from reference_harness.data.task_data import TaskData

SUBSTITUTIONS_MAX = 3
"""Maximum number of letters that a substituted variant changes. Measured: one change rarely affects
a key made of a quarter of the sequence; changing one letter in ten lowers MCC of honest word counts
by up to 0.075."""
SUBSTITUTED_SHARE = 0.03
"""Largest share of substituted letters: in 60 letters, three changes would break a motif of nine
letters in two cases of five, and an honest model that reads it would be flagged."""
CROP_SHARE = 0.02
"""Share of the letters that a crop removes, at least one letter, at random ends."""
SHIFTED_LETTERS = 3
"""Letters that a shift removes at one end; it adds as many random ones at the other."""
REVERSED_KIND = "reversed"
"""Kind of the variant that is the reverse complement."""
VARIANT_KINDS = ("substituted", "cropped", "shifted")
"""Kinds of variants; `REVERSED_KIND` is added if both strands have the same meaning."""
SUPPORT_SPLIT: Final = "support"
"""Name of the split of variants of the training sequences on which few-shot probes are fitted."""
ATTEMPTS_MAX = 20
"""Maximum number of attempts to make a variant that is no published sequence; else it is
omitted."""

_LETTERS = "ACGT"
Uniform = Callable[[], float]
"""Function that returns a random number of at least 0 and less than 1."""


@dataclass(frozen=True)
class VariantSequence:
    """One variant of one sequence of a task."""

    split: Literal["train", "test", "support"]
    row: int
    """Index of the original sequence in the split; for "support", in the training split."""
    kind: str
    sequence: str


def variants_of(
    task_data: TaskData, seed: str, count: int, *, reverse: bool = False
) -> list[VariantSequence]:
    """Return variants of at most `count` test sequences and as many training sequences.

    Sequences are drawn without replacement. A test sequence gets a variant of every kind, a
    training sequence one of a random kind. `seed` is any text; `reverse` adds the reverse
    complement.
    """
    real_sequences = {*task_data.train.sequences, *task_data.test.sequences}
    kinds = (*VARIANT_KINDS, REVERSED_KIND) if reverse else VARIANT_KINDS
    random_number = _random_numbers(f"{seed}\n{task_data.id}")
    variants = []
    for row in _sample(len(task_data.test.sequences), count, random_number):
        for kind in kinds:
            sequence = _variant(task_data.test.sequences[row], kind, real_sequences, random_number)
            if sequence is not None:
                variants.append(VariantSequence("test", row, kind, sequence))
    for row in _sample(len(task_data.train.sequences), count, random_number):
        kind = kinds[int(random_number() * len(kinds))]
        sequence = _variant(task_data.train.sequences[row], kind, real_sequences, random_number)
        if sequence is not None:
            variants.append(VariantSequence("train", row, kind, sequence))
    return variants


def support_variants(
    task_data: TaskData, seed: str, rows: Sequence[int], *, reverse: bool = False
) -> list[VariantSequence]:
    """Return a variant, of a random kind, of each training sequence with an index in `rows`.

    A sequence for which no variant is found is omitted.
    """
    real_sequences = {*task_data.train.sequences, *task_data.test.sequences}
    kinds = (*VARIANT_KINDS, REVERSED_KIND) if reverse else VARIANT_KINDS
    random_number = _random_numbers(f"{seed}\n{task_data.id}\n{SUPPORT_SPLIT}")
    variants = []
    for row in rows:
        kind = kinds[int(random_number() * len(kinds))]
        sequence = _variant(task_data.train.sequences[row], kind, real_sequences, random_number)
        if sequence is not None:
            variants.append(VariantSequence(SUPPORT_SPLIT, row, kind, sequence))
    return variants


def _random_numbers(seed_text: str) -> Uniform:
    """Return a function whose random numbers are determined by a text."""
    words = np.frombuffer(hashlib.sha256(seed_text.encode()).digest(), dtype="<u4")
    generator = np.random.RandomState(words)
    return lambda: float(generator.random_sample())


def _sample(count: int, maximum: int, uniform: Uniform) -> list[int]:
    """Return at most `maximum` random indices below `count`, ascending."""
    indices = list(range(count))
    for index in range(min(maximum, count)):
        swap_index = index + int(uniform() * (count - index))
        indices[index], indices[swap_index] = indices[swap_index], indices[index]
    return sorted(indices[: min(maximum, count)])


def _variant(sequence: str, kind: str, published: set[str], uniform: Uniform) -> str | None:
    """Return a variant that is no published sequence; None if no attempt gives one."""
    for _ in range(ATTEMPTS_MAX):
        variant = MAKER_OF_KIND[kind](sequence, uniform)
        if variant and variant not in published:
            return variant
    return None


def substituted(sequence: str, uniform: Uniform) -> str:
    """Return the sequence with letters substituted at distinct random positions."""
    letters = list(sequence)
    letter_indices = [i for i, letter in enumerate(letters) if letter.upper() in _LETTERS]
    substitution_count = max(1, min(SUBSTITUTIONS_MAX, round(SUBSTITUTED_SHARE * len(letters))))
    for index in (
        letter_indices[i] for i in _sample(len(letter_indices), substitution_count, uniform)
    ):
        old_letter = letters[index]
        other_letters = [letter for letter in _LETTERS if letter != old_letter.upper()]
        new_letter = other_letters[int(uniform() * len(other_letters))]
        letters[index] = new_letter.lower() if old_letter.islower() else new_letter
    return "".join(letters)


def cropped(sequence: str, uniform: Uniform) -> str:
    """Return the sequence without a share of its letters, taken at random from the two ends."""
    removed_count = max(1, round(CROP_SHARE * len(sequence)))
    removed_before = int(uniform() * (removed_count + 1))
    return sequence[removed_before : len(sequence) - (removed_count - removed_before)]


def shifted(sequence: str, uniform: Uniform) -> str:
    """Return the sequence without letters at one end, and with random ones at the other."""
    new_letters = "".join(_LETTERS[int(uniform() * len(_LETTERS))] for _ in range(SHIFTED_LETTERS))
    if uniform() < 0.5:  # noqa: PLR2004 (one direction or the other)
        return sequence[SHIFTED_LETTERS:] + new_letters
    return new_letters + sequence[:-SHIFTED_LETTERS]


def reversed_strand(sequence: str, uniform: Uniform) -> str:
    """Return the reverse complement of the sequence, in upper case."""
    del uniform
    return reverse_complement(sequence.upper())


MAKER_OF_KIND: Mapping[str, Callable[[str, Uniform], str]] = {
    "substituted": substituted,
    "cropped": cropped,
    "shifted": shifted,
    REVERSED_KIND: reversed_strand,
}
"""Function that makes a variant of a sequence, by kind of variant."""
