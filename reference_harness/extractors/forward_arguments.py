"""The arguments of a model's method forward, from its signature or from options."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .base import ExtractorError
from .options import Options
from .tokenizer import Tokenizer
from .word_tokenizer import DNA_LETTERS


@dataclass(frozen=True, kw_only=True)
class ForwardArguments:
    """Builds the keyword arguments of a model's method forward."""

    input_name: str
    """Name of the argument that gets the token ids or one-hot rows."""
    argument_names: frozenset[str]
    """Names of the parameters of forward."""
    accepts_any_keyword: bool
    """Whether forward accepts any further keyword argument."""
    input_form: str
    """Value of the option `input`: "ids", "one_hot_letters" or "one_hot_tokens"."""
    width: int
    """Columns of a one-hot row."""
    dtype: torch.dtype
    """Type of one-hot rows."""
    is_left_padded: bool
    """Whether padding is at the left."""
    constants: Mapping[str, Any]
    """Further arguments, which are the same in every call."""

    @property
    def takes_mask(self) -> bool:
        """Whether an attention mask is passed."""
        return self.takes("attention_mask") and self.input_form != "one_hot_letters"

    def takes(self, name: str) -> bool:
        """Whether forward accepts an argument of that name."""
        return name in self.argument_names or self.accepts_any_keyword

    def keyword_arguments(self, ids: Tensor, mask: Tensor) -> dict[str, Any]:
        """Return the arguments of forward for (b, t) int64 ids and mask on the model's device."""
        arguments: dict[str, Any] = {self.input_name: self._ids_or_one_hot(ids, mask)}
        if self.takes_mask:
            arguments["attention_mask"] = mask
        if "use_cache" in self.argument_names:
            arguments["use_cache"] = False
        if self.is_left_padded and "position_ids" in self.argument_names:
            # Without position ids, decoders count positions from index 0, including padding.
            arguments["position_ids"] = (mask.cumsum(dim=1) - 1).clamp(min=0)
        return {**arguments, **self.constants}

    def _ids_or_one_hot(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the token ids, or the one-hot rows that the model reads instead."""
        if self.input_form == "ids":
            return ids
        # Ids from `width` on, such as N among letters, become rows of zeros; so does padding.
        rows = functional.one_hot(ids.clamp(max=self.width), self.width + 1)[..., : self.width]
        return (rows * mask.unsqueeze(-1)).to(self.dtype)


def inputs_of(model: Any, tokens: Tokenizer, options: Options) -> ForwardArguments:
    """Return the builder of arguments for a model, according to the signature of forward.

    Raise ExtractorError if `model_arguments` has an argument that forward does not take.
    """
    parameters = inspect.signature(model.forward).parameters
    argument_names = frozenset(
        n for n, p in parameters.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    )
    accepts_any_keyword = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    input_name = next(iter(parameters), "input_ids")
    if "input_ids" in argument_names or input_name not in argument_names:
        input_name = "input_ids"
    unknown_names = sorted(set(options.model_arguments) - argument_names)
    if unknown_names and not accepts_any_keyword:
        msg = (
            f"model_arguments has {', '.join(unknown_names)}, but forward of "
            f"{type(model).__name__} takes {', '.join(sorted(argument_names))}: remove what it "
            "does not take"
        )
        raise ExtractorError(msg)
    floating_parameter = next(
        (p for p in model.parameters() if p.is_floating_point()), torch.empty(0)
    )
    is_one_hot_letters = options.input == "one_hot_letters"
    return ForwardArguments(
        input_name=input_name,
        argument_names=argument_names,
        accepts_any_keyword=accepts_any_keyword,
        input_form=options.input,
        width=len(DNA_LETTERS) if is_one_hot_letters else embedding_rows(model) or len(tokens),
        dtype=floating_parameter.dtype,
        is_left_padded=options.padding == "left",
        constants=options.model_arguments,
    )


def embedding_rows(model: Any) -> int | None:  # any torch module
    """Return the number of token ids for which the model has embeddings; None if unknown."""
    try:
        table = model.get_input_embeddings()
    except (AttributeError, NotImplementedError):
        table = None
    if isinstance(table, torch.nn.Embedding):
        return table.num_embeddings
    vocabulary_size = getattr(getattr(model, "config", None), "vocab_size", None)
    return vocabulary_size if isinstance(vocabulary_size, int) and vocabulary_size > 0 else None


def position_count(model: Any) -> int | None:
    """Return the number of the model's learned positions; None if it has no table of them."""
    for name, module in model.named_modules():
        last_name = name.rpartition(".")[2]
        if last_name in ("position_embeddings", "wpe", "embed_positions") and isinstance(
            module, torch.nn.Embedding
        ):
            # A table with a padding row counts positions from the row after it.
            unused_rows = 0 if module.padding_idx is None else module.padding_idx + 1
            return module.num_embeddings - unused_rows
    return None


def piece_tokens_max(model: Any, tokens: Tokenizer, options: Options) -> int | None:
    """Return the maximum number of tokens of a piece; None if `max_length=none` was declared.

    Raise ExtractorError if the declared limit exceeds the number of the model's positions, or if
    no limit is known.
    """
    if options.input == "one_hot_letters" and options.fixed_letters is not None:
        return options.fixed_letters
    declared, table = options.max_length, position_count(model)
    if declared is not None:
        if table is not None and declared > table:
            msg = (
                f"max_length is {declared}, expected 1 to {table}, the number of the model's "
                "positions: pass another max_length"
            )
            raise ExtractorError(msg)
        return declared
    positions = table or getattr(getattr(model, "config", None), "max_position_embeddings", None)
    limits = [n for n in (positions, tokens.limit) if isinstance(n, int) and n > 0]
    if not limits and not options.any_length:
        msg = (
            "neither the tokenizer nor the model has a maximum number of tokens, so nothing would "
            "be truncated: declare max_length=N, or max_length=none to read any length"
        )
        raise ExtractorError(msg)
    return min(limits, default=None)


def pad_id(model: Any, tokens: Tokenizer) -> int:
    """Return the token id for padding: the tokenizer's, else the model's, else 0.

    Ids for which the model has no embedding are skipped.
    """
    model_id = getattr(getattr(model, "config", None), "pad_token_id", None)
    tokenizer_id = None if tokens.is_own else tokens.inner.pad_token_id
    rows = embedding_rows(model)
    candidates = [
        token_id for token_id in (tokenizer_id, model_id, tokens.pad_id, 0) if token_id is not None
    ]
    return next(
        int(token_id)
        for token_id in candidates
        if token_id == 0 or 0 <= token_id < (rows or token_id + 1)
    )
