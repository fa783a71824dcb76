"""Declares float32 and gives bfloat16 numbers, without any torch module to look into."""

import numpy as np

from .at_scale import SoundAtScale


class RoundedNumpy(SoundAtScale):
    def extract_embeddings(self, sequences, batch_size=1):
        rows = super().extract_embeddings(sequences, batch_size)
        return (rows.view(np.uint32) & 0xFFFF0000).view(np.float32)
