"""What receipts cost on real tasks; `--write` puts each part's table in docs/receipts.md.

A part is a function of PARTS, between marks of its name on the page; `--part NAME` runs it alone.
"""

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from geneb_ci.audit.envelope import parse_envelope
from geneb_ci.audit.record import record_files
from geneb_ci.sandbox import processes
from tests.bench.bench_row_audits import bert
from tests.harness.extractors.models import save
from tests.paths import IMPORTABLE, REAL_TASKS, ROOT
from tests.publish.hub import Hub
from tests.receipt.test_kernels import KERNELS, THREADS
from tools.demo_audit import COMMITTED_AT, Place

PAGE = ROOT / "docs/receipts.md"
GUE = "leannmlindsey_GUE_"
TASKS = ("human_tf_0", "human_tf_1", "mouse_0", "mouse_3", "prom_300_tata", "prom_core_tata")
REPEATED = ("human_tf_0",) * 3 + ("human_tf_1",) * 3 + ("mouse_3",)
"""Six real tasks are at hand. With these seven more they are 13, and have the rows of the 13 tasks
of the design: 282,808, where mouse 0, 2, 3, 4, human_tf 0 to 4, the three of core promoters and
prom_300_tata have 274,739."""
SECONDS_MAX, MIB_MAX, CORES = 180, 1024, 2
TICK = 0.2
"""Seconds between two looks at the memory."""


class Measured(NamedTuple):
    """What a command took."""

    seconds: float
    processor: float
    """Seconds of the processor, of all its processes."""
    mib: float
    """Most memory of its processes together; pages that several share are counted once."""
    output: str


def proportional(pid: int) -> int:
    """Return the bytes a process holds, its part of shared pages alone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    except (OSError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def processor() -> float:
    """Return the seconds that ended children of this process took of the processor."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(*words: str, folder: Path, environment: Mapping[str, str] | None = None) -> Measured:
    """Run a command of the product. Raises SystemExit with what it said."""
    own = os.environ | {"PYTHONPATH": IMPORTABLE} if environment is None else environment
    peak, over = 0, threading.Event()
    before = processor()
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", *words], cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**own, "GENEB_HARNESS_CACHE": str(folder / "cache")},
    )  # fmt: skip

    def watch() -> None:
        nonlocal peak
        while not over.wait(TICK):
            pids = [process.pid, *(one.pid for one in processes.descendants(process.pid))]
            peak = max(peak, sum(map(proportional, pids)))

    thread = threading.Thread(target=watch)
    thread.start()
    output, errors = process.communicate()
    seconds = time.perf_counter() - start
    over.set()
    thread.join()
    if process.returncode:
        sys.exit(f"{' '.join(words)}: exit code {process.returncode}\n{output}{errors}")
    return Measured(seconds, processor() - before, peak / 2**20, output)


def laid_out(folder: Path, names: Sequence[str] = (*TASKS, *REPEATED)) -> tuple[str, ...]:
    """Lay out tasks of real rows, thirteen by default, and return the options that name them."""
    data = folder / "data"
    data.mkdir()
    for number, name in enumerate(names):
        again = f"_again_{number - len(TASKS) + 1}" if number >= len(TASKS) else ""
        flat, remote = REAL_TASKS / f"{GUE}{name}.csv.gz", REAL_TASKS / "tasks" / f"{GUE}{name}"
        if flat.is_file():
            shutil.copyfile(flat, data / f"{GUE}{name}{again}.csv.gz")
        elif remote.is_dir():
            shutil.copytree(remote, data / "tasks" / f"{GUE}{name}{again}")
        else:
            sys.exit(f"{REAL_TASKS} lacks {GUE}{name}: run `make real-tasks`")
    measured("reference_harness", "data", "define", "data", folder=folder)
    return "--data", "data", "--benchmark", "data/benchmark.json"


def written(
    folder: Path, *extractor: str, names: Sequence[str] = (*TASKS, *REPEATED)
) -> tuple[str, ...]:
    """Write a receipt; return the options that name the data."""
    options = laid_out(folder, names)
    measured(
        *("reference_harness", "run", *options, *extractor, "--model-id", "row", "--quiet"),
        *("--output", "record.json", "--submission", "row.json", "--receipt", "receipt"),
        folder=folder,
    )
    return options


def verify_part(folder: Path) -> str:
    """Return the table of `receipt verify` at 256 columns."""
    return verified(folder, "4-mers", SECONDS_MAX, MIB_MAX)


def verified(folder: Path, what: str, seconds_max: int, mib_max: int, *extractor: str) -> str:
    """Return the table of `receipt verify` for an extractor, 4-mers unless one is named."""
    options = written(folder, *extractor)
    took = measured(
        *("geneb_ci", "receipt", "verify", "row.json", "--receipt", "receipt", *options),
        *("--quiet", "--format", "json"),
        folder=folder,
    )
    found = json.loads(took.output)
    if not found["verified"]:
        sys.exit(f"refused at {found['refused_at']}")
    cells, held = found["cells"], sum(one.stat().st_size for one in (folder / "receipt").iterdir())
    width = json.loads((folder / "row.json").read_text())["receipt"]["dim"]
    met = took.seconds <= seconds_max and took.mib <= mib_max
    limits = (f"{seconds_max} s", f"{mib_max} MiB")
    cells_text = f"{cells['equal']}/{cells['computed']}"
    return (
        "| rows | width | bytes | cells | wall clock | limit | CPU | peak memory | limit |\n"
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
        f"| {found['rows']:,} | {width} | {held / 1e6:.0f} MB | {cells_text} "
        f"| {took.seconds:.0f} s | {limits[0]} | {took.processor:.0f} s "
        f"| {took.mib:.0f} MiB | {limits[1]} |\n\n"
        f"{what}; {len(TASKS)} real tasks of GUE, and {len(REPEATED)} of them once more under "
        f"other ids, so that the rows are those of 13 tasks. {CORES} cores, "
        f"{os.getloadavg()[0]:.0f} processes waiting for them on average"
        f"{'' if met else '; the limits are not met'}.\n"
    )


PROJECTED = """\
import numpy as np

from reference_harness.extractors.kmer import KmerExtractor


class Projected(KmerExtractor):
    def __init__(self, name_model="", device="cpu"):
        super().__init__(name_model, device, 6)
        self.map = np.random.default_rng(0).normal(size=(4096, 768)).astype(np.float32)

    def extract_embeddings(self, sequences, batch_size=1):
        parts = [sequences[start : start + 1000] for start in range(0, len(sequences), 1000)]
        found = [super(Projected, self).extract_embeddings(one) @ self.map for one in parts]
        return np.concatenate(found)
"""
WIDTHS = {
    "6-mers, projected": ("human_tf_0", ("--extractor", "projected.py:Projected")),
    "6-mers": ("mouse_0", ("--extractor", "kmer", "--option", "k=6")),
}
"""What gives 768 and 4,096 columns, each on one task: how much memory a single task takes."""


def widths_part(folder: Path) -> str:
    """Return the table of `receipt verify` of a single task with many columns."""
    lines = [
        "| rows | task | columns | number | file | wall clock | CPU | peak memory |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for number, (name, (task, extractor)) in enumerate(WIDTHS.items()):
        place = folder / str(number)
        place.mkdir()
        (place / "projected.py").write_text(PROJECTED, encoding="utf-8")
        options = written(place, *extractor, names=[task])
        took = measured(
            *("geneb_ci", "receipt", "verify", "row.json", "--receipt", "receipt", *options),
            *("--quiet", "--format", "json"),
            folder=place,
        )
        found = json.loads(took.output)
        if not found["verified"]:
            sys.exit(f"refused at {found['refused_at']}")
        (file,) = (place / "receipt").glob("*.f16")
        width = json.loads((place / "row.json").read_text())["receipt"]["dim"]
        lines.append(
            f"| {name} | {task} | {width:,} | {found['rows']:,} "
            f"| {file.stat().st_size / 1e6:.0f} MB | {took.seconds:.0f} s "
            f"| {took.processor:.0f} s | {took.mib:.0f} MiB |"
        )
    return "\n".join(lines) + f"\n\nOne task of two classes each, {CORES} cores.\n"


def words_part(folder: Path) -> str:
    """Return the table of a whole audit by receipt of 4-mers over the six real tasks."""
    words = Place(folder)
    data = laid_out(words.root, TASKS)
    shutil.copy(words.root / "data/benchmark.json", words.root / "schemas/benchmark.json")
    return audited("4-mers", "6 real", words, data, "--extractor", "kmer", "--option", "k=4")


def transformer_part(folder: Path) -> str:
    """Return the table of a whole audit by receipt of a random transformer over GENEB-mini."""
    hub = Hub()
    tiny = Place(folder)
    tiny.environment |= {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(folder / "hf")}
    files = {one.name: one.read_bytes() for one in save("bert", folder / "model").iterdir()}
    revision = hub.create("models/geneb/tiny", files).head.oid
    model = ("--extractor", "huggingface", "--model", "geneb/tiny", "--option")
    table = audited("BERT, random", "13 of GENEB-mini", tiny, (), *model, f"revision={revision}")
    hub.close()
    return table


def audited(name: str, tasks: str, place: Place, data: tuple[str, ...], *extractor: str) -> str:
    """Return the table of one audit, from `run --receipt` to the level."""
    ran = measured(
        *("reference_harness", "run", *data, *extractor, "--model-id", "row", "--quiet"),
        *("--output", "record.json", "--submission", "submissions/row.json"),
        *("--submitted-by", "a bench", "--receipt", "receipt"),
        folder=place.root,
        environment=place.environment,
    )
    took = measured(
        *("geneb_ci", "audit", "submissions/row.json", "--rows", "standard", *data[:2]),
        *("--receipt", "receipt", "--key", "key.pem", "--work", "work"),
        *("--committed-at", COMMITTED_AT, "--beacon-file", "round.json"),
        folder=place.root,
        environment=place.environment,
    )
    (record,) = record_files(place.root / "leaderboard/audits")
    outcome = json.loads(parse_envelope(record.read_bytes()).payload)["predicate"]
    label = place.run("geneb_ci", "label", "--format", "json").stdout
    (level,) = (one["level"] for one in json.loads(label)["rows"])
    rows = json.loads((place.root / "submissions/row.json").read_text())["receipt"]["rows"]
    embedded = sum(len(task["deviation"].split()) for task in outcome["tasks"])
    cells = outcome["cells"]
    return (
        "| row | tasks | rows | `run --receipt` | `audit FILE --rows standard` | embedded again "
        "| cells | level | peak memory |\n|---|---|---:|---:|---:|---:|---:|---|---:|\n"
        f"| {name} | {tasks} | {rows:,} | {ran.seconds:.0f} s, {ran.processor:.0f} s of CPU "
        f"| {took.seconds:.0f} s, {took.processor:.0f} s of CPU | {embedded:,} "
        f"| {cells['equal']}/{cells['of']} | {level} | {took.mib:.0f} MiB |\n"
        f"\n{CORES} cores, {os.getloadavg()[0]:.0f} processes waiting for them on average.\n"
    )


def kernels_part(folder: Path) -> str:
    """Return the table of cells under two kernels of BLAS and one or two threads: all are equal."""
    small = bert(folder / "model")
    rows = {
        "4-mers": (TASKS, ("--extractor", "kmer", "--option", "k=4")),
        "BERT 2 x 128, random": (
            ("mouse_3", "prom_core_tata"),
            ("--extractor", "huggingface", "--model", str(small)),
        ),
    }
    lines = [
        "| rows | tasks | cells | kernels | threads | other predictions |",
        "|---|---:|---:|---|---|---:|",
    ]
    for number, (name, (tasks, extractor)) in enumerate(rows.items()):
        place = folder / str(number)
        place.mkdir()
        options = written(place, *extractor, names=tasks)
        found = [
            cells_under(place, kernel, threads, options)
            for kernel in KERNELS
            for threads in THREADS
        ]
        first = {(t, r): cell for t in found[0] for r, cell in found[0][t]["regimes"].items()}
        other = sum(
            one[task]["regimes"][regime] != cell
            for one in found[1:]
            for (task, regime), cell in first.items()
        )
        lines.append(
            f"| {name} | {len(tasks)} | {len(first)} | {' and '.join(KERNELS)} | 1 and 2 "
            f"| {other} |"
        )
    return "\n".join(lines) + "\n"


def cells_under(place: Path, kernel: str, threads: int, options: tuple[str, ...]) -> Any:
    """Return the cells of a receipt, by task, as one kernel and number of threads give them."""
    own = {"OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": str(threads)}
    output = f"{kernel}-{threads}.json"
    measured(
        *("reference_harness", "receipt-cells", "--submission", "row.json", "--quiet"),
        *("--receipt", "receipt", *options, "--output", output),
        folder=place,
        environment=os.environ | {"PYTHONPATH": IMPORTABLE} | own,
    )
    found = json.loads((place / output).read_text())
    used = {
        (one["kernel"], one["threads"])
        for one in found["libraries"]
        if one["library"] == "openblas"
    }
    if used != {(kernel, threads)}:
        sys.exit(f"expected {kernel} with {threads} threads, found {used}")
    return found["tasks"]


PARTS: dict[str, Callable[[Path], str]] = {
    "verify": verify_part,
    "widths": widths_part,
    "kernels": kernels_part,
    "audit of words": words_part,
    "audit of a transformer": transformer_part,
}
"""Name, which is that of the marks on the page, to what measures in a folder of its own."""


def main() -> None:
    """Measure, print, and with --write keep the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--part", action="append", choices=list(PARTS))
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    for name in options.part or PARTS:
        with tempfile.TemporaryDirectory(prefix="geneb-ci-bench-") as folder:
            text = PARTS[name](Path(folder))
        text += f"\nPython {platform.python_version()}, {os.cpu_count()} cores.\n"
        print(text, flush=True)
        if options.write:
            begin, end = f"<!-- bench {name} -->\n", f"<!-- /bench {name} -->"
            before, rest = PAGE.read_text(encoding="utf-8").split(begin)
            PAGE.write_text(before + begin + text + end + rest.split(end)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
