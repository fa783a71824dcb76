"""A state space layer in plain torch, which needs no kernels and runs on any device."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as f

_WIDTH_PER_RANK = 16
"""Width divided by the rank of the step projection, which is rounded up."""
_INNER_EPS = 1e-6
"""Number that the inner norms add to avoid a division by zero."""


class RmsNorm(nn.Module):
    """Divides by the root mean square, computed in float32."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalised states (..., width), in the type of the input."""
        float32_states = x.float()
        normed = float32_states * torch.rsqrt(
            float32_states.square().mean(dim=-1, keepdim=True) + self.eps
        )
        return self.weight * normed.to(x.dtype)


class Mamba(nn.Module):
    """A selective state space mixer with normalised step, input and output projections."""

    def __init__(self, *, width: int, inner: int, state: int, kernel: int) -> None:
        super().__init__()
        rank = math.ceil(width / _WIDTH_PER_RANK)
        self.sizes = (rank, state, state)
        self.in_proj = nn.Linear(width, 2 * inner, bias=False)
        self.conv1d = nn.Conv1d(inner, inner, kernel, groups=inner, padding=kernel - 1)
        self.x_proj = nn.Linear(inner, sum(self.sizes), bias=False)
        self.dt_proj = nn.Linear(rank, inner)
        self.A_log = nn.Parameter(torch.zeros(inner, state))
        self.D = nn.Parameter(torch.ones(inner))
        self.out_proj = nn.Linear(inner, width, bias=False)
        self.dt_layernorm = RmsNorm(rank, _INNER_EPS)
        self.b_layernorm = RmsNorm(state, _INNER_EPS)
        self.c_layernorm = RmsNorm(state, _INNER_EPS)

    def forward(self, x: Tensor) -> Tensor:
        """Return new states (b, t, width); a state depends only on states up to its position."""
        inner, gate = self.in_proj(x).chunk(2, dim=-1)
        inner = f.silu(self.conv1d(inner.transpose(1, 2))[..., : x.shape[1]]).transpose(1, 2)
        step_states, input_projection, output_projection = self.x_proj(inner).split(
            self.sizes, dim=-1
        )
        step = f.softplus(self.dt_proj(self.dt_layernorm(step_states)).float())
        input_projection, output_projection = (
            self.b_layernorm(input_projection).float(),
            self.c_layernorm(output_projection).float(),
        )
        decay = torch.exp(step.unsqueeze(-1) * -self.A_log.float().exp())
        # The states sum over all positions, so they are float32 whatever the model's dtype.
        states = scan(decay, (step * inner.float()).unsqueeze(-1) * input_projection.unsqueeze(2))
        out = (states * output_projection.unsqueeze(2)).sum(dim=-1) + self.D.float() * inner.float()
        projected: Tensor = self.out_proj(out.to(x.dtype) * f.silu(gate))
        return projected


def scan(decay: Tensor, added: Tensor) -> Tensor:
    """Return the states h(t) = decay(t) h(t - 1) + added(t), h(-1) = 0, along dimension 1.

    In log2(length) passes, neighbouring spans of one, two, four, ... steps are joined in pairs.
    """
    span = 1
    while span < added.shape[1]:
        later_decay = decay[:, span:]
        joined = added[:, span:] + later_decay * added[:, :-span]
        added = torch.cat([added[:, :span], joined], dim=1)
        decay = torch.cat([decay[:, :span], later_decay * decay[:, :-span]], dim=1)
        span *= 2
    return added
