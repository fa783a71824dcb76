"""An extractor whose package only an environment of its own has."""

import importlib

import numpy as np

from .base import BaseEmbeddingExtractor


class OwnPackage(BaseEmbeddingExtractor):
    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        words = importlib.import_module("tinyformers").WORDS
        return np.full((len(sequences), 1), words, dtype=np.float32)
