"""How fast a device embeds and fits, and whether several processes of probes share it well.

    make bench-gpu                                           # on the GPU, or where none is, small
    python -m benchmarks.bench_device --device cuda --write  # docs/contributor/cluster.md

Embedding: models of five kinds with random weights; the first line of each is upstream's loop. A
pass takes 2 operations a weight and token, attention aside; the share is that of `--peak`, in 10^12
operations a second. Each way embeds everything once before it is timed. Busy is the time during
which a kernel or a copy runs on a GPU, as torch's profiler has it; on a CPU processor time over
that of all threads. Without a GPU, models and sequences are small: that tries the command.

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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.metrics import matthews_corrcoef as mcc
from transformers import BertConfig, BertModel, LlamaConfig, LlamaModel

from benchmarks import hyena_like
from benchmarks.bench_embedding import LENGTHS
from reference_harness import benchmark, embed, environment
from reference_harness.data import MiniSource
from reference_harness.embed import Batching
from reference_harness.loading import LoadedExtractor, load
from reference_harness.memory import MemoryLimit, peak_memory, room_of
from tests.harness.extractors.models import tokenizer
from tests.paths import ROOT

SIZES = ((6_478, 768), (32_378, 768), (32_378, 2_560))
"""Rows and columns: two real tasks, and widths of two public models."""
CLASSES = (2, 5)
TEST = 2_000
PROCESSES = (1, 2, 4)
SEQUENCES, TRIED = 8_192, 24
"""Sequences that a GPU embeds, and a CPU that tries the command."""
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


@dataclass(frozen=True)
class Kind:
    """A kind of model with random weights, and the sequences that it embeds."""

    what: str
    width: int
    layers: int
    dtype: str
    lengths: tuple[int, ...]
    """Letters, which are tokens."""
    is_decoder: bool = False
    is_hyena: bool = False

    def small(self) -> "Kind":
        """Return it at a size that tries the command on a CPU."""
        return replace(self, width=32, layers=2, lengths=tuple(one // 4 for one in self.lengths))

    def loaded(self, folder: Path, device: str, mode: str, **more: Any) -> LoadedExtractor:
        """Load it from a folder; write it there if it is not there yet."""
        if self.is_hyena:
            spec = f"{hyena_like.__file__}:{hyena_like.HyenaLike.__name__}"
            return load(spec, "", device, width=self.width, layers=self.layers)
        if not any(folder.iterdir()):
            self._write(folder)
        return load(
            "huggingface", str(folder), device,
            dtype=self.dtype, max_length=1024, batching=mode, **more,
        )  # fmt: skip

    def _write(self, folder: Path) -> None:
        sizes: dict[str, Any] = {
            "hidden_size": self.width, "num_hidden_layers": self.layers,
            "num_attention_heads": max(2, self.width // 64), "vocab_size": 16,
            "intermediate_size": 4 * self.width, "max_position_embeddings": 1024,
        }  # fmt: skip
        torch.manual_seed(0)
        model: Any = (
            LlamaModel(LlamaConfig(**sizes, pad_token_id=0))
            if self.is_decoder
            else BertModel(BertConfig(**sizes))
        )
        model.to(getattr(torch, self.dtype)).save_pretrained(folder)
        tokenizer(limit=1024, decoder=self.is_decoder).save_pretrained(folder)


KINDS = (
    Kind("NT-like, 50M, float32, 101 letters", 512, 16, "float32", (101,)),
    Kind("BERT-like, 106M, bfloat16, 512 tokens", 768, 15, "bfloat16", (510,)),
    Kind("BERT-like, 106M, bfloat16, lengths of GENEB", 768, 15, "bfloat16", LENGTHS),
    Kind("HyenaDNA-like, 6.5M, float32, 1,000 letters", 256, 8, "float32", (1000,), is_hyena=True),
    Kind("decoder, 1.1B, bfloat16, 512 tokens", 2048, 16, "bfloat16", (512,), is_decoder=True),
)
CALLS = (2048, 16_384, 65_536)
"""Sequences of a call of a built-in extractor: within one call batches overlap."""


class Load:
    """How busy a device is and the most memory that it gave out, while this context is open."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.busy = float("nan")
        self.peak = 0
        self._profile: Any = None

    def __enter__(self) -> Self:
        if self.device.startswith("cuda"):
            torch.cuda.reset_peak_memory_stats(self.device)
            cuda = torch.profiler.ProfilerActivity.CUDA
            self._profile = torch.profiler.profile(activities=[cuda])
            self._profile.__enter__()
        self._cpu, self._wall = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        self.seconds = wall
        if not self.device.startswith("cuda"):
            self.busy = cpu / (wall * torch.get_num_threads())
            self.peak = peak_memory(self.device)
            return
        self._profile.__exit__(*error)
        spans = sorted(
            (event.time_range.start, event.time_range.end) for event in self._profile.events()
        )
        self.busy = covered(spans) / 1e6 / wall
        self.peak = torch.cuda.max_memory_allocated(self.device)


def covered(spans: Sequence[tuple[float, float]]) -> float:
    """Return how much is covered by spans that are sorted by their begin."""
    total, until = 0.0, float("-inf")
    for begin, end in spans:
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


def embedding_table(
    device: str, kinds: Sequence[Kind], count: int, peak: float | None
) -> Iterator[str]:
    """Measure each way to embed with each kind of model, and yield the lines."""
    sizes = embed.CALL_SEQUENCES, embed.CALL_SEQUENCES_MAX
    yield "| model, batches | sequences a second | over the first | busy | share of peak | memory |"
    yield "|---|---:|---:|---:|---:|---:|"
    for kind in kinds:
        first = 0.0
        rng = np.random.RandomState(0)
        lengths = rng.choice(kind.lengths, count)
        sequences = ["".join(rng.choice(list("ACGT"), length)) for length in lengths]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for way, batching, calls in ways(kind):
                loaded = kind.loaded(folder, device, batching.mode)
                limit = MemoryLimit(room_of(device))
                embed.CALL_SEQUENCES = embed.CALL_SEQUENCES_MAX = calls
                embed.embed_sequences(loaded, batching, sequences, limit)
                with Load(device) as load_of:
                    embed.embed_sequences(loaded, batching, sequences, limit)
                first = first or load_of.seconds
                model: Any = loaded.extractor
                weights = sum(one.numel() for one in model.model.parameters() if one.ndim > 1)
                used = 2 * weights * int(lengths.sum()) / load_of.seconds / 1e12
                share = f"{used / peak:.0%}" if peak else f"{used:.3g} TFLOPS"
                yield (
                    f"| {kind.what}: {way} | {count / load_of.seconds:,.0f} "
                    f"| {first / load_of.seconds:.1f} | {load_of.busy:.0%} | {share} "
                    f"| {load_of.peak / 1e9:.2f} GB |"
                )
                del loaded, model
    embed.CALL_SEQUENCES, embed.CALL_SEQUENCES_MAX = sizes
    yield ""


def ways(kind: Kind) -> list[tuple[str, Batching, int]]:
    """Return how a kind of model is embedded: what, batches, sequences of a call."""
    settings = [("batches of 8 in file order", Batching("file"), CALLS[0])]
    calls = CALLS[:1] if kind.is_hyena else CALLS
    settings += [(f"token budget, calls of {n:,}", Batching("budget"), n) for n in calls]
    return [*settings, ("exact", Batching("exact"), CALLS[0])]


def tf32_lines(device: str, kind: Kind, rows: int | None) -> Iterator[str]:
    """Measure how TF32 moves embeddings and a score of GENEB-mini, and yield the line."""
    from reference_harness import probe

    task = benchmark.mini().tasks[0]
    data = MiniSource().load(task).head(rows or 10**6)
    splits = data.train, data.test
    found: list[tuple[np.ndarray, float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        for allowed in (False, True):
            loaded = kind.loaded(Path(folder), device, "budget")
            environment.set_tf32(allowed=allowed)
            began = time.perf_counter()
            train, test = (
                embed.embed_sequences(loaded, Batching("budget"), one.sequences, MemoryLimit())
                for one in splits
            )
            seconds = time.perf_counter() - began
            fit = probe.fit(train, data.train.labels, test, probe.CPU)
            found.append((test, float(mcc(data.test.labels, fit.predictions)), seconds))
    (off, score, slow), (on_, other, fast) = found
    far = np.abs(on_ - off).max() / np.abs(off).max()
    yield (
        f"TF32, {kind.what}, {task.id}: {slow / fast:.2f} times as fast, embeddings move by up to "
        f"{far:.1e} of the largest, MCC from {score:.3f} to {other:.3f}."
    )
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
    parser.add_argument("--device", help="torch device; default: cuda if there is one, else cpu")
    parser.add_argument("--peak", type=float, help="10^12 operations a second, dense, bfloat16")
    parser.add_argument("--rows", type=int, help="at most so many rows, to try the command")
    parser.add_argument(
        "--write", action="store_true", help="put the table into docs/contributor/cluster.md"
    )
    options = parser.parse_args()
    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    is_trial = device == "cpu"
    rows = options.rows or (TRIED if is_trial else None)
    sizes = [
        (min(count, rows or count), dim, classes)
        for (count, dim), classes in itertools.product(SIZES, CLASSES)
    ]
    kinds = [kind.small() if is_trial else kind for kind in KINDS]
    text = "\n".join(
        [
            *embedding_table(device, kinds, min(SEQUENCES, rows or SEQUENCES), options.peak),
            *tf32_lines(device, kinds[0], rows),
            *fits_table(device, sizes),
        ]
    )
    text += f"\n\n{environment.hardware(device)}, {os.cpu_count()} cores, one thread a process.\n"
    if is_trial:
        text += "A trial without a GPU: the figures say nothing.\n"
    print(text)
    if options.write:
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(before + BEGIN + text + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
