"""Measure how fast a device embeds and fits, and whether several processes of probes share it well.

    make bench-gpu                                           # on the GPU, or where none is, small
    python -m benchmarks.bench_device --device cuda --write  # docs/contributor/cluster.md

Embedding: models of five kinds with random weights; the first line of each is upstream's loop. A
pass takes 2 operations a weight and token, attention aside; the share is that of the peak of the
model's dtype by the data sheet of the GPU, or of `--peak`, in 10^12 operations a second. Each way
embeds some sequences before it is timed, then as many as its seconds allow, then some of them under
torch's profiler: busy is the time during which a kernel or a copy runs; on a CPU it is processor
time over that of all threads. A size of call that is not filled in these seconds is left out. The
whole takes at most `--minutes`, eight by default. Without a GPU, models and sequences are small:
that tries the command.

Fits, with `--fits`, which takes longer: each way fits the stock probe on the same problems. A
process of its own for each, as the probe has one, with one thread; several on the device each take
a share of the problems, at the same time.
"""

import argparse
import itertools
import multiprocessing
import operator
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.metrics import matthews_corrcoef as mcc
from transformers import BertConfig, BertModel, LlamaConfig, LlamaModel

from benchmarks import hyena_like
from benchmarks.bench_embedding import LENGTHS
from reference_harness import environment
from reference_harness.data import benchmark
from reference_harness.data.task_folder import MiniSource
from reference_harness.embedding import extractor_calls
from reference_harness.embedding.batching import EXACT_ROWS_MAX
from reference_harness.embedding.exact_batches import with_exact_limits
from reference_harness.embedding.extractor_calls import Batching
from reference_harness.embedding.memory import MemoryLimit, memory_of, peak_memory
from reference_harness.loading.loader import LoadedExtractor, load
from tests.harness.extractors.models import tokenizer
from tests.paths import ROOT

SIZES = ((6_478, 768), (32_378, 768), (32_378, 2_560))
"""Rows and columns of features: those of two real tasks, with the widths of two public models."""
CLASSES = (2, 5)
TEST_ROWS = 2_000
PROCESSES = (1, 2, 4)
SEQUENCES, TRIAL_SEQUENCES = 1 << 17, 24
"""Most sequences that a GPU embeds (two of the largest calls), and that a CPU embeds in a trial."""
WARM_UP_SEQUENCES = 2_048
"""Most sequences of the warm-up before a measurement, from which its number of sequences
follows."""
PROFILED_BATCHES = 200
"""Batches under the profiler, which lists about 200 kernels of each."""
WAY_SECONDS_MAX = 8.0
"""Most seconds of one measurement after its warm-up; less where the minutes run out."""
MINUTES, TF32_SECONDS = 8.0, 30.0
"""Minutes of the whole benchmark, and the seconds of them reserved for TF32 on and off."""
PEAKS: dict[str, dict[str, float]] = {
    "H100 PCIe": {"bfloat16": 756, "float32": 51},
    "H100": {"bfloat16": 989, "float32": 67},
    "H200": {"bfloat16": 989, "float32": 67},
    "A100": {"bfloat16": 312, "float32": 19.5},
    "L40S": {"bfloat16": 362, "float32": 91.6},
}
"""Peak in 10^12 operations a second by data sheet (dense, without TF32), by part of the GPU's name
and dtype."""
BEGIN, END = "<!-- device -->\n", "<!-- /device -->"
PAGE = ROOT / "docs/contributor/cluster.md"

Size = tuple[int, int, int]
"""Rows, columns and classes."""


def language_like(size: Size) -> tuple[np.ndarray, ...]:
    """Return train, labels and test with a power-law spectrum and an offset, as models give."""
    rows, dim, classes = size
    rng = np.random.RandomState(sum(size))
    x = rng.standard_normal((rows + TEST_ROWS, dim)).astype(np.float32)
    x *= 1 / np.sqrt(np.arange(1, dim + 1, dtype=np.float32))
    scores = x @ rng.standard_normal((dim, classes)).astype(np.float32)
    labels = (scores / scores.std() * 2 + rng.gumbel(size=scores.shape)).argmax(axis=1)
    x = 10 * (x + rng.standard_normal(dim).astype(np.float32))
    return x[:rows], labels[:rows], x[rows:]


def prepare() -> None:
    """Limit this process to one thread, as a worker is."""
    from reference_harness.engine import blas

    blas.limit_to_scorer(array_api=True)


def fit_seconds(problem: tuple[str, Size]) -> float:
    """Fit a problem on a device, in a worker; the first fit there starts it and is not timed."""
    from reference_harness.probe import logistic

    name, size = problem
    device = logistic.CPU if name == "numpy" else logistic.Device(name, torch=True, size_min=0)
    train, labels, test = language_like(size)
    logistic.fit(device.put(train[:64]), labels[:64], device.put(test), device)
    start = time.perf_counter()
    logistic.fit(device.put(train), labels, device.put(test), device)
    return time.perf_counter() - start


def fits_in_processes(device: str, sizes: list[Size], processes: int) -> tuple[float, list[float]]:
    """Return the seconds of all problems in a number of processes, and each result."""
    context: Any = multiprocessing.get_context("spawn")
    with context.Pool(processes, prepare) as pool:
        start = time.perf_counter()
        durations = pool.map(fit_seconds, [(device, size) for size in sizes], chunksize=1)
    return time.perf_counter() - start, durations


@dataclass(frozen=True)
class ModelKind:
    """A kind of model with random weights, and the sequences that it embeds."""

    what: str
    width: int
    layers: int
    dtype: str
    lengths: tuple[int, ...]
    """Letters, which are tokens."""
    is_decoder: bool = False
    is_hyena: bool = False

    def small(self) -> "ModelKind":
        """Return the kind at a size that tries the command on a CPU."""
        return replace(
            self, width=32, layers=2, lengths=tuple(length // 4 for length in self.lengths)
        )

    def loaded(self, folder: Path, device: str, mode: str, **more: Any) -> LoadedExtractor:
        """Load the model from a folder; write it there first if the folder lacks it."""
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


MODEL_KINDS = (
    ModelKind("NT-like, 50M, float32, 101 letters", 512, 16, "float32", (101,)),
    ModelKind("BERT-like, 106M, bfloat16, 512 tokens", 768, 15, "bfloat16", (510,)),
    ModelKind("BERT-like, 106M, bfloat16, lengths of GENEB", 768, 15, "bfloat16", LENGTHS),
    ModelKind(
        "HyenaDNA-like, 6.5M, float32, 1,000 letters", 256, 8, "float32", (1000,), is_hyena=True
    ),
    ModelKind("decoder, 1.1B, bfloat16, 512 tokens", 2048, 16, "bfloat16", (512,), is_decoder=True),
)
WITH_PROCESSES = "tokens in processes"
CALLS, TRIAL_CALLS = (2048, 16_384, 65_536), (6, 12, 24)
"""Sequences of a call of a built-in extractor: within one call batches overlap."""


@contextmanager
def restored_kernels() -> Iterator[None]:
    """Restore the settings of torch that exact batching changes, before the next measurement."""
    flags = {name: operator.attrgetter(name)(torch.backends) for name in environment.TORCH_FLAGS}
    deterministic = torch.are_deterministic_algorithms_enabled()
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(deterministic)
        for name, value in flags.items():
            owner, _, flag = name.rpartition(".")
            setattr(operator.attrgetter(owner)(torch.backends), flag, value)


class Measured(NamedTuple):
    """The measurements of one way to embed."""

    embedded: int
    """Sequences that were timed."""
    letters: int
    seconds: float
    busy: float
    memory: int
    """Most bytes of the device."""

    @property
    def rate(self) -> float:
        """Number of sequences a second."""
        return self.embedded / self.seconds


def measured_way(
    loaded: LoadedExtractor,
    batching: Batching,
    sequences: Sequence[str],
    device: str,
    seconds: float,
) -> Measured:
    """Embed some to warm up, then as many as the seconds allow, then some under the profiler."""
    limit = MemoryLimit(memory_of(device))

    def seconds_of(count: int) -> float:
        start = time.perf_counter()
        extractor_calls.embed_sequences(loaded, batching, sequences[:count], limit)
        return time.perf_counter() - start

    on_gpu = device.startswith("cuda")
    count = min(64, len(sequences))
    seconds_of(count)  # starts threads and kernels, and measures the token budget
    for count_max in (WARM_UP_SEQUENCES, len(sequences)):
        count = min(count_max, len(sequences), max(count, int(count * seconds / seconds_of(count))))
    if on_gpu:
        torch.cuda.reset_peak_memory_stats(device)
    start = time.process_time()
    seconds = seconds_of(count)
    busy = (time.process_time() - start) / (seconds * torch.get_num_threads())
    peak = torch.cuda.max_memory_allocated(device) if on_gpu else peak_memory(device)
    if on_gpu:
        rows = {"file": batching.rows, "exact": EXACT_ROWS_MAX}.get(batching.mode, count)
        cuda = torch.profiler.ProfilerActivity.CUDA
        with torch.profiler.profile(activities=[cuda]) as profile:
            profiled_seconds = seconds_of(min(count, PROFILED_BATCHES * rows))
        spans = sorted((event.time_range.start, event.time_range.end) for event in profile.events())
        busy = covered_length(spans) / 1e6 / profiled_seconds
    return Measured(count, sum(map(len, sequences[:count])), seconds, busy, peak)


def covered_length(spans: Sequence[tuple[float, float]]) -> float:
    """Return the length that spans cover together; they must be sorted by their start."""
    total, covered_until = 0.0, float("-inf")
    for begin, end in spans:
        total += max(0.0, end - max(begin, covered_until))
        covered_until = max(covered_until, end)
    return total


def embedding_table(
    device: str, kinds: Sequence[ModelKind], count: int, peak: float | None, end_time: float
) -> Iterator[str]:
    """Measure each way to embed with each kind of model, and yield the lines.

    It ends at `end_time` (of `time.monotonic`): each way has an equal share of the time left.
    """
    sizes = extractor_calls.CALL_SEQUENCES_MIN, extractor_calls.CALL_SEQUENCES_MAX
    sizes_of_calls = CALLS if device.startswith("cuda") else TRIAL_CALLS
    remaining_ways = sum(len(ways(kind, sizes_of_calls)) for kind in kinds)
    yield "| model, batches | sequences a second | over the first | busy | share of peak | memory |"
    yield "|---|---:|---:|---:|---:|---:|"
    tokenizer_rates, exact_limits = [], []
    for kind in kinds:
        first_rate, previous_result = 0.0, Measured(count, 0, 1.0, 0.0, 0)
        rng = np.random.RandomState(0)
        lengths = rng.choice(kind.lengths, count)
        sequences = random_sequences(rng, lengths)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            loaded = kind.loaded(folder, device, "budget")
            model: Any = loaded.extractor
            for way, batching, calls in ways(kind, sizes_of_calls):
                way_seconds = (end_time - time.monotonic()) / remaining_ways
                if WITH_PROCESSES in way and device != "cpu":
                    start = time.monotonic()
                    model.encode_in_processes(now=True)
                    way_seconds -= time.monotonic() - start
                # Warming up and the profiler take about as long as what is timed, each.
                seconds = min(WAY_SECONDS_MAX, max(0.2, way_seconds / 3))
                remaining_ways -= 1
                if (
                    batching.mode == "budget"
                    and previous_result.embedded < calls // 2
                    and calls > sizes_of_calls[0]
                ):
                    yield f"| {kind.what}: {way} | not filled in {seconds:.0f} s | | | | |"
                    continue
                with restored_kernels():
                    if batching.mode == "exact":
                        environment.set_exact()
                    model.batching = batching.mode
                    limited_batching = with_exact_limits(loaded, batching, device)
                    extractor_calls.CALL_SEQUENCES_MIN = extractor_calls.CALL_SEQUENCES_MAX = calls
                    previous_result = result = measured_way(
                        loaded, limited_batching, sequences, device, seconds
                    )
                first_rate = first_rate or result.rate
                yield row_of(
                    kind, way, result, first_rate, loaded, peak or peak_of(device, kind.dtype)
                )
                if batching.mode == "exact":
                    limits = ", ".join(
                        f"{limit.rows} of {limit.tokens} tokens"
                        for limit in limited_batching.exact_limits
                    )
                    exact_limits.append(f"{kind.what}: {limits}")
                if result.rate == first_rate and hasattr(model, "encoder"):
                    start = time.perf_counter()
                    model.encoder.encode(sequences[:WARM_UP_SEQUENCES])
                    rate = len(sequences[:WARM_UP_SEQUENCES]) / (time.perf_counter() - start)
                    tokenizer_rates.append(f"{kind.what}: {rate:,.0f}")
            del loaded, model
    extractor_calls.CALL_SEQUENCES_MIN, extractor_calls.CALL_SEQUENCES_MAX = sizes
    yield ""
    yield f"Sequences a second of the tokenizer alone: {'; '.join(tokenizer_rates)}."
    yield ""
    yield f"Rows of an exact batch at most, by their length: {'; '.join(exact_limits)}."
    yield ""


def row_of(
    kind: ModelKind,
    way: str,
    result: Measured,
    first_rate: float,
    loaded: LoadedExtractor,
    peak: float | None,
) -> str:
    """Return the row of a way in the table; `first` is the rate of the kind's first way."""
    model: Any = loaded.extractor
    weights = sum(parameter.numel() for parameter in model.model.parameters() if parameter.ndim > 1)
    operations = 2 * weights * result.letters / result.seconds / 1e12
    share = f"{operations / peak:.0%}" if peak else f"{operations:.3g} TFLOPS"
    return (
        f"| {kind.what}: {way} | {result.rate:,.0f} | {result.rate / first_rate:.1f} "
        f"| {result.busy:.0%} | {share} | {result.memory / 1e9:.2f} GB |"
    )


def random_sequences(rng: np.random.RandomState, lengths: np.ndarray) -> list[str]:
    """Return sequences of random letters with these lengths."""
    letters = np.frombuffer(b"ACGT", dtype=np.uint8)[rng.randint(0, 4, int(lengths.sum()))]
    text, ends = letters.tobytes().decode(), np.cumsum(lengths).tolist()
    return [text[start:end] for start, end in itertools.pairwise([0, *ends])]


def peak_of(device: str, dtype: str) -> float | None:
    """Return the peak of a GPU by its data sheet; None for one that is not listed."""
    name = environment.hardware(device)
    return next((peaks[dtype] for part, peaks in PEAKS.items() if part in name), None)


def ways(kind: ModelKind, sizes: Sequence[int]) -> list[tuple[str, Batching, int]]:
    """Return the ways to embed with a kind of model: name, batching and sequences per call."""
    settings = [("batches of 8 in file order", Batching("file"), sizes[0])]
    calls = sizes[:1] if kind.is_hyena else sizes
    settings += [(f"token budget, calls of {n:,}", Batching("budget"), n) for n in calls]
    exact = ("exact", Batching("exact"), sizes[0])
    if not kind.is_hyena:
        # Once started, the processes go on encoding what follows.
        way, batching, size = settings[2]
        settings.append((f"{way}, {WITH_PROCESSES}", batching, size))
    return [*settings, exact]


def tf32_lines(device: str, kind: ModelKind, rows: int | None) -> Iterator[str]:
    """Measure how TF32 moves embeddings and a score of GENEB-mini, and yield the line."""
    from reference_harness.probe import logistic

    task = benchmark.mini().tasks[0]
    data = MiniSource().load(task).balanced_subset(rows or 10**6)
    splits = data.train, data.test
    results: list[tuple[np.ndarray, float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        for allowed in (False, True):
            loaded = kind.loaded(Path(folder), device, "budget")
            environment.set_tf32(allowed=allowed)
            start = time.perf_counter()
            train, test = (
                extractor_calls.embed_sequences(
                    loaded, Batching("budget"), split.sequences, MemoryLimit()
                )
                for split in splits
            )
            seconds = time.perf_counter() - start
            fit = logistic.fit(train, data.train.labels, test, logistic.CPU)
            results.append((test, float(mcc(data.test.labels, fit.predictions)), seconds))
    (embeddings_off, score_off, seconds_off), (embeddings_on, score_on, seconds_on) = results
    distance = np.abs(embeddings_on - embeddings_off).max() / np.abs(embeddings_off).max()
    yield (
        f"TF32, {kind.what}, {task.id}: {seconds_off / seconds_on:.2f} times as fast, "
        "embeddings move by up to "
        f"{distance:.1e} of the largest, MCC from {score_off:.3f} to {score_on:.3f}."
    )
    yield ""


def fits_table(device: str, sizes: list[Size]) -> Iterator[str]:
    """Measure the fits, and yield the lines."""
    _, core_seconds = fits_in_processes("numpy", sizes, 1)
    one_process_seconds, device_seconds = fits_in_processes(device, sizes, 1)
    yield f"| rows x columns, classes | one core | {device} |"
    yield "|---|---:|---:|"
    for (rows, dim, classes), core_fit, device_fit in zip(
        sizes, core_seconds, device_seconds, strict=True
    ):
        yield (f"| {rows:,} x {dim:,}, {classes} | {core_fit:.2f} s | {device_fit:.2f} s |")
    yield ""
    for processes in PROCESSES[1:]:
        total_seconds, _ = fits_in_processes(device, sizes, processes)
        ratio = total_seconds / one_process_seconds
        yield f"{processes} processes on {device} take {ratio:.2f} times as long as one."


def main() -> None:
    """Measure, print, and with --write keep the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", help="torch device; default: cuda if there is one, else cpu")
    parser.add_argument("--peak", type=float, help="10^12 operations a second; default: as listed")
    parser.add_argument("--rows", type=int, help="at most so many rows, to try the command")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="of embedding, at most")
    parser.add_argument("--fits", action="store_true", help="fit probes, too, which takes longer")
    parser.add_argument(
        "--write", action="store_true", help="put the table into docs/contributor/cluster.md"
    )
    options = parser.parse_args()
    start = time.monotonic()
    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    is_trial = device == "cpu"
    rows = options.rows or (TRIAL_SEQUENCES if is_trial else None)
    sizes = [
        (min(count, rows or count), dim, classes)
        for (count, dim), classes in itertools.product(SIZES, CLASSES)
    ]
    kinds = [kind.small() if is_trial else kind for kind in MODEL_KINDS]
    count = min(SEQUENCES, rows or SEQUENCES)
    end_time = start + 60 * options.minutes - TF32_SECONDS
    lines = []
    for line in itertools.chain(
        embedding_table(device, kinds, count, options.peak, end_time),
        tf32_lines(device, kinds[0], rows),
    ):
        print(line, flush=True)
        lines.append(line)
    embedding_seconds = time.monotonic() - start
    lines += fits_table(device, sizes) if options.fits else []
    text = f"{environment.hardware(device)}, {os.cpu_count()} cores, one thread a process; "
    text += f"embedding and TF32 took {embedding_seconds / 60:.1f} minutes.\n"
    if is_trial:
        text += "A trial without a GPU: the figures say nothing.\n"
    print(text)
    if options.write:
        text = "\n".join([*lines, "", text])
        before, after_begin = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(before + BEGIN + text + END + after_begin.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
