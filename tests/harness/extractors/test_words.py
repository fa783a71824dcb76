"""Our own tokenizers, the preparation of letters, and how tokens are cut."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_harness.extractors.base import ExtractorError
from reference_harness.extractors.encoder import Encoder
from reference_harness.extractors.options import parse
from reference_harness.extractors.origin import origin_of
from reference_harness.extractors.preparation import Preparation
from reference_harness.extractors.tokenizer import Tokenizer, load_tokens
from reference_harness.extractors.word_tokenizer import WordTokenizer, letter_tokenizer

WORDS = {word: i for i, word in enumerate(["<unk>", "A", "C", "AC", "CA", "AAA", "ACA"])}


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("unknown", ["ACA", "<unk>", "<unk>"]),
        ("letters", ["ACA", "<unk>", "A", "C", "A", "C"]),
        ("shorter", ["ACA", "<unk>", "AC", "AC"]),
        ("end", ["ACA", "<unk>", "AC"]),
        ("drop", ["ACA"]),
    ],
)
def test_letters_that_are_no_word(rest, expected):
    tokenizer = WordTokenizer(vocabulary=WORDS, k=3, rest=rest, unknown=0)
    assert tokenizer.encode(["ACANACAC"], special=True) == [[WORDS[word] for word in expected]]


def test_a_vocabulary_numbers_its_entries_and_names_all_words(tmp_path):
    def of(message: str) -> dict[str, int]:
        vocabulary: dict[str, int] = tokens(
            tmp_path, tokenizer="characters", vocabulary=message
        ).inner.vocabulary
        return vocabulary

    assert of("A=65,C=67,D,<=>,G=71") == {"A": 65, "C": 67, "D": 68, "<=>": 69, "G": 71}
    assert of("<P>,NA^2") == {"<P>": 0, "NN": 1, "NA": 2, "AN": 3, "AA": 4}
    assert of("NA^1-2") == {"N": 0, "A": 1, "NN": 2, "NA": 3, "AN": 4, "AA": 5}


def test_one_hot_letters_are_numbered_and_all_others_are_the_fifth():
    assert letter_tokenizer().encode(["ACGTNR"], special=True) == [[0, 1, 2, 3, 4, 4]]


def test_a_letter_outside_the_vocabulary_is_refused_without_unknown():
    with pytest.raises(ExtractorError, match="'N' is not in the vocabulary: declare unknown=ENTRY"):
        WordTokenizer(vocabulary=WORDS).encode(["AN"], special=True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("words.txt", "N\nA\nC"),
        ("words.json", '["N", "A", "C"]'),
        ("words.json", '{"A": 1, "N": 0, "C": 2}'),
        ("tokenizer.json", json.dumps({"model": {"vocab": {"A": 1, "N": 0, "C": 2}}})),
        ("N,A,C", None),
    ],
)
def test_a_vocabulary_is_text_or_a_file_of_the_folder(tmp_path, name, text):
    if text is not None:
        (tmp_path / name).write_text(text)
    token_list = tokens(tmp_path, tokenizer="characters", vocabulary=name, begin="C", unknown="N")
    assert token_list.ids(["AAGC"]) == [[2, 1, 1, 0, 2]]
    assert len(token_list) == 3


def tokens(folder: Path, **options: object) -> Tokenizer:
    return load_tokens(origin_of(str(folder), None, trust_remote_code=False), parse(options))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ({"vocabulary": "absent.txt"}, "vocabulary is 'absent.txt', which is no file of"),
        ({"vocabulary": "A,A"}, "vocabulary is 'A,A', expected different entries"),
        ({"vocabulary": "A,AC^1"}, "vocabulary is 'A,AC.1', expected different entries"),
        (
            {"vocabulary": "AC^9"},
            "vocabulary has 'AC.9', expected words of 1 to 8 letters, such as",
        ),
        ({"vocabulary": "AC^3-2"}, "vocabulary has 'AC.3-2', expected words of 1 to 8 letters"),
        (
            {"vocabulary": "A,C", "end": "<eos>"},
            r"end names '<eos>', expected one of the 2 entries",
        ),
        ({"vocabulary": "bad.json"}, "vocabulary bad.json: expected a JSON list"),
    ],
)
def test_a_vocabulary_that_cannot_be_read_is_refused(tmp_path, text, message):
    (tmp_path / "bad.json").write_text("1")
    with pytest.raises(ExtractorError, match=message):
        tokens(tmp_path, tokenizer="characters", **text)


@given(st.text("ACGTN", max_size=40), st.integers(1, 20), st.sampled_from(["right", "both"]))
def test_a_fixed_length_keeps_the_middle(letters, length, fill):
    (prepared,) = Preparation(fixed=length, fill=fill)([letters])
    assert len(prepared) == length
    if len(letters) <= length:
        assert prepared.strip("N") == letters.strip("N")
    else:
        start = (len(letters) - length) // 2
        assert prepared == letters[start : start + length]


@pytest.mark.parametrize(
    ("cut", "fill", "expected"),
    [
        ("right", "right", ["ABCDE", "ABNNN"]),
        ("left", "left", ["DEFGH", "NNNAB"]),
        ("middle", "both", ["BCDEF", "NABNN"]),
    ],
)
def test_what_is_cut_and_where_n_fills(cut, fill, expected):
    assert Preparation(fixed=5, cut=cut, fill=fill)(["ABCDEFGH", "ab"]) == expected


def test_a_multiple_is_cut_from_the_right():
    assert Preparation(multiple_of=3)(["acgtacgt", "ac", ""]) == ["ACGTAC", "", ""]


def encoder(**options: object) -> Encoder:
    own = WordTokenizer(vocabulary={x: i for i, x in enumerate("ACGTBE")}, before=(4,), after=(5,))
    tokens_of_letters = Tokenizer(inner=own)
    values: dict[str, Any] = {
        "max_length": 6, "truncation": "windows", "stride": 0, "pad_id": 0, "padding": "right",
        "embedding_rows": None, "added_tokens": tokens_of_letters.added_tokens(),
    }  # fmt: skip
    return Encoder(**({"tokens": tokens_of_letters} | values | options))


@given(
    st.text("ACGT", min_size=1, max_size=60), st.integers(3, 12), st.integers(0, 9), st.booleans()
)
def test_windows_hold_every_letter_and_never_more_than_the_limit(letters, most, stride, full):
    if most <= 2 + stride:
        return
    pieces, rows = encoder(max_length=most, stride=stride, full_last=full).encode([letters])
    (whole,) = encoder(max_length=None).encode([letters])[0]
    assert set(rows) == {0}
    assert all(piece[0] == 4 and piece[-1] == 5 and len(piece) <= most for piece in pieces)
    inner = most - 2
    starts = [i * (inner - stride) for i in range(len(pieces))]
    if full and len(letters) > inner:
        starts[-1] = len(letters) - inner
        assert all(len(piece) == most for piece in pieces)
    own = whole[1:-1]
    assert [piece[1:-1] for piece in pieces] == [own[start : start + inner] for start in starts]
    assert starts[-1] + inner >= len(own)
    np.testing.assert_array_equal(rows, np.zeros(len(pieces)))


@pytest.mark.parametrize(("side", "stored"), [("right", "ACGT"), ("left", "GTTT")])
def test_the_tokens_around_a_sequence_survive_a_cut(side, stored):
    pieces, _ = encoder(truncation=side).encode(["ACGTTT"])
    assert pieces == [[4, *["ACGT".index(x) for x in stored], 5]]


def test_an_id_beyond_the_embeddings_is_refused_by_name():
    letters = Tokenizer(inner=letter_tokenizer())
    limited = encoder(tokens=letters, added_tokens=letters.added_tokens(), embedding_rows=3)
    assert limited.encode(["ACG"])[0] == [[0, 1, 2]]
    with pytest.raises(
        ExtractorError, match=r"sequence 1 has token 3 \('T'\), but the model has e"
    ):
        limited.encode(["A", "AT"])
