"""Invariance: the embedding of a sequence depends on nothing else."""

import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from .probes import SEED, dna, mixed
from .result import BrokenError
from .subject import Subject, call


def batch_size(subject: Subject) -> tuple[str, float]:
    """Check that the size of the batch does not change a row."""
    worst = 0.0
    for sequences in ([dna(12), dna(12, 1)], mixed()):
        alone = subject.embed(sequences, 1)
        for size in (2, 3, 8):
            worst = max(
                worst,
                subject.same(
                    subject.embed(sequences, size),
                    alone,
                    f"rows under batch_size={size} differ from those under batch_size=1: pool "
                    "every record of a batch, each under its own mask",
                    f"{call(sequences, size)} against batch_size=1",
                ),
            )
    return "Rows are the same under batches of 1, 2, 3 and 8.", worst


def batch_neighbours(subject: Subject) -> tuple[str, float]:
    """Check that other sequences of equal length in the batch do not change a row."""
    worst = 0.0
    for length in (12, 24):
        x, y, z = (dna(length, salt) for salt in range(3))
        alone = subject.embed([x], 1)[0]
        for sequences, row in (([x, y], 0), ([y, x], 1), ([y, x, z], 1)):
            worst = max(worst, _row(subject, sequences, row, alone, "next to others of its length"))
    return "A sequence has the same row alone and next to others of its length.", worst


def padding(subject: Subject) -> tuple[str, float]:
    """Check that a longer neighbour, which makes padding necessary, does not change a row."""
    worst = 0.0
    for short, long in ((7, 8), (7, 12), (12, 31), (19, 57)):
        x, y = dna(short), dna(long, 1)
        alone = subject.embed([x], 1)[0]
        for sequences, row in (([x, y], 0), ([y, x], 1)):
            worst = max(worst, _row(subject, sequences, row, alone, "next to a longer one"))
    return "A sequence has the same row alone and next to a longer one.", worst


def order(subject: Subject) -> tuple[str, float]:
    """Check that row i belongs to sequence i, in any order of the sequences."""
    sequences = mixed()
    expected = subject.embed(sequences, 2)
    worst = 0.0
    for name, rows in _orders(len(sequences)):
        found = subject.embed([sequences[i] for i in rows], 2)
        worst = max(
            worst,
            subject.same(
                found,
                expected[rows],
                f"rows do not follow their sequences when these come {name}: restore the order "
                "after sorting by length",
                f"{call(sequences, 2)}, {name}",
            ),
        )
    return "Rows follow their sequences in every order tried.", worst


def repeatable_calls(subject: Subject) -> tuple[str, float]:
    """Check that the same call gives the same rows again."""
    expected = subject.embed(mixed())
    worst = 0.0
    for _ in range(2):
        worst = max(
            worst,
            subject.same(
                subject.embed(mixed()),
                expected,
                "the same call gives different rows: the extractor is random or has a state",
                f"{call(mixed())}, twice",
            ),
        )
    return "The same call gives the same rows.", worst


def repeatable_loads(subject: Subject) -> tuple[str, float]:
    """Check that two loads give the same rows: no weight is left at random numbers."""
    expected = subject.embed(mixed())
    _reseed(SEED)
    second = subject.load().extractor
    return "Two loads give the same rows.", subject.same(
        subject.embed(mixed(), on=second),
        expected,
        "two loads give different rows: some weights are not in the checkpoint and are initialised "
        "at random; check the model class and the report of missing keys",
        f"{call(mixed())}, after each of two loads",
    )


def evaluation_mode(subject: Subject) -> tuple[str, float]:
    """Check that no dropout is active."""
    sequences = mixed()
    subject.embed(sequences)
    for name, module in torch_modules(subject.extractor):
        if module.training:
            msg = f"its {name} is in training mode, where dropout is active: call .eval() on it"
            raise BrokenError(msg, call(sequences))
    _reseed(1)
    first = subject.embed(sequences)
    _reseed(2)
    return "Nothing is in training mode, and rows do not depend on the seed.", subject.same(
        subject.embed(sequences),
        first,
        "rows depend on the random seed, as with active dropout: call .eval() on the model",
        f"{call(sequences)}, under two random seeds",
    )


def torch_modules(extractor: object) -> Iterator[tuple[str, Any]]:
    """Yield name and module of what the extractor holds, in attributes and one level below."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    for name, value in getattr(extractor, "__dict__", {}).items():
        items = value.values() if isinstance(value, dict) else value
        for item in items if isinstance(value, dict | list | tuple) else (value,):
            if isinstance(item, torch.nn.Module):
                yield name, item


def _row(subject: Subject, sequences: list[str], row: int, alone: np.ndarray, where: str) -> float:
    return subject.same(
        subject.embed(sequences, len(sequences))[row],
        alone,
        f"a sequence has another row {where} than alone: pool under the attention mask, pass the "
        "mask to the model, and index tokens from the sequence's own start or end",
        f"{call(sequences, len(sequences))}[{row}] against {call([sequences[row]], 1)}[0]",
    )


def _orders(count: int) -> Iterator[tuple[str, list[int]]]:
    rows = list(range(count))
    yield "reversed", rows[::-1]
    random.Random(SEED).shuffle(rows)  # noqa: S311 - a probe, no secret
    yield "shuffled", rows


def _reseed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - the generator that extractors use without asking
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seed)
