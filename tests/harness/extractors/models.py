"""Tiny models with random weights, saved as a contributor's folder would be.

The tests and the bench call `save`.
"""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from tokenizers.processors import TemplateProcessing
from transformers import (
    BertConfig,
    BertModel,
    EsmConfig,
    EsmModel,
    GPT2Config,
    GPT2Model,
    LlamaConfig,
    LlamaModel,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")
UNKNOWN = "[UNK]"
VOCABULARY = {token: i for i, token in enumerate((*SPECIAL, *"ACGTN"))}
MAX_LENGTH = 64
KINDS = ("bert", "esm", "gpt2", "llama")
DECODERS = ("gpt2", "llama")


def save(
    kind: str, folder: Path, *, seed: int = 0, large: bool = False, width: int | None = None
) -> Path:
    """Write config, weights and tokenizer of one model; `large` is four layers of 256.

    `width` is that of the layers between.
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = _model(kind, large=large, between=width)
    model.train(mode=False)
    model.save_pretrained(folder)
    tokenizer(decoder=kind in DECODERS, limit=1024 if large else MAX_LENGTH).save_pretrained(folder)
    return folder


def tokenizer(
    *, decoder: bool = False, limit: int = MAX_LENGTH, pattern: str = "."
) -> PreTrainedTokenizerFast:
    """One token a match of `pattern`: letters, unless another pattern is given."""
    inner = Tokenizer(WordLevel(VOCABULARY, unk_token=UNKNOWN))
    inner.pre_tokenizer = Split(Regex(pattern), "isolated")
    if not decoder:
        inner.post_processor = TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
        )
    extra = {} if decoder else {"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token=SPECIAL[0],
        unk_token=UNKNOWN,
        padding_side="left" if decoder else "right",
        model_max_length=limit,
        **extra,
    )


def _model(kind: str, *, large: bool, between: int | None) -> PreTrainedModel:
    width, layers, heads = (256, 4, 4) if large else (32, 2, 2)
    limit = 1024 if large else MAX_LENGTH
    shared: dict[str, Any] = {
        "vocab_size": len(VOCABULARY),
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": between or 4 * width,
        "max_position_embeddings": limit,
        "initializer_range": 0.3 if not large else 0.02,
    }
    if kind == "bert":
        return BertModel(BertConfig(**shared))
    if kind == "esm":
        return EsmModel(
            EsmConfig(
                **shared,
                pad_token_id=0,
                mask_token_id=4,
                position_embedding_type="rotary",
                token_dropout=True,
            )
        )
    if kind == "llama":
        return LlamaModel(LlamaConfig(**shared, num_key_value_heads=heads))
    return GPT2Model(
        GPT2Config(
            vocab_size=len(VOCABULARY),
            n_embd=width,
            n_layer=layers,
            n_head=heads,
            n_positions=limit,
            initializer_range=shared["initializer_range"],
        )
    )
