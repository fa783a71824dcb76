"""As Genomics-FM: reads the index of the device, which "cpu" does not have."""

import numpy as np

from .base import BaseEmbeddingExtractor
from .toy import batch, masked_mean, model


class DeviceIndex(BaseEmbeddingExtractor):
    max_length = None

    def __init__(self, name_model, device="cpu"):
        super().__init__(name_model, device)
        self.index = int(device.split(":")[1])

    def extract_embeddings(self, sequences, batch_size=1):
        rows = []
        for i in range(0, len(sequences), batch_size):
            ids, mask = batch(sequences[i : i + batch_size])
            rows.append(masked_mean(model(ids, mask), mask))
        return np.vstack(rows)
