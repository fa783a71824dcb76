"""Which letters reach a model of transformers, counted by its tokens."""

from typing import Any

import pytest

from reference_harness.extractors.encoder import Encoder
from reference_harness.extractors.letter_counts import LetterCounter
from reference_harness.extractors.preparation import Preparation
from reference_harness.extractors.tokenizer import Tokenizer
from reference_harness.extractors.word_tokenizer import WordTokenizer
from tests.harness.extractors.models import tokenizer

LETTERS = WordTokenizer(vocabulary={x: i for i, x in enumerate("ACGT")}, unknown=9, before=(7,))
WORDS = {
    a + b + c: i
    for i, (a, b, c) in enumerate((a, b, c) for a in "ACGT" for b in "ACGT" for c in "ACGT")
}


class Overlapping:
    """A tokenizer of transformers whose tokens are 3-mers of every position."""

    model_max_length, num_special_tokens_to_add = 10**30, staticmethod(lambda: 0)
    unk_token_id, all_special_ids, is_fast = 64, (64,), False

    def __call__(self, texts: list[str], *, truncation: bool, max_length: int = 0, **_: Any) -> Any:
        ids = [[WORDS.get(t[i : i + 3], 64) for i in range(len(t) - 2)] for t in texts]
        return {"input_ids": [x[:max_length] for x in ids] if truncation else ids}

    def __len__(self) -> int:
        return len(WORDS) + 1

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        return [[*WORDS, "[UNK]"][number] for number in ids]


def reader(
    inner: Any, most: int | None = None, prepare: Preparation | None = None, **options: Any
) -> LetterCounter:
    tokens = Tokenizer(inner=inner)
    values: dict[str, Any] = {
        "max_length": most, "truncation": "right", "stride": 0, "pad_id": 0, "padding": "right",
        "embedding_rows": None, "added_tokens": tokens.added_tokens(),
    }  # fmt: skip
    return LetterCounter(
        Encoder(**({"tokens": tokens} | values | options)), prepare or Preparation()
    )


TEXT = "ACGTTGCAACGT" * 5  # 60 letters
TOKENIZERS = {
    "ours": LETTERS,
    "transformers": tokenizer(),
    "3-mers": WordTokenizer(vocabulary=WORDS, k=3, unknown=70),
    "overlapping": Overlapping(),
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_all_is_read_without_a_limit(name):
    content = reader(TOKENIZERS[name]).read([TEXT, TEXT[:30]])
    assert (content.given, content.read, content.cut, content.unknown) == (90, 90, 0, 0)


@pytest.mark.parametrize(
    ("name", "most", "read", "side"),
    [
        ("ours", 21, 20, "right"), ("ours", 21, 20, "left"),
        ("transformers", 22, 20, "right"), ("transformers", 22, 20, "left"),
        ("3-mers", 10, 30, "right"), ("3-mers", 10, 30, "left"),
        ("overlapping", 29, 30, "right"),
    ],
)  # fmt: skip
def test_a_cut_end_is_not_read(name, most, read, side):
    content = reader(TOKENIZERS[name], most, truncation=side).read([TEXT, TEXT[:9]])
    assert (content.given, content.read, content.cut) == (69, read + 9, 1)


@pytest.mark.parametrize("stride", [0, 5])
def test_windows_read_all(stride):
    test_reader = reader(TOKENIZERS["transformers"], 22, truncation="windows", stride=stride)
    assert test_reader.read([TEXT, TEXT[:9]]) == (69, 69, 0, 69, 0)


@pytest.mark.parametrize("name", ["ours", "transformers"])
def test_unknown_letters_are_not_read_and_not_cut(name):
    text = TEXT[:20] + "RR"
    assert reader(TOKENIZERS[name], 64).read([text]) == (22, 20, 0, 22, 2)
    # As many tokens as the model takes: nothing is cut, though the last one is unknown.
    most = 23 if name == "ours" else 24
    assert reader(TOKENIZERS[name], most).read([text]) == (22, 20, 0, 22, 2)
    assert reader(TOKENIZERS[name], most).read([f"{text}A"]).cut == 1


@pytest.mark.parametrize(
    ("prepare", "read", "cut"),
    [
        (Preparation(fixed=20), 20, 1),
        (Preparation(fixed=100), 60, 0),  # filled with N, which are no letters of the sequence
        (Preparation(multiple_of=7), 56, 1),
    ],
)
def test_letters_that_are_cut_before_tokens_are_made(prepare, read, cut):
    assert reader(LETTERS, 100, prepare).read([TEXT])[:3] == (60, read, cut)


def test_a_remainder_that_is_dropped_is_not_read():
    drops = WordTokenizer(vocabulary=WORDS, k=3, rest="drop", unknown=70)
    assert reader(drops).read([TEXT[:59]])[:3] == (59, 57, 0)
