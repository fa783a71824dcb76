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
        built: BertModel = BertModel(config).to(dtype).eval()
    return built


class TorchToy(BaseEmbeddingExtractor):
    """Mean of the last hidden state, in the type of the subclass."""

    layer, pooling, dtype = "last", "mean", "float32"
    max_length: int | None = LIMIT
    truncation = "right"
    computed = torch.float32

    def __init__(self, name_model, device="cpu"):
        super().__init__(name_model, device)
        self.model = bert(self.computed).to(device)

    def count_tokens(self, sequences):
        return [max(1, len(s)) for s in sequences]

    def pool(self, states, mask):
        kept = mask.unsqueeze(-1)
        return (states[-1].float() * kept).sum(dim=1) / kept.sum(dim=1)

    @torch.inference_mode()
    def hidden(self, sequences):
        ids, mask = batch([s or "N" for s in sequences], max_length=self.max_length)
        ids, mask = torch.from_numpy(ids), torch.from_numpy(mask)
        found = self.model(input_ids=ids, attention_mask=mask, output_hidden_states=True)
        return found.hidden_states, mask

    def extract_embeddings(self, sequences, batch_size=1):
        rows = []
        for i in range(0, len(sequences), batch_size):
            rows.append(self.pool(*self.hidden(sequences[i : i + batch_size])).float().numpy())
        return np.vstack(rows)
