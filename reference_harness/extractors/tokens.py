"""From sequences to token ids: truncation, windows and padding, each said in the record."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .base import ExtractorError

TRUNCATIONS = ("right", "left", "windows", "none")


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """A tokenizer with a limit: every piece it gives has from 1 to `max_length` tokens."""

    tokenizer: Any
    max_length: int | None
    """Tokens, special tokens included; None for no limit."""
    truncation: str
    """Which end is cut ("right", "left"), "windows", or "none": too long is then an error."""
    stride: int
    """Tokens that a window shares with the one before it."""
    pad_id: int
    padding: str

    def __post_init__(self) -> None:
        if self.truncation not in TRUNCATIONS:
            msg = f"truncation is {self.truncation!r}, expected one of {', '.join(TRUNCATIONS)}"
            raise ExtractorError(msg)
        if self.padding not in ("right", "left"):
            msg = f"padding is {self.padding!r}, expected right or left"
            raise ExtractorError(msg)
        if self.max_length is None:
            return
        special = self.tokenizer.num_special_tokens_to_add()
        if self.max_length <= special + self.stride:
            msg = (
                f"max_length is {self.max_length}, of which {special} are special tokens and "
                f"{self.stride} are the stride: nothing is left; pass a larger max_length"
            )
            raise ExtractorError(msg)
        if self.truncation == "windows" and not self.tokenizer.is_fast:
            msg = "windows need a fast tokenizer (tokenizer.json): use truncation right or left"
            raise ExtractorError(msg)

    def count(self, sequences: Sequence[str]) -> list[int]:
        """Return the tokens each sequence would have if nothing were cut."""
        return [len(ids) for ids in self._ids(sequences)]

    def encode(self, sequences: Sequence[str]) -> tuple[list[list[int]], np.ndarray]:
        """Return the pieces to embed and, for each, the row of its sequence.

        Rows have one piece each, unless `truncation` is "windows".
        Raises ExtractorError when a sequence has no token, or too many under "none".
        """
        rows: np.ndarray = np.arange(len(sequences))
        if self.max_length is None:
            ids = self._ids(sequences)
        elif self.truncation == "none":
            ids = self._ids(sequences)
            longest = max(range(len(ids)), key=lambda i: len(ids[i]), default=0)
            if ids and len(ids[longest]) > self.max_length:
                msg = (
                    f"sequence {longest} has {len(ids[longest])} tokens, expected at most "
                    f"{self.max_length}: declare a truncation (right, left or windows)"
                )
                raise ExtractorError(msg)
        else:
            windows = self.truncation == "windows"
            self.tokenizer.truncation_side = "left" if self.truncation == "left" else "right"
            coded = self._call(
                sequences,
                truncation=True,
                max_length=self.max_length,
                **({"return_overflowing_tokens": True, "stride": self.stride} if windows else {}),
            )
            ids = coded["input_ids"]
            if windows:
                rows = np.asarray(coded["overflow_to_sample_mapping"], dtype=np.int64)
        for row, piece in zip(rows, ids, strict=True):
            if not piece:
                msg = (
                    f"sequence {row} ({sequences[int(row)][:20]!r}) gives no token, "
                    "expected at least one: leave empty sequences out"
                )
                raise ExtractorError(msg)
        return ids, rows

    def pad(self, pieces: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Return ids and mask, both (b, t) int64, padded to the longest piece."""
        width = max(map(len, pieces))
        ids = np.full((len(pieces), width), self.pad_id, dtype=np.int64)
        mask = np.zeros((len(pieces), width), dtype=np.int64)
        for row, piece in enumerate(pieces):
            start = width - len(piece) if self.padding == "left" else 0
            ids[row, start : start + len(piece)] = piece
            mask[row, start : start + len(piece)] = 1
        return torch.from_numpy(ids), torch.from_numpy(mask)

    def _ids(self, sequences: Sequence[str]) -> list[list[int]]:
        ids: list[list[int]] = self._call(sequences, truncation=False)["input_ids"]
        return ids

    def _call(self, sequences: Sequence[str], **options: Any) -> Any:  # noqa: ANN401
        if not sequences:
            return {"input_ids": [], "overflow_to_sample_mapping": []}
        return self.tokenizer(
            list(sequences),
            padding=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
            **options,
        )
