"""Pool the hidden states of each sequence to one vector, according to the attention mask.

Each function takes hidden states (b, t, d) and a mask (b, t) that is 1 at the tokens of the
sequence, including special tokens, and 0 at padding on either side; it returns (b, d) in float32.
Every row must have at least one token.
"""

from collections.abc import Callable

import torch
from torch import Tensor


def mean(hidden: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of the tokens, summed in float32, as a sum in bfloat16 loses digits."""
    weights = mask.to(torch.float32).unsqueeze(-1)
    # `where` instead of a product: padding may be NaN, and NaN times zero is NaN.
    unmasked = torch.where(weights > 0, hidden.to(torch.float32), 0.0)
    return unmasked.sum(dim=1) / weights.sum(dim=1)


def cls(hidden: Tensor, mask: Tensor) -> Tensor:
    """Return the first token of the sequence, which is not at index 0 under left padding."""
    return _tokens_at(hidden, mask.to(torch.int64).argmax(dim=1))


def last(hidden: Tensor, mask: Tensor) -> Tensor:
    """Return the last token of the sequence."""
    padding_after = mask.to(torch.int64).flip(1).argmax(dim=1)
    return _tokens_at(hidden, mask.shape[1] - 1 - padding_after)


def maximum(hidden: Tensor, mask: Tensor) -> Tensor:
    """Return the largest value of each dimension over the tokens."""
    unmasked = mask.to(torch.bool).unsqueeze(-1)
    return torch.where(unmasked, hidden.to(torch.float32), -torch.inf).amax(dim=1)


def _tokens_at(hidden: Tensor, index: Tensor) -> Tensor:
    """Return the hidden state of each sequence at its index."""
    rows = torch.arange(len(hidden), device=hidden.device)
    return hidden[rows, index].to(torch.float32)


POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mean": mean,
    "cls": cls,
    "last": last,
    "max": maximum,
    "penultimate": last,
}
"""Option `pooling` -> function. For `penultimate`, the mask excludes special tokens at the end."""
