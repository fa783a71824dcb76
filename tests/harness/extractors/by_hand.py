"""The last states of a model from its tensors alone, written as the formulas are."""

import torch
from torch import Tensor
from torch.nn import functional as f

Tensors = dict[str, Tensor]


def norm(t: Tensors, name: str, x: Tensor, eps: float) -> Tensor:
    """Normalize; the file may lack the bias."""
    return f.layer_norm(x, x.shape[-1:], t[f"{name}.weight"], t.get(f"{name}.bias"), eps)


def linear(t: Tensors, name: str, x: Tensor) -> Tensor:
    """Apply a projection whose bias the file may lack."""
    return f.linear(x, t[f"{name}.weight"], t.get(f"{name}.bias"))


def attend(q: Tensor, k: Tensor, v: Tensor, heads: int, mask: Tensor | float = 0.0) -> Tensor:
    """Mix values (t, width) by softmax of scaled products, head by head."""
    parts = []
    for a, b, c in zip(*(x.chunk(heads, dim=-1) for x in (q, k, v)), strict=True):
        scores = a @ b.T / a.shape[-1] ** 0.5 + mask
        parts.append(scores.softmax(dim=-1) @ c)
    return torch.cat(parts, dim=-1)


def causal(length: int) -> Tensor:
    """Return what hides later positions."""
    return torch.full((length, length), -torch.inf).triu(1)


def gpt(t: Tensors, tokens: Tensor, heads: int, layers: int) -> Tensor:
    """Return the states (t, width) of a decoder without biases."""
    x = t["transformer.wte.weight"][tokens] + t["transformer.wpe.weight"][: len(tokens)]
    for n in range(layers):
        at = f"transformer.h.{n}"
        qkv = linear(t, f"{at}.attn.c_attn", norm(t, f"{at}.ln_1", x, 1e-5))
        q, k, v = qkv.chunk(3, dim=-1)
        mixed = attend(q, k, v, heads, causal(len(tokens)))
        x = x + linear(t, f"{at}.attn.c_proj", mixed)
        inner = linear(t, f"{at}.mlp.c_fc", norm(t, f"{at}.ln_2", x, 1e-5))
        x = x + linear(t, f"{at}.mlp.c_proj", f.gelu(inner, approximate="tanh"))
    return norm(t, "transformer.ln_f", x, 1e-5)


def gated_bert(t: Tensors, tokens: Tensor, heads: int, layers: int) -> Tensor:
    """Return the states (t, width) of a BERT with one projection for q, k, v and gated layers."""
    at = "bert.embeddings"
    x = (
        t[f"{at}.word_embeddings.weight"][tokens]
        + t[f"{at}.position_embeddings.weight"][: len(tokens)]
        + t[f"{at}.token_type_embeddings.weight"][0]
    )
    x = norm(t, f"{at}.LayerNorm", x, 1e-12)
    for n in range(layers):
        at = f"bert.encoder.layer.{n}"
        q, k, v = linear(t, f"{at}.attention.self.Wqkv", x).chunk(3, dim=-1)
        mixed = attend(q, k, v, heads)
        out = linear(t, f"{at}.attention.output.dense", mixed)
        x = norm(t, f"{at}.attention.output.LayerNorm", out + x, 1e-12)
        gate, value = linear(t, f"{at}.mlp.gated_layers", x).chunk(2, dim=-1)
        x = norm(
            t, f"{at}.mlp.layernorm", linear(t, f"{at}.mlp.wo", f.gelu(gate) * value) + x, 1e-12
        )
    return x


def rotate(x: Tensor, heads: int) -> Tensor:
    """Turn each pair of neighbours by an angle that grows with the position."""
    length, width = x.shape[0], x.shape[1] // heads
    step = 10000.0 ** (-torch.arange(0, width, 2) / width)
    angle = torch.outer(torch.arange(length), step).repeat(1, heads)
    even, odd = x[:, 0::2], x[:, 1::2]
    turned = even * angle.cos() - odd * angle.sin(), odd * angle.cos() + even * angle.sin()
    return torch.stack(turned, dim=-1).flatten(1)


def roformer(t: Tensors, tokens: Tensor, heads: int, layers: int) -> Tensor:
    """Return the states (t, width) of a RoFormer that turns queries and keys."""
    at = "roformer.embeddings"
    x = t[f"{at}.word_embeddings.weight"][tokens] + t[f"{at}.token_type_embeddings.weight"][0]
    x = norm(t, f"{at}.LayerNorm", x, 1e-12)
    for n in range(layers):
        at = f"roformer.encoder.layer.{n}"
        q, k, v = (
            linear(t, f"{at}.attention.self.{name}", x) for name in ("query", "key", "value")
        )
        mixed = attend(rotate(q, heads), rotate(k, heads), v, heads)
        out = linear(t, f"{at}.attention.output.dense", mixed)
        x = norm(t, f"{at}.attention.output.LayerNorm", out + x, 1e-12)
        inner = f.gelu(linear(t, f"{at}.intermediate.dense", x))
        x = norm(t, f"{at}.output.LayerNorm", linear(t, f"{at}.output.dense", inner) + x, 1e-12)
    return x


def rms(t: Tensors, name: str, x: Tensor) -> Tensor:
    """Divide by the root of the mean square."""
    return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * t[f"{name}.weight"]


def gated(t: Tensors, at: str, x: Tensor) -> Tensor:
    """Apply a gated feed-forward part, or the two best of several by a router's shares."""
    if f"{at}.router.weight" not in t:
        inner = f.silu(linear(t, f"{at}.gate_proj", x)) * linear(t, f"{at}.up_proj", x)
        return linear(t, f"{at}.down_proj", inner)
    rows = []
    for row in x:
        shares = linear(t, f"{at}.router", row).softmax(dim=-1)
        best = shares.argsort(descending=True)[:2]
        parts = [shares[n] * gated(t, f"{at}.experts.{n}", row[None])[0] for n in best]
        rows.append(torch.stack(parts).sum(dim=0))
    return torch.stack(rows)


def mamba(t: Tensors, at: str, x: Tensor) -> Tensor:
    """Run the recurrence letter by letter."""
    inner, gate = linear(t, f"{at}.in_proj", x).chunk(2, dim=-1)
    kernel = t[f"{at}.conv1d.weight"][:, 0]
    padded = f.pad(inner, (0, 0, kernel.shape[1] - 1, 0))
    windows = padded.unfold(0, kernel.shape[1], 1)
    inner = f.silu((windows * kernel).sum(-1) + t[f"{at}.conv1d.bias"])
    rank, states = t[f"{at}.dt_proj.weight"].shape[1], t[f"{at}.A_log"].shape[1]
    parts = torch.split(linear(t, f"{at}.x_proj", inner), [rank, states, states], dim=-1)
    names = ("dt", "b", "c")
    dt, b, c = (rms(t, f"{at}.{n}_layernorm", p) for n, p in zip(names, parts, strict=True))
    step = f.softplus(linear(t, f"{at}.dt_proj", dt))
    state, rows = torch.zeros_like(t[f"{at}.A_log"]), []
    for n in range(len(x)):
        decay = torch.exp(step[n, :, None] * -t[f"{at}.A_log"].exp())
        state = decay * state + (step[n] * inner[n])[:, None] * b[n]
        rows.append(state @ c[n] + t[f"{at}.D"] * inner[n])
    return linear(t, f"{at}.out_proj", torch.stack(rows) * f.silu(gate))


def janus(t: Tensors, tokens: Tensor, letter_count: int, heads: int, layers: int) -> Tensor:
    """Return the states (t, width) of padded tokens; the first `letter_count` are letters."""
    length, ways = len(tokens), {}
    for way, mixer in (("fwd", "mamba_fwd"), ("bwd", "mamba_rev")):
        x = t["embed_tokens.weight"][tokens if way == "fwd" else tokens.flip(0)]
        for n in range(layers):
            at = f"layers.{n}.mamba_module"
            if f"layers.{n}.attn.input_layernorm_fwd.weight" in t:
                at = f"layers.{n}.attn"
                own = f"{at}.self_attn_{way}"
                normed = rms(t, f"{at}.input_layernorm_{way}", x)[:letter_count]
                q, k, v = (linear(t, f"{own}.{letter}_proj", normed) for letter in "qkv")
                mixed = linear(t, f"{own}.o_proj", attend(q, k, v, heads, causal(letter_count)))
                x = x + f.pad(mixed, (0, 0, 0, length - letter_count))
            else:
                x = x + mamba(t, f"{at}.{mixer}", rms(t, f"{at}.input_layernorm_{way}", x))
            normed = rms(t, f"{at}.pre_ff_layernorm_{way}", x)
            x = x + gated(t, f"{at}.feed_forward_{way}", normed)
        ways[way] = x
    at = "final_attention"
    x = torch.cat([ways["fwd"], ways["bwd"].flip(0)])
    query, key = torch.meshgrid(torch.arange(2 * length), torch.arange(2 * length), indexing="ij")
    a, b, near = query % length, key % length, (query < length, key < length)
    seen = torch.where(
        near[0] == near[1],
        torch.where(near[0], a >= b, b >= a),
        torch.where(near[0], b >= a + 2, a >= b + 2),
    )
    normed = rms(t, f"{at}.input_layernorm", x)
    q, k, v = (linear(t, f"{at}.self_attn.{letter}_proj", normed) for letter in "qkv")
    # Scores are scaled by heads of 32, whatever the width of a head.
    q = q * (q.shape[1] / heads / 32) ** 0.5
    mask = torch.where(seen, 0.0, -torch.inf)
    x = x + linear(t, f"{at}.self_attn.o_projs.0", attend(q, k, v, heads, mask))
    x = x + gated(t, f"{at}.feed_forward", rms(t, f"{at}.pre_ff_layernorm", x))
    none = torch.zeros_like(x[0])
    rows = [
        (x[n - 1] if n > 0 else none) + (x[length + n + 1] if n + 1 < length else none)
        for n in range(length)
    ]
    return 2 * rms(t, "final_layernorm", torch.stack(rows))
