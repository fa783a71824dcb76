"""Measure batches of a small BERT on a CPU: upstream's, by a token budget, of equal length."""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from reference_harness.loading.loader import load
from tests.harness.extractors.models import save
from tests.harness.support import padded_tokens

SEQUENCES = 480
LENGTHS = (13, 19, 41, 62, 104, 126, 211)
"""Letters, which are tokens here; two special ones come on top. The benchmark's tasks of 71, 101,
200, 300, 500, 600 and 1,000 bp have as many tokens under byte-pair encoding."""
ROUNDS = 2
TORCH_THREADS = 1


def sequences() -> list[str]:
    rng = np.random.RandomState(0)
    return ["".join(rng.choice(list("ACGT"), n)) for n in rng.choice(LENGTHS, SEQUENCES)]


def batching_table(print_lines: Callable[..., None]) -> None:
    torch.set_num_threads(TORCH_THREADS)
    all_sequences = sequences()
    tokens = [len(sequence) + 2 for sequence in all_sequences]
    print_lines(
        f"## Embedding, BERT of 4 layers x 256, float32, {TORCH_THREADS} thread, {SEQUENCES} "
        f"sequences of {LENGTHS[0] + 2} to {LENGTHS[-1] + 2} tokens",
        "",
        "| batches | tokens per CPU s | padding | over stock | rows equal to a batch of one |",
        "|---|---|---|---|---|",
    )
    with tempfile.TemporaryDirectory() as folder:
        save("bert", Path(folder), large=True)
        modes = {
            "stock: 8 in file order": ("file", 8192),
            "token budget 2,048": ("budget", 2048),
            "token budget 8,192": ("budget", 8192),
            "exact": ("exact", 8192),
        }
        extractors = {
            name: load("huggingface", folder, "cpu", batching=mode, token_budget=budget).extractor
            for name, (mode, budget) in modes.items()
        }
        exact = extractors["exact"]
        single_rows = np.vstack(
            [exact.extract_embeddings([sequence], batch_size=8) for sequence in all_sequences]
        )
        seconds: dict[str, list[float]] = {name: [] for name in modes}
        rows: dict[str, np.ndarray] = {}
        for _ in range(ROUNDS):
            for name, extractor in extractors.items():
                started = time.process_time()
                rows[name] = extractor.extract_embeddings(all_sequences, batch_size=8)
                seconds[name].append(time.process_time() - started)
        stock_seconds = statistics.median(next(iter(seconds.values())))
        for name, extractor in extractors.items():
            median = statistics.median(seconds[name])
            any_extractor: Any = extractor
            padded = padded_tokens(tokens, any_extractor._batches(tokens, 8))
            equal = int((rows[name] == single_rows).all(axis=1).sum())
            print_lines(
                f"| {name} | {sum(tokens) / median:,.0f} | {1 - sum(tokens) / padded:.0%} "
                f"| {stock_seconds / median:.2f} | {equal} of {SEQUENCES} |"
            )
    print_lines("")
