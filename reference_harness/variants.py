"""Variants of sequences that keep the label: what an extractor that computes treats alike.

An extractor that looks sequences up knows the published ones and no variant. Which sequences get a
variant, and which, follows from a seed; only `RandomState.random_sample` is drawn from, whose
stream NumPy's policy keeps, so anybody who learns the seed makes the same variants.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from .audit_data import reverse_complement
from .tasks import TaskData

SUBSTITUTIONS = 3
"""Letters that a substituted variant changes. Measured: one changes too little for a key on a
quarter of the sequence, one letter in ten costs an honest model of word counts up to 0.075."""
SUBSTITUTED_SHARE = 0.03
"""Largest share of letters substituted: in 60 letters, three changes break a motif of nine in two
cases of five, and an honest model that reads it would be flagged."""
CROP_SHARE = 0.02
"""Share of the letters that a crop removes, at least one, divided between the ends at random."""
SHIFT = 3
"""Letters that a shift removes at one end and adds, at random, at the other."""
REVERSED = "reversed"
KINDS = ("substituted", "cropped", "shifted")
"""Kinds of which every test sequence gets one each; `REVERSED` is added where strands are alike."""
SUPPORT: Final = "support"
"""Split of variants of the training sequences that few-shot probes are fitted on."""
ATTEMPTS = 20
"""Attempts at a variant that is no published sequence; a sequence without one gets none."""

_LETTERS = "ACGT"
Uniform = Callable[[], float]


@dataclass(frozen=True)
class VariantSequence:
    """One variant of one sequence of a task."""

    split: Literal["train", "test", "support"]
    row: int
    """Sequence of the split, from 0; of "support", which few-shot probes are fitted on, in the
    training split."""
    kind: str
    sequence: str


def variants_of(
    data: TaskData, seed: str, rows: int, *, reverse: bool = False
) -> list[VariantSequence]:
    """Return variants of at most `rows` test sequences and as many training sequences.

    Sequences are drawn without replacement. A test sequence gets a variant of every kind, a
    training sequence one of a kind drawn for it. `seed` is any text; `reverse` adds the reverse
    complement.
    """
    real_sequences = {*data.train.sequences, *data.test.sequences}
    kinds = (*KINDS, REVERSED) if reverse else KINDS
    uniform = _stream(f"{seed}\n{data.id}")
    variants = []
    for row in _sample(len(data.test.sequences), rows, uniform):
        for kind in kinds:
            sequence = _variant(data.test.sequences[row], kind, real_sequences, uniform)
            if sequence is not None:
                variants.append(VariantSequence("test", row, kind, sequence))
    for row in _sample(len(data.train.sequences), rows, uniform):
        kind = kinds[int(uniform() * len(kinds))]
        sequence = _variant(data.train.sequences[row], kind, real_sequences, uniform)
        if sequence is not None:
            variants.append(VariantSequence("train", row, kind, sequence))
    return variants


def support_variants(
    data: TaskData, seed: str, rows: Sequence[int], *, reverse: bool = False
) -> list[VariantSequence]:
    """Return a variant of each of these training sequences, of a kind drawn for it.

    A sequence that has no variant is left out.
    """
    real_sequences = {*data.train.sequences, *data.test.sequences}
    kinds = (*KINDS, REVERSED) if reverse else KINDS
    uniform = _stream(f"{seed}\n{data.id}\n{SUPPORT}")
    variants = []
    for row in rows:
        kind = kinds[int(uniform() * len(kinds))]
        sequence = _variant(data.train.sequences[row], kind, real_sequences, uniform)
        if sequence is not None:
            variants.append(VariantSequence(SUPPORT, row, kind, sequence))
    return variants


def _stream(words: str) -> Uniform:
    key = np.frombuffer(hashlib.sha256(words.encode()).digest(), dtype="<u4")
    generator = np.random.RandomState(key)
    return lambda: float(generator.random_sample())


def _sample(count: int, maximum: int, uniform: Uniform) -> list[int]:
    """Return at most `maximum` of `count` numbers, ascending."""
    indices = list(range(count))
    for index in range(min(maximum, count)):
        swapped = index + int(uniform() * (count - index))
        indices[index], indices[swapped] = indices[swapped], indices[index]
    return sorted(indices[: min(maximum, count)])


def _variant(sequence: str, kind: str, existing: set[str], uniform: Uniform) -> str | None:
    for _ in range(ATTEMPTS):
        changed = MAKER_OF_KIND[kind](sequence, uniform)
        if changed and changed not in existing:
            return changed
    return None


def substituted(sequence: str, uniform: Uniform) -> str:
    """Change letters at distinct places drawn from the whole sequence, both ends included."""
    letters = list(sequence)
    places = [i for i, letter in enumerate(letters) if letter.upper() in _LETTERS]
    most = max(1, min(SUBSTITUTIONS, round(SUBSTITUTED_SHARE * len(letters))))
    for index in (places[i] for i in _sample(len(places), most, uniform)):
        old = letters[index]
        other_letters = [letter for letter in _LETTERS if letter != old.upper()]
        new = other_letters[int(uniform() * len(other_letters))]
        letters[index] = new.lower() if old.islower() else new
    return "".join(letters)


def cropped(sequence: str, uniform: Uniform) -> str:
    """Remove a share of the letters, divided between the two ends at random."""
    removed = max(1, round(CROP_SHARE * len(sequence)))
    removed_before = int(uniform() * (removed + 1))
    return sequence[removed_before : len(sequence) - (removed - removed_before)]


def shifted(sequence: str, uniform: Uniform) -> str:
    """Move the window: letters are lost at one end, and random ones added at the other."""
    added = "".join(_LETTERS[int(uniform() * len(_LETTERS))] for _ in range(SHIFT))
    if uniform() < 0.5:  # noqa: PLR2004 (one direction or the other)
        return sequence[SHIFT:] + added
    return added + sequence[:-SHIFT]


def reversed_strand(sequence: str, uniform: Uniform) -> str:
    """Return the other strand; upper case, as `audit_data` reads it."""
    del uniform
    return reverse_complement(sequence.upper())


MAKER_OF_KIND: Mapping[str, Callable[[str, Uniform], str]] = {
    "substituted": substituted,
    "cropped": cropped,
    "shifted": shifted,
    REVERSED: reversed_strand,
}
