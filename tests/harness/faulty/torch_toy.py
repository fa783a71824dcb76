"""A tiny BERT with random weights for extractors that torch hooks can look into."""

import numpy as np
import torch
from transformers import BertConfig, BertModel

from .base import BaseEmbeddingExtractor
from .toy import batch

LIMIT = 64
LAYERS = 3


def bert(dtype: torch.dtype = torch.float32) -> BertModel:
    """Build the same model at every load."""
    config = BertConfig(
        vocab_size=6,
        hidden_size=16,
        num_hidden_layers=LAYERS,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=LIMIT,
        initializer_range=0.3,
    )
    with torch.random.fork_rng():
        torch.manual_seed(5)
        built: BertModel = BertModel(config)
        built.train(mode=False)
    for tensor in (*built.parameters(), *built.buffers()):
        if tensor.is_floating_point():
            tensor.data = tensor.data.to(dtype)
    return built


class TorchToy(BaseEmbeddingExtractor):
    """Mean of the last hidden state, in the type of the subclass."""

    layer, pooling, dtype = "last", "mean", "float32"
    max_length: int | None = LIMIT
    truncation = "right"
    computed = torch.float32

    def __init__(self, name_model, device="cpu"):
        super().__init__(name_model, device)
        self.model = bert(self.computed)

    def count_tokens(self, sequences):
        return [max(1, len(s)) for s in sequences]

    def pool(self, states: tuple[torch.Tensor, ...], mask: torch.Tensor) -> torch.Tensor:
        kept = mask.unsqueeze(-1)
        return (states[-1].float() * kept).sum(dim=1) / kept.sum(dim=1)

    @torch.inference_mode()
    def hidden(self, sequences: list[str]) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
        ids, mask = batch([s or "N" for s in sequences], max_length=self.max_length)
        attended = torch.from_numpy(mask)
        found = self.model(
            input_ids=torch.from_numpy(ids), attention_mask=attended, output_hidden_states=True
        )
        states: tuple[torch.Tensor, ...] = found.hidden_states
        return states, attended

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        parts = [sequences[i : i + batch_size] for i in range(0, len(sequences), batch_size)]
        return np.vstack([self.pool(*self.hidden(part)).float().numpy() for part in parts])
