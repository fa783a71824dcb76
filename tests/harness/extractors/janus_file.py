"""Small JanusDNA models as Lightning files: tensors under prefixes, beside other objects."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch

from reference_harness.extractors.janus import Janus, JanusConfig
from tests.harness.extractors import by_hand
from tests.harness.extractors.lookalikes import Lookalike

LETTERS = ("[CLS]", "[PAD]", "[UNK]", *"ACGTN")
LENGTH = 64
SIZES: dict[str, Any] = {
    "vocab_size": 16,
    "hidden_size": 12,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "num_experts": 4,
    "expert_layers": [1],
    "d_state": 4,
}


def save(folder: Path, sizes: dict[str, Any]) -> Any:
    """Save random weights; returns the tensors by their names in the model."""
    with torch.random.fork_rng():
        torch.manual_seed(11)
        model = Janus(JanusConfig(**sizes))
        for weight in model.parameters():
            torch.nn.init.normal_(weight, std=0.4)
    made = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    state = {f"model.model.{name}": member for name, member in made.items()}
    state |= {"model.lm_head.weight": torch.ones(16, 12)}
    state |= {"train_torchmetrics.num_tokens.count": torch.tensor(5)}
    content = {
        "state_dict": state,
        "hyper_parameters": argparse.Namespace(lr=1),
        "callbacks": {argparse.ArgumentParser: [1]},
    }
    torch.save(content, folder / "model.ckpt")
    return made


def row(made: Any, sequence: str) -> np.ndarray:
    """Average the states of the letters of a sequence that is padded to the published length."""
    ids = [LETTERS.index(letter) for letter in sequence]
    tokens = torch.tensor(ids + [1] * (LENGTH - len(ids)))
    states = by_hand.janus(made, tokens, len(ids), SIZES["num_attention_heads"], 3)
    return np.asarray(states[: len(ids)].mean(dim=0))


def janus(**more: Any) -> Lookalike:
    """Describe a model of these sizes."""
    sizes = {**SIZES, **more}
    return Lookalike(
        save=lambda folder: save(folder, sizes),
        options={
            "auto_class": "own:janus",
            "weights": "model.ckpt",
            "weights_at": "state_dict",
            "rename": r'{"^model\\.model\\.": ""}',
            "unexpected": r"^(model\.lm_head|(train|val|test)_torchmetrics)\.",
            "config_arguments": sizes,
            "output": "item:0",
            "tokenizer": "characters",
            "vocabulary": ",".join(LETTERS),
            "unknown": "[UNK]",
            "max_length": LENGTH,
            "pad_to": LENGTH,
        },
        row=row,
    )


JANUS_FILES = {"JanusDNA w": janus(attention_layers=[2]), "JanusDNA wo": janus()}
"""Family to its lookalike."""
