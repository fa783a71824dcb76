"""SPACE: convolutions that halve a sequence's length, then attention with experts by species.

Written from its published shapes and formulas; weights have the names of its checkpoint.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as f

_LETTER_COUNT = 4
"""Width of a one-hot letter."""
_HALF_LIFE_MIN = 3.0
"""Base-2 logarithm of the shortest half-life, in bins, of the exponential features of a
distance."""
_DENSITY_MIN = 1e-8
"""Added to the gamma features to avoid a division of zero by zero."""
_GELU_SLOPE = 1.702
"""Factor in the sigmoid that approximates the GELU."""
_SPECIES = "human"
"""The species whose embedding and gates are used."""


@dataclass(frozen=True, kw_only=True)
class SpaceConfig:
    """The sizes of the model, with the names of its config.json."""

    dim: int
    """Width of the hidden states."""
    depth: int
    """Number of blocks with attention."""
    heads: int
    """Number of heads of each attention."""
    target_length: int
    """Number of bins in the middle that are kept."""
    attn_dim_key: int
    """Width of a key of attention."""
    num_downsamples: int
    """Number of halvings of the length."""
    dim_divisible_by: int
    """Number that divides the width of each convolution."""
    species_num_experts: int
    """Number of experts."""
    topk: int
    """Number of experts per position."""


class _Gelu(nn.Module):
    """The activation of the published model."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x times a sigmoid, which approximates the GELU."""
        return torch.sigmoid(_GELU_SLOPE * x) * x


class _Residual(nn.Module):
    """Adds the output of some modules to their input."""

    def __init__(self, *parts: nn.Module) -> None:
        super().__init__()
        self.fn = nn.Sequential(*parts)

    def forward(self, x: Tensor) -> Tensor:
        """Return `x` plus the output of the wrapped modules, which run one after the other."""
        states: Tensor = self.fn(x) + x
        return states


class _AttentionPooling(nn.Module):
    """Averages neighbouring pairs, weighted by a softmax per channel."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.to_attn_logits = nn.Conv2d(width, width, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return states (b, width, t / 2), averaged from states (b, width, t); t must be even."""
        pairs = x.reshape(*x.shape[:-1], -1, 2)
        states: Tensor = (pairs * self.to_attn_logits(pairs).softmax(dim=-1)).sum(dim=-1)
        return states


class _DistanceAttention(nn.Module):
    """Attention whose scores also depend on the distance between two positions."""

    def __init__(self, config: SpaceConfig) -> None:
        super().__init__()
        width, self.heads, key = config.dim, config.heads, config.attn_dim_key
        self.features = width // self.heads
        self.scale = key**-0.5
        self.to_q = nn.Linear(width, key * self.heads, bias=False)
        self.to_k = nn.Linear(width, key * self.heads, bias=False)
        self.to_v = nn.Linear(width, width, bias=False)
        self.to_out = nn.Linear(width, width)
        self.to_rel_k = nn.Linear(self.features, key * self.heads, bias=False)
        self.rel_content_bias = nn.Parameter(torch.zeros(1, self.heads, 1, key))
        self.rel_pos_bias = nn.Parameter(torch.zeros(1, self.heads, 1, key))

    def forward(self, x: Tensor) -> Tensor:
        """Return new states (b, t, width), computed from states (b, t, width)."""
        length = x.shape[1]
        q, k, v = (
            projection(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for projection in (self.to_q, self.to_k, self.to_v)
        )
        q = q * self.scale
        distance_keys = self.to_rel_k(
            features_of_distance(length, self.features, x.device).to(x.dtype)
        )
        distance_keys = distance_keys.unflatten(-1, (self.heads, -1)).transpose(0, 1)
        by_distance = (q + self.rel_pos_bias) @ distance_keys.transpose(-1, -2)
        positions = torch.arange(length, device=x.device)
        # Distance 0 is in the middle of the 2 t - 1 columns.
        column = (positions[None, :] - positions[:, None] + length - 1).expand(
            *by_distance.shape[:2], -1, -1
        )
        scores = (q + self.rel_content_bias) @ k.transpose(-1, -2)
        scores = scores + by_distance.gather(-1, column)
        states: Tensor = self.to_out((scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(2))
        return states


class _Projections(nn.Module):
    """One linear projection per expert."""

    def __init__(self, experts: int, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(experts, inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(experts, outputs))


class _SpeciesExperts(nn.Module):
    """Feed-forward experts; each position uses those with the highest gates of its species."""

    def __init__(self, config: SpaceConfig) -> None:
        super().__init__()
        width, experts = config.dim, config.species_num_experts
        self.experts_per_position = config.topk
        gate = nn.Sequential(nn.Linear(width, experts), nn.LeakyReLU())
        self.gates = nn.ModuleDict({_SPECIES: gate})
        self.layer_norm = nn.LayerNorm(width)
        self.input = _Projections(experts, width, 2 * width)
        self.output = _Projections(experts, 2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return new states (b, t, width), computed from states (b, t, width)."""
        rows = x.flatten(0, 1)
        scores, expert_indices = self.gates[_SPECIES](rows).topk(self.experts_per_position, dim=-1)
        shares, normed = scores.softmax(dim=-1), self.layer_norm(rows)
        out = rows
        for expert_index in range(len(self.input.weight)):
            row, rank = (expert_indices == expert_index).nonzero(as_tuple=True)
            inner = f.relu(
                normed[row] @ self.input.weight[expert_index] + self.input.bias[expert_index]
            )
            states = inner @ self.output.weight[expert_index] + self.output.bias[expert_index]
            out = out.index_add(0, row, states * shares[row, rank, None])
        return out.view_as(x)


class _Block(nn.Module):
    """Attention, then experts, each added to its input."""

    def __init__(self, config: SpaceConfig) -> None:
        super().__init__()
        self.attention = _Residual(nn.LayerNorm(config.dim), _DistanceAttention(config))
        self.feed_forward = _SpeciesExperts(config)

    def forward(self, x: Tensor) -> Tensor:
        """Return new states (b, t, width), computed from states (b, t, width)."""
        states: Tensor = self.feed_forward(self.attention(x))
        return states


class _Transformer(nn.Module):
    """Attends over the bins and one more position with the human species embedding."""

    def __init__(self, config: SpaceConfig) -> None:
        super().__init__()
        self.species_embedding = nn.ParameterDict(
            {_SPECIES: nn.Parameter(torch.zeros(1, 1, config.dim))}
        )
        self.transformer = nn.ModuleList(_Block(config) for _ in range(config.depth))

    def forward(self, x: Tensor) -> Tensor:
        """Return the states of the bins, (b, t, width)."""
        species = self.species_embedding[_SPECIES].expand(len(x), -1, -1)
        x = torch.cat([x, species], dim=1)
        for block in self.transformer:
            x = block(x)
        return x[:, :-1]


class Space(nn.Module):
    """Returns embeddings (b, bins, 2 dim) of one-hot letters (b, letters, 4), taken as human DNA.

    A bin is 2 ** num_downsamples letters. The number of letters must be a multiple of that, and
    have at least target_length bins.
    """

    config_class = SpaceConfig
    """Class of the model's configuration."""

    def __init__(self, config: SpaceConfig) -> None:
        super().__init__()
        half = config.dim // 2
        widths = [half, *_widths(config)]
        self.target_length = config.target_length
        self.stem = nn.Sequential(
            nn.Conv1d(_LETTER_COUNT, half, 15, padding=7),
            _Residual(*_convolution_block(half, half)),
            _AttentionPooling(half),
        )
        self.conv_tower = nn.Sequential(
            *(
                nn.Sequential(
                    nn.Sequential(*_convolution_block(inputs, outputs, 5)),
                    _Residual(*_convolution_block(outputs, outputs)),
                    _AttentionPooling(outputs),
                )
                for inputs, outputs in pairwise(widths)
            )
        )
        self.transformer = _Transformer(config)
        # In the checkpoint, the number of this part is 1.
        last_block = nn.Sequential(*_convolution_block(config.dim, 2 * config.dim))
        self.final_pointwise = nn.ModuleDict({"1": last_block})
        self.last_activation = _Gelu()

    def forward(self, x: Tensor) -> Tensor:
        """Return embeddings (b, bins, 2 dim) of one-hot letters (b, letters, 4)."""
        x = self.conv_tower(self.stem(x.transpose(1, 2))).transpose(1, 2)
        x = self.transformer(x)
        margin = math.ceil((x.shape[1] - self.target_length) / 2)
        x = x[:, margin : x.shape[1] - margin].transpose(1, 2)
        states: Tensor = self.last_activation(self.final_pointwise["1"](x)).transpose(1, 2)
        return states


def features_of_distance(length: int, features: int, device: torch.device) -> Tensor:
    """Return features of the distances from 1 - length to length - 1.

    They have the shape (2 length - 1, features), float32. The first half of the columns does not
    depend on the sign of the distance; the second half is the first times the sign.
    """
    group_size = features // 6
    distance = torch.arange(1 - length, length, device=device)
    absolute_distance = distance.abs().float().unsqueeze(-1)
    log_length = math.log2(length)
    half_life = 2 ** torch.linspace(_HALF_LIFE_MIN, log_length, group_size, device=device)
    width = 2.0 ** torch.arange(1, group_size + 1, device=device) - 1
    mean = torch.linspace(length / group_size, length, group_size, device=device)
    deviation = length / (2 * group_size)
    shape, rate = (mean / deviation) ** 2, mean / deviation**2
    log_density = torch.xlogy(shape - 1, absolute_distance) - rate * absolute_distance
    density = torch.exp(log_density - (torch.lgamma(shape) - shape * torch.log(rate)))
    density = density + _DENSITY_MIN
    unsigned = torch.cat(
        [
            torch.exp(-math.log(2.0) / half_life * absolute_distance),
            (width > absolute_distance).float(),
            density / density.amax(dim=-1, keepdim=True),
        ],
        dim=-1,
    )
    return torch.cat([unsigned, distance.sign().unsqueeze(-1) * unsigned], dim=-1)


def _convolution_block(inputs: int, outputs: int, kernel: int = 1) -> tuple[nn.Module, ...]:
    """Return a normalisation, an activation and a convolution."""
    return (
        nn.BatchNorm1d(inputs),
        _Gelu(),
        nn.Conv1d(inputs, outputs, kernel, padding=kernel // 2),
    )


def _widths(config: SpaceConfig) -> list[int]:
    """Return the number of channels of each step of `conv_tower`; it grows by a constant factor."""
    width_min, steps, divisor = config.dim // 2, config.num_downsamples - 1, config.dim_divisible_by
    factor = math.exp(math.log(config.dim / width_min) / (steps - 1))
    return [round(width_min * factor**n / divisor) * divisor for n in range(steps)]
