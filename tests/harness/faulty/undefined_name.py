"""As Enformer: a name that is never defined, on the one path every call takes."""

import numpy as np

from .base import BaseEmbeddingExtractor
from .toy import batch, masked_mean, model


class UndefinedName(BaseEmbeddingExtractor):
    max_length = None

    def extract_embeddings(self, sequences, batch_size=1):
        rows = []
        for i in range(0, len(sequences), batch_size):
            ids, mask = batch(sequences[i : i + batch_size])
            pooled = masked_mean(model(ids, mask), mask)
            rows.append(pooled[:, :TARGET_WIDTH])  # type: ignore[name-defined]  # noqa: F821 - the fault
        return np.vstack(rows)
