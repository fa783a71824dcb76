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

from reference_harness.engine import threads  # noqa: E402 - after the path

threads.limit_to_scorer()

from benchmarks.bench_embedding import batching_table  # noqa: E402
from reference_harness import benchmark, data, environment, job, loading, optimum, probe  # noqa: E402
from reference_harness.cache import Cache  # noqa: E402
from reference_harness.engine.local import Pool  # noqa: E402
from reference_harness.scorer import THREAD_VARIABLES  # noqa: E402
from reference_harness.tasks import TaskData, sequence_digests  # noqa: E402
from tests.harness.oracle import kmers  # noqa: E402
from tests.paths import REAL_TASKS as TASKS  # noqa: E402

Sets = dict[str, tuple[np.ndarray, ...]]
REPEATS = 5
REGIMES = ("full", "10shot", "1shot")
WIDE = 4096
SEEDS = (13, 17, 42, 123, 997)


def say(*lines: str) -> None:
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


def real() -> list[TaskData]:
    bench = benchmark.geneb()
    source = data.Folder(TASKS, bench)
    return [source.load(bench.by_id[task_id]) for task_id in sorted(source.available())]


def letter_by_letter(sequence: str) -> np.ndarray:
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
    say(
        "## k-mer embedding, k = 4",
        "",
        "| task | sequences | stock, letter by letter, seq per CPU s | dictionary of words "
        "| harness | over stock | over dictionary |",
        "|---|---|---|---|---|---|---|",
    )
    extractor = loading.load("kmer").extractor
    for task in tasks[::2]:
        sequences = task.train.sequences[:2000]
        loop: list[np.ndarray] = []
        stock = timed(lambda: [letter_by_letter(s) for s in sequences], 1)  # noqa: B023
        slow = timed(lambda: loop.append(np.stack([kmers(s) for s in sequences])), 3)  # noqa: B023
        fast = timed(lambda: extractor.extract_embeddings(sequences, batch_size=8))  # noqa: B023
        assert (loop[0] == extractor.extract_embeddings(sequences, batch_size=8)).all()
        name = task.id.removeprefix("leannmlindsey_GUE_")
        many = len(sequences)
        say(
            f"| {name}, {len(sequences[0])} bp | {many} | {many / stock:,.0f} | {many / slow:,.0f} "
            f"| {many / fast:,.0f} | {stock / fast:.0f} | {slow / fast:.0f} |"
        )
    say("")


def stock(path: Path, regimes: str, one_thread: bool) -> dict[str, Any]:
    environ = {k: v for k, v in os.environ.items() if k not in THREAD_VARIABLES}
    if one_thread:
        environ |= dict.fromkeys(THREAD_VARIABLES, "1")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("stock.py")), str(path), regimes],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def jobs(cache: Path, sets: Sets, regimes: tuple[str, ...]) -> list[job.Job]:
    made = []
    for name, (x, y, x_test, y_test) in sets.items():
        store = Cache(cache, {})
        digests = sequence_digests(f"{name}{i}" for i in range(len(x) + len(x_test)))
        store.add(digests[: len(x)], x)
        store.add(digests[len(x) :], x_test)
        made.append(
            job.Job(
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
    return made


def probe_rows(sets: Sets, regimes: tuple[str, ...], repeats: int) -> None:
    """Print times of stock fits with default threads and one, and of ours in 1 and 2 processes."""
    with tempfile.TemporaryDirectory() as folder:
        todo = jobs(Path(folder) / "cache", sets, regimes)
        totals: dict[str, list[float]] = {k: [] for k in ("default", "one", "serial", "parallel")}
        cpu: dict[str, list[float]] = {k: [] for k in ("default", "one", "serial")}
        with Pool[job.ProbeResult | job.ProbeFailure](2) as pool:
            warm(pool, todo[0])
            for _ in range(repeats):
                found: dict[str, list[dict[str, Any]]] = {"default": [], "one": []}
                for threads_, results in found.items():
                    for name, arrays in sets.items():
                        path = Path(folder) / f"{name}.npz"
                        if not path.exists():
                            x, y, x_test, y_test = arrays
                            np.savez(path, x=x, y=y, x_test=x_test, y_test=y_test)
                        results.append(stock(path, ",".join(regimes), threads_ == "one"))
                    totals[threads_].append(sum(r["seconds"] for r in results))
                    cpu[threads_].append(sum(r["cpu"] for r in results))
                started, spent = time.perf_counter(), time.process_time()
                ours = [job.execute(one) for one in todo]
                totals["serial"].append(time.perf_counter() - started)
                cpu["serial"].append(time.process_time() - spent)
                started = time.perf_counter()
                for one in todo:
                    pool.submit(one)
                while pool.waiting:
                    list(pool.results(block=True))
                totals["parallel"].append(time.perf_counter() - started)
    median = {key: statistics.median(values) for key, values in totals.items()}
    spent_by = {key: statistics.median(values) for key, values in cpu.items()}
    same = {
        key: sum(
            r["digests"][g] == o.regimes[g].predictions_sha256
            for r, o in zip(results, ours, strict=True)
            for g in regimes
        )
        for key, results in found.items()
    }
    cells = len(sets) * len(regimes)
    for key, label in (("default", "default threads"), ("one", "one thread")):
        say(
            f"| stock, {label} | {median[key]:.2f} | {spent_by[key]:.2f} "
            f"| {median[key] / median['serial']:.1f} | {spent_by[key] / spent_by['serial']:.1f} "
            f"| {median[key] / median['parallel']:.1f} | {same[key]} of {cells} |"
        )
    serial = f"{median['serial']:.2f} | {spent_by['serial']:.2f}"
    say(
        f"| harness, one process | {serial} | 1 | 1 | | |",
        f"| harness, two processes | {median['parallel']:.2f} | | | | 1 | |",
        "",
    )


def warm(pool: Pool[Any], one: job.Job) -> None:
    """Start both workers, whose imports a run pays for once and not for each task."""
    for _ in range(2):
        pool.submit(one)
    while pool.waiting:
        list(pool.results(block=True))


HEADER = (
    "| loop | seconds | CPU s | over one process | in CPU s | over two processes | equal cells |",
    "|---|---|---|---|---|---|---|",
)


def slow_set(seed: int, rows: int = 30_000, dim: int = 768) -> tuple[np.ndarray, ...]:
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
    say(
        f"{environment.hardware('cpu')}, {os.cpu_count()} processors; "
        + ", ".join(f"{k} {v}" for k, v in environment.packages().items()),
        "",
    )
    say(
        "BLAS: "
        + ", ".join(
            f"{one['library']} {one['version']} {one['kernel']}" for one in threads.libraries()
        ),
        "",
    )
    names = sys.argv[1:] or ["kmer", "probe", "slow", "whole", "optimum", "batching"]
    tables: dict[str, Callable[[], None]] = {
        "kmer": lambda: kmer_table(real()),
        "probe": probe_table,
        "slow": slow_table,
        "whole": whole_table,
        "optimum": optimum_table,
        "batching": lambda: batching_table(say),
    }
    for name in names:
        tables[name]()


def probe_table() -> None:
    embed = loading.load("kmer").extractor.extract_embeddings
    sets: Sets = {
        t.id: (embed(t.train.sequences), t.train.labels, embed(t.test.sequences), t.test.labels)
        for t in real()
    }
    say(
        "## Probe phase on 4-mer frequencies: six real tasks, three regimes, five seeds",
        "",
        *HEADER,
    )
    probe_rows(sets, REGIMES, 3)


def whole_share(repeats: int = REPEATS) -> tuple[float, float]:
    """Return the CPU seconds of the plain loop and of ours, each the least of `repeats`.

    Both score six real tasks in three regimes with five seeds, in one process, alternately.
    """
    from benchmarks import stock as plain

    embed = loading.load("kmer").extractor.extract_embeddings
    sets: Sets = {
        t.id: (embed(t.train.sequences), t.train.labels, embed(t.test.sequences), t.test.labels)
        for t in real()
    }
    spent: dict[str, list[float]] = {"stock": [], "ours": []}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        todo = jobs(Path(folder) / "cache", sets, REGIMES)
        calls: dict[str, Callable[[], object]] = {
            "stock": lambda: [
                plain.one(x, y, x_test, y_test, plain.SHOTS[regime], seed)
                for x, y, x_test, y_test in sets.values()
                for regime in REGIMES
                for seed in SEEDS
            ],
            "ours": lambda: [job.execute(one) for one in todo],
        }
        for call in calls.values():
            call()
        for _ in range(repeats):
            for name, call in calls.items():
                spent[name].append(timed(call, 1))
    return min(spent["stock"]), min(spent["ours"])


def whole_table() -> None:
    stock_, ours = whole_share()
    say(
        "## Score of record of six real tasks, 4-mer frequencies, one process",
        "",
        "| loop | CPU s | over the plain loop |",
        "|---|---|---|",
        f"| plain loop, scores of record | {stock_:.2f} | 1 |",
        f"| harness, scores of record | {ours:.2f} | {ours / stock_:.2f} |",
        "",
    )


def wide_set(rows: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return 4,096 columns with a power-law spectrum and an offset, and labels."""
    rng = np.random.RandomState(0)
    x = rng.standard_normal((rows, WIDE)) / np.arange(1, WIDE + 1) ** 0.5
    scores = x @ rng.standard_normal((WIDE, classes)) + rng.gumbel(size=(rows, classes))
    return (x + rng.standard_normal(WIDE) / 2).astype(np.float32), scores.argmax(axis=1)


def optimum_table() -> None:
    """Print CPU seconds of the probe of record and of its optimum, side by side."""
    embed = loading.load("kmer", k=6).extractor.extract_embeddings
    sets = {
        f"6-mers, {task.id.removeprefix('leannmlindsey_GUE_')}": (
            embed(task.train.sequences),
            task.train.labels,
        )
        for task in real()[:1] + real()[3:4]
    }
    for rows, classes in ((3000, 2), (3000, 6), (12000, 2)):
        sets[f"dense, {classes} classes, {rows:,}"] = wide_set(rows, classes)
    say(
        f"## Probe at its optimum beside that of record, {WIDE:,} columns, one thread",
        "",
        "| features | regime | sequences | steps of record | of record, CPU s | optimum, CPU s "
        "| over that of record |",
        "|---|---|---|---|---|---|---|",
    )
    for name, (x, labels) in sets.items():
        for regime, shots in (("full", None), ("10shot", 10), ("1shot", 1)):
            drawn = slice(None) if shots is None else probe.few_shot_indices(labels, shots, 13)
            train, its_labels = x[drawn], labels[drawn]
            steps = probe.fit(train, its_labels, train[:1]).iterations
            times = 1 if shots is None else REPEATS
            record = timed(lambda: probe.fit(train, its_labels, train[:1]), times)  # noqa: B023
            solved = timed(lambda: optimum.solve(train, its_labels), times)  # noqa: B023
            say(
                f"| {name} | {regime} | {len(train):,} | {steps} | {record:.4f} | {solved:.4f} "
                f"| {solved / record:.2f} |"
            )
    say("")


def slow_table() -> None:
    say("## Probe phase on 30,000 x 768 that does not converge, full regime", "", *HEADER)
    probe_rows({"slow": slow_set(0)}, ("full",), 1)


if __name__ == "__main__":
    main()
