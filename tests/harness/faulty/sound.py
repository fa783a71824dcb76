"""No fault: what the eight beside it would be without theirs."""

import numpy as np

from .base import BaseEmbeddingExtractor
from .toy import batch, masked_mean, model, tokenize


class Sound(BaseEmbeddingExtractor):
    layer = "last"
    pooling = "mean"
    max_length = 32
    truncation = "right"
    dtype = "float32"

    def count_tokens(self, sequences):
        return [len(tokenize(s)) for s in sequences]

    def extract_embeddings(self, sequences, batch_size=1):
        rows = []
        for i in range(0, len(sequences), batch_size):
            ids, mask = batch(sequences[i : i + batch_size], max_length=self.max_length)
            rows.append(masked_mean(model(ids, mask), mask))
        return np.vstack(rows)
