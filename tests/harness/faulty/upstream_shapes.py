"""No error: modules written as upstream's, which a run calls by position."""

import numpy as np
import torch

from .at_scale import SoundAtScale
from .torch_toy import TorchToy


class NamedSeqs(SoundAtScale):
    """The argument has another name."""

    def extract_embeddings(self, seqs: list[str], batch_size: int = 1) -> np.ndarray:
        return super().extract_embeddings(seqs, batch_size)


class PositionalOnly(SoundAtScale):
    """The sequences come by position alone."""

    def extract_embeddings(self, seqs: list[str], /, batch_size: int = 1) -> np.ndarray:
        return super().extract_embeddings(seqs, batch_size)


class ReturnsTensor(TorchToy):
    """Rows are a torch tensor, with its gradient."""

    def extract_embeddings(self, seqs, batch_size=1):
        return torch.from_numpy(super().extract_embeddings(seqs, batch_size)).requires_grad_()


class ReturnsBfloat16(TorchToy):
    """Rows are a bfloat16 tensor, as the model computes."""

    dtype, computed = "bfloat16", torch.bfloat16

    def extract_embeddings(self, seqs, batch_size=1):
        return torch.from_numpy(super().extract_embeddings(seqs, batch_size)).bfloat16()


class ReturnsIntegers(SoundAtScale):
    """An error all the same: a run refuses integers."""

    def extract_embeddings(self, seqs: list[str], batch_size: int = 1) -> np.ndarray:
        return (1e6 * super().extract_embeddings(seqs, batch_size)).astype(np.int64)
