"""JanusDNA: two causal passes over a sequence, one from each end, joined by attention.

Written from its published shapes and formulas; weights have the names of its checkpoint.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as f

from .mamba import Mamba, RmsNorm

_DIRECTIONS = ("fwd", "bwd")
"""Prefixes of the names of weights: forward and backward."""


@dataclass(frozen=True, kw_only=True)
class JanusConfig:
    """The sizes of the model."""

    vocab_size: int
    """Number of token ids."""
    hidden_size: int
    """Width of the hidden states."""
    num_hidden_layers: int
    """Number of layers."""
    num_attention_heads: int
    """Number of heads of each attention."""
    intermediate_size: int
    """Width within the feed-forward part."""
    num_experts: int
    """Number of experts of a mixture."""
    attention_layers: tuple[int, ...] = ()
    """Indices of the layers with attention; all others are state space layers."""
    expert_layers: tuple[int, ...] = ()
    """Indices of the layers whose feed-forward part is a mixture of experts."""
    num_experts_per_tok: int = 2
    """Number of experts that a position uses."""
    final_head_size: int = 32
    """Width of a head of the last attention, which scales its scores."""
    d_state: int = 16
    """Width of the state of a state space layer."""
    d_conv: int = 4
    """Letters that the convolution of a state space layer covers."""
    expand: int = 2
    """Ratio of the inner width of a state space layer to `hidden_size`."""
    rms_norm_eps: float = 1e-6
    """Number that a norm adds to avoid a division by zero."""


class _FeedForward(nn.Module):
    """A gated feed-forward part."""

    def __init__(self, config: JanusConfig) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return new states (..., width), computed from states (..., width)."""
        states: Tensor = self.down_proj(f.silu(self.gate_proj(x)) * self.up_proj(x))
        return states


class _RoutedExperts(nn.Module):
    """Mixture of feed-forward experts; a position uses those with the highest router weights."""

    def __init__(self, config: JanusConfig) -> None:
        super().__init__()
        self.experts_per_token = config.num_experts_per_tok
        self.router = nn.Linear(config.hidden_size, config.num_experts, bias=False)
        self.experts = nn.ModuleList(_FeedForward(config) for _ in range(config.num_experts))

    def forward(self, x: Tensor) -> Tensor:
        """Return new states (b, t, width), computed from states (b, t, width)."""
        rows = x.flatten(0, 1)
        shares, chosen = (
            self.router(rows).float().softmax(dim=-1).topk(self.experts_per_token, dim=-1)
        )
        out = torch.zeros_like(rows)
        for expert_index, expert in enumerate(self.experts):
            row, rank = (chosen == expert_index).nonzero(as_tuple=True)
            share = shares[row, rank, None].to(x.dtype)
            out = out.index_add(0, row, expert(rows[row]) * share)
        return out.view_as(x)


class _CausalAttention(nn.Module):
    """Causal attention that ignores masked positions and returns zeros for them."""

    def __init__(self, config: JanusConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.heads = config.num_attention_heads
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, width, bias=False)
        self.v_proj = nn.Linear(width, width, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return new states (b, t, width), computed from states (b, t, width) and a mask (b, t)."""
        length = x.shape[1]
        unmasked = mask.bool()
        earlier_positions = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        # A masked position sees itself, so that its softmax is finite; its output is set to zero.
        own_position = torch.eye(length, dtype=torch.bool, device=x.device)
        allowed = (earlier_positions & unmasked[:, None, :]) | own_position
        q, k, v = (
            _split_by_head(projection(x), self.heads)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        mixed = f.scaled_dot_product_attention(q, k, v, attn_mask=allowed[:, None])
        states: Tensor = self.o_proj(_join_heads(mixed) * unmasked.unsqueeze(-1))
        return states


class _TwoWayLayer(nn.Module):
    """One layer of both directions; each has its own two norms, mixer and feed-forward part."""

    def __init__(self, config: JanusConfig, layer_index: int) -> None:
        super().__init__()
        self.attends = layer_index in config.attention_layers
        feed_forward_class = _RoutedExperts if layer_index in config.expert_layers else _FeedForward
        for direction in _DIRECTIONS:
            for norm in ("input", "pre_ff"):
                norm_name = f"{norm}_layernorm_{direction}"
                setattr(self, norm_name, RmsNorm(config.hidden_size, config.rms_norm_eps))
            setattr(self, f"feed_forward_{direction}", feed_forward_class(config))
            mixer = _CausalAttention(config) if self.attends else _mamba(config)
            setattr(self, _mixer_name(direction, attends=self.attends), mixer)

    def forward(self, x: Tensor, mask: Tensor, direction: str) -> Tensor:
        """Return the states (b, t, width) of one direction after this layer."""
        mixer = getattr(self, _mixer_name(direction, attends=self.attends))
        normed = getattr(self, f"input_layernorm_{direction}")(x)
        x = x + (mixer(normed, mask) if self.attends else mixer(normed))
        normed = getattr(self, f"pre_ff_layernorm_{direction}")(x)
        states: Tensor = x + getattr(self, f"feed_forward_{direction}")(normed)
        return states


class _FinalAttention(nn.Module):
    """The last attention, over the states of both directions; it does not mask padding."""

    def __init__(self, config: JanusConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.heads, self.scale = config.num_attention_heads, config.final_head_size**-0.5
        self.self_attn = nn.ModuleDict(
            {name: nn.Linear(width, width, bias=False) for name in ("q_proj", "k_proj", "v_proj")}
        )
        self.self_attn["o_projs"] = nn.ModuleList([nn.Linear(width, width, bias=False)])
        self.feed_forward = _FeedForward(config)
        self.input_layernorm = RmsNorm(width, config.rms_norm_eps)
        self.pre_ff_layernorm = RmsNorm(width, config.rms_norm_eps)

    def forward(self, x: Tensor) -> Tensor:
        """Return new states (b, 2 t, width) of both directions, each in the order of letters."""
        attention, normed = self.self_attn, self.input_layernorm(x)
        q, k, v = (
            _split_by_head(attention[name](normed), self.heads)
            for name in ("q_proj", "k_proj", "v_proj")
        )
        visible_states = _visible_states(x.shape[1] // 2, x.device)
        mixed = f.scaled_dot_product_attention(q, k, v, attn_mask=visible_states, scale=self.scale)
        x = x + attention["o_projs"][0](_join_heads(mixed))  # type: ignore[index]
        states: Tensor = x + self.feed_forward(self.pre_ff_layernorm(x))
        return states


class Janus(nn.Module):
    """Returns hidden states (b, t, width) for ids (b, t): twice the last norm, as published.

    Its embeddings depend on the padded length of a batch, so it must run with `pad_to`.
    """

    config_class = JanusConfig
    """Class of the model's configuration."""

    def __init__(self, config: JanusConfig) -> None:
        super().__init__()
        width, eps = config.hidden_size, config.rms_norm_eps
        self.embed_tokens = nn.Embedding(config.vocab_size, width)
        self.layers = nn.ModuleList(
            nn.ModuleDict({"attn" if layer.attends else "mamba_module": layer})
            for layer in (_TwoWayLayer(config, n) for n in range(config.num_hidden_layers))
        )
        self.final_attention = _FinalAttention(config)
        self.final_layernorm = RmsNorm(width, eps)

    def get_input_embeddings(self) -> nn.Module:
        """Return the table of embeddings."""
        return self.embed_tokens

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the states (b, t, width) of ids and mask (b, t), of at least two tokens."""
        letters = self.embed_tokens(input_ids)
        states_by_direction = dict(zip(_DIRECTIONS, (letters, letters.flip(1)), strict=True))
        for layer_by_kind in self.layers:
            (layer,) = layer_by_kind.values()  # type: ignore[operator]
            # The backward direction uses the forward mask, as in the published runs.
            states_by_direction = {
                name: layer(x, attention_mask, name) for name, x in states_by_direction.items()
            }
        joined = self.final_attention(
            torch.cat([states_by_direction["fwd"], states_by_direction["bwd"].flip(1)], dim=1)
        )
        forward_states, backward_states = joined.chunk(2, dim=1)
        # The state of a letter is the sum of the state before it and the state after it.
        shifted = f.pad(forward_states[:, :-1], (0, 0, 1, 0)) + f.pad(
            backward_states[:, 1:], (0, 0, 0, 1)
        )
        states: Tensor = 2 * self.final_layernorm(shifted)
        return states


def _mamba(config: JanusConfig) -> Mamba:
    """Return a state space layer of the configured sizes."""
    return Mamba(
        width=config.hidden_size,
        inner=config.expand * config.hidden_size,
        state=config.d_state,
        kernel=config.d_conv,
    )


def _mixer_name(direction: str, *, attends: bool) -> str:
    """Return the name of the layer's attention or state space part in the checkpoint."""
    if attends:
        return f"self_attn_{direction}"
    return "mamba_fwd" if direction == "fwd" else "mamba_rev"


def _visible_states(length: int, device: torch.device) -> Tensor:
    """Return the mask (2 t, 2 t) of the last attention: which state (row) sees which (column).

    A state sees the states of its own direction up to its own position. Of the other direction, it
    sees the states that have read none of the letters it has read, except the adjacent state.
    """
    positions = torch.arange(length, device=device)
    query_positions, key_positions = positions[:, None], positions[None, :]
    sees_own_direction, sees_other_direction = (
        query_positions >= key_positions,
        key_positions >= query_positions + 2,
    )
    return torch.cat(
        [
            torch.cat([sees_own_direction, sees_other_direction], dim=1),
            torch.cat([sees_other_direction.T, sees_own_direction.T], dim=1),
        ]
    )


def _split_by_head(x: Tensor, heads: int) -> Tensor:
    """Return states with a dimension of heads: (b, heads, t, width / heads)."""
    return x.reshape(*x.shape[:-1], heads, -1).transpose(1, 2)


def _join_heads(x: Tensor) -> Tensor:
    """Return states without the dimension of heads: (b, t, width)."""
    return x.transpose(1, 2).flatten(2)
