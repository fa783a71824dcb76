"""Turn sequences into token ids: truncation, windows and padding."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .base import ExtractorError
from .tokenizer import AddedTokens, Tokenizer


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """A tokenizer with a limit: every piece that `encode` returns has 1 to `max_length` tokens."""

    tokens: Tokenizer
    """The tokenizer."""
    max_length: int | None
    """Maximum number of tokens of a piece, including special ones; None for no limit."""
    truncation: str
    """End that is cut off ("right", "left"), "windows", or "none" (an error if too long)."""
    stride: int
    """Number of tokens that two consecutive windows share."""
    pad_id: int
    """Token id for padding."""
    padding: str
    """End at which `pad` adds padding: "right" or "left"."""
    embedding_rows: int | None
    """Number of rows of the model's table of embeddings; None if unknown."""
    added_tokens: AddedTokens | None
    """Numbers of special tokens around a sequence; None if they could not be found."""
    full_last: bool = False
    """Whether the last window is moved to the left until it is full."""
    pad_to: int | None = None
    """Number of tokens to which each batch is padded; None: the number of its longest piece."""

    def __post_init__(self) -> None:
        if self.max_length is None:
            return
        special = self.tokens.special_count
        if self.max_length <= special + self.stride:
            msg = (
                f"max_length is {self.max_length}, but {special} special tokens and a stride of "
                f"{self.stride} leave no token for the sequence: pass a larger max_length"
            )
            raise ExtractorError(msg)
        if self._cuts_itself() and self.added_tokens is None:
            msg = (
                f"truncation is {self.truncation!r}, but the special tokens and prefix could not "
                "be found around the tokens of a sequence: use truncation right without a prefix"
            )
            raise ExtractorError(msg)

    def count(self, letters: Sequence[str]) -> list[int]:
        """Return the number of tokens of each sequence before truncation."""
        return [len(ids) for ids in self.tokens.ids(letters)]

    def encode(self, letters: Sequence[str]) -> tuple[list[list[int]], np.ndarray]:
        """Return the token ids of each piece to embed, and the index of each piece's sequence.

        A sequence has one piece, unless `truncation` is "windows". Raise ExtractorError if a
        sequence has no token, a token for which the model has no embedding, or, if `truncation` is
        "none", too many tokens.
        """
        rows: np.ndarray = np.arange(len(letters))
        if self.max_length is None:
            ids = self.tokens.ids(letters)
        elif self.truncation == "none":
            ids = self.tokens.ids(letters)
            self._check_lengths(ids)
        elif self._cuts_itself():
            pieces_by_sequence = [
                self._cut(sequence_ids) for sequence_ids in self.tokens.ids(letters)
            ]
            ids = [piece for pieces in pieces_by_sequence for piece in pieces]
            rows = np.repeat(rows, [len(pieces) for pieces in pieces_by_sequence])
        else:
            ids, rows = self._cut_by_tokenizer(letters, rows)
        self._check_pieces(ids, rows, letters)
        return ids, rows

    def pad(self, pieces: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Return token ids and mask, both (b, t) int64, padded to `pad_to` or the longest piece."""
        width = self.pad_to or max(map(len, pieces))
        ids = np.full((len(pieces), width), self.pad_id, dtype=np.int64)
        mask = np.zeros((len(pieces), width), dtype=np.int64)
        for row, piece in enumerate(pieces):
            start = width - len(piece) if self.padding == "left" else 0
            ids[row, start : start + len(piece)] = piece
            mask[row, start : start + len(piece)] = 1
        return torch.from_numpy(ids), torch.from_numpy(mask)

    def own_tokens(self, mask: Tensor, *, before: bool) -> Tensor:
        """Return the mask (b, t) without the tokens that were added after each sequence.

        With `before`, the tokens that were added before each sequence are left out, too. A row that
        has only added tokens keeps its mask. `added_tokens` must not be None.
        """
        if self.added_tokens is None:
            raise AssertionError
        position = mask.cumsum(dim=1)
        count = mask.sum(dim=1, keepdim=True)
        sequence_mask = mask * (position <= count - self.added_tokens.after)
        if before:
            sequence_mask = sequence_mask * (position > self.added_tokens.before)
        return torch.where(sequence_mask.any(dim=1, keepdim=True), sequence_mask, mask)

    def _cuts_itself(self) -> bool:
        """Whether this class truncates sequences, since the tokenizer does not support that."""
        if self.max_length is None or self.truncation == "none":
            return False
        if self.tokens.is_own:
            return True
        is_windows = self.truncation == "windows"
        is_unsupported = is_windows and (not self.tokens.is_fast or self.full_last)
        return is_unsupported or (bool(self.tokens.prefix) and self.truncation != "right")

    def _cut(self, ids: list[int]) -> list[list[int]]:
        """Return the pieces of the sequence with these token ids; one piece if it is short enough.

        Each piece is a part of the sequence's own tokens, with the added tokens around it.
        """
        if self.added_tokens is None or self.max_length is None:
            raise AssertionError
        before, after = self.added_tokens
        end = len(ids) - after
        sequence_ids, length_max = ids[before:end], self.max_length - before - after
        if length_max <= self.stride:
            msg = (
                f"max_length is {self.max_length}, but {before + after} special tokens "
                f"and a stride of {self.stride} leave no token for the sequence: pass a larger "
                "max_length"
            )
            raise ExtractorError(msg)
        if len(sequence_ids) <= length_max:
            return [ids]
        if self.truncation == "windows":
            starts = list(range(0, len(sequence_ids) - self.stride, length_max - self.stride))
            if self.full_last:
                starts[-1] = len(sequence_ids) - length_max
            windows = [sequence_ids[start : start + length_max] for start in starts]
        else:
            windows = [
                sequence_ids[-length_max:]
                if self.truncation == "left"
                else sequence_ids[:length_max]
            ]
        return [[*ids[:before], *window, *ids[end:]] for window in windows]

    def _cut_by_tokenizer(
        self, letters: Sequence[str], rows: np.ndarray
    ) -> tuple[list[list[int]], np.ndarray]:
        """Return what `encode` returns, cut by a tokenizer of transformers."""
        is_windows = self.truncation == "windows"
        self.tokens.inner.truncation_side = "left" if self.truncation == "left" else "right"
        options: dict[str, Any] = {"truncation": True, "max_length": self.max_length}
        if is_windows:
            options |= {"return_overflowing_tokens": True, "stride": self.stride}
        encoded = self.tokens.call(letters, **options)
        if is_windows:
            rows = np.asarray(encoded["overflow_to_sample_mapping"], dtype=np.int64)
        ids: list[list[int]] = encoded["input_ids"]
        if self.added_tokens is not None and not is_windows and self.max_length is not None:
            # A tokenizer with its own code may ignore these options.
            ids = [
                sequence_ids if len(sequence_ids) <= self.max_length else self._cut(sequence_ids)[0]
                for sequence_ids in ids
            ]
        self._check_lengths(ids)
        return ids, rows

    def _check_lengths(self, ids: list[list[int]]) -> None:
        """Raise ExtractorError if a sequence has more tokens than the limit."""
        longest = max(range(len(ids)), key=lambda i: len(ids[i]), default=0)
        if self.max_length is None or not ids or len(ids[longest]) <= self.max_length:
            return
        msg = (
            f"sequence {longest} has {len(ids[longest])} tokens, expected at most "
            f"{self.max_length}: declare a truncation (right, left or windows)"
        )
        raise ExtractorError(msg)

    def _check_pieces(self, ids: list[list[int]], rows: np.ndarray, letters: Sequence[str]) -> None:
        """Raise ExtractorError for a piece without tokens, and for an id unknown to the model."""
        for row, piece in zip(rows, ids, strict=True):
            if not piece:
                msg = (
                    f"sequence {row} ({letters[int(row)][:20]!r}) has no token, "
                    "expected at least one: leave empty sequences out"
                )
                raise ExtractorError(msg)
            id_max = max(piece)
            if self.embedding_rows is not None and id_max >= self.embedding_rows:
                msg = (
                    f"sequence {row} has token {id_max} ({self.tokens.name(id_max)!r}), but the "
                    f"model has embeddings only for 0 to {self.embedding_rows - 1}: use the "
                    "model's own tokenizer, or remove such letters from the sequences"
                )
                raise ExtractorError(msg)
