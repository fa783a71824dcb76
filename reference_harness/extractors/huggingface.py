"""Embeddings of any model of transformers: what differs between models is declared or measured."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reference_harness import batching as batches
from reference_harness.memory import MemoryLimit

from .base import BaseEmbeddingExtractor, ExtractorError, Reading
from .checkpoint import cause_of, check_configuration, check_model_class, load_model
from .compiled import compile_in_place
from .encoding import Encoders, Encoding, processes_beside
from .inputs import embedding_rows, inputs_of, limit_of, pad_id
from .options import parse
from .origin import check_code, check_disguises, check_ignored_code, folder_of, loadable, origin_of
from .outputs import Output
from .pooling import POOLINGS
from .preparation import preparation_of
from .tokenizer import check_tokenizer, load_tokens
from .tokens import Encoder
from .transfer import EncodedAhead, host_arrays, on_device, to_host
from .versions import version_advice

# Largest distance of a sequence's row beside a longer one from its row alone, over the length of
# the row, at which padding is taken to be masked. Rounding alone is at most 1e-6 in float32 and
# 1.1e-2 in bfloat16; padding that is not masked changes a row by 0.1 and more.
_MASKED = {"float64": 1e-3, "float32": 1e-3, "float16": 5e-2, "bfloat16": 5e-2}
# Letters of the sequence that the width and the use of the mask are measured with.
_PROBE = "ACGGTACATTGCAGCTTAACCGGATCCAGATTACAGCATGTTGGCACT"


class HuggingFaceExtractor(BaseEmbeddingExtractor):
    """Hidden states of a transformer, pooled under the attention mask into float32 rows.

    Lower case is read as upper case, as most DNA vocabularies hold upper case alone and would
    turn soft-masked repeats into unknown tokens; `case="sensitive"` leaves letters as they are.
    """

    def __init__(self, name_model: str, device: str = "cpu", **options: Any) -> None:
        """Load a local folder, or a Hub repository at the 40 hex digits of `revision`.

        `options.Options` lists all of them with defaults. `layer` is "last" or an index into the
        hidden states, 0 being the embedding layer and negative ones counting from the end.
        `max_length` is in tokens, special tokens included; left out, it is what tokenizer and
        model take. Beyond it, `truncation` cuts the "right" or the "left" end, or averages
        "windows" that share `stride` tokens, each weighted by its tokens; under "none" a longer
        sequence is an error. `batching` is "budget" (sorted by length, `token_budget` padded
        tokens a batch), "exact" (equal lengths only) or "file" (`batch_size` rows in the order
        given). A model that takes no attention mask, or does not use it, is batched exactly.
        `compile` has torch compile the model, which moves last digits.

        Raises ExtractorError for an option that cannot be, and for a model that does not load.
        """
        super().__init__(name_model, device)
        parsed = parse(options)
        check_model_class(parsed)
        check_tokenizer(parsed)
        self._options = parsed
        self.memory = MemoryLimit()
        self.token_budget = parsed.token_budget
        """Padded tokens of a batch; a run may set it before a call."""
        self.exact_limits: Sequence[batches.RowLimit] = batches.EXACT_LIMITS
        """Rows of equal length that share a batch; a run may set what it measured."""
        self._load()
        self._prepare = preparation_of(parsed)
        self._set_up()
        self._encoders = Encoders(Encoding(self.encoder, self._prepare))
        self._encoded = EncodedAhead(self._encoders.encode)
        self._measure()
        self.compiled = parsed.compile
        if parsed.compile:
            self._compile()
        self._declare()

    def count_tokens(self, sequences: Sequence[str]) -> list[int]:
        """Return the tokens each sequence would have if nothing were cut, special ones included."""
        return self.encoder.count(self._prepare.uncut(sequences))

    def read_letters(self, sequences: Sequence[str]) -> Reading:
        """Return what is read of sequences. Raises ExtractorError as `extract_embeddings` does."""
        return self._encoders.read(sequences)

    def encode_in_processes(self, *, now: bool = False) -> None:
        """Let processes encode once that pays, or from now on, and return when these are ready.

        For a model that does not need the processors itself.
        """
        self._encoders.processes_max = processes_beside()
        if now and self._encoders.processes_max:
            self._encoders.start()
            self._encoders.wait()

    def ahead(self, sequences: Sequence[str]) -> None:
        """Begin to encode the sequences of the call after the one that comes next or is running."""
        self._encoded.begin(sequences)

    def trial(self, sequence: str) -> tuple[int, Callable[[int], object]]:
        """Return the tokens of a sequence's longest piece, and what runs a batch of n such pieces.

        Both may raise what `extract_embeddings` does; running out of memory passes through.
        """
        pieces, _ = self.encoder.encode(self._prepare([sequence]))
        piece = max(pieces, key=len)
        return self.encoder.pad_to or len(piece), lambda rows: self._pooled([piece] * rows)

    @property
    def equal_length_max(self) -> int | None:
        """The most tokens that `equal_batch` takes; None for any number."""
        return self.encoder.pad_to or self.encoder.max_length

    def equal_batch(self, tokens: int, rows: Sequence[int]) -> np.ndarray:
        """Return the embeddings of made-up pieces of so many tokens, numbered, as one batch."""
        (ids,) = self._tokens.ids(self._prepare([_PROBE]))
        pieces = [[ids[(row + i) % len(ids)] for i in range(tokens)] for row in rows]
        return self._pooled(pieces)

    def extract_embeddings(self, sequences: Sequence[str], batch_size: int = 8) -> np.ndarray:
        """Return the (n, d) float32 embeddings of n sequences, row i for sequence i.

        `batch_size` counts only under `batching="file"`.
        Raises ExtractorError for a sequence without tokens, or with one the model does not have,
        DoesNotFitError for a sequence that memory cannot hold even alone.
        """
        pieces, rows = self._encoded.take(sequences)
        out = np.zeros((len(sequences), self._width), dtype=np.float32)
        tokens = np.array([len(piece) for piece in pieces], dtype=np.float32)
        if self._options.window_weights == "equal":
            tokens = np.ones_like(tokens)
        # A sequence of one piece has the weight 1.0 exactly, whatever else there is to embed.
        share = tokens / np.bincount(rows, weights=tokens).astype(np.float32)[rows]
        for batch, pooled in self._run(pieces, rows, batch_size):
            # at, not +=: one sequence may have several windows in a batch.
            np.add.at(out, rows[batch], pooled * share[batch, None])
        return out

    def _run(
        self, pieces: list[list[int]], owners: np.ndarray, batch_size: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        lengths = [self.encoder.pad_to or len(piece) for piece in pieces]
        results = self.memory.fitting(
            self._batches(lengths, batch_size),
            lengths,
            lambda batch: self._queued([pieces[i] for i in batch]),
            owners,
        )
        yield from host_arrays(results)

    def _batches(self, lengths: list[int], batch_size: int) -> list[np.ndarray]:
        if self.batching == "file":
            return batches.file_order(len(lengths), batch_size)
        if self.batching == "exact":
            return batches.exact_length(lengths, self.token_budget, self.exact_limits)
        return batches.token_budget(lengths, self.token_budget)

    def _pooled(self, pieces: Sequence[list[int]]) -> np.ndarray:
        """Return the (b, d) float32 rows of b pieces that are run as one batch."""
        return to_host(self._queued(pieces))()

    def _queued(self, pieces: Sequence[list[int]]) -> Tensor:
        """Return the same on the device, where it may not be computed yet."""
        ids, mask = (on_device(array, self.device) for array in self.encoder.pad(pieces))
        with torch.inference_mode():
            hidden = self._output(ids, mask)
            return POOLINGS[self._options.pooling](hidden, self._positions(hidden, mask))

    def _positions(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Return the mask of the positions to pool: all, where they are not those of the tokens."""
        penultimate = self._options.pooling == "penultimate"
        if hidden.shape[1] == mask.shape[1]:
            if penultimate or not self._options.pool_special:
                return self.encoder.own_tokens(mask, before=not penultimate)
            return mask
        if bool(mask.all()) and not penultimate and self._options.pool_special:
            return torch.ones(hidden.shape[:2], dtype=torch.int64, device=hidden.device)
        msg = (
            f"{type(self.model).__name__} gives {hidden.shape[1]} positions for {mask.shape[1]} "
            "tokens, so it is unknown which of them are padding or special tokens: declare "
            "mask_inside=false, which pads nothing, and pooling mean, cls, last or max"
        )
        raise ExtractorError(msg)

    def _load(self) -> None:
        """Load the tokenizer, then the model; refuse what does not fit."""
        options = self._options
        trusted = bool(options.trust_remote_code)
        origin = origin_of(self.name_model, options.revision, trust_remote_code=trusted)
        try:
            check_disguises(origin)
            check_code(origin)
            check_ignored_code(origin, options)
            check_configuration(origin, options)
            with loadable(origin) as loaded:
                self._tokens = load_tokens(loaded, options)
                self.model, self.source = load_model(loaded, options, self.device)
        except ExtractorError:
            raise
        except Exception as error:
            advice = version_advice(folder_of(origin), error, own_code=trusted)
            text = "; ".join(part for part in (cause_of(error), advice) if part)
            msg = f"{self.name_model!r} cannot be loaded: {text}"
            raise ExtractorError(msg) from error
        self.tokenizer = self._tokens.inner

    def _advice_text(self, error: Exception) -> str:
        trusted = bool(self._options.trust_remote_code)
        origin = origin_of(self.name_model, self._options.revision, trust_remote_code=trusted)
        advice = version_advice(folder_of(origin), error, own_code=trusted)
        return f"; {advice}" if advice else ""

    def _set_up(self) -> None:
        """Measure what model and tokenizer take, and refuse what they cannot do."""
        options, model, tokens = self._options, self.model, self._tokens
        self._check_vocabulary()
        inputs = inputs_of(model, tokens, options)
        self._takes_mask = inputs.takes_mask
        self._output = Output(model, inputs, options.output, options.layer)
        self.encoder = Encoder(
            tokens=tokens,
            max_length=limit_of(model, tokens, options),
            truncation="right" if options.fixed_letters is not None else options.truncation,
            stride=options.stride,
            pad_id=pad_id(model, tokens),
            padding="left" if options.padding == "left" else "right",
            rows=None if options.input == "one_hot_letters" else embedding_rows(model),
            frame=tokens.frame(),
            full_last=options.last_window == "full",
            pad_to=options.pad_to,
        )
        if self.encoder.frame is None and (
            options.pooling == "penultimate" or not options.pool_special
        ):
            msg = (
                "the tokenizer's special tokens could not be found around a sequence: declare "
                "pooling mean, cls, last or max with pool_special=true"
            )
            raise ExtractorError(msg)
        if options.mask_inside == "true" and not inputs.takes_mask:
            msg = (
                f"mask_inside is true, and forward of {type(model).__name__} takes no "
                "attention mask: leave mask_inside out"
            )
            raise ExtractorError(msg)

    def _check_vocabulary(self) -> None:
        """Refuse a tokenizer that does not know DNA: other sequences would have the same row."""
        (probe_tokens,), unknown = (
            self._tokens.ids([_PROBE], special=False),
            self._tokens.unknown_id,
        )
        lost = sum(token == unknown for token in probe_tokens)
        if probe_tokens and 2 * lost <= len(probe_tokens):
            return
        msg = (
            f"the tokenizer does not read DNA: unknown tokens of {_PROBE!r}: {lost} of "
            f"{len(probe_tokens)}; embeddings would not depend on the sequence; declare "
            "letters=spaced where it reads letters with spaces, tokenizer=characters or kmers "
            "with a vocabulary, or case=sensitive"
        )
        raise ExtractorError(msg)

    def _measure(self) -> None:
        """Run one short sequence for the width, and beside a longer one for the mask."""
        options = self._options
        half, ids = self._short_and_long()
        try:
            alone = self._pooled([half])
            self._width = alone.shape[1]
            unmasked = options.mask_inside == "false" or not self._takes_mask
            if options.mask_inside == "auto" and self._takes_mask and options.batching != "exact":
                unmasked = len(half) < len(ids) and self._leaks(alone, half, ids)
        except ExtractorError:
            raise
        except Exception as error:
            msg = (
                f"{type(self.model).__name__} does not run on a sequence of {len(half)} tokens: "
                f"{cause_of(error)}; declare what it needs{self._advice_text(error)}"
            )
            raise ExtractorError(msg) from error
        self.batching = "exact" if unmasked else options.batching

    def _short_and_long(self) -> tuple[list[int], list[int]]:
        """Return the tokens of the sequence that is measured with, and of its first half."""
        (ids,) = self._tokens.ids(self._prepare([_PROBE]))
        ids = (ids or [self.encoder.pad_id])[: self.encoder.max_length]
        half = ids[: max(1, len(ids) // 2)] if self._options.fixed_letters is None else ids
        return half, ids

    def _compile(self) -> None:
        """Compile the model, whose rows must stay what they are but for rounding."""
        half, ids = self._short_and_long()
        compile_in_place(
            self.model,
            lambda: [self._pooled(batch) for batch in ([half], [half, ids])],
            _MASKED[self._options.dtype],
        )

    def _leaks(self, alone: np.ndarray, short: list[int], long: list[int]) -> bool:
        """Whether the row of a sequence is another one beside a longer sequence."""
        beside = self._pooled([short, long])[:1]
        distance = float(np.linalg.norm(beside - alone))
        return not distance <= _MASKED[self._options.dtype] * float(np.linalg.norm(alone))

    def _declare(self) -> None:
        """Set the attributes that the record has of the embeddings."""
        options, limit = self._options, self.encoder.max_length
        self.layer = options.output if options.output.startswith("module:") else options.layer
        self.pooling, self.dtype, self.case = options.pooling, options.dtype, options.case
        self.scale = options.scale
        self.max_length, self.truncation = limit, "none" if limit is None else options.truncation
