"""Honest extractors of several kinds, and one that was trained on the test set."""

import copy
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from reference_harness import mini
from reference_harness.extractors.kmer import KmerExtractor
from reference_harness.tasks import TaskData

FILTERS, WIDTH = 64, 9
PRETRAINED_ON = (9001, 9002)
"""Seeds of the sets that the honest trained model saw: none is one that it is tested on."""
EPOCHS, ROWS, RATE = 12, 64, 3e-3
BATCH = 256
Rows = npt.NDArray[np.float32]


class Convolution(nn.Module):
    """Letters to the mean and the maximum of some filters."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(4, FILTERS, WIDTH, padding=WIDTH // 2)

    def forward(self, letters: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return (n, 2 FILTERS) features of (n, 4, length) letters; padding counts for nothing."""
        found = torch.relu(self.first(letters))
        inside = torch.arange(letters.shape[2])[None, :] < lengths[:, None]
        found = found * inside[:, None, :]
        mean = found.sum(2) / lengths[:, None]
        return torch.cat([mean, found.amax(2)], 1)


def letters_of(sequences: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (n, 4, longest) one-hot letters, and the (n,) lengths."""
    longest = max(map(len, sequences))
    codes = np.full((len(sequences), longest), 4)
    for row, one in enumerate(sequences):
        codes[row, : len(one)] = ["ACGT".find(letter) for letter in one.upper()]
    codes[codes < 0] = 4
    hot = np.eye(5, dtype=np.float32)[codes][:, :, :4].transpose(0, 2, 1)
    return torch.from_numpy(np.ascontiguousarray(hot)), torch.tensor([len(s) for s in sequences])


class ConvolutionExtractor:
    """A small convolution, random or trained, in float32 or rounded to bfloat16 as it computes."""

    def __init__(self, model: Convolution, dtype: torch.dtype = torch.float32) -> None:
        self.model = model.to(dtype)
        self.dtype = dtype

    def extract_embeddings(self, sequences: Sequence[str], batch_size: int = BATCH) -> Rows:
        del batch_size
        out = np.empty((len(sequences), 2 * FILTERS), dtype=np.float32)
        order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
        with torch.no_grad():
            for start in range(0, len(order), BATCH):
                some = order[start : start + BATCH]
                letters, lengths = letters_of([sequences[i] for i in some])
                out[some] = self.model(letters.to(self.dtype), lengths).float().numpy()
        return out


class RoundedExtractor:
    """Another extractor's rows, rounded to bfloat16."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def extract_embeddings(self, sequences: Sequence[str], batch_size: int = 8) -> Rows:
        rows = torch.from_numpy(np.asarray(self.inner.extract_embeddings(sequences, batch_size)))
        found: Rows = rows.to(torch.bfloat16).float().numpy()
        return found


def random_convolution(seed: int = 3) -> Convolution:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Convolution()


def trained(tasks: Iterable[TaskData], splits: Sequence[str], epochs: int = EPOCHS) -> Convolution:
    """Return a convolution trained on the labels of some splits, with one head a task."""
    model, heads = random_convolution(), nn.ModuleDict()
    sets: list[tuple[str, torch.Tensor, torch.Tensor, torch.Tensor]] = []
    with torch.random.fork_rng():
        torch.manual_seed(5)
        for data in tasks:
            sequences = [s for split in splits for s in getattr(data, split).sequences]
            labels = np.concatenate([getattr(data, split).labels for split in splits])
            if data.id not in heads:
                heads[data.id] = nn.Linear(2 * FILTERS, int(labels.max()) + 1)
            sets.append((data.id, *letters_of(sequences), torch.from_numpy(labels)))
        learner = torch.optim.Adam([*model.parameters(), *heads.parameters()], lr=RATE)
        for _ in range(epochs):
            for name, letters, lengths, truth in sets:
                order = torch.randperm(len(truth))
                for start in range(0, len(order), ROWS):
                    some = order[start : start + ROWS]
                    learner.zero_grad()
                    found = heads[name](model(letters[some], lengths[some]))
                    loss = nn.functional.cross_entropy(found, truth[some])
                    loss.backward()  # type: ignore[no-untyped-call]
                    learner.step()
    return model


@functools.cache
def pretrained() -> Convolution:
    """Return a convolution trained on sets that no audit has."""
    sets = (mini.generate(task, seed) for seed in PRETRAINED_ON for task in mini.TASKS)
    return trained(sets, ("train", "test"))


def honest() -> dict[str, Callable[[], Any]]:
    """Return what makes each honest extractor, by name."""
    return {
        **{f"{k}-mers": functools.partial(KmerExtractor, k=k) for k in (2, 3, 4, 5)},
        "4-mers, bfloat16": lambda: RoundedExtractor(KmerExtractor()),
        "random convolution": lambda: ConvolutionExtractor(random_convolution()),
        "random convolution, bfloat16": lambda: ConvolutionExtractor(
            random_convolution(), torch.bfloat16
        ),
        "trained convolution": lambda: ConvolutionExtractor(copy.deepcopy(pretrained())),
        "trained convolution, bfloat16": lambda: ConvolutionExtractor(
            copy.deepcopy(pretrained()), torch.bfloat16
        ),
    }
