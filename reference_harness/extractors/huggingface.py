"""Embeddings of any `AutoModel`: layer, pooling, length and precision chosen and declared."""

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reference_harness import batching as batches
from reference_harness.memory import MemoryLimit

from .base import BaseEmbeddingExtractor, ExtractorError
from .checkpoint import load_checkpoint
from .pooling import POOLINGS
from .tokens import Encoder

BATCHINGS = ("budget", "exact", "file")
# A tokenizer without a limit says 10**30.
_NO_LIMIT = 10**9


class HuggingFaceExtractor(BaseEmbeddingExtractor):
    """Hidden states of a transformer, pooled under the attention mask into float32 rows.

    Lower case is read as upper case, as most DNA vocabularies hold upper case alone and would
    turn soft-masked repeats into unknown tokens; `case="sensitive"` leaves letters as they are.
    """

    def __init__(
        self,
        name_model: str,
        device: str = "cpu",
        *,
        layer: str | int = "last",
        pooling: str = "mean",
        max_length: int | None = None,
        truncation: str = "right",
        stride: int = 0,
        dtype: str = "float32",
        revision: str | None = None,
        batching: str = "budget",
        token_budget: int = batches.TOKEN_BUDGET,
        padding: str = "right",
        case: str = "upper",
        trust_remote_code: bool = False,
    ) -> None:
        """Load a local folder, or a Hub repository at the 40 hex digits of `revision`.

        `layer` is "last" or an index into the hidden states, 0 being the embedding layer and
        negative ones counting from the end. `max_length` is in tokens, special tokens included;
        left out, it is what tokenizer and model take. Beyond it, `truncation` cuts the "right" or
        the "left" end, or averages "windows" that share `stride` tokens, each weighted by its
        tokens; under "none" a longer sequence is an error. `batching` is "budget" (sorted by
        length, `token_budget` padded tokens a batch), "exact" (equal lengths only) or "file"
        (`batch_size` rows in the order given).

        Raises ExtractorError for an option that cannot be, and as `load_checkpoint` does.
        """
        super().__init__(name_model, device)
        _one_of("pooling", pooling, tuple(POOLINGS))
        _one_of("batching", batching, BATCHINGS)
        _one_of("case", case, ("upper", "sensitive"))
        loaded = load_checkpoint(
            name_model,
            device,
            dtype=dtype,
            revision=revision,
            trust_remote_code=trust_remote_code,
        )
        self.model, self.tokenizer, self.source = loaded.model, loaded.tokenizer, loaded.source
        self._accepts = inspect.signature(self.model.forward).parameters
        if "attention_mask" not in self._accepts and batching != "exact":
            msg = (
                f"{type(self.model).__name__} takes no attention mask, so padding would leak into "
                "its embeddings: pass batching=exact, which pads nothing"
            )
            raise ExtractorError(msg)
        self._layer = _layer(layer, self.model)
        limit = _limit(max_length, self.model, self.tokenizer)
        self.encoder = Encoder(
            tokenizer=self.tokenizer,
            max_length=limit,
            truncation=truncation,
            stride=stride,
            pad_id=_pad_id(self.tokenizer, self.model),
            padding=padding,
        )
        self._budget, self._batching = token_budget, batching
        self.memory = MemoryLimit()
        self.layer, self.pooling, self.dtype, self.case = str(layer), pooling, dtype, case
        self.max_length, self.truncation = limit, "none" if limit is None else truncation

    def count_tokens(self, sequences: Sequence[str]) -> list[int]:
        """Return the tokens each sequence would have if nothing were cut, special ones included."""
        return self.encoder.count(self._letters(sequences))

    def extract_embeddings(self, sequences: Sequence[str], batch_size: int = 8) -> np.ndarray:
        """Return the (n, d) float32 embeddings of n sequences, row i for sequence i.

        `batch_size` counts only under `batching="file"`.
        Raises ExtractorError for a sequence without tokens, DoesNotFitError for one that memory
        cannot hold even alone.
        """
        pieces, rows = self.encoder.encode(self._letters(sequences))
        out = np.zeros((len(sequences), int(self.model.config.hidden_size)), dtype=np.float32)
        tokens = np.array([len(piece) for piece in pieces], dtype=np.float32)
        # A sequence of one piece has the weight 1.0 exactly, whatever else there is to embed.
        share = tokens / np.bincount(rows, weights=tokens).astype(np.float32)[rows]
        for batch, pooled in self._run(pieces, rows, batch_size):
            # at, not +=: one sequence may have several windows in a batch.
            np.add.at(out, rows[batch], pooled * share[batch, None])
        return out

    def _run(
        self, pieces: list[list[int]], owners: np.ndarray, batch_size: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        def pooled(batch: np.ndarray) -> np.ndarray:
            ids, mask = self.encoder.pad([pieces[i] for i in batch])
            with torch.inference_mode():
                return self._pool(ids.to(self.device), mask.to(self.device)).cpu().numpy()

        lengths = [len(piece) for piece in pieces]
        yield from self.memory.fitting(self._batches(lengths, batch_size), lengths, pooled, owners)

    def _batches(self, lengths: list[int], batch_size: int) -> list[np.ndarray]:
        if self._batching == "file":
            return batches.file_order(len(lengths), batch_size)
        if self._batching == "exact":
            return batches.exact_length(lengths, self._budget)
        return batches.token_budget(lengths, self._budget)

    def _pool(self, ids: Tensor, mask: Tensor) -> Tensor:
        inputs: dict[str, Any] = {"input_ids": ids}
        if "attention_mask" in self._accepts:
            inputs["attention_mask"] = mask
        if "use_cache" in self._accepts:
            inputs["use_cache"] = False
        if self.encoder.padding == "left" and "position_ids" in self._accepts:
            # Decoders count positions from index 0, padding included, unless they are told.
            inputs["position_ids"] = (mask.cumsum(dim=1) - 1).clamp(min=0)
        if self._layer is None:
            hidden = self.model(**inputs).last_hidden_state
        else:
            hidden = self.model(**inputs, output_hidden_states=True).hidden_states[self._layer]
        return POOLINGS[self.pooling](hidden, mask)

    def _letters(self, sequences: Sequence[str]) -> list[str]:
        return [s.upper() for s in sequences] if self.case == "upper" else list(sequences)


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        msg = f"{name} is {value!r}, expected one of {', '.join(allowed)}"
        raise ExtractorError(msg)


def _layer(layer: str | int, model: Any) -> int | None:  # noqa: ANN401 - any AutoModel
    """Return an index into the hidden states, or None for the last hidden state."""
    if layer == "last":
        return None
    count = int(model.config.num_hidden_layers) + 1
    try:
        index = int(layer)
    except ValueError:
        index = count
    if not -count <= index < count:
        msg = f"layer is {layer!r}, expected last or a number from {-count} to {count - 1}"
        raise ExtractorError(msg)
    return index


def _limit(asked: int | None, model: Any, tokenizer: Any) -> int | None:  # noqa: ANN401
    """Return the tokens a piece may have, or None when neither model nor tokenizer has a limit."""
    table = _position_table(model)
    if asked is not None:
        if asked < 1 or (table is not None and asked > table):
            most = "" if table is None else f" to {table}, the positions the model has"
            msg = f"max_length is {asked}, expected 1{most}: pass another max_length"
            raise ExtractorError(msg)
        return asked
    positions = table or getattr(model.config, "max_position_embeddings", None)
    limits = [n for n in (positions, tokenizer.model_max_length) if n and 0 < n < _NO_LIMIT]
    return min(limits, default=None)


def _position_table(model: Any) -> int | None:  # noqa: ANN401
    """Return the rows of the model's table of learned positions that a sequence can use."""
    for name, module in model.named_modules():
        ending = name.rpartition(".")[2]
        if ending in ("position_embeddings", "wpe", "embed_positions") and isinstance(
            module, torch.nn.Embedding
        ):
            # A table with a padding row counts positions from the row after it.
            used = 0 if module.padding_idx is None else module.padding_idx + 1
            return module.num_embeddings - used
    return None


def _pad_id(tokenizer: Any, model: Any) -> int:  # noqa: ANN401
    """Return any id: padded positions are masked, and their hidden states never read."""
    candidates = (tokenizer.pad_token_id, model.config.pad_token_id, tokenizer.eos_token_id, 0)
    return next(int(c) for c in candidates if c is not None)
