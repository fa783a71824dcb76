"""The harness's own tokenizers, whose tokens are letters or k-mers of a declared vocabulary."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from .base import ExtractorError
from .options import Options
from .origin import Origin

DNA_LETTERS = ("A", "C", "G", "T")
"""The letters of DNA, in the order of their columns or ids."""
_PAD_NAMES = ("[PAD]", "<pad>", "<PAD>")
"""Usual names of the padding entry of a vocabulary."""
_ALL_WORDS_ENTRY = re.compile(r"([A-Za-z]+)\^(\d)(?:-(\d))?")
"""An entry that means all words of some letters, such as `ACGT^6` or `ACGT^1-6`."""
_WORD_LETTERS_MAX = 8
"""Maximum letters of the words of an entry such as `ACGT^6`: of eight, there are 390,625."""


@dataclass(frozen=True, kw_only=True)
class WordTokenizer:
    """Cuts a sequence from the left into words of k letters without overlap."""

    vocabulary: Mapping[str, int]
    """Word -> token id."""
    k: int = 1
    """Letters per word."""
    rest: str = "unknown"
    """Treatment of letters that form no word of the vocabulary, as in `Options.rest`."""
    unknown: int | None = None
    """Id of words that are not in the vocabulary; None to refuse them."""
    before: tuple[int, ...] = ()
    """Ids added before each sequence."""
    after: tuple[int, ...] = ()
    """Ids added after each sequence."""

    @property
    def pad_token_id(self) -> int | None:
        """The id of the padding entry; None if the vocabulary has none with a usual name."""
        return next((self.vocabulary[name] for name in _PAD_NAMES if name in self.vocabulary), None)

    def encode(self, sequences: Sequence[str], *, special: bool) -> list[list[int]]:
        """Return the token ids of each sequence, with `before` and `after` if `special`."""
        before, after = (self.before, self.after) if special else ((), ())
        return [[*before, *self._word_ids(sequence), *after] for sequence in sequences]

    def _word_ids(self, sequence: str) -> list[int]:
        """Return the ids of a sequence's words, and of the letters that remain at its end."""
        end = len(sequence) - len(sequence) % self.k
        words: Sequence[str] = sequence
        if self.k > 1:
            words = [sequence[start : start + self.k] for start in range(0, end, self.k)]
        ids_or_none = list(map(self.vocabulary.get, words))
        # Usually every word is in the vocabulary, so that no loop in Python is needed.
        ids = [token_id for token_id in ids_or_none if token_id is not None]
        if len(ids) < len(ids_or_none):
            ids = []
            for word, token_id in zip(words, ids_or_none, strict=True):
                ids += self._ids_of_partial_word(word) if token_id is None else (token_id,)
        remainder = sequence[end:]
        if remainder in self.vocabulary and self.rest in ("shorter", "end"):
            ids.append(self.vocabulary[remainder])
        elif remainder:
            ids += self._ids_of_partial_word(remainder)
        return ids

    def _ids_of_partial_word(self, word: str) -> Iterator[int]:
        """Yield the ids for letters that form no word of the vocabulary, as `rest` declares."""
        if self.rest == "drop":
            return
        if self.rest in ("unknown", "end") or self.k == 1:
            yield self._unknown_id(word)
            return
        while word:
            length_max = len(word) if self.rest == "shorter" else 1
            known_part = next(
                (word[:n] for n in range(length_max, 0, -1) if word[:n] in self.vocabulary), ""
            )
            yield self.vocabulary[known_part] if known_part else self._unknown_id(word[0])
            word = word[max(1, len(known_part)) :]

    def _unknown_id(self, word: str) -> int:
        """Return the id of the unknown token. Raise ExtractorError if none is declared."""
        if self.unknown is None:
            msg = (
                f"{word!r} is not in the vocabulary: declare unknown=ENTRY for such letters, or "
                "remove them from the sequences"
            )
            raise ExtractorError(msg)
        return self.unknown


def word_tokenizer(options: Options, origin: Origin) -> WordTokenizer:
    """Return the tokenizer that the options `vocabulary`, `k`, `begin`, `end`, ... declare.

    Raise ExtractorError if the vocabulary cannot be read, or if an option has an entry that is not
    in it.
    """
    entries = _read_vocabulary(options.vocabulary, origin)

    def ids(option: str, names: str) -> tuple[int, ...]:
        stripped = [name.strip() for name in names.split(",") if name.strip()]
        for entry in stripped:
            if entry not in entries:
                msg = (
                    f"{option} names {entry!r}, expected one of the {len(entries)} entries of the "
                    f"vocabulary ({', '.join(list(entries)[:5])}, ...)"
                )
                raise ExtractorError(msg)
        return tuple(entries[name] for name in stripped)

    unknown = ids("unknown", options.unknown)
    special = options.special_tokens
    return WordTokenizer(
        vocabulary=entries,
        k=options.k or 1,
        rest=options.rest,
        unknown=unknown[0] if unknown else None,
        before=(*(ids("begin", options.begin) if special else ()), *ids("prefix", options.prefix)),
        after=ids("end", options.end) if special else (),
    )


def letter_tokenizer() -> WordTokenizer:
    """Return the tokenizer with ids 0 to 3 for A, C, G, T, and 4 for every other letter."""
    return WordTokenizer(
        vocabulary={x: i for i, x in enumerate(DNA_LETTERS)}, unknown=len(DNA_LETTERS)
    )


def _read_vocabulary(declared: str, origin: Origin) -> dict[str, int]:
    """Return entry -> id, from a text with commas or from a file of the checkpoint."""
    if "," in declared or "=" in declared or "^" in declared:
        return _vocabulary_of_text(declared)
    path = origin.file(declared)
    if path is None:
        msg = (
            f"vocabulary is {declared!r}, which is no file of {origin.name!r}: name one of its "
            "files (.txt with one entry per line, or .json), or list the entries separated by "
            "commas"
        )
        raise ExtractorError(msg)
    return _vocabulary_of_file(path)


def _vocabulary_of_text(declared: str) -> dict[str, int]:
    """Return entry -> id of each entry in a text with commas.

    The id is the number after `=`, otherwise one more than that of the previous entry.
    """
    ids: dict[str, int] = {}
    next_id = 0
    for declared_entry in declared.split(","):
        entry = declared_entry.strip()
        words_text, _, id_text = entry.rpartition("=")
        has_id = bool(words_text) and id_text.isdecimal()
        if has_id:
            next_id = int(id_text)
        words = _words_of_entry(words_text if has_id else entry)
        if entry == "" or any(word in ids for word in words):
            msg = f"vocabulary is {declared!r}, expected different entries separated by commas"
            raise ExtractorError(msg)
        ids |= {word: next_id + i for i, word in enumerate(words)}
        next_id += len(words)
    return ids


def _words_of_entry(entry: str) -> list[str]:
    """Return all words that `LETTERS^K` or `LETTERS^1-K` means, else the entry itself."""
    match = _ALL_WORDS_ENTRY.fullmatch(entry)
    if match is None:
        return [entry]
    length_min, length_max = int(match[2]), int(match[3] or match[2])
    if not 1 <= length_min <= length_max <= _WORD_LETTERS_MAX:
        msg = (
            f"vocabulary has {entry!r}, expected words of 1 to {_WORD_LETTERS_MAX} letters, such "
            "as ACGT^6 or ACGT^1-6"
        )
        raise ExtractorError(msg)
    return [
        "".join(word)
        for k in range(length_min, length_max + 1)
        for word in product(match[1], repeat=k)
    ]


def _vocabulary_of_file(path: Path) -> dict[str, int]:
    """Return entry -> id of a text file with an entry per line, or of a JSON list or object."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".json":
        return {line: number for number, line in enumerate(text.splitlines())}
    try:
        vocabulary = json.loads(text)
        vocabulary = (
            vocabulary.get("model", vocabulary) if isinstance(vocabulary, dict) else vocabulary
        )
        vocabulary = (
            vocabulary.get("vocab", vocabulary) if isinstance(vocabulary, dict) else vocabulary
        )
        pairs = (
            vocabulary.items()
            if isinstance(vocabulary, dict)
            else ((x, i) for i, x in enumerate(vocabulary))
        )
        return {str(name): int(number) for name, number in pairs}
    except (ValueError, TypeError) as error:
        msg = (
            f"vocabulary {path.name}: expected a JSON list of entries, or a JSON object of "
            "entry to id"
        )
        raise ExtractorError(msg) from error
