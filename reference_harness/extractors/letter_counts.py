"""Count the letters of a sequence that the model reads, by the tokens of the sequence."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .base import LetterCounts
from .encoder import Encoder
from .preparation import Preparation
from .tokenizer import TEST_LETTERS

_DROPPED_MAX = 7
"""Maximum number of letters at the end that a tokenizer drops as they form no k-mer, k up to
eight."""


class LetterCounter:
    """Counts the letters and tokens of sequences that an encoder reads.

    If the text of a token is the letters that it encodes (single letters, k-mers without
    overlap, learned vocabularies), letters are counted. Otherwise, if half of the tokens of a
    sequence are read, half of its letters count as read.
    """

    def __init__(self, encoder: Encoder, prepare: Preparation) -> None:
        self._encoder = encoder
        self._prepare = prepare

    @cached_property
    def _letters(self) -> npt.NDArray[np.int64]:
        """Number of letters of the token with each id of the vocabulary."""
        return np.array(self._encoder.tokens.letters_of_ids(), dtype=np.int64)

    @cached_property
    def _spells_letters(self) -> bool:
        """Whether the texts of a sequence's tokens contain each of its letters once."""
        (ids,) = self._encoder.tokens.ids([TEST_LETTERS], special=False)
        letter_count = int(self._letters[ids].sum())
        return len(TEST_LETTERS) - _DROPPED_MAX <= letter_count <= len(TEST_LETTERS)

    def read(self, sequences: Sequence[str]) -> LetterCounts:
        """Return the numbers of letters and tokens that are read.

        Raise ExtractorError as `Encoder.encode` does.
        """
        readable = self._prepare.unfilled(sequences)
        tokens, limit = self._encoder.tokens, self._encoder.max_length
        is_truncated = limit is not None and self._encoder.truncation in ("right", "left")
        encoded = self._encoder.encode(readable)[0] if is_truncated else tokens.ids(readable)
        token_counts, known_counts, letter_counts = self._counts(encoded)
        is_shortened = np.array(
            [len(text) < len(sequence) for text, sequence in zip(readable, sequences, strict=True)]
        )
        text_lengths = np.array([len(text) for text in readable], dtype=np.int64)
        is_full = np.array([is_truncated and len(ids) == limit for ids in encoded], dtype=np.bool_)
        maybe_cut_indices = np.flatnonzero(
            is_full & ((letter_counts < text_lengths) if self._spells_letters else is_full)
        )
        uncut_ids = dict(
            zip(
                maybe_cut_indices.tolist(),
                tokens.ids([readable[i] for i in maybe_cut_indices]),
                strict=True,
            )
        )
        is_cut = np.array([len(uncut_ids.get(i, ids)) > len(ids) for i, ids in enumerate(encoded)])
        if self._spells_letters:
            read_letters = np.minimum(letter_counts, text_lengths)
        else:
            added_counts = np.array([len(ids) for ids in encoded], dtype=np.int64) - token_counts
            uncut_counts = [
                len(uncut_ids.get(i, ids)) for i, ids in enumerate(encoded)
            ] - added_counts
            read_letters = text_lengths * known_counts // np.maximum(uncut_counts, 1)
        return LetterCounts(
            given=sum(map(len, sequences)),
            read=int(read_letters.sum()),
            cut=int((is_cut | is_shortened).sum()),
            tokens=int(token_counts.sum()),
            unknown=int((token_counts - known_counts).sum()),
        )

    def _counts(self, pieces: Sequence[Sequence[int]]) -> tuple[npt.NDArray[np.int64], ...]:
        """Return three arrays with a number per piece: tokens, known tokens, letters of these.

        Tokens that the tokenizer adds around a sequence do not count.
        """
        added_tokens, unknown = self._encoder.added_tokens, self._encoder.tokens.unknown_id
        before, after = (added_tokens.before, added_tokens.after) if added_tokens else (0, 0)
        counts = np.zeros((3, len(pieces)), dtype=np.int64)
        for index, piece in enumerate(pieces):
            token_ids = np.asarray(piece[before : len(piece) - after], dtype=np.int64)
            known_ids = token_ids if unknown is None else token_ids[token_ids != unknown]
            counts[:, index] = len(token_ids), len(known_ids), self._letters[known_ids].sum()
        return counts[0], counts[1], counts[2]
