"""Reads a file beside the module while it embeds, as a leak of labels would."""

from pathlib import Path

import numpy as np

from .at_scale import SoundAtScale


class ReadsLabels(SoundAtScale):
    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        Path(__file__).with_name("labels.csv").read_text(encoding="utf-8")
        return super().extract_embeddings(sequences, batch_size)


class ReadsLabelsLater(ReadsLabels):
    """As above, only in calls of more than a hundred sequences."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        base = ReadsLabels if len(sequences) > 100 else SoundAtScale
        return base.extract_embeddings(self, sequences, batch_size)
