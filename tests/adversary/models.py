"""Honest extractors of several kinds, and one that was trained on the test set."""

import copy
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from transformers import BertConfig, BertModel

from reference_harness import mini
from reference_harness.data.task_data import TaskData
from reference_harness.extractors.kmer import KmerExtractor

FILTERS, WIDTH = 64, 9
PRETRAINED_ON = (9001, 9002)
"""Seeds of the sets that the honest trained model saw: none is one that it is tested on."""
EPOCHS, ROWS, RATE = 12, 64, 3e-3
BATCH = 256
LAYERS, HIDDEN, HEADS = 2, 32, 4
"""Of the transformers, whose feed-forward layers are four times as wide."""
TRANSFORMER_EPOCHS, TRANSFORMER_RATE = 6, 1e-3
TOKENS = (3, 6)
"""Letters of a token. Tokens do not overlap: a shift by three letters changes all those of six."""
Rows = npt.NDArray[np.float32]


class Convolution(nn.Module):
    """Letters to the mean and the maximum of some filters."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(4, FILTERS, WIDTH, padding=WIDTH // 2)

    def read(self, sequences: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        return letters_of(sequences)

    def forward(self, letters: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return (n, 2 FILTERS) features of (n, 4, length) letters; padding counts for nothing."""
        activations = torch.relu(self.first(letters))
        inside = torch.arange(letters.shape[2])[None, :] < lengths[:, None]
        masked_activations = activations * inside[:, None, :]
        mean = masked_activations.sum(2) / lengths[:, None]
        return torch.cat([mean, masked_activations.amax(2)], 1)


def letters_of(sequences: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (n, 4, longest) one-hot letters, and the (n,) lengths."""
    longest = max(map(len, sequences))
    codes = np.full((len(sequences), longest), 4)
    for row, sequence in enumerate(sequences):
        codes[row, : len(sequence)] = ["ACGT".find(letter) for letter in sequence.upper()]
    codes[codes < 0] = 4
    hot = np.eye(5, dtype=np.float32)[codes][:, :, :4].transpose(0, 2, 1)
    return torch.from_numpy(np.ascontiguousarray(hot)), torch.tensor([len(s) for s in sequences])


class Transformer(nn.Module):
    """A BERT whose tokens are `width` letters each, to the mean over the tokens."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        words = map("".join, itertools.product("ACGT", repeat=width))
        self.tokens = {word: number for number, word in enumerate(words, 2)}
        self.inner = BertModel(
            BertConfig(
                vocab_size=len(self.tokens) + 2,
                hidden_size=HIDDEN,
                num_hidden_layers=LAYERS,
                num_attention_heads=HEADS,
                intermediate_size=4 * HIDDEN,
                max_position_embeddings=512,
                hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
            ),
            add_pooling_layer=False,
        )

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return (n, HIDDEN) features of (n, longest) ids; padding counts for nothing."""
        inside = torch.arange(ids.shape[1])[None, :] < lengths[:, None]
        hidden_states = self.inner(input_ids=ids, attention_mask=inside.long()).last_hidden_state
        mean: torch.Tensor = (hidden_states * inside[:, :, None]).sum(1) / lengths[:, None]
        return mean

    def read(self, sequences: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (n, longest) ids, 0 behind the last token and 1 where it is none, and lengths."""
        rows = [
            [
                self.tokens.get(sequence[i : i + self.width].upper(), 1)
                for i in self._places(sequence)
            ]
            for sequence in sequences
        ]
        lengths = torch.tensor([len(row) for row in rows])
        ids = torch.zeros(len(rows), int(lengths.max()), dtype=torch.long)
        for row, row_text in enumerate(rows):
            ids[row, : len(row_text)] = torch.tensor(row_text)
        return ids, lengths

    def _places(self, sequence: str) -> range:
        return range(0, max(1, len(sequence) - self.width + 1), self.width)


Network = Convolution | Transformer


class NetworkExtractor:
    """A small network, random or trained, in float32 or rounded to bfloat16 as it computes."""

    def __init__(self, model: Network, dtype: torch.dtype = torch.float32) -> None:
        self.model = model.to(dtype).eval()
        self.dtype = dtype

    def extract_embeddings(self, sequences: Sequence[str], batch_size: int = BATCH) -> Rows:
        del batch_size
        rows: list[Rows] = []
        order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
        with torch.no_grad():
            for start in range(0, len(order), BATCH):
                some = order[start : start + BATCH]
                read, lengths = self.model.read([sequences[i] for i in some])
                read = read.to(self.dtype) if read.is_floating_point() else read
                rows.append(self.model(read, lengths).float().numpy())
        out = np.empty((len(sequences), rows[0].shape[1]), dtype=np.float32)
        out[order] = np.concatenate(rows)
        return out


class RoundedExtractor:
    """Another extractor's rows, rounded to bfloat16."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def extract_embeddings(self, sequences: Sequence[str], batch_size: int = 8) -> Rows:
        rows = torch.from_numpy(np.asarray(self.inner.extract_embeddings(sequences, batch_size)))
        rounded_rows: Rows = rows.to(torch.bfloat16).float().numpy()
        return rounded_rows


def random_convolution(seed: int = 3) -> Convolution:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Convolution()


def random_transformer(width: int, seed: int = 3) -> Transformer:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Transformer(width)


def trained(
    tasks: Iterable[TaskData],
    splits: Sequence[str],
    epochs: int = EPOCHS,
    *,
    model: Network | None = None,
    rate: float = RATE,
) -> Network:
    """Return a network trained on the labels of some splits, with one head a task.

    It begins as `model`, as a random convolution without one.
    """
    model, heads = random_convolution() if model is None else model, nn.ModuleDict()
    sets: list[tuple[str, torch.Tensor, torch.Tensor, torch.Tensor]] = []
    with torch.random.fork_rng():
        torch.manual_seed(5)
        for data in tasks:
            sequences = [s for split in splits for s in getattr(data, split).sequences]
            labels = np.concatenate([getattr(data, split).labels for split in splits])
            if data.id not in heads:
                columns = HIDDEN if isinstance(model, Transformer) else 2 * FILTERS
                heads[data.id] = nn.Linear(columns, int(labels.max()) + 1)
            sets.append((data.id, *model.read(sequences), torch.from_numpy(labels)))
        learner = torch.optim.Adam([*model.parameters(), *heads.parameters()], lr=rate)
        for _ in range(epochs):
            for name, read, lengths, truth in sets:
                order = torch.randperm(len(truth))
                for start in range(0, len(order), ROWS):
                    some = order[start : start + ROWS]
                    learner.zero_grad()
                    logits = heads[name](model(read[some], lengths[some]))
                    loss = nn.functional.cross_entropy(logits, truth[some])
                    loss.backward()  # type: ignore[no-untyped-call]
                    learner.step()
    return model


@functools.cache
def pretrained(width: int = 0) -> Network:
    """Return a convolution, or a transformer of `width` letters a token, trained on sets that no
    audit has."""
    sets = (mini.generate(task, seed) for seed in PRETRAINED_ON for task in mini.TASKS)
    if not width:
        return trained(sets, ("train", "test"))
    begun = random_transformer(width)
    epochs = TRANSFORMER_EPOCHS
    return trained(sets, ("train", "test"), epochs, model=begun, rate=TRANSFORMER_RATE)


def _copied(width: int) -> Network:
    return copy.deepcopy(pretrained(width))


def _extractor(make: Callable[[], Network], dtype: torch.dtype) -> NetworkExtractor:
    return NetworkExtractor(make(), dtype)


def honest() -> dict[str, Callable[[], Any]]:
    """Return what makes each honest extractor, by name."""
    networks: dict[str, Callable[[], Network]] = {
        "random convolution": random_convolution,
        "trained convolution": functools.partial(_copied, 0),
    }
    for width in TOKENS:
        name = f"transformer of {width}-mers"
        networks[f"random {name}"] = functools.partial(random_transformer, width)
        networks[f"trained {name}"] = functools.partial(_copied, width)
    made: dict[str, Callable[[], Any]] = {
        f"{k}-mers": functools.partial(KmerExtractor, k=k) for k in (2, 3, 4, 5)
    }
    made["4-mers, bfloat16"] = lambda: RoundedExtractor(KmerExtractor())
    for name, make in networks.items():
        made[name] = functools.partial(_extractor, make, torch.float32)
        made[f"{name}, bfloat16"] = functools.partial(_extractor, make, torch.bfloat16)
    return made
