"""A common interface of the tokenizers of transformers and of the harness."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .base import ExtractorError
from .option_rules import OWN_TOKENIZERS
from .options import Options
from .origin import Origin, check_class, class_of
from .word_tokenizer import WordTokenizer, letter_tokenizer, word_tokenizer

LIMIT_MAX = 10**9
"""Largest number of tokens that is a limit: tokenizers without a limit declare 10**30."""
TEST_LETTERS = "ACGGTACATTGCAGCTTAACCGGATCCAGATTACAGCATGTTGGCACT"
"""Letters with which tokenizer and model are tried: their number is a multiple of 1 to 4 and 6, the
usual lengths of k-mers, and the three letters at either end occur nowhere else in it."""


_LETTERS = re.compile("[A-Za-z]")
"""A letter in the text of a token, which may also have marks of the beginning of a word."""


class AddedTokens(NamedTuple):
    """Numbers of tokens that a tokenizer adds before and after those of a sequence."""

    before: int
    """Number of tokens before them."""
    after: int
    """Number of tokens after them."""


@dataclass(frozen=True, kw_only=True)
class Tokenizer:
    """Turns prepared letters into token ids, by a tokenizer of transformers or of the harness."""

    inner: Any
    """A tokenizer of transformers, or a `WordTokenizer` of the harness."""
    special: bool = True
    """Whether the tokenizer of transformers adds its special tokens."""
    prefix: str = ""
    """Text before each sequence."""
    spaced: bool = False
    """Whether letters are separated by spaces."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of each call of the tokenizer of transformers."""

    @property
    def is_own(self) -> bool:
        """Whether the tokenizer is one of the harness."""
        return isinstance(self.inner, WordTokenizer)

    @property
    def is_fast(self) -> bool:
        """Whether the tokenizer itself can divide a sequence into windows."""
        return not self.is_own and bool(self.inner.is_fast)

    @property
    def limit(self) -> int | None:
        """The tokenizer's maximum number of tokens; None if it declares none."""
        declared = None if self.is_own else self.inner.model_max_length
        return declared if declared and 0 < declared < LIMIT_MAX else None

    @property
    def pad_id(self) -> int | None:
        """The id of the padding token, else of the end token; None if it has neither."""
        ids = (self.inner.pad_token_id, getattr(self.inner, "eos_token_id", None))
        return next((int(token_id) for token_id in ids if token_id is not None), None)

    @property
    def unknown_id(self) -> int | None:
        """The id of the unknown token; None if there is none."""
        declared = self.inner.unknown if self.is_own else getattr(self.inner, "unk_token_id", None)
        return None if declared is None else int(declared)

    @property
    def special_count(self) -> int:
        """Number of tokens added to a sequence; with a `WordTokenizer`, including the prefix."""
        if self.is_own:
            return len(self.inner.before) + len(self.inner.after)
        return int(self.inner.num_special_tokens_to_add()) if self.special else 0

    def __len__(self) -> int:
        """Return the number of entries of the vocabulary."""
        return 1 + max(self.inner.vocabulary.values()) if self.is_own else len(self.inner)

    def ids(self, letters: Sequence[str], *, special: bool = True) -> list[list[int]]:
        """Return the token ids of each sequence, not truncated.

        Special tokens and the prefix are added only if `special` is True.
        """
        if isinstance(self.inner, WordTokenizer):
            return self.inner.encode(letters, special=special)
        uncut: list[list[int]] = self.call(letters, special=special, truncation=False)["input_ids"]
        return uncut

    def call(self, letters: Sequence[str], *, special: bool = True, **options: Any) -> Any:
        """Return the result of the tokenizer of transformers for sequences; empty for none.

        Special tokens and the prefix are added only if `special` is True; `options` are further
        arguments of the call.
        """
        if not letters:
            return {"input_ids": [], "overflow_to_sample_mapping": []}
        special_option = {} if special and self.special else {"add_special_tokens": False}
        return self.inner(
            [self._text(sequence, prefixed=special) for sequence in letters],
            padding=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
            **special_option,
            **self.arguments,
            **options,
        )

    def added_tokens(self) -> AddedTokens | None:
        """Return the numbers of tokens added around a sequence; None if they cannot be found."""
        if self.is_own:
            return AddedTokens(len(self.inner.before), len(self.inner.after))
        (framed_ids,) = self.ids([TEST_LETTERS])
        (own_ids,) = self.ids([TEST_LETTERS], special=False)
        for start in range(len(framed_ids) - len(own_ids) + 1):
            if framed_ids[start : start + len(own_ids)] == own_ids:
                return AddedTokens(start, len(framed_ids) - len(own_ids) - start)
        return None

    def name(self, token: int) -> str:
        """Return the text of the token with an id, for messages."""
        if self.is_own:
            return next((k for k, v in self.inner.vocabulary.items() if v == token), "")
        return str(self.inner.convert_ids_to_tokens(token))

    def letters_of_ids(self) -> list[int]:
        """Return the number of letters of the token with each id; special tokens have none."""
        counts = [0] * (max(len(self), 1 + max((self.unknown_id or 0), 0)) + 1)
        if self.is_own:
            for token, token_id in self.inner.vocabulary.items():
                counts[token_id] = len(token)
            return counts
        tokens = self.inner.convert_ids_to_tokens(list(range(len(self))))
        special = set(self.inner.all_special_ids)
        for token_id, token in enumerate(tokens):
            if token_id not in special:
                counts[token_id] = len(_LETTERS.findall(token or ""))
        return counts

    def _text(self, letters: str, *, prefixed: bool) -> str:
        """Return the text that the tokenizer gets for a sequence."""
        spaced = " ".join(letters) if self.spaced else letters
        return self.prefix + spaced if prefixed else spaced


def check_tokenizer(options: Options) -> None:
    """Raise ExtractorError for a tokenizer that does not exist, before anything is loaded."""
    check_class("tokenizer", options.tokenizer, ("auto", *OWN_TOKENIZERS))


def load_tokens(origin: Origin, options: Options) -> Tokenizer:
    """Return the tokenizer that the options declare.

    For one-hot letters, it is the tokenizer of single letters. Raise ExtractorError if the declared
    class is no tokenizer.
    """
    if options.input == "one_hot_letters":
        return Tokenizer(inner=letter_tokenizer())
    if options.tokenizer in OWN_TOKENIZERS:
        return Tokenizer(inner=word_tokenizer(options, origin))
    class_name = "AutoTokenizer" if options.tokenizer == "auto" else options.tokenizer
    inner = class_of(class_name, origin).from_pretrained(origin.loads_from, **origin.keywords)
    if not callable(inner):
        msg = f"tokenizer is {options.tokenizer!r}, whose from_pretrained returns no tokenizer: "
        msg += "name another class"
        raise ExtractorError(msg)
    return Tokenizer(
        inner=inner,
        special=options.special_tokens,
        prefix=_with_special_tokens(options.prefix, inner),
        spaced=options.letters == "spaced",
        arguments=options.tokenizer_arguments,
    )


def _with_special_tokens(prefix: str, inner: Any) -> str:  # any tokenizer of transformers
    """Return the prefix with `{bos_token}` and the like replaced by the tokenizer's texts."""

    def text(match: re.Match[str]) -> str:
        token = getattr(inner, match[1], None)
        if not isinstance(token, str):
            msg = (
                f"prefix is {prefix!r}, but the tokenizer has no {match[1]}: write its text instead"
            )
            raise ExtractorError(msg)
        return token

    return re.sub(r"\{([a-z]+_token)\}", text, prefix)
