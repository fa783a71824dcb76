"""A network of long convolutions with random weights, of HyenaDNA's kind and size, for benches."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from reference_harness.extractors.base import BaseEmbeddingExtractor

LETTERS = "ACGT"


class LongConvolution(nn.Module):
    """Two gates around a convolution as long as the sequence, by its Fourier transform."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm_before = nn.LayerNorm(width)
        self.project_in = nn.Linear(width, 3 * width)
        self.short_convolution = nn.Conv1d(3 * width, 3 * width, 3, padding=2, groups=3 * width)
        self.kernel_network = nn.Sequential(nn.Linear(1, 64), nn.GELU(), nn.Linear(64, width))
        self.project_out = nn.Linear(width, width)
        self.mixed = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, states: Tensor) -> Tensor:
        """Return the (n, t, d) states after this block."""
        length = states.shape[1]
        feed_forward = self.short_convolution(
            self.project_in(self.norm_before(states)).transpose(1, 2)
        )[..., :length]
        first, second, values = feed_forward.chunk(3, dim=1)
        positions = torch.linspace(0, 1, length, device=states.device)[:, None]
        kernel = self.kernel_network(positions).T
        spectrum = torch.fft.rfft(first * values, n=2 * length)
        spectrum = spectrum * torch.fft.rfft(kernel, n=2 * length)
        long = torch.fft.irfft(spectrum, n=2 * length)[..., :length]
        states = states + self.project_out((long * second).transpose(1, 2))
        after: Tensor = states + self.mixed(states)
        return after


class HyenaLike(BaseEmbeddingExtractor):
    """Mean over the letters of the last block; a sequence is padded at its end."""

    layer, pooling, dtype = "last", "mean", "float32"
    max_length, truncation = None, "none"

    def __init__(
        self, name_model: str = "", device: str = "cpu", width: int = 256, layers: int = 8
    ) -> None:
        super().__init__(name_model, device)
        self.source = {"kind": "none", "location": "", "revision": None, "weights": {}}
        torch.manual_seed(0)
        blocks = [LongConvolution(width) for _ in range(layers)]
        self.model = nn.Sequential(nn.Embedding(5, width), *blocks).to(device).eval()

    def count_tokens(self, sequences: Sequence[str]) -> list[int]:
        """Return the letters of each sequence."""
        return [len(one) for one in sequences]

    def extract_embeddings(self, sequences: Sequence[str], batch_size: int = 1) -> np.ndarray:
        """Return the (n, d) embeddings of n sequences."""
        rows = []
        for start in range(0, len(sequences), batch_size):
            batch = sequences[start : start + batch_size]
            ids = torch.full((len(batch), max(map(len, batch))), 4)
            for row, one in enumerate(batch):
                ids[row, : len(one)] = torch.tensor([LETTERS.find(x) % 5 for x in one.upper()])
            ids = ids.to(self.device)
            with torch.inference_mode():
                inside = (torch.arange(ids.shape[1])[None] < self._lengths(batch)).to(self.device)
                states = self.model(ids) * inside[..., None]
                rows.append((states.sum(1) / inside.sum(1, keepdim=True)).float().cpu().numpy())
        return np.concatenate(rows)

    @staticmethod
    def _lengths(batch: Sequence[str]) -> Tensor:
        return torch.tensor([len(one) for one in batch])[:, None]
