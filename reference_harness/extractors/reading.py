"""Which letters of a sequence reach the model, by its tokens."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .base import Reading
from .preparation import Preparation
from .tokens import Encoder

# Letters whose tokens show whether a token's text is the letters that it stands for.
_PROBE = "ACGGTACATTGCAGCTTAACCGGATCCAGATTACAGCATGTTGGCACT"
# Letters that a tokenizer of k-mers may drop at the end of these: it is of words of up to eight.
_DROPPED_MAX = 7


class Reader:
    """Counts what an encoder reads of sequences.

    Where the text of a token is the letters that it stands for, as with letters, k-mers without
    overlap and learned vocabularies, these are counted; else the share of the tokens that are kept
    is taken for that of the letters.
    """

    def __init__(self, encoder: Encoder, prepare: Preparation) -> None:
        self._encoder = encoder
        self._prepare = prepare

    @cached_property
    def _letters(self) -> npt.NDArray[np.int64]:
        """Letters that each id of the vocabulary stands for."""
        return np.array(self._encoder.tokens.letters_of_ids(), dtype=np.int64)

    @cached_property
    def _spells(self) -> bool:
        """Whether the letters of the tokens of a text are its letters, each once."""
        (ids,) = self._encoder.tokens.ids([_PROBE], special=False)
        spelled = int(self._letters[ids].sum())
        return len(_PROBE) - _DROPPED_MAX <= spelled <= len(_PROBE)

    def read(self, sequences: Sequence[str]) -> Reading:
        """Return what is read of sequences, together. Raises ExtractorError as encoding does."""
        texts = self._prepare.unfilled(sequences)
        tokens, limit = self._encoder.tokens, self._encoder.max_length
        cuts = limit is not None and self._encoder.truncation in ("right", "left")
        encoded = self._encoder.encode(texts)[0] if cuts else tokens.ids(texts)
        count, known_tokens, letters = self._counts(encoded)
        shortened = np.array(
            [len(text) < len(whole) for text, whole in zip(texts, sequences, strict=True)]
        )
        text_lengths = np.array([len(text) for text in texts], dtype=np.int64)
        full = np.array([cuts and len(ids) == limit for ids in encoded], dtype=np.bool_)
        doubtful = np.flatnonzero(full & ((letters < text_lengths) if self._spells else full))
        uncut = dict(zip(doubtful.tolist(), tokens.ids([texts[i] for i in doubtful]), strict=True))
        cut = np.array([len(uncut.get(i, ids)) > len(ids) for i, ids in enumerate(encoded)])
        if self._spells:
            read = np.minimum(letters, text_lengths)
        else:
            around = np.array([len(ids) for ids in encoded], dtype=np.int64) - count
            whole_count = [len(uncut.get(i, ids)) for i, ids in enumerate(encoded)] - around
            read = text_lengths * known_tokens // np.maximum(whole_count, 1)
        return Reading(
            given=sum(map(len, sequences)),
            read=int(read.sum()),
            cut=int((cut | shortened).sum()),
            tokens=int(count.sum()),
            unknown=int((count - known_tokens).sum()),
        )

    def _counts(self, pieces: Sequence[Sequence[int]]) -> tuple[npt.NDArray[np.int64], ...]:
        """Return of each piece its own tokens, those that are known, and the letters of these."""
        frame, unknown = self._encoder.frame, self._encoder.tokens.unknown_id
        before, after = (frame.before, frame.after) if frame else (0, 0)
        counts = np.zeros((3, len(pieces)), dtype=np.int64)
        for number, piece in enumerate(pieces):
            token_ids = np.asarray(piece[before : len(piece) - after], dtype=np.int64)
            known_ids = token_ids if unknown is None else token_ids[token_ids != unknown]
            counts[:, number] = len(token_ids), len(known_ids), self._letters[known_ids].sum()
        return counts[0], counts[1], counts[2]
