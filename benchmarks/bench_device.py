"""How fast a device embeds and fits, and whether several processes of probes share it well.

    python -m benchmarks.bench_device --device cuda --write  # docs/contributor/cluster.md

Embedding: an encoder of 100 million parameters with random weights, in bfloat16, on sequences of
the benchmark's lengths; the first line is upstream's loop. A pass takes 2 operations a parameter
and token, attention aside; the share is that of `--peak`, in 10^12 operations a second. Each way
embeds everything once before it is timed.

Fits: each way fits the stock probe on the same problems. A process of its own for each, as the
probe has one, with one thread; several on the device each take a share of the problems, at the same
time.
"""

import argparse
import itertools
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import BertConfig, BertModel

from benchmarks.bench_embedding import LENGTHS
from reference_harness import environment
from reference_harness.embed import Batching, embed_sequences
from reference_harness.loading import load
from reference_harness.memory import MemoryLimit, room_of
from tests.harness.extractors.models import tokenizer
from tests.paths import ROOT

SIZES = ((6_478, 768), (32_378, 768), (32_378, 2_560))
"""Rows and columns: two real tasks, and widths of two public models."""
CLASSES = (2, 5)
TEST = 2_000
PROCESSES = (1, 2, 4)
SEQUENCES = 8_192
WIDTH, LAYERS = 768, 14
"""Of the encoder: 99 million parameters, those of embeddings aside."""
BEGIN, END = "<!-- device -->\n", "<!-- /device -->"
PAGE = ROOT / "docs/contributor/cluster.md"

Size = tuple[int, int, int]
"""Rows, columns and classes."""


def language_like(size: Size) -> tuple[np.ndarray, ...]:
    """Return train, labels and test with a power-law spectrum and an offset, as models give."""
    rows, dim, classes = size
    rng = np.random.RandomState(sum(size))
    x = rng.standard_normal((rows + TEST, dim)).astype(np.float32)
    x *= 1 / np.sqrt(np.arange(1, dim + 1, dtype=np.float32))
    scores = x @ rng.standard_normal((dim, classes)).astype(np.float32)
    labels = (scores / scores.std() * 2 + rng.gumbel(size=scores.shape)).argmax(axis=1)
    x = 10 * (x + rng.standard_normal(dim).astype(np.float32))
    return x[:rows], labels[:rows], x[rows:]


def prepare() -> None:
    """Hold this process to one thread, as a worker is."""
    from reference_harness.engine import threads

    threads.hold_to_scorer(array_api=True)


def fitted(given: tuple[str, Size]) -> float:
    """Fit a problem on a device, in a worker; the first fit there starts it and is not timed."""
    from reference_harness import probe

    name, size = given
    device = probe.CPU if name == "numpy" else probe.Device(name, torch=True, least=0)
    train, labels, test = language_like(size)
    probe.fit(device.put(train[:64]), labels[:64], device.put(test), device)
    began = time.perf_counter()
    probe.fit(device.put(train), labels, device.put(test), device)
    return time.perf_counter() - began


def on(name: str, sizes: list[Size], processes: int) -> tuple[float, list[float]]:
    """Return the seconds of all problems in so many processes, and each result."""
    context: Any = multiprocessing.get_context("spawn")
    with context.Pool(processes, prepare) as pool:
        began = time.perf_counter()
        found = pool.map(fitted, [(name, size) for size in sizes], chunksize=1)
    return time.perf_counter() - began, found


def encoder(folder: Path) -> int:
    """Write an encoder and its tokenizer; return its parameters, those of embeddings aside."""
    config = BertConfig(
        hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=12,
        intermediate_size=4 * WIDTH, vocab_size=16, max_position_embeddings=1024,
    )  # fmt: skip
    model: Any = BertModel(config)
    model.to(torch.bfloat16)
    model.save_pretrained(folder)
    tokenizer(limit=1024).save_pretrained(folder)
    return sum(one.numel() for one in model.encoder.parameters())


def embedding_table(device: str, count: int, peak: float | None) -> Iterator[str]:
    """Measure each way to embed, and yield the lines."""
    rng = np.random.RandomState(0)
    lengths = rng.choice(LENGTHS, count)
    sequences = ["".join(rng.choice(list("ACGT"), length)) for length in lengths]
    tokens = int(lengths.sum()) + 2 * count
    ways: dict[str, tuple[Batching, dict[str, Any]]] = {
        "batches of 8 in file order": (Batching("file"), {}),
        "token budget, measured": (Batching("budget"), {}),
        "the same, compiled": (Batching("budget"), {"compile": True}),
        "exact": (Batching("exact"), {}),
    }
    yield "| 100 million parameters, bfloat16 | rows a second | beside the first | share of peak |"
    yield "|---|---:|---:|---:|"
    first = 0.0
    with tempfile.TemporaryDirectory() as folder:
        parameters = encoder(Path(folder))
        for what, (batching, more) in ways.items():
            loaded = load(
                "huggingface", folder, device,
                dtype="bfloat16", max_length=1024, batching=batching.mode, **more,
            )  # fmt: skip
            limit = MemoryLimit(room_of(device))
            embed_sequences(loaded, batching, sequences, limit)
            began = time.perf_counter()
            embed_sequences(loaded, batching, sequences, limit)
            took = time.perf_counter() - began
            first = first or took
            used = 2 * parameters * tokens / took / 1e12
            share = f"{used / peak:.0%}" if peak else f"{used:.3g} of ? TFLOPS"
            yield f"| {what} | {count / took:,.0f} | {first / took:.1f} | {share} |"
    yield ""


def fits_table(device: str, sizes: list[Size]) -> Iterator[str]:
    """Measure the fits, and yield the lines."""
    _, here = on("numpy", sizes, 1)
    alone, there = on(device, sizes, 1)
    yield f"| rows x columns, classes | one core | {device} |"
    yield "|---|---:|---:|"
    for (rows, dim, classes), cpu, other in zip(sizes, here, there, strict=True):
        yield (f"| {rows:,} x {dim:,}, {classes} | {cpu:.2f} s | {other:.2f} s |")
    yield ""
    for processes in PROCESSES[1:]:
        took, _ = on(device, sizes, processes)
        yield f"{processes} processes on {device} take {took / alone:.2f} times as long as one."


def main() -> None:
    """Measure, print, and with --write keep the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda", help="torch device; cpu tries the command")
    parser.add_argument("--peak", type=float, help="10^12 operations a second, dense, bfloat16")
    parser.add_argument("--rows", type=int, help="at most so many rows, to try the command")
    parser.add_argument(
        "--write", action="store_true", help="put the table into docs/contributor/cluster.md"
    )
    options = parser.parse_args()
    sizes = [
        (min(rows, options.rows or rows), dim, classes)
        for (rows, dim), classes in itertools.product(SIZES, CLASSES)
    ]
    count = min(SEQUENCES, options.rows or SEQUENCES)
    lines = [*embedding_table(options.device, count, options.peak)]
    found = "\n".join([*lines, *fits_table(options.device, sizes)])
    device = environment.hardware(options.device)
    found += f"\n\n{device}, {os.cpu_count()} cores, one thread a process.\n"
    print(found)
    if options.write:
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(before + BEGIN + found + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
