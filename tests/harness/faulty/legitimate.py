"""No error: unusual ways to embed, none of which a check may refuse."""

import numpy as np
import torch

from .at_scale import SoundAtScale
from .base import BaseEmbeddingExtractor
from .torch_toy import LIMIT, TorchToy

COMPLEMENT = str.maketrans("ACGTacgt", "TGCAtgca")


class Float16(TorchToy):
    """The model computes in float16, rows come as float32."""

    dtype, computed = "float16", torch.float16


class Bfloat16(TorchToy):
    """The model computes in bfloat16, rows come as float32."""

    dtype, computed = "bfloat16", torch.bfloat16


class Autocast(TorchToy):
    """Weights in float32, computed under autocast, as declared."""

    dtype = "bfloat16"

    def hidden(self, sequences: list[str]) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return super().hidden(sequences)


class FirstToken(TorchToy):
    """The first token of a layer in the middle; learned positions, as all of these have."""

    layer, pooling = "1", "cls"

    def pool(self, states: tuple[torch.Tensor, ...], mask: torch.Tensor) -> torch.Tensor:
        del mask
        return states[1][:, 0]


class Scaled(TorchToy):
    """The mean of the last layer, thirty times."""

    def pool(self, states: tuple[torch.Tensor, ...], mask: torch.Tensor) -> torch.Tensor:
        return 30 * super().pool(states, mask)


class Normalised(TorchToy):
    """The mean of the last layer, of length 1."""

    def pool(self, states: tuple[torch.Tensor, ...], mask: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.normalize(super().pool(states, mask))


class Windows(TorchToy):
    """The mean of windows of the model's length."""

    truncation = "windows"

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        rows = []
        for sequence in sequences:
            starts = range(0, max(1, len(sequence)), LIMIT)
            pieces = [sequence[i : i + LIMIT] for i in starts]
            rows.append(super().extract_embeddings(pieces, batch_size).mean(axis=0))
        return np.vstack(rows)


class BothStrands(TorchToy):
    """The mean of a sequence and its reverse complement."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        other = [s.translate(COMPLEMENT)[::-1] for s in (s[:LIMIT] for s in sequences)]
        forward = super().extract_embeddings([s[:LIMIT] for s in sequences], batch_size)
        both: np.ndarray = forward + super().extract_embeddings(other, batch_size)
        return both / np.float32(2)


class OneHot(BaseEmbeddingExtractor):
    """A convolution over one-hot letters, channels first, without a tokenizer."""

    layer, pooling, dtype = "last", "max", "float32"
    max_length, truncation = None, "none"

    def __init__(self, name_model, device="cpu"):
        super().__init__(name_model, device)
        with torch.random.fork_rng():
            torch.manual_seed(5)
            self.network = torch.nn.Conv1d(4, 12, 5, padding=2).eval()

    @torch.inference_mode()
    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        del batch_size
        rows = []
        for s in sequences:
            letters = np.array([[c == x for x in s.upper() or "N"] for c in "ACGT"])
            found = self.network(torch.from_numpy(letters.astype(np.float32))[None])
            # The end counts too, which a maximum over a long sequence may not show.
            rows.append(torch.cat([found.amax(dim=2), found[:, :, -1] / 8], dim=1))
        return torch.cat(rows).numpy()


class OneByOne(SoundAtScale):
    """Batches of one, whatever is asked for."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        del batch_size
        return super().extract_embeddings(sequences, 1)
