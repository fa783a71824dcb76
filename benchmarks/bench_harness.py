"""Compare the reference harness with the stock loop, in one run: `make bench-harness`.

The stock loop is batches of eight in file order, five full fits, and k-mers counted in Python.
It prints Markdown tables for README.md beside this file; arguments name the tables to print.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from reference_harness.engine import blas  # noqa: E402 - after the path

blas.limit_to_scorer()

from benchmarks.bench_embedding import batching_table  # noqa: E402
from reference_harness import environment  # noqa: E402
from reference_harness.data import benchmark, task_folder  # noqa: E402
from reference_harness.data.task_data import TaskData, sequence_digests  # noqa: E402
from reference_harness.embedding.cache import Cache  # noqa: E402
from reference_harness.engine.worker_pool import Pool  # noqa: E402
from reference_harness.loading import loader  # noqa: E402
from reference_harness.probe import logistic, optimum  # noqa: E402
from reference_harness.probe.scorer import THREAD_VARIABLES  # noqa: E402
from reference_harness.run import task_job  # noqa: E402
from tests.harness.oracle import kmers  # noqa: E402
from tests.paths import REAL_TASKS as TASKS  # noqa: E402

Sets = dict[str, tuple[np.ndarray, ...]]
REPEATS = 5
REGIMES = ("full", "10shot", "1shot")
WIDE_COLUMNS = 4096
SEEDS = (13, 17, 42, 123, 997)


def print_lines(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def timed(call: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the median CPU seconds of a call in one thread, which a busy machine changes least."""
    seconds = []
    for _ in range(repeats):
        started = time.process_time()
        call()
        seconds.append(time.process_time() - started)
    return statistics.median(seconds)


def real_tasks() -> list[TaskData]:
    bench = benchmark.geneb()
    source = task_folder.Folder(TASKS, bench)
    return [source.load(bench.by_id[task_id]) for task_id in sorted(source.available())]


def counts_letter_by_letter(sequence: str) -> np.ndarray:
    """Return word counts as upstream's example computes them, from the letters of each word."""
    row = np.zeros(256, dtype=np.float32)
    for start in range(len(sequence) - 3):
        index = 0
        for letter in sequence[start : start + 4].upper():
            if letter not in "ACGT":
                break
            index = index * 4 + "ACGT".index(letter)
        else:
            row[index] += 1
    return row / row.sum() if row.sum() else row


def kmer_table(tasks: list[TaskData]) -> None:
    print_lines(
        "## k-mer embedding, k = 4",
        "",
        "| task | sequences | stock, letter by letter, seq per CPU s | dictionary of words "
        "| harness | over stock | over dictionary |",
        "|---|---|---|---|---|---|---|",
    )
    extractor = loader.load("kmer").extractor
    for task in tasks[::2]:
        sequences = task.train.sequences[:2000]
        dictionary_counts: list[np.ndarray] = []
        stock_seconds = timed(lambda: [counts_letter_by_letter(s) for s in sequences], 1)  # noqa: B023
        dictionary_seconds = timed(
            lambda: dictionary_counts.append(np.stack([kmers(s) for s in sequences])),  # noqa: B023
            3,
        )
        harness_seconds = timed(lambda: extractor.extract_embeddings(sequences, batch_size=8))  # noqa: B023
        assert (dictionary_counts[0] == extractor.extract_embeddings(sequences, batch_size=8)).all()
        name = task.id.removeprefix("leannmlindsey_GUE_")
        count = len(sequences)
        print_lines(
            f"| {name}, {len(sequences[0])} bp | {count} | {count / stock_seconds:,.0f} | "
            f"{count / dictionary_seconds:,.0f} "
            f"| {count / harness_seconds:,.0f} | {stock_seconds / harness_seconds:.0f} | "
            f"{dictionary_seconds / harness_seconds:.0f} |"
        )
    print_lines("")


def stock_result(path: Path, regimes: str, one_thread: bool) -> dict[str, Any]:
    environment = {k: v for k, v in os.environ.items() if k not in THREAD_VARIABLES}
    if one_thread:
        environment |= dict.fromkeys(THREAD_VARIABLES, "1")
    run = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("stock.py")), str(path), regimes],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    result: dict[str, Any] = json.loads(run.stdout)
    return result


def probe_jobs(cache: Path, sets: Sets, regimes: tuple[str, ...]) -> list[task_job.ProbeTaskJob]:
    job_list = []
    for name, (x, y, x_test, y_test) in sets.items():
        store = Cache(cache, {})
        digests = sequence_digests(f"{name}{i}" for i in range(len(x) + len(x_test)))
        store.add(digests[: len(x)], x)
        store.add(digests[len(x) :], x_test)
        job_list.append(
            task_job.ProbeTaskJob(
                task_id=name,
                cache=cache,
                key_parts={},
                train_digests=b"".join(digests[: len(x)]),
                train_labels=y,
                test_digests=b"".join(digests[len(x) :]),
                test_labels=y_test,
                regimes=regimes,
                seeds=SEEDS,
                few_shot_k={"10shot": 10, "1shot": 1},
            )
        )
    return job_list


def probe_rows(sets: Sets, regimes: tuple[str, ...], repeats: int) -> None:
    """Print times of stock fits with default threads and one, and of ours in 1 and 2 processes."""
    with tempfile.TemporaryDirectory() as folder:
        job_list = probe_jobs(Path(folder) / "cache", sets, regimes)
        totals: dict[str, list[float]] = {k: [] for k in ("default", "one", "serial", "parallel")}
        cpu: dict[str, list[float]] = {k: [] for k in ("default", "one", "serial")}
        with Pool[task_job.ProbeResult | task_job.ProbeFailure](2) as pool:
            start_workers(pool, job_list[0])
            for _ in range(repeats):
                results_by_threads: dict[str, list[dict[str, Any]]] = {"default": [], "one": []}
                for threads_name, results in results_by_threads.items():
                    for name, arrays in sets.items():
                        path = Path(folder) / f"{name}.npz"
                        if not path.exists():
                            x, y, x_test, y_test = arrays
                            np.savez(path, x=x, y=y, x_test=x_test, y_test=y_test)
                        results.append(stock_result(path, ",".join(regimes), threads_name == "one"))
                    totals[threads_name].append(
                        sum(stock_cells["seconds"] for stock_cells in results)
                    )
                    cpu[threads_name].append(sum(stock_cells["cpu"] for stock_cells in results))
                started, start_cpu = time.perf_counter(), time.process_time()
                harness_results = [task_job.scored_task(probe_job) for probe_job in job_list]
                totals["serial"].append(time.perf_counter() - started)
                cpu["serial"].append(time.process_time() - start_cpu)
                started = time.perf_counter()
                for probe_job in job_list:
                    pool.submit(probe_job)
                while pool.waiting:
                    list(pool.results(block=True))
                totals["parallel"].append(time.perf_counter() - started)
    seconds_median = {key: statistics.median(values) for key, values in totals.items()}
    cpu_median = {key: statistics.median(values) for key, values in cpu.items()}
    equal_cells = {
        key: sum(
            stock_cells["digests"][regime] == harness_cells.regimes[regime].predictions_sha256
            for stock_cells, harness_cells in zip(results, harness_results, strict=True)
            for regime in regimes
        )
        for key, results in results_by_threads.items()
    }
    cells = len(sets) * len(regimes)
    for key, label in (("default", "default threads"), ("one", "one thread")):
        print_lines(
            f"| stock, {label} | {seconds_median[key]:.2f} | {cpu_median[key]:.2f} "
            f"| {seconds_median[key] / seconds_median['serial']:.1f} | "
            f"{cpu_median[key] / cpu_median['serial']:.1f} "
            f"| {seconds_median[key] / seconds_median['parallel']:.1f} | {equal_cells[key]} of "
            f"{cells} |"
        )
    serial = f"{seconds_median['serial']:.2f} | {cpu_median['serial']:.2f}"
    print_lines(
        f"| harness, one process | {serial} | 1 | 1 | | |",
        f"| harness, two processes | {seconds_median['parallel']:.2f} | | | | 1 | |",
        "",
    )


def start_workers(pool: Pool[Any], probe_job: task_job.ProbeTaskJob) -> None:
    """Start both workers, whose imports a run pays for once and not for each task."""
    for _ in range(2):
        pool.submit(probe_job)
    while pool.waiting:
        list(pool.results(block=True))


HEADER = (
    "| loop | seconds | CPU s | over one process | in CPU s | over two processes | equal cells |",
    "|---|---|---|---|---|---|---|",
)


def slow_features(seed: int, rows: int = 30_000, dim: int = 768) -> tuple[np.ndarray, ...]:
    """Return features with a power-law spectrum and an offset, as language models give."""
    rng = np.random.RandomState(seed)
    x = rng.standard_normal((rows + 2000, dim)).astype(np.float32)
    x /= np.arange(1, dim + 1, dtype=np.float32)
    scores = x @ (rng.standard_normal((dim, 2)) * np.arange(1, dim + 1)[:, None] ** 0.5)
    labels = (scores / scores.std() * 1.5 + rng.gumbel(size=scores.shape)).argmax(axis=1)
    x += rng.standard_normal(dim).astype(np.float32)
    x *= 30
    return x[:rows], labels[:rows], x[rows:], labels[rows:]


def main() -> None:
    print_lines(
        f"{environment.hardware('cpu')}, {os.cpu_count()} processors; "
        + ", ".join(f"{k} {v}" for k, v in environment.packages().items()),
        "",
    )
    print_lines(
        "BLAS: "
        + ", ".join(
            f"{library['library']} {library['version']} {library['kernel']}"
            for library in blas.loaded_libraries()
        ),
        "",
    )
    names = sys.argv[1:] or ["kmer", "probe", "slow", "whole", "optimum", "batching"]
    tables: dict[str, Callable[[], None]] = {
        "kmer": lambda: kmer_table(real_tasks()),
        "probe": probe_table,
        "slow": slow_table,
        "whole": whole_table,
        "optimum": optimum_table,
        "batching": lambda: batching_table(print_lines),
    }
    for name in names:
        tables[name]()


def probe_table() -> None:
    embed = loader.load("kmer").extractor.extract_embeddings
    sets: Sets = {
        t.id: (embed(t.train.sequences), t.train.labels, embed(t.test.sequences), t.test.labels)
        for t in real_tasks()
    }
    print_lines(
        "## Probe phase on 4-mer frequencies: six real tasks, three regimes, five seeds",
        "",
        *HEADER,
    )
    probe_rows(sets, REGIMES, 3)


def whole_seconds(repeats: int = REPEATS) -> tuple[float, float]:
    """Return the CPU seconds of the plain loop and of ours, each the least of `repeats`.

    Both score six real tasks in three regimes with five seeds, in one process, alternately.
    """
    from benchmarks import stock as stock_loop

    embed = loader.load("kmer").extractor.extract_embeddings
    sets: Sets = {
        t.id: (embed(t.train.sequences), t.train.labels, embed(t.test.sequences), t.test.labels)
        for t in real_tasks()
    }
    seconds_by_loop: dict[str, list[float]] = {"stock": [], "ours": []}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        job_list = probe_jobs(Path(folder) / "cache", sets, REGIMES)
        calls: dict[str, Callable[[], object]] = {
            "stock": lambda: [
                stock_loop.predictions_of_fit(x, y, x_test, y_test, stock_loop.SHOTS[regime], seed)
                for x, y, x_test, y_test in sets.values()
                for regime in REGIMES
                for seed in SEEDS
            ],
            "ours": lambda: [task_job.scored_task(probe_job) for probe_job in job_list],
        }
        for call in calls.values():
            call()
        for _ in range(repeats):
            for name, call in calls.items():
                seconds_by_loop[name].append(timed(call, 1))
    return min(seconds_by_loop["stock"]), min(seconds_by_loop["ours"])


def whole_table() -> None:
    stock_seconds, harness_seconds = whole_seconds()
    print_lines(
        "## Score of record of six real tasks, 4-mer frequencies, one process",
        "",
        "| loop | CPU s | over the plain loop |",
        "|---|---|---|",
        f"| plain loop, scores of record | {stock_seconds:.2f} | 1 |",
        f"| harness, scores of record | {harness_seconds:.2f} | "
        f"{harness_seconds / stock_seconds:.2f} |",
        "",
    )


def wide_features(rows: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return 4,096 columns with a power-law spectrum and an offset, and labels."""
    rng = np.random.RandomState(0)
    x = rng.standard_normal((rows, WIDE_COLUMNS)) / np.arange(1, WIDE_COLUMNS + 1) ** 0.5
    scores = x @ rng.standard_normal((WIDE_COLUMNS, classes)) + rng.gumbel(size=(rows, classes))
    return (x + rng.standard_normal(WIDE_COLUMNS) / 2).astype(np.float32), scores.argmax(axis=1)


def optimum_table() -> None:
    """Print CPU seconds of the probe of record and of its optimum, side by side."""
    embed = loader.load("kmer", k=6).extractor.extract_embeddings
    sets = {
        f"6-mers, {task.id.removeprefix('leannmlindsey_GUE_')}": (
            embed(task.train.sequences),
            task.train.labels,
        )
        for task in real_tasks()[:1] + real_tasks()[3:4]
    }
    for rows, classes in ((3000, 2), (3000, 6), (12000, 2)):
        sets[f"dense, {classes} classes, {rows:,}"] = wide_features(rows, classes)
    print_lines(
        f"## Probe at its optimum beside that of record, {WIDE_COLUMNS:,} columns, one thread",
        "",
        "| features | regime | sequences | steps of record | of record, CPU s | optimum, CPU s "
        "| over that of record |",
        "|---|---|---|---|---|---|---|",
    )
    for name, (x, labels) in sets.items():
        for regime, shots in (("full", None), ("10shot", 10), ("1shot", 1)):
            training_rows = (
                slice(None) if shots is None else logistic.few_shot_indices(labels, shots, 13)
            )
            train, train_labels = x[training_rows], labels[training_rows]
            steps = logistic.fit(train, train_labels, train[:1]).iterations
            repeats = 1 if shots is None else REPEATS
            record_seconds = timed(lambda: logistic.fit(train, train_labels, train[:1]), repeats)  # noqa: B023
            optimum_seconds = timed(lambda: optimum.solve(train, train_labels), repeats)  # noqa: B023
            print_lines(
                f"| {name} | {regime} | {len(train):,} | {steps} | {record_seconds:.4f} | "
                f"{optimum_seconds:.4f} "
                f"| {optimum_seconds / record_seconds:.2f} |"
            )
    print_lines("")


def slow_table() -> None:
    print_lines("## Probe phase on 30,000 x 768 that does not converge, full regime", "", *HEADER)
    probe_rows({"slow": slow_features(0)}, ("full",), 1)


if __name__ == "__main__":
    main()
