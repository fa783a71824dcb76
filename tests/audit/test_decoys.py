"""Decoys: rows come back in order, and no honest extractor is called a cheat."""

import functools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.audit.compare.outcome import Decoys
from geneb_ci.audit.rerun.decoys import (
    NOISE,
    SequencesWithDecoys,
    embed_among_decoys,
    judge_decoys,
    with_decoys,
)
from reference_harness import mini
from reference_harness.extractors.huggingface import HuggingFaceExtractor
from reference_harness.extractors.kmer import KmerExtractor
from tests.harness.extractors import models

SEED = bytes(range(32))
SEQUENCES = mini.load("mini_phage").test.sequences[:100]


def variants(count: int = 120, length: int = 200) -> list[str]:
    """One sequence, and single letters of it changed: as in a variant-effect task."""
    draw = random.Random(3)
    base = "".join(draw.choices("ACGT", k=length))
    found = dict.fromkeys([base])
    while len(found) < count:
        at = draw.randrange(length)
        found[base[:at] + draw.choice("ACGT") + base[at + 1 :]] = None
    return list(found)


@given(
    st.lists(st.text("ACGTNacgt", min_size=1, max_size=30), min_size=1, max_size=60),
    st.binary(min_size=32, max_size=32),
)
def test_rows_come_back_in_the_callers_order(sequences, seed):
    decoyed = with_decoys(sequences, seed)
    back = decoyed.real_positions
    assert [decoyed.sequences[place] for place in back] == sequences
    assert len(set(back)) == len(sequences)
    assert all(decoyed.sequences[a] == decoyed.sequences[b] for a, b in decoyed.repeat_positions)
    assert decoyed.second_run == [decoyed.sequences[a] for a, _ in decoyed.repeat_positions]
    for x, y, z in decoyed.triangles:
        texts = [decoyed.sequences[place] for place in (x, y, z)]
        assert not {texts[1], texts[2]} & set(sequences)
        places = [
            {i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b}
            for one, other in ((texts[0], texts[1]), (texts[0], texts[2]), (texts[1], texts[2]))
        ]
        assert places[0] == places[1] == places[2]
        assert len(places[0]) == 1


def test_an_extractor_is_run_on_the_whole_list_then_on_the_repeated_ones_in_order():
    decoyed, given = with_decoys(SEQUENCES, SEED), []

    def embed(sequences: Sequence[str]) -> Any:
        given.append(list(sequences))
        return np.array([[float(len(one)), float(one.count("A"))] for one in sequences])

    found = embed_among_decoys(decoyed, embed, embed, "float64")
    assert given == [decoyed.sequences, decoyed.second_run]
    assert found.values.tolist() == [[len(one), one.count("A")] for one in SEQUENCES]
    assert not found.decoys.order_dependent
    assert len(found.repeats) == 2 * len(decoyed.repeat_positions)
    assert all(row.tolist() == found.values[number].tolist() for number, row in found.repeats)
    batched = embed_among_decoys(decoyed, embed, lambda apart: embed(apart) * 2, "float64")
    assert batched.decoys.order_dependent, "the second run is compared with the first"


def test_a_seed_decides_all_and_another_seed_nothing_alike():
    assert with_decoys(SEQUENCES, SEED) == with_decoys(SEQUENCES, SEED)
    one, other = (with_decoys(SEQUENCES, SEED), with_decoys(SEQUENCES, SEED[::-1]))
    assert one.sequences != other.sequences
    assert sum(a == b for a, b in zip(one.real_positions, other.real_positions, strict=True)) < 10


def test_fresh_sequences_have_the_letters_of_real_ones():
    decoyed = with_decoys(SEQUENCES, SEED)
    named = {
        *decoyed.real_positions,
        *(b for _, b in decoyed.repeat_positions),
        *(p for t in decoyed.triangles for p in t),
    }
    fresh = [s for place, s in enumerate(decoyed.sequences) if place not in named]
    letters = [Counter(s) for s in SEQUENCES]
    assert len(fresh) == 16
    assert all(Counter(s) in letters and s not in SEQUENCES for s in fresh)


ONE_LENGTH = mini.load("mini_splice").test.sequences[:100]


@pytest.fixture(scope="session")
def random_model(request, tmp_path_factory) -> HuggingFaceExtractor:
    folder = models.save(request.param, tmp_path_factory.mktemp("model"))
    return HuggingFaceExtractor(str(folder))


TASKS = pytest.mark.parametrize(
    "sequences",
    [SEQUENCES, ONE_LENGTH, variants()],
    ids=["mixed-lengths", "one-length", "variants"],
)


def flags(sequences, extractor, dtype: str = "float32") -> tuple[bool, bool]:
    decoyed = with_decoys(sequences, SEED)
    values = np.asarray(extractor.extract_embeddings(decoyed.sequences, batch_size=8))
    apart = np.asarray(extractor.extract_embeddings(decoyed.second_run, batch_size=4))
    found = judge_decoys(decoyed, values, dtype, apart)
    return found.order_dependent, found.memorised


@TASKS
@pytest.mark.parametrize("k", [1, 3, 6])
def test_word_counts_are_no_cheat(sequences, k):
    assert flags(sequences, KmerExtractor(k=k)) == (False, False)


@pytest.mark.parametrize(
    ("random_model", "sequences"),
    [
        pytest.param("gpt2", SEQUENCES, id="gpt2-mixed-lengths"),
        pytest.param("bert", variants(40), id="bert-variants"),
        pytest.param("bert", SEQUENCES, id="bert-mixed-lengths", marks=pytest.mark.nightly),
        pytest.param("bert", ONE_LENGTH, id="bert-one-length", marks=pytest.mark.nightly),
        pytest.param("gpt2", ONE_LENGTH, id="gpt2-one-length", marks=pytest.mark.nightly),
        pytest.param("gpt2", variants(), id="gpt2-variants", marks=pytest.mark.nightly),
    ],
    indirect=["random_model"],
)
def test_a_random_model_is_no_cheat(sequences, random_model):
    assert flags(sequences, random_model) == (False, False)


WORDS = {w for s in SEQUENCES[:40] for n in (3, 5, 8) for w in
         (s[i : i + n] for i in range(0, len(s) - n, 7))}  # fmt: skip
"""Vocabulary of a learned tokenizer."""


class Fixed:
    """Returns the rows that a function makes."""

    def __init__(self, row: Callable[[str], Any]) -> None:
        self.row = row

    def extract_embeddings(self, sequences: list[str], batch_size: int) -> np.ndarray:
        del batch_size
        return np.array([self.row(s) for s in sequences], dtype=np.float32)


@functools.cache
def random_vector(word: str) -> np.ndarray:
    """Return the embedding of a word, the same each time."""
    seed = int.from_bytes(word.encode(), "big") % 2**32
    return np.random.RandomState(seed).standard_normal(8)


def longest_words(sequence: str) -> np.ndarray:
    """Cut a sequence greedily into words of a fixed vocabulary, as a learned tokenizer does, and
    average a random vector a word: a changed letter breaks a word in two."""
    vectors, at = [], 0
    while at < len(sequence):
        size = next((n for n in (8, 5, 3) if sequence[at : at + n] in WORDS), 1)
        vectors.append(random_vector(sequence[at : at + size]))
        at += size
    return np.asarray(np.mean(vectors, axis=0))


@pytest.mark.parametrize(
    "row",
    [longest_words, lambda _: [1.0, 2.0], lambda _: [0.0], lambda s: [len(s), s[:20].count("A")]],
    ids=["learned-tokenizer", "constant", "zero", "truncated"],
)
def test_odd_but_honest_extractors_are_no_cheats(row):
    assert flags(SEQUENCES, Fixed(row)) == (False, False)


def judged(decoyed: SequencesWithDecoys, values: np.ndarray, dtype: str) -> Decoys:
    """Judge embeddings that are the same in the second run."""
    return judge_decoys(decoyed, values, dtype, values[[a for a, _ in decoyed.repeat_positions]])


@pytest.mark.parametrize("dtype", sorted(NOISE))
def test_noise_of_the_dtype_is_no_cheat_and_more_is(dtype):
    decoyed = with_decoys(SEQUENCES, SEED)
    sound = KmerExtractor(k=3).extract_embeddings(decoyed.sequences).astype(np.float64)
    draw = np.random.RandomState(5)
    noise = draw.standard_normal(sound.shape)
    noise *= np.linalg.norm(sound, axis=1, keepdims=True) / np.linalg.norm(
        noise, axis=1, keepdims=True
    )
    quiet = judged(decoyed, sound + noise * NOISE[dtype] / 3, dtype)
    loud = judged(decoyed, sound + noise * NOISE[dtype] * 3, dtype)
    assert (quiet.order_dependent, quiet.memorised) == (False, False)
    assert (loud.order_dependent, loud.memorised) == (True, False)


@pytest.mark.parametrize("dtype", sorted(NOISE))
def test_a_look_up_is_seen_under_every_dtype(dtype):
    decoyed = with_decoys(SEQUENCES, SEED)
    known = {s: index % 2 for index, s in enumerate(SEQUENCES)}
    values = np.array([np.eye(3)[known.get(s, 2)] for s in decoyed.sequences])
    found = judged(decoyed, values, dtype)
    assert found.memorised
    assert found.detail.endswith("; all sequences together have 2 embeddings")
    assert "32 are more than 10 times farther" in found.detail


def test_few_answers_for_variants_of_one_sequence_mean_nothing():
    rows = variants()
    assert flags(rows, Fixed(lambda s: [s[:20].count("A")])) == (False, False)


def test_no_sequence_is_no_list():
    with pytest.raises(ValueError, match="there is no sequence"):
        with_decoys([], SEED)


def test_another_width_in_the_second_run_is_told_and_never_a_crash():
    """An extractor that notices the short run may answer it as it likes."""
    sequences = ["".join(random.Random(k).choices("ACGT", k=60)) for k in range(80)]
    decoyed = with_decoys(sequences, bytes(32))
    values = np.array([[s.count(x) for x in "ACGT"] for s in decoyed.sequences], dtype="<f4")
    apart = values[[place for place, _ in decoyed.repeat_positions]]
    assert not judge_decoys(decoyed, values, "float32", apart).order_dependent
    for width in (1, 3):
        assert judge_decoys(decoyed, values, "float32", apart[:, :width]).order_dependent


def test_numbers_whose_squares_overflow_are_measured():
    sequences = ["".join(random.Random(k).choices("ACGT", k=60)) for k in range(80)]
    decoyed = with_decoys(sequences, bytes(32))
    values = np.array([[1e200 * s.count(x) for x in "ACGT"] for s in decoyed.sequences])
    apart = values[[place for place, _ in decoyed.repeat_positions]]
    assert not judge_decoys(decoyed, values, "float64", apart).order_dependent
    assert judge_decoys(decoyed, values, "float64", 2 * apart).order_dependent
