"""Small models with random weights, one for each way in which the published models are loaded.

Each is written as a contributor's folder would be and kept in memory as well: the rows that are
computed from the latter by hand are what the extractor has to give from the former.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import (
    BertConfig,
    BertModel,
    EsmConfig,
    EsmForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    RoFormerConfig,
    RoFormerModel,
)

from tests.harness.extractors.saving import (
    BEGIN,
    KMERS,
    LIMIT,
    STUBS,
    WORDS,
    Row,
    begun,
    framed,
    ids,
    last_state,
    mean_of,
    plain,
    remote,
    seeded,
    stubs,
    tokenizer,
    write_slow,
)

BASES = {"A": 0, "C": 1, "G": 2, "T": 3}


@dataclass(frozen=True, kw_only=True)
class Lookalike:
    """How one family is written to a folder, declared, and computed by hand."""

    save: Callable[[Path], Any]
    """Writes the folder and returns the model that it holds."""
    options: Mapping[str, Any] = field(default_factory=dict)
    row: Row
    """From the model in memory and a sequence to its row."""
    exact: bool = False
    """Whether the extractor has to find out that nothing may be padded."""


SIZES: dict[str, Any] = {
    "vocab_size": len(WORDS),
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": LIMIT,
    "initializer_range": 0.3,
    "pad_token_id": 0,
}
LLAMA = LlamaConfig(**SIZES, num_key_value_heads=2)
GENERATOR = LlamaConfig(**{**SIZES, "vocab_size": len(KMERS)}, num_key_value_heads=1)
# Heads times their width are 48, more than the 16 of the hidden states.
MISTRAL = MistralConfig(**SIZES, head_dim=24, num_key_value_heads=1, sliding_window=None)
SPLICE = BertConfig(**SIZES)
ESM: dict[str, Any] = {**SIZES, "mask_token_id": 4, "emb_layer_norm_before": False}
REMOTE = {"trust_remote_code": True}
LETTERS = {"words": WORDS, "end": "<eos>", "padding_side": "left"}


def save_generator(folder: Path) -> Any:
    """Save a Llama with the slow tokenizer of k-mers."""
    model = seeded(LlamaForCausalLM, GENERATOR)
    model.save_pretrained(folder)
    write_slow(folder, words=KMERS, k=3, begin="<cls>", bos_token=BEGIN)
    return model


def generator_ids(sequence: str) -> list[int]:
    whole = sequence[: len(sequence) - len(sequence) % 3]
    return [1, 1, *ids(whole, KMERS, 3)]


def save_biofm(folder: Path) -> Any:
    """Save a Mistral without any tokenizer."""
    model = seeded(MistralForCausalLM, MISTRAL)
    model.save_pretrained(folder)
    return model


def save_dnagpt(folder: Path) -> Any:
    """Save a stub with a vocabulary as text, an entry a line."""
    model = remote(stubs.KmerLogitsModel, rows=len(KMERS))(folder)
    (folder / "words.txt").write_text("\n".join(KMERS))
    return model


def save_omni(folder: Path) -> Any:
    """Save a stub whose file holds the numbers of its two tied weights once."""
    places = {"AutoConfig": "stubs.StubConfig", "AutoModelForCausalLM": "stubs.TiedModel"}
    model = seeded(stubs.TiedModel, stubs.StubConfig(auto_map=places))
    model.config.save_pretrained(folder)
    shutil.copy(STUBS, folder / "stubs.py")
    tokenizer(limit=LIMIT).save_pretrained(folder)
    remaining = {
        name: tensor for name, tensor in model.state_dict().items() if name != "head.weight"
    }
    save_file(remaining, folder / "model.safetensors", metadata={"format": "pt"})
    return model


def biofm_row(model: Any, sequence: str) -> np.ndarray:
    """Take the last letter before the end token."""
    with torch.no_grad():
        return np.asarray(last_state(model, torch.tensor([framed(sequence)]))[0, -2])


def splice_row(model: Any, sequence: str) -> np.ndarray:
    """Average windows of 38 letters, 19 apart, the last one at the end, with equal weights."""
    inner, step = LIMIT - 2, 19
    starts = [0]
    while starts[-1] + inner < len(sequence):
        starts.append(min(starts[-1] + step, len(sequence) - inner))
    mean = mean_of(last_state, framed)
    rows = [mean(model, sequence[start : start + inner]) for start in starts]
    return np.asarray(np.mean(rows, axis=0))


def bins_row(length: int, start: Callable[[int], int]) -> Row:
    """Average all bins of a sequence that is filled with zeros to one length."""

    def row(model: Any, sequence: str) -> np.ndarray:
        x = torch.zeros(1, length, 4)
        for index, letter in enumerate(sequence[:length], start(len(sequence[:length]))):
            if letter in BASES:
                x[0, index, BASES[letter]] = 1
        with torch.no_grad():
            return np.asarray(model(x, return_embeddings=True)[1][0].mean(dim=0))

    return row


LOOKALIKES: dict[str, Lookalike] = {
    "OmniNA": Lookalike(
        save=plain(LlamaForCausalLM, LLAMA, template="<cls> $A", side="left", pad=None),
        options={"padding": "left"},
        row=mean_of(last_state, begun),
    ),
    "METAGENE": Lookalike(
        save=plain(LlamaForCausalLM, LLAMA, template="$A <eos>", limit=LIMIT),
        options={"auto_class": "AutoModelForCausalLM"},
        row=mean_of(last_state, lambda s: [*ids(s), 2]),
    ),
    "GenomeOcean": Lookalike(
        save=plain(MistralForCausalLM, MISTRAL, side="left"),
        options={"padding": "left", "max_length": 36},
        row=mean_of(last_state, framed),
    ),
    "BioFM": Lookalike(
        save=save_biofm,
        options={
            "tokenizer": "characters",
            "vocabulary": ",".join(WORDS),
            "begin": "<cls>",
            "end": "<eos>",
            "unknown": "<unk>",
            "pooling": "penultimate",
            "padding": "left",
        },
        row=biofm_row,
    ),
    "GENERator": Lookalike(
        save=save_generator,
        options={"prefix": "{bos_token}", "multiple_of": 3, **REMOTE},
        row=mean_of(last_state, generator_ids),
    ),
    "GPT2-Gene": Lookalike(
        save=plain(
            GPT2LMHeadModel,
            GPT2Config(
                vocab_size=len(WORDS),
                n_embd=16,
                n_layer=2,
                n_head=2,
                n_positions=LIMIT,
                initializer_range=0.3,
            ),
            template="$A",
            limit=LIMIT,
        ),
        options={"auto_class": "transformers:GPT2Model"},
        row=mean_of(last_state, ids),
    ),
    "GROVER": Lookalike(
        save=plain(BertModel, SPLICE, words=(*WORDS, "")),
        row=mean_of(last_state, framed),
    ),
    "SpliceBERT": Lookalike(
        save=plain(BertModel, SPLICE, spaced=True, limit=LIMIT),
        options={
            "letters": "spaced",
            "truncation": "windows",
            "stride": 19,
            "last_window": "full",
            "window_weights": "equal",
        },
        row=splice_row,
    ),
    "NT absolute": Lookalike(
        save=plain(
            EsmForMaskedLM,
            EsmConfig(**ESM, position_embedding_type="absolute", token_dropout=True),
            template="<cls> $A",
            limit=LIMIT - 2,
        ),
        options={"auto_class": "AutoModelForMaskedLM"},
        row=mean_of(
            lambda m, t: m(t, torch.ones_like(t), output_hidden_states=True).hidden_states[-1],
            begun,
        ),
    ),
    "NT-v2 rotary": Lookalike(
        save=plain(
            EsmForMaskedLM,
            EsmConfig(**ESM, position_embedding_type="rotary", token_dropout=False),
            template="<cls> $A",
            limit=LIMIT,
        ),
        options={"auto_class": "AutoModelForMaskedLM", "pool_special": False},
        row=mean_of(lambda m, t: last_state(m, t)[:, 1:], begun),
    ),
    "DeepGene": Lookalike(
        save=plain(
            RoFormerModel,
            RoFormerConfig(**SIZES, embedding_size=16, rotary_value=False),
            template="<cls> <eos> $A",
            limit=LIMIT,
        ),
        row=mean_of(last_state, lambda s: [1, 2, *ids(s)]),
    ),
    "DNABERT": Lookalike(
        save=remote(stubs.TupleModel, of_tokenizer={}),
        options={**REMOTE, "output": "item:0", "max_length": LIMIT},
        row=mean_of(lambda m, t: m(t)[0], framed),
    ),
    "GENA": Lookalike(
        save=remote(stubs.HeadModel, of_tokenizer={}),
        options={**REMOTE, "submodule": "bert", "max_length": LIMIT},
        row=mean_of(lambda m, t: m.bert(t).last_hidden_state, framed),
    ),
    "MutBERT": Lookalike(
        save=remote(stubs.OneHotModel, of_tokenizer={}, vocab_size=len(WORDS)),
        options={**REMOTE, "input": "one_hot_tokens", "max_length": LIMIT},
        row=mean_of(
            lambda m, t: m(torch.eye(len(WORDS))[t]).last_hidden_state,
            framed,
        ),
    ),
    "HyenaDNA": Lookalike(
        save=remote(stubs.CausalModel, rows=16, slow={**LETTERS, "model_max_length": LIMIT}),
        options={**REMOTE, "special_tokens": False},
        row=mean_of(last_state, ids),
        exact=True,
    ),
    "Caduceus": Lookalike(
        save=remote(stubs.TwoStrandModel, rows=16, slow={**LETTERS, "model_max_length": LIMIT}),
        options={**REMOTE, "case": "upper"},
        row=mean_of(lambda m, t: m(t).last_hidden_state, lambda s: [*ids(s), 2]),
        exact=True,
    ),
    "eccDNAMamba": Lookalike(
        save=remote(
            stubs.TensorStatesModel,
            of_tokenizer={"template": "<cls> $A"},
            hidden_size=4096,
        ),
        options={
            **REMOTE,
            "auto_class": "repository:stubs.TensorStatesModel",
            "output": "item:1",
            "max_length": None,
        },
        row=mean_of(lambda m, t: m(t, torch.ones_like(t)).hidden_states, begun),
        exact=True,
    ),
    "Evo": Lookalike(
        save=remote(
            stubs.LogitsModel, auto="AutoModelForCausalLM", of_tokenizer={"template": "$A"}
        ),
        options={
            **REMOTE,
            "auto_class": "AutoModelForCausalLM",
            "output": "module:backbone.norm",
            "max_length": LIMIT,
        },
        row=mean_of(lambda m, t: m.backbone(m.embeddings(t))[-1], ids),
        exact=True,
    ),
    "Enformer": Lookalike(
        save=remote(stubs.BinsModel),
        options={
            **REMOTE,
            "input": "one_hot_letters",
            "fixed_letters": 64,
            "truncation": "right",
            "padding": "right",
            "output": "item:1",
            "model_arguments": '{"return_embeddings": true}',
        },
        row=bins_row(64, lambda _: 0),
        exact=True,
    ),
    "SPACE": Lookalike(
        save=remote(stubs.BinsModel),
        options={
            **REMOTE,
            "input": "one_hot_letters",
            "fixed_letters": 64,
            "truncation": "right",
            "output": "item:1",
            "model_arguments": {"return_embeddings": True},
        },
        row=bins_row(64, lambda length: (64 - length) // 2),
        exact=True,
    ),
    "LucaOne": Lookalike(
        save=remote(
            stubs.ArgumentsModel,
            task_level="token_level",
            task_type="embedding",
            slow={**LETTERS, "cls": "TypedTokenizer", "begin": "<cls>"},
        ),
        options={
            **REMOTE,
            "config_arguments": '{"task_level": "token_level"}',
            "model_arguments": '{"scale": 2.0}',
            "tokenizer_arguments": '{"seq_type": "gene"}',
            "max_length": LIMIT,
        },
        row=mean_of(lambda m, t: m(t, scale=2.0).last_hidden_state, framed),
    ),
    "Omni-DNA": Lookalike(
        save=save_omni,
        options={**REMOTE, "auto_class": "AutoModelForCausalLM"},
        row=mean_of(last_state, framed),
    ),
    "DNA-GPT": Lookalike(
        save=save_dnagpt,
        options={
            **REMOTE,
            "tokenizer": "kmers",
            "vocabulary": "words.txt",
            "k": 3,
            "unknown": "<unk>",
            "prefix": "<R>",
            "output": "module:ln_f",
            "max_length": 20,
        },
        row=mean_of(
            lambda m, t: m.ln_f(m.blocks(m.embeddings(t))[-2]),
            lambda s: [KMERS.index("<R>"), *ids(s, KMERS, 3)],
        ),
        exact=True,
    ),
}
"""Family to its lookalike."""
