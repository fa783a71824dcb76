"""Embed with any model of transformers: options declare, or trials measure, how models differ."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reference_harness.embedding import batching as batches
from reference_harness.embedding.memory import MemoryLimit

from .base import BaseEmbeddingExtractor, ExtractorError, LetterCounts
from .checkpoint import check_configuration, check_model_class, error_and_cause_text, load_model
from .compiled import compile_in_place
from .device_transfer import EncodedAhead, host_arrays, on_device, to_host
from .encoder import Encoder
from .forward_arguments import embedding_rows, inputs_of, pad_id, piece_tokens_max
from .hidden_states import HiddenStates
from .options import parse
from .origin import (
    check_code,
    check_disguises,
    check_ignored_code,
    configuration_folder,
    loadable_origin,
    origin_of,
)
from .parallel_encoding import Encoding, ParallelEncoding, encoding_processes_max
from .pooling import POOLINGS
from .preparation import preparation_of
from .tokenizer import TEST_LETTERS, check_tokenizer, load_tokens
from .version_advice import version_advice

_PADDING_EFFECT_MAX = {"float64": 1e-3, "float32": 1e-3, "float16": 5e-2, "bfloat16": 5e-2}
"""Largest effect of padding that counts as none: the distance between the embeddings of a sequence
in a batch with a longer one and of the sequence alone, relative to the length of the latter.
Rounding is at most 1e-6 in float32 and 1.1e-2 in bfloat16; unmasked padding changes an embedding by
0.1 and more."""


def _check_device(device: str) -> None:
    """Raise ExtractorError if torch cannot use a device, before weights are fetched and read."""
    try:
        torch.empty(0, device=device)
    except Exception as error:
        msg = (
            f"torch {torch.__version__} cannot use --device {device}: "
            f"{error_and_cause_text(error)}; pass --device cpu, or repair "
            "driver or torch: `nvidia-smi` lists the GPUs of this machine"
        )
        raise ExtractorError(msg) from error


class HuggingFaceExtractor(BaseEmbeddingExtractor):
    """Hidden states of a transformer, pooled under the attention mask into float32 embeddings.

    Lower case is read as upper case, as most DNA vocabularies have only upper case and would turn
    soft-masked repeats into unknown tokens; `case="sensitive"` keeps the letters.
    """

    def __init__(self, name_model: str, device: str = "cpu", **options: Any) -> None:
        """Load a local folder, or a Hub repository at the 40 hex digits of `revision`.

        `options.Options` lists all options with defaults. `layer` is "last" or an index into the
        hidden states, 0 being the embedding layer and negative ones counting from the end.
        `max_length` is in tokens, including special ones; by default it is the limit of tokenizer
        and model. For longer sequences, `truncation` cuts the "right" or the "left" end, or
        averages "windows" that overlap by `stride` tokens, weighted by their tokens; with "none"
        they are an error. `batching` is "budget" (sorted by length, `token_budget` padded tokens
        per batch), "exact" (equal lengths only) or "file" (`batch_size` sequences in the given
        order). A model that takes no attention mask, or does not use it, is batched as under
        "exact". `compile` lets torch compile the model, which changes last digits.

        Raise ExtractorError for an invalid option, and for a model that cannot be loaded.
        """
        super().__init__(name_model, device)
        parsed = parse(options)
        check_model_class(parsed)
        check_tokenizer(parsed)
        self._options = parsed
        self.memory = MemoryLimit()
        self.token_budget = parsed.token_budget
        """Maximum number of padded tokens in a batch; a run may set it before a call."""
        self.exact_limits: Sequence[batches.RowLimit] = batches.DEFAULT_EXACT_LIMITS
        """Maximum number of rows in a batch of equal lengths, by length; a run may set others."""
        self._load()
        self._prepare = preparation_of(parsed)
        self._set_up()
        self._encoding = ParallelEncoding(Encoding(self.encoder, self._prepare))
        self._encoded = EncodedAhead(self._encoding.encode)
        self._measure()
        self.compiled = parsed.compile
        if parsed.compile:
            self._compile()
        self._declare()

    def count_tokens(self, sequences: Sequence[str]) -> list[int]:
        """Return the number of tokens of each sequence before truncation, with special tokens."""
        return self.encoder.count(self._prepare.uncut(sequences))

    def read_letters(self, sequences: Sequence[str]) -> LetterCounts:
        """Return the numbers of letters and tokens that are read.

        Raise the same errors as `extract_embeddings`.
        """
        return self._encoding.read(sequences)

    def encode_in_processes(self, *, now: bool = False) -> None:
        """Allow several processes to encode; with `now`, start them at once and wait for them.

        This is only for a model that does not compute on the CPU.
        """
        self._encoding.processes_max = encoding_processes_max()
        if now and self._encoding.processes_max:
            self._encoding.start()
            self._encoding.wait()

    def ahead(self, sequences: Sequence[str]) -> None:
        """Start to encode, in a thread, the sequences of a later call of `extract_embeddings`."""
        self._encoded.begin(sequences)

    def trial(self, sequence: str) -> tuple[int, Callable[[int], object]]:
        """Return the length in tokens of the longest piece, and a function that embeds it.

        The function embeds a batch of n copies of the piece. Both may raise the errors of
        `extract_embeddings`, and out-of-memory errors.
        """
        pieces, _ = self.encoder.encode(self._prepare([sequence]))
        piece = max(pieces, key=len)
        return self.encoder.pad_to or len(piece), lambda rows: self._pooled_embeddings(
            [piece] * rows
        )

    @property
    def equal_length_max(self) -> int | None:
        """Maximum number of tokens that `equal_batch` accepts; None if there is no limit."""
        return self.encoder.pad_to or self.encoder.max_length

    def equal_batch(self, tokens: int, rows: Sequence[int]) -> np.ndarray:
        """Return the embeddings of a batch of generated pieces of `tokens` tokens, one per row.

        Each piece repeats the tokens of the test sequence, from the offset in `rows` on.
        """
        (ids,) = self._tokens.ids(self._prepare([TEST_LETTERS]))
        pieces = [[ids[(row + i) % len(ids)] for i in range(tokens)] for row in rows]
        return self._pooled_embeddings(pieces)

    def extract_embeddings(self, sequences: Sequence[str], batch_size: int = 8) -> np.ndarray:
        """Return the (n, d) float32 embeddings of n sequences, row i for sequence i.

        `batch_size` is used only with `batching="file"`. Raise ExtractorError for a sequence
        without tokens, or with one that the model does not know; DoesNotFitError for one that
        does not fit into memory even alone.
        """
        pieces, rows = self._encoded.take(sequences)
        embeddings = np.zeros((len(sequences), self._width), dtype=np.float32)
        token_counts = np.array([len(piece) for piece in pieces], dtype=np.float32)
        if self._options.window_weights == "equal":
            token_counts = np.ones_like(token_counts)
        # The weight of a sequence's only piece is exactly 1.0, whatever the other sequences.
        weights = token_counts / np.bincount(rows, weights=token_counts).astype(np.float32)[rows]
        for batch, pooled in self._embedded_batches(pieces, rows, batch_size):
            # `at` instead of `+=`: one sequence may have several windows in a batch.
            np.add.at(embeddings, rows[batch], pooled * weights[batch, None])
        return embeddings

    def _embedded_batches(
        self, pieces: list[list[int]], owners: np.ndarray, batch_size: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the indices of the pieces of each batch, and the (b, d) embeddings of these.

        `owners` are the indices of the pieces' sequences.
        """
        lengths = [self.encoder.pad_to or len(piece) for piece in pieces]
        pooled_batches = self.memory.fitting(
            self._batches(lengths, batch_size),
            lengths,
            lambda batch: self._queued_embeddings([pieces[i] for i in batch]),
            owners,
        )
        yield from host_arrays(pooled_batches)

    def _batches(self, lengths: list[int], batch_size: int) -> list[np.ndarray]:
        """Return the indices of the pieces of each batch, by the declared batching."""
        if self.batching == "file":
            return batches.batches_in_file_order(len(lengths), batch_size)
        if self.batching == "exact":
            return batches.batches_of_equal_length(lengths, self.token_budget, self.exact_limits)
        return batches.batches_within_budget(lengths, self.token_budget)

    def _pooled_embeddings(self, pieces: Sequence[list[int]]) -> np.ndarray:
        """Return the (b, d) float32 embeddings of b pieces, run as one batch."""
        return to_host(self._queued_embeddings(pieces))()

    def _queued_embeddings(self, pieces: Sequence[list[int]]) -> Tensor:
        """Return the embeddings of pieces on the device, which may still be computing them."""
        ids, mask = (on_device(array, self.device) for array in self.encoder.pad(pieces))
        with torch.inference_mode():
            hidden = self._output(ids, mask)
            return POOLINGS[self._options.pooling](hidden, self._pooled_positions(hidden, mask))

    def _pooled_positions(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Return the mask (b, t) of the positions to pool.

        If the model returns another number of positions than of tokens, all positions are pooled;
        ExtractorError is raised if the options need tokens, or if there is padding.
        """
        is_penultimate = self._options.pooling == "penultimate"
        if hidden.shape[1] == mask.shape[1]:
            if is_penultimate or not self._options.pool_special:
                return self.encoder.own_tokens(mask, before=not is_penultimate)
            return mask
        if bool(mask.all()) and not is_penultimate and self._options.pool_special:
            return torch.ones(hidden.shape[:2], dtype=torch.int64, device=hidden.device)
        msg = (
            f"{type(self.model).__name__} returns {hidden.shape[1]} positions for {mask.shape[1]} "
            "tokens, so it is unknown which of them are padding or special tokens: declare "
            "mask_inside=false, which avoids padding, and pooling mean, cls, last or max"
        )
        raise ExtractorError(msg)

    def _load(self) -> None:
        """Load the tokenizer, then the model. Raise ExtractorError if either cannot be used."""
        options = self._options
        _check_device(self.device)
        trust_remote_code = bool(options.trust_remote_code)
        origin = origin_of(self.name_model, options.revision, trust_remote_code=trust_remote_code)
        try:
            check_disguises(origin)
            check_code(origin)
            check_ignored_code(origin, options)
            check_configuration(origin, options)
            with loadable_origin(origin) as source_origin:
                self._tokens = load_tokens(source_origin, options)
                self.model, self.source = load_model(source_origin, options, self.device)
        except ExtractorError:
            raise
        except Exception as error:
            advice = version_advice(configuration_folder(origin), error, own_code=trust_remote_code)
            cause_text = "; ".join(
                sentence for sentence in (error_and_cause_text(error), advice) if sentence
            )
            msg = f"{self.name_model!r} cannot be loaded: {cause_text}"
            raise ExtractorError(msg) from error
        self.tokenizer = self._tokens.inner

    def _advice_text(self, error: Exception) -> str:
        """Return advice about the versions of libraries, as the end of a message; "" if none."""
        trust_remote_code = bool(self._options.trust_remote_code)
        origin = origin_of(
            self.name_model, self._options.revision, trust_remote_code=trust_remote_code
        )
        advice = version_advice(configuration_folder(origin), error, own_code=trust_remote_code)
        return f"; {advice}" if advice else ""

    def _set_up(self) -> None:
        """Build input, output and encoder. Raise ExtractorError for unsupported options."""
        options, model, tokens = self._options, self.model, self._tokens
        self._check_vocabulary()
        inputs = inputs_of(model, tokens, options)
        self._takes_mask = inputs.takes_mask
        self._output = HiddenStates(model, inputs, options.output, options.layer)
        self.encoder = Encoder(
            tokens=tokens,
            max_length=piece_tokens_max(model, tokens, options),
            truncation="right" if options.fixed_letters is not None else options.truncation,
            stride=options.stride,
            pad_id=pad_id(model, tokens),
            padding="left" if options.padding == "left" else "right",
            embedding_rows=None if options.input == "one_hot_letters" else embedding_rows(model),
            added_tokens=tokens.added_tokens(),
            full_last=options.last_window == "full",
            pad_to=options.pad_to,
        )
        if self.encoder.added_tokens is None and (
            options.pooling == "penultimate" or not options.pool_special
        ):
            msg = (
                "the tokenizer's special tokens could not be found around a sequence: declare "
                "pooling mean, cls, last or max with pool_special=true"
            )
            raise ExtractorError(msg)
        if options.mask_inside == "true" and not inputs.takes_mask:
            msg = (
                f"mask_inside is true, but forward of {type(model).__name__} takes no "
                "attention mask: leave mask_inside out"
            )
            raise ExtractorError(msg)

    def _check_vocabulary(self) -> None:
        """Raise ExtractorError if most tokens of DNA are unknown, so that embeddings are alike."""
        (test_tokens,), unknown = (
            self._tokens.ids([TEST_LETTERS], special=False),
            self._tokens.unknown_id,
        )
        unknown_count = sum(token == unknown for token in test_tokens)
        if test_tokens and 2 * unknown_count <= len(test_tokens):
            return
        msg = (
            f"the tokenizer does not read DNA: {unknown_count} of {len(test_tokens)} tokens of "
            f"{TEST_LETTERS!r} are unknown, so embeddings would not depend on the sequence: "
            "declare letters=spaced if it reads letters separated by spaces, tokenizer=characters "
            "or kmers with a vocabulary, or case=sensitive"
        )
        raise ExtractorError(msg)

    def _measure(self) -> None:
        """Measure the width of embeddings, and whether padding changes them."""
        options = self._options
        short_ids, long_ids = self._short_and_long_ids()
        try:
            unpadded = self._pooled_embeddings([short_ids])
            self._width = unpadded.shape[1]
            is_unmasked = options.mask_inside == "false" or not self._takes_mask
            if options.mask_inside == "auto" and self._takes_mask and options.batching != "exact":
                is_unmasked = len(short_ids) < len(long_ids) and self._padding_has_effect(
                    unpadded, short_ids, long_ids
                )
        except ExtractorError:
            raise
        except Exception as error:
            msg = (
                f"{type(self.model).__name__} does not run on a sequence of {len(short_ids)} "
                f"tokens: {error_and_cause_text(error)}; declare the options that it needs"
                f"{self._advice_text(error)}"
            )
            raise ExtractorError(msg) from error
        self.batching = "exact" if is_unmasked else options.batching

    def _short_and_long_ids(self) -> tuple[list[int], list[int]]:
        """Return the token ids of the first half of the test sequence, and of all of it."""
        (ids,) = self._tokens.ids(self._prepare([TEST_LETTERS]))
        ids = (ids or [self.encoder.pad_id])[: self.encoder.max_length]
        short_ids = ids[: max(1, len(ids) // 2)] if self._options.fixed_letters is None else ids
        return short_ids, ids

    def _compile(self) -> None:
        """Compile the model. Raise ExtractorError if embeddings change more than by rounding."""
        short_ids, long_ids = self._short_and_long_ids()
        compile_in_place(
            self.model,
            lambda: [
                self._pooled_embeddings(batch) for batch in ([short_ids], [short_ids, long_ids])
            ],
            _PADDING_EFFECT_MAX[self._options.dtype],
        )

    def _padding_has_effect(
        self, unpadded: np.ndarray, short_ids: list[int], long_ids: list[int]
    ) -> bool:
        """Whether the embedding of a sequence changes in a batch with a longer sequence."""
        padded = self._pooled_embeddings([short_ids, long_ids])[:1]
        distance = float(np.linalg.norm(padded - unpadded))
        return not distance <= _PADDING_EFFECT_MAX[self._options.dtype] * float(
            np.linalg.norm(unpadded)
        )

    def _declare(self) -> None:
        """Set the attributes that a run records about the embeddings."""
        options, limit = self._options, self.encoder.max_length
        self.layer = options.output if options.output.startswith("module:") else options.layer
        self.pooling, self.dtype, self.case = options.pooling, options.dtype, options.case
        self.scale = options.scale
        self.max_length, self.truncation = limit, "none" if limit is None else options.truncation
