"""From sequences to token ids: truncation, windows and padding, each said in the record."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .base import ExtractorError
from .tokenizer import Frame, Tokens


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """A tokenizer with a limit: every piece it gives has from 1 to `max_length` tokens."""

    tokens: Tokens
    max_length: int | None
    """Tokens, special tokens included; None for no limit."""
    truncation: str
    """Which end is cut ("right", "left"), "windows", or "none": too long is then an error."""
    stride: int
    """Tokens that a window shares with the one before it."""
    pad_id: int
    padding: str
    rows: int | None
    """Rows of the model's table of embeddings; None where it is unknown."""
    frame: Frame | None
    """The special tokens around a sequence; None where they could not be measured."""
    full_last: bool = False
    """Whether the last window is moved back until it is full."""
    pad_to: int | None = None
    """Tokens that each batch is padded to; None: those of its longest piece."""

    def __post_init__(self) -> None:
        if self.max_length is None:
            return
        special = self.tokens.special_count
        if self.max_length <= special + self.stride:
            msg = (
                f"max_length is {self.max_length}, of which {special} are special tokens and "
                f"{self.stride} are the stride: nothing is left; pass a larger max_length"
            )
            raise ExtractorError(msg)
        if self._cuts_itself() and self.frame is None:
            msg = (
                f"truncation is {self.truncation!r}, and the special tokens and prefix could not "
                "be found around the tokens of a sequence: use truncation right without a prefix"
            )
            raise ExtractorError(msg)

    def count(self, letters: Sequence[str]) -> list[int]:
        """Return the tokens each sequence would have if nothing were cut."""
        return [len(ids) for ids in self.tokens.ids(letters)]

    def encode(self, letters: Sequence[str]) -> tuple[list[list[int]], np.ndarray]:
        """Return the pieces to embed and, for each, the row of its sequence.

        Rows have one piece each, unless `truncation` is "windows".
        Raises ExtractorError when a sequence has no token, too many under "none", or one that the
        model has no embedding for.
        """
        rows: np.ndarray = np.arange(len(letters))
        if self.max_length is None:
            ids = self.tokens.ids(letters)
        elif self.truncation == "none":
            ids = self.tokens.ids(letters)
            self._refuse_long(ids)
        elif self._cuts_itself():
            cut = [self._cut(sequence_ids) for sequence_ids in self.tokens.ids(letters)]
            ids = [piece for pieces in cut for piece in pieces]
            rows = np.repeat(rows, [len(pieces) for pieces in cut])
        else:
            ids, rows = self._cut_by_tokenizer(letters, rows)
        self._check(ids, rows, letters)
        return ids, rows

    def pad(self, pieces: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Return ids and mask, both (b, t) int64, padded to `pad_to` or to the longest piece."""
        width = self.pad_to or max(map(len, pieces))
        ids = np.full((len(pieces), width), self.pad_id, dtype=np.int64)
        mask = np.zeros((len(pieces), width), dtype=np.int64)
        for row, piece in enumerate(pieces):
            start = width - len(piece) if self.padding == "left" else 0
            ids[row, start : start + len(piece)] = piece
            mask[row, start : start + len(piece)] = 1
        return torch.from_numpy(ids), torch.from_numpy(mask)

    def own_tokens(self, mask: Tensor, *, before: bool) -> Tensor:
        """Return the mask (b, t) less the tokens after each sequence and, on request, before it.

        A row that has no tokens of its own keeps those it has. The frame has to be known.
        """
        if self.frame is None:
            raise AssertionError
        position = mask.cumsum(dim=1)
        count = mask.sum(dim=1, keepdim=True)
        sequence_mask = mask * (position <= count - self.frame.after)
        if before:
            sequence_mask = sequence_mask * (position > self.frame.before)
        return torch.where(sequence_mask.any(dim=1, keepdim=True), sequence_mask, mask)

    def _cuts_itself(self) -> bool:
        """Whether we cut, and not the tokenizer: it cuts a prefix off, or has no windows."""
        if self.max_length is None or self.truncation == "none":
            return False
        if self.tokens.is_own:
            return True
        windows = self.truncation == "windows"
        by_hand = windows and (not self.tokens.is_fast or self.full_last)
        return by_hand or (bool(self.tokens.prefix) and self.truncation != "right")

    def _cut(self, ids: list[int]) -> list[list[int]]:
        """Cut the sequence's own tokens; what stands around them is in every piece."""
        if self.frame is None or self.max_length is None:
            raise AssertionError
        before, end = self.frame.before, len(ids) - self.frame.after
        sequence_ids, most = ids[before:end], self.max_length - before - self.frame.after
        if most <= self.stride:
            msg = (
                f"max_length is {self.max_length}, of which {before + self.frame.after} are "
                f"special tokens and {self.stride} are the stride: pass a larger max_length"
            )
            raise ExtractorError(msg)
        if len(sequence_ids) <= most:
            return [ids]
        if self.truncation == "windows":
            starts = list(range(0, len(sequence_ids) - self.stride, most - self.stride))
            if self.full_last:
                starts[-1] = len(sequence_ids) - most
            parts = [sequence_ids[start : start + most] for start in starts]
        else:
            parts = [sequence_ids[-most:] if self.truncation == "left" else sequence_ids[:most]]
        return [[*ids[:before], *part, *ids[end:]] for part in parts]

    def _cut_by_tokenizer(
        self, letters: Sequence[str], rows: np.ndarray
    ) -> tuple[list[list[int]], np.ndarray]:
        windows = self.truncation == "windows"
        self.tokens.inner.truncation_side = "left" if self.truncation == "left" else "right"
        options: dict[str, Any] = {"truncation": True, "max_length": self.max_length}
        if windows:
            options |= {"return_overflowing_tokens": True, "stride": self.stride}
        coded = self.tokens.call(letters, **options)
        if windows:
            rows = np.asarray(coded["overflow_to_sample_mapping"], dtype=np.int64)
        ids: list[list[int]] = coded["input_ids"]
        if self.frame is not None and not windows and self.max_length is not None:
            # A tokenizer with code of its own need not heed what it is told.
            ids = [
                sequence_ids if len(sequence_ids) <= self.max_length else self._cut(sequence_ids)[0]
                for sequence_ids in ids
            ]
        self._refuse_long(ids)
        return ids, rows

    def _refuse_long(self, ids: list[list[int]]) -> None:
        longest = max(range(len(ids)), key=lambda i: len(ids[i]), default=0)
        if self.max_length is None or not ids or len(ids[longest]) <= self.max_length:
            return
        msg = (
            f"sequence {longest} has {len(ids[longest])} tokens, expected at most "
            f"{self.max_length}: declare a truncation (right, left or windows)"
        )
        raise ExtractorError(msg)

    def _check(self, ids: list[list[int]], rows: np.ndarray, letters: Sequence[str]) -> None:
        """Raise for a piece without tokens, and for an id that the model has no row for."""
        for row, piece in zip(rows, ids, strict=True):
            if not piece:
                msg = (
                    f"sequence {row} ({letters[int(row)][:20]!r}) gives no token, "
                    "expected at least one: leave empty sequences out"
                )
                raise ExtractorError(msg)
            top = max(piece)
            if self.rows is not None and top >= self.rows:
                msg = (
                    f"sequence {row} has token {top} ({self.tokens.name(top)!r}), and the model "
                    f"has embeddings for 0 to {self.rows - 1}: this tokenizer is not the model's, "
                    "or such letters have to be taken out of the sequences"
                )
                raise ExtractorError(msg)
