"""Small models as files of tensors: no class of transformers saved them, and none loads them."""

import argparse
import json
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tests.harness.extractors import by_hand
from tests.harness.extractors.lookalikes import Lookalike
from tests.harness.extractors.saving import LIMIT, WORDS, Row, framed, ids, tokenizer

WIDTH, HEADS, LAYERS = 16, 2, 2
MARKS = ("<0>", "<=>", "<P>", "<R>")
SIXMERS = (*MARKS, *map("".join, product("NAGCT", repeat=2)))
DYNAMIC = (*MARKS, *"NAGCT", *map("".join, product("NAGCT", repeat=2)))
TENSOR = Mapping[str, tuple[int, ...]]


def tensors(shapes: TENSOR) -> dict[str, Tensor]:
    """Return seeded tensors of these shapes."""
    generator = torch.Generator().manual_seed(3)
    return {n: 0.3 * torch.randn(*shape, generator=generator) for n, shape in shapes.items()}


def gpt_shapes(rows: int) -> TENSOR:
    """Name the tensors of a decoder without biases, with heads that are left over."""
    square, inner = (WIDTH, WIDTH), 4 * WIDTH
    layer = {
        "ln_1.weight": (WIDTH,),
        "ln_2.weight": (WIDTH,),
        "attn.c_attn.weight": (3 * WIDTH, WIDTH),
        "attn.c_proj.weight": square,
        "mlp.c_fc.weight": (inner, WIDTH),
        "mlp.c_proj.weight": (WIDTH, inner),
    }
    return {
        "transformer.wte.weight": (rows, WIDTH),
        "transformer.wpe.weight": (LIMIT, WIDTH),
        **{f"transformer.h.{n}.{k}": v for n in range(LAYERS) for k, v in layer.items()},
        "transformer.ln_f.weight": (WIDTH,),
        **dict.fromkeys(("number_embedding.3.weight", "mlm_head.0.weight"), square),
        "num_regression.3.weight": (1, WIDTH),
    }


def encoder_shapes(prefix: str, layer: TENSOR, rows: int) -> TENSOR:
    """Name the tensors of an encoder as in BERT, with its head for masked tokens."""
    norms = {f"{prefix}.embeddings.LayerNorm.{name}": (WIDTH,) for name in ("weight", "bias")}
    return {
        f"{prefix}.embeddings.word_embeddings.weight": (rows, WIDTH),
        f"{prefix}.embeddings.token_type_embeddings.weight": (2, WIDTH),
        **norms,
        **{f"{prefix}.encoder.layer.{n}.{k}": v for n in range(LAYERS) for k, v in layer.items()},
        "cls.predictions.bias": (rows,),
    }


def dense(name: str, out: int, inputs: int, *, bias: bool = True) -> TENSOR:
    """Name the tensors of a projection."""
    return {f"{name}.weight": (out, inputs), **({f"{name}.bias": (out,)} if bias else {})}


def norm(name: str) -> TENSOR:
    """Name the tensors of a normalization."""
    return {f"{name}.weight": (WIDTH,), f"{name}.bias": (WIDTH,)}


GATED: TENSOR = {
    **dense("attention.self.Wqkv", 3 * WIDTH, WIDTH),
    **dense("attention.output.dense", WIDTH, WIDTH),
    **norm("attention.output.LayerNorm"),
    **dense("mlp.gated_layers", 64, WIDTH, bias=False),
    **dense("mlp.wo", WIDTH, 32),
    **norm("mlp.layernorm"),
}
PLAIN: TENSOR = {
    **{k: v for name in ("query", "key", "value")
       for k, v in dense(f"attention.self.{name}", WIDTH, WIDTH).items()},
    **dense("attention.output.dense", WIDTH, WIDTH),
    **norm("attention.output.LayerNorm"),
    **dense("intermediate.dense", 32, WIDTH),
    **dense("output.dense", WIDTH, 32),
    **norm("output.LayerNorm"),
}  # fmt: skip


def save_gpt(rows: int, top_key: str | None) -> Callable[[Path], Any]:
    """Save a file alone, with another object beside the tensors where it has entries."""

    def save(folder: Path) -> Any:
        made = tensors(gpt_shapes(rows))
        content = (
            made if top_key is None else {top_key: made, "arguments": argparse.Namespace(lr=1)}
        )
        torch.save(content, folder / "weights.pth")
        return made

    return save


SIZES = {
    "vocab_size": len(WORDS),
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 32,
    "max_position_embeddings": LIMIT,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
}


def save_gated(folder: Path) -> Any:
    """Save an encoder whose rows outnumber its tokens, with a configuration of another class."""
    shapes = encoder_shapes("bert", GATED, len(WORDS) + 6)
    shapes = {**shapes, "bert.embeddings.position_embeddings.weight": (LIMIT, WIDTH)}
    made = tensors(shapes)
    torch.save(made, folder / "pytorch_model.bin")
    sizes = {**SIZES, "vocab_size": len(WORDS) + 6, "alibi_starting_size": 512}
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", **sizes}))
    tokenizer(limit=LIMIT).save_pretrained(folder)
    return made


def save_roformer(folder: Path) -> Any:
    """Save a RoFormer without the table of its angles, and a tokenizer's file alone."""
    made = tensors(encoder_shapes("roformer", PLAIN, len(WORDS)))
    torch.save(made, folder / "pytorch_model.bin")
    config = {"model_type": "roformer", "embedding_size": WIDTH, "rotary_value": False,
              "norm_type": "layer_norm", "use_bias": True, **SIZES}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    inner = tokenizer().backend_tokenizer
    inner.add_special_tokens(["<cls>", "<eos>"])
    inner.save(str(folder / "tokenizer.json"))
    return made


def row_of(
    states: Callable[..., Tensor], encode: Callable[[str], list[int]], *, cls: bool = False
) -> Row:
    """Average the states of a sequence, or take the first."""

    def row(made: Any, sequence: str) -> Any:
        last_states = states(made, torch.tensor(encode(sequence)), HEADS, LAYERS)
        return (last_states[0] if cls else last_states.mean(dim=0)).numpy()

    return row


def sixmers(words: tuple[str, ...]) -> Callable[[str], list[int]]:
    """Number words of two letters after the prefix; what is none is the first entry."""

    def encode(sequence: str) -> list[int]:
        cut = [sequence[i : i + 2] for i in range(0, len(sequence), 2)]
        return [words.index("<R>"), *(words.index(w) if w in words else 0 for w in cut)]

    return encode


GPT = {
    "auto_class": "transformers:GPT2Model",
    "weights": "weights.pth",
    "weights_at": "model",
    "rename": r'{"^transformer\\.": ""}',
    "transpose": r"\.(c_attn|c_proj|c_fc)\.weight$",
    "zeros": r"\.bias$",
    "unexpected": r"^(number_embedding|mlm_head|num_regression)\.",
    "tokenizer": "kmers",
    "k": 2,
    "unknown": "<0>",
    "prefix": "<R>",
}


def gpt(words: tuple[str, ...], top_key: str | None, **options: Any) -> Lookalike:
    """Describe a decoder over these words."""
    sizes = {"vocab_size": len(words), "n_positions": LIMIT, "n_embd": WIDTH,
             "n_layer": LAYERS, "n_head": HEADS}  # fmt: skip
    return Lookalike(
        save=save_gpt(len(words), top_key),
        options={**GPT, "config_arguments": sizes, **options},
        row=row_of(by_hand.gpt, sixmers(words)),
    )


TENSOR_FILES: dict[str, Lookalike] = {
    "DNA-GPT 0.1B": gpt(SIXMERS, None, vocabulary=f"{','.join(MARKS)},NAGCT^2"),
    "DNA-GPT 3B": gpt(DYNAMIC, "model", vocabulary=f"{','.join(MARKS)},NAGCT^1-2", rest="end"),
    "Genomics-FM": Lookalike(
        save=save_gated,
        options={
            "auto_class": "own:gated_bert",
            "weights": "pytorch_model.bin",
            "rename": {
                r"^bert\.": "",
                r"\.mlp\.gated_layers\.": ".intermediate.dense.",
                r"\.mlp\.wo\.": ".output.dense.",
                r"\.mlp\.layernorm\.": ".output.LayerNorm.",
            },
            "split": {r"\.Wqkv\.": [".query.", ".key.", ".value."]},
            "pooling": "cls",
        },
        row=row_of(by_hand.gated_bert, framed, cls=True),
    ),
    "DeepGene file": Lookalike(
        save=save_roformer,
        options={
            "auto_class": "transformers:RoFormerModel",
            "missing": r"^encoder\.embed_positions\.weight$",
            "tokenizer": "transformers:PreTrainedTokenizerFast",
            "special_tokens": False,
            "prefix": "<cls><eos>",
        },
        row=row_of(by_hand.roformer, lambda s: [1, 2, *ids(s)]),
    ),
}
"""Family to its lookalike."""
