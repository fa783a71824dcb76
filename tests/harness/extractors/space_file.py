"""A small SPACE model as a file of tensors, and its formulas bin by bin."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as f

from reference_harness.extractors.space import Space, SpaceConfig
from tests.harness.extractors.by_hand import Tensors, linear, norm
from tests.harness.extractors.lookalikes import BASES, Lookalike

LETTERS = 64
SIZES: dict[str, Any] = {
    "dim": 24,
    "depth": 2,
    "heads": 2,
    "target_length": 4,
    "attn_dim_key": 4,
    "num_downsamples": 3,
    "dim_divisible_by": 4,
    "species_num_experts": 4,
    "topk": 3,
}


def save(folder: Path) -> Any:
    """Save random weights, with those of another species and of heads that are left over."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = Space(SpaceConfig(**SIZES))
        for weight in model.parameters():
            torch.nn.init.normal_(weight, std=0.3)
        for name, tensor in model.named_buffers():
            if name.endswith("running_mean"):
                torch.nn.init.normal_(tensor, std=0.2)
    made = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    more = {
        "heads.human.0.weight": torch.ones(1),
        "transformer.species_embedding.mouse": torch.ones(1),
    }
    torch.save(
        {f"model.{name}": member for name, member in (made | more).items()}, folder / "model.bin"
    )
    (folder / "config.json").write_text(json.dumps({**SIZES, "model_type": "space", "num": 16}))
    return made


def block(t: Tensors, at: str, x: Tensor) -> Tensor:
    """Normalize channels, activate, convolve (width, length)."""
    centred = x - t[f"{at}.0.running_mean"][:, None]
    x = centred / (t[f"{at}.0.running_var"][:, None] + 1e-5).sqrt()
    x = x * t[f"{at}.0.weight"][:, None] + t[f"{at}.0.bias"][:, None]
    kernel = t[f"{at}.2.weight"]
    x = x * torch.sigmoid(1.702 * x)
    return f.conv1d(x[None], kernel, t[f"{at}.2.bias"], padding=kernel.shape[-1] // 2)[0]


def halved(t: Tensors, at: str, x: Tensor) -> Tensor:
    """Average neighbours by shares that all channels decide on."""
    left, right = x[:, 0::2], x[:, 1::2]
    weight = t[f"{at}.to_attn_logits.weight"][:, :, 0, 0]
    share = torch.sigmoid(weight @ left - weight @ right)
    return share * left + (1 - share) * right


def position(distance: int, length: int, each: int) -> Tensor:
    """Return the features of one distance."""
    far, features = abs(distance), []
    for n in range(each):
        least = 3 + (math.log2(length) - 3) * n / max(each - 1, 1)
        features.append(2 ** (-far / 2**least))
    features += [float(2 ** (n + 1) - 1 > far) for n in range(each)]
    density = []
    for n in range(each):
        mean = length / each + (length - length / each) * n / max(each - 1, 1)
        shape = (mean / (length / (2 * each))) ** 2
        rate = shape / mean
        power = (shape - 1) * math.log(far) if far else -math.inf
        density.append(math.exp(power - rate * far - math.lgamma(shape) + shape * math.log(rate)))
    density = [density_value + 1e-8 for density_value in density]
    features += [density_value / max(density) for density_value in density]
    sign = (distance > 0) - (distance < 0)
    return torch.tensor([*features, *(sign * feature_value for feature_value in features)])


def attended(t: Tensors, at: str, x: Tensor) -> Tensor:
    """Attend head by head, with a score for each distance."""
    length, heads = len(x), SIZES["heads"]
    q, k, v = (linear(t, f"{at}.to_{letter}", x).chunk(heads, dim=-1) for letter in "qkv")
    key, each = SIZES["attn_dim_key"], SIZES["dim"] // heads // 6
    parts = []
    for head in range(heads):
        scaled = q[head] / key**0.5
        near = t[f"{at}.to_rel_k.weight"][head * key : (head + 1) * key]
        content = (scaled + t[f"{at}.rel_content_bias"][0, head]) @ k[head].T
        queries = scaled + t[f"{at}.rel_pos_bias"][0, head]
        places = [
            [queries[i] @ (near @ position(j - i, length, each)) for j in range(length)]
            for i in range(length)
        ]
        scores = content + torch.stack([torch.stack(row_scores) for row_scores in places])
        parts.append(scores.softmax(dim=-1) @ v[head])
    return linear(t, f"{at}.to_out", torch.cat(parts, dim=-1))


def experts(t: Tensors, at: str, x: Tensor) -> Tensor:
    """Add what the best experts of each position give."""
    rows = []
    for row, normed in zip(x, norm(t, f"{at}.layer_norm", x, 1e-5), strict=True):
        scores = f.leaky_relu(linear(t, f"{at}.gates.human.0", row))
        best = scores.argsort(descending=True)[: SIZES["topk"]]
        for n, share in zip(best, scores[best].softmax(dim=0), strict=True):
            inner = f.relu(normed @ t[f"{at}.input.weight"][n] + t[f"{at}.input.bias"][n])
            row = row + share * (inner @ t[f"{at}.output.weight"][n] + t[f"{at}.output.bias"][n])  # noqa: PLW2901
        rows.append(row)
    return torch.stack(rows)


def space(t: Tensors, x: Tensor) -> Tensor:
    """Return the embeddings (bins, width) of one-hot letters (letters, 4)."""
    x = f.conv1d(x.T[None], t["stem.0.weight"], t["stem.0.bias"], padding=7)[0]
    x = halved(t, "stem.2", x + block(t, "stem.1.fn", x))
    for n in range(SIZES["num_downsamples"] - 1):
        x = block(t, f"conv_tower.{n}.0", x)
        x = halved(t, f"conv_tower.{n}.2", x + block(t, f"conv_tower.{n}.1.fn", x))
    x = torch.cat([x.T, t["transformer.species_embedding.human"][0]])
    for n in range(SIZES["depth"]):
        at = f"transformer.transformer.{n}"
        x = x + attended(t, f"{at}.attention.fn.1", norm(t, f"{at}.attention.fn.0", x, 1e-5))
        x = experts(t, f"{at}.feed_forward", x)
    cut = (len(x) - 1 - SIZES["target_length"]) // 2
    x = block(t, "final_pointwise.1", x[:-1][cut : len(x) - 1 - cut].T)
    return (x * torch.sigmoid(1.702 * x)).T


def row(made: Any, sequence: str) -> np.ndarray:
    """Average all bins of a sequence in the middle of zeros."""
    cut = max(0, len(sequence) - LETTERS) // 2
    letters = sequence[cut : cut + LETTERS]
    x = torch.zeros(LETTERS, 4)
    for index, letter in enumerate(letters, (LETTERS - len(letters)) // 2):
        if letter in BASES:
            x[index, BASES[letter]] = 1
    return np.asarray(space(made, x).mean(dim=0))


SPACE_FILES = {
    "SPACE file": Lookalike(
        save=save,
        options={
            "auto_class": "own:space",
            "weights": "model.bin",
            "rename": {r"^model\.": ""},
            "unexpected": r"^(heads|tracks)\.|\.mouse(\.|$)",
            "input": "one_hot_letters",
            "fixed_letters": LETTERS,
            "truncation": "right",
            "output": "item:0",
        },
        row=row,
        exact=True,
    )
}
"""Family to its lookalike."""
