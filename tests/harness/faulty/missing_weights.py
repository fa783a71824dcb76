"""As DNABERT-S: without its own code the built-in class is built, and the file does not fit it."""

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

from .base import BaseEmbeddingExtractor


class MissingWeights(BaseEmbeddingExtractor):
    def __init__(self, name_model, device="cpu"):
        super().__init__(name_model, device)
        self.tokenizer = AutoTokenizer.from_pretrained(name_model)
        self.model = AutoModel.from_pretrained(name_model).to(device).eval()
        self.max_length = 64

    @torch.no_grad()
    def extract_embeddings(self, sequences, batch_size=1):
        rows = []
        for i in range(0, len(sequences), batch_size):
            coded = self.tokenizer(
                [s.upper() for s in sequences[i : i + batch_size]],
                padding=True,
                truncation=True,
                max_length=self.max_length,
                return_tensors="pt",
            ).to(self.device)
            hidden = self.model(**coded).last_hidden_state
            mask = coded["attention_mask"].unsqueeze(-1)
            rows.append(((hidden * mask).sum(dim=1) / mask.sum(dim=1)).numpy())
        return np.vstack(rows)
