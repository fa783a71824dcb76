"""Extractors whose rows are fine and whose declarations are not."""

import torch

from .torch_toy import TorchToy


class ClsAsMean(TorchToy):
    """Declares the mean and takes the first token."""

    def pool(self, states: tuple[torch.Tensor, ...], mask: torch.Tensor) -> torch.Tensor:
        del mask
        return states[-1][:, 0]


class OtherLayer(TorchToy):
    """Declares the last layer and takes the one before."""

    def pool(self, states: tuple[torch.Tensor, ...], mask: torch.Tensor) -> torch.Tensor:
        return super().pool(states[:-1], mask)


class OtherNumber(TorchToy):
    """Declares layer 2 and takes layer 1."""

    layer = "2"

    def pool(self, states: tuple[torch.Tensor, ...], mask: torch.Tensor) -> torch.Tensor:
        return super().pool(states[:2], mask)


class OtherLayerScaled(TorchToy):
    """Declares the last layer and takes the one before, of length 1."""

    def pool(self, states: tuple[torch.Tensor, ...], mask: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.normalize(super().pool(states[:-1], mask))


class EndsAsMean(TorchToy):
    """Declares the mean and takes the first and the last token."""

    def pool(self, states: tuple[torch.Tensor, ...], mask: torch.Tensor) -> torch.Tensor:
        ends = mask.long().sum(dim=1) - 1
        last = states[-1][torch.arange(len(ends)), ends]
        return (states[-1][:, 0] + last) / 2


class FirstInMean(TorchToy):
    """Declares the mean and adds the first token to it."""

    def pool(self, states: tuple[torch.Tensor, ...], mask: torch.Tensor) -> torch.Tensor:
        return 0.7 * super().pool(states, mask) + 0.3 * states[-1][:, 0]


class TwoLayers(TorchToy):
    """Declares the last layer and takes the mean of it and the one before."""

    def pool(self, states: tuple[torch.Tensor, ...], mask: torch.Tensor) -> torch.Tensor:
        return (super().pool(states, mask) + super().pool(states[:-1], mask)) / 2


class HalfAsFloat(TorchToy):
    """Declares float32 and loads the model in bfloat16."""

    computed = torch.bfloat16


class AutocastAsFloat(TorchToy):
    """Declares float32 and computes under autocast."""

    def hidden(self, sequences: list[str]) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return super().hidden(sequences)


class FloatAsHalf(TorchToy):
    """Declares bfloat16 and computes in float32."""

    dtype = "bfloat16"


class RoundedRows(TorchToy):
    """Computes in float32, as declared, and rounds the rows to bfloat16."""

    def pool(self, states: tuple[torch.Tensor, ...], mask: torch.Tensor) -> torch.Tensor:
        return super().pool(states, mask).bfloat16()
