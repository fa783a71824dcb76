"""BERT with gated feed-forward layers and learned positions."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel


class _Gated(nn.Module):
    """A projection without bias: the first half, activated by GELU, times the second half."""

    def __init__(self, config: BertConfig) -> None:
        """Create the projection with the sizes of the configuration."""
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, 2 * config.intermediate_size, bias=False)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return states (b, t, inner), computed from states (b, t, width)."""
        gate, value = self.dense(hidden_states).chunk(2, dim=-1)
        states: Tensor = torch.nn.functional.gelu(gate) * value
        return states


class GatedBert(BertModel):  # type: ignore[misc]  # transformers has no types
    """BERT without a pooler and with gated feed-forward layers.

    `encoder.layer.N.intermediate.dense` contains the rows of the gate, then those of the values;
    all other weights have the same names as in BERT.
    """

    config_class = BertConfig
    """Class of the model's configuration."""

    def __init__(self, config: BertConfig, **_: Any) -> None:  # of BertModel
        """Create the model with the sizes of the configuration."""
        super().__init__(config, add_pooling_layer=False)
        for layer in self.encoder.layer:
            layer.intermediate = _Gated(config)
