"""Measure the cost of receipts on real tasks.

`--write` puts each table in docs/research/receipt-audits.md.

A part is a function of PARTS, between marks of its name on the page; `--part NAME` runs it alone.
With `--keep DIR`, finished steps of a stopped run are not measured again.
"""

import argparse
import functools
import itertools
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.bench_embedding_honest import bert
from benchmarks.bench_embedding_power import MeasurementStore
from benchmarks.measured import CommandCost, command_cost, finished_step
from geneb_ci.audit.record.envelope import parse_envelope
from geneb_ci.audit.record.statement import record_files
from tests.harness.extractors.models import save
from tests.paths import IMPORTABLE, REAL_TASKS, ROOT
from tests.publish.hub import Hub
from tests.receipt.test_kernels import KERNELS, THREADS
from tools.demo_audit import COMMITTED_AT, MiniRepository

PAGE = ROOT / "docs/research/receipt-audits.md"
GUE = "leannmlindsey_GUE_"
TASKS = ("human_tf_0", "human_tf_1", "mouse_0", "mouse_3", "prom_300_tata", "prom_core_tata")
REPEATED_TASKS = ("human_tf_0",) * 3 + ("human_tf_1",) * 3 + ("mouse_3",)
"""Copies of the six real tasks that make 13 with them. They have 282,808 embeddings, about as many
as the 13 tasks of the design, of which six are available: mouse 0, 2, 3, 4, human_tf 0 to 4, the
three of core promoters and prom_300_tata have 274,739."""
SECONDS_MAX, MIB_MAX, CORES = 180, 1024, 2
PROCESSOR_SECONDS_MAX = 53
"""Seconds of the processor at 768 columns: twice the share of 282,808 embeddings in what was
estimated for the 3,933,764 of GENEB, 6 minutes to fit and predict, and 10 s to read."""


def write_benchmark(
    folder: Path, names: Sequence[str] = (*TASKS, *REPEATED_TASKS)
) -> tuple[str, ...]:
    """Write tasks of real embeddings, 13 by default, and return the options that name them."""
    finished_step(folder, "data", functools.partial(define_benchmark, folder, names), "data")
    return "--data", "data", "--benchmark", "data/benchmark.json"


def define_benchmark(folder: Path, names: Sequence[str]) -> CommandCost:
    """Copy tasks of real embeddings, and define a benchmark of them."""
    data = folder / "data"
    data.mkdir(parents=True)
    for number, name in enumerate(names):
        suffix = f"_again_{number - len(TASKS) + 1}" if number >= len(TASKS) else ""
        flat_file, task_folder = (
            REAL_TASKS / f"{GUE}{name}.csv.gz",
            REAL_TASKS / "tasks" / f"{GUE}{name}",
        )
        if flat_file.is_file():
            shutil.copyfile(flat_file, data / f"{GUE}{name}{suffix}.csv.gz")
        elif task_folder.is_dir():
            shutil.copytree(task_folder, data / "tasks" / f"{GUE}{name}{suffix}")
        else:
            sys.exit(f"{REAL_TASKS} lacks {GUE}{name}: run `make real-tasks`")
    return command_cost("reference_harness", "data", "define", "data", folder=folder)


def write_receipt(
    folder: Path, *extractor: str, names: Sequence[str] = (*TASKS, *REPEATED_TASKS)
) -> tuple[str, ...]:
    """Write a receipt; return the options that name the data."""
    options = write_benchmark(folder, names)
    arguments = (
        *("reference_harness", "run", *options, *extractor, "--model-id", "row", "--quiet"),
        *("--output", "record.json", "--submission", "row.json", "--receipt", "receipt"),
    )
    outputs = ("record.json", "row.json", "receipt", "cache")
    finished_step(
        folder, "run", functools.partial(command_cost, *arguments, folder=folder), *outputs
    )
    return options


def verify_receipt(folder: Path, options: tuple[str, ...]) -> tuple[CommandCost, Any]:
    """Return cost and result of verifying a local receipt. Raise SystemExit if it is refused."""
    arguments = (
        *("geneb_ci", "receipt", "verify", "row.json", "--receipt", "receipt", *options),
        *("--quiet", "--format", "json"),
    )
    cost = finished_step(
        folder, "verify", functools.partial(command_cost, *arguments, folder=folder)
    )
    result = json.loads(cost.output)
    if not result["verified"]:
        sys.exit(f"refused at {result['refused_at']}")
    return cost, result


def verify_part(folder: Path) -> str:
    """Return the table of `receipt verify` of thirteen tasks, at 256 and at 768 columns."""
    (folder / "768").mkdir(parents=True, exist_ok=True)
    (folder / "768/projected.py").write_text(PROJECTED_CODE, encoding="utf-8")
    lines = [
        (
            "| embeddings | width | bytes | cells | wall clock | limit | CPU | limit | peak "
            "memory | limit |"
        ),
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        verification_line(folder / "256", SECONDS_MAX, None, MIB_MAX),
        verification_line(
            folder / "768",
            None,
            PROCESSOR_SECONDS_MAX,
            None,
            "--extractor",
            "projected.py:Projected",
        ),
    ]
    return "\n".join(lines) + (
        f"\n\n4-mers, and 6-mers projected to 768 columns; {len(TASKS)} real tasks of GUE, and "
        f"{len(REPEATED_TASKS)} of them once more under other ids, so that the embeddings are "
        "those of "
        f"13 tasks. {CORES} cores, {os.getloadavg()[0]:.0f} processes waiting for them on "
        "average.\n"
    )


def verification_line(
    folder: Path,
    seconds_max: int | None,
    processor_max: int | None,
    mib_max: int | None,
    *extractor: str,
) -> str:
    """Return the line of `receipt verify` for an extractor, 4-mers unless one is named."""
    folder.mkdir(parents=True, exist_ok=True)
    cost, result = verify_receipt(folder, write_receipt(folder, *extractor))
    cells, receipt_bytes = (
        result["cells"],
        sum(file.stat().st_size for file in (folder / "receipt").iterdir()),
    )
    width = json.loads((folder / "row.json").read_text())["receipt"]["dim"]
    return (
        f"| {result['rows']:,} | {width} | {receipt_bytes / 1e6:.0f} MB "
        f"| {cells['equal']}/{cells['computed']} "
        f"| {cost.seconds:.0f} s | {limit_text(cost.seconds, seconds_max, 's')} "
        f"| {cost.processor:.0f} s | {limit_text(cost.processor, processor_max, 's')} "
        f"| {cost.mib:.0f} MiB | {limit_text(cost.mib, mib_max, 'MiB')} |"
    )


def limit_text(value: float, value_max: int | None, unit: str) -> str:
    """Return the text of a limit in the table, with a remark if it was exceeded."""
    if value_max is None:
        return ""
    return f"{value_max} {unit}{'' if value <= value_max else ', exceeded'}"


PROJECTED_CODE = """\
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
    "5-mers": ("mouse_0", ("--extractor", "kmer", "--option", "k=5")),
    "6-mers": ("mouse_0", ("--extractor", "kmer", "--option", "k=6")),
}
"""Extractors with 1,024 and 4,096 columns, each for one task, to measure the memory of a task."""


def widths_part(folder: Path) -> str:
    """Return the table of `receipt verify` of a single task with many columns."""
    lines = [
        "| embeddings | task | columns | number | file | wall clock | CPU | peak memory |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for number, (name, (task, extractor)) in enumerate(WIDTHS.items()):
        task_folder = folder / str(number)
        task_folder.mkdir(parents=True, exist_ok=True)
        cost, result = verify_receipt(
            task_folder, write_receipt(task_folder, *extractor, names=[task])
        )
        (file,) = (task_folder / "receipt").glob("*.f16")
        width = json.loads((task_folder / "row.json").read_text())["receipt"]["dim"]
        lines.append(
            f"| {name} | {task} | {width:,} | {result['rows']:,} "
            f"| {file.stat().st_size / 1e6:.0f} MB | {cost.seconds:.0f} s "
            f"| {cost.processor:.0f} s | {cost.mib:.0f} MiB |"
        )
    return "\n".join(lines) + f"\n\nOne task of two classes each, {CORES} cores.\n"


def kmers_part(folder: Path) -> str:
    """Return the table of a whole audit by receipt of 4-mers over the six real tasks."""
    repository = new_repository(folder)
    data_options = write_benchmark(repository.root, TASKS)
    shutil.copy(repository.root / "data/benchmark.json", repository.root / "schemas/benchmark.json")
    return audit_table(
        "4-mers", "6 real", repository, data_options, "--extractor", "kmer", "--option", "k=4"
    )


def transformer_part(folder: Path) -> str:
    """Return the table of whole audits by receipt of a random transformer over GENEB-mini.

    With a GPU, runs on each of both devices are audited on each.
    """
    devices = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
    lines: list[str] = []
    for claimed, rerun in itertools.product(devices, repeat=2):
        hub = Hub()
        repository = new_repository(folder)
        repository.environment |= {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(folder / "hf")}
        files = {file.name: file.read_bytes() for file in save("bert", folder / "model").iterdir()}
        revision = hub.create("models/geneb/tiny", files).head.oid
        model_options = ("--extractor", "huggingface", "--model", "geneb/tiny", "--option")
        name = f"BERT, random, run on {claimed}, audited on {rerun}"
        table = audit_table(
            name if devices[1:] else "BERT, random",
            "13 of GENEB-mini", repository, (), *model_options, f"revision={revision}",
            "--device", claimed,
            device_options=() if rerun == "cpu" else ("--device", rerun, "--gpu"),
        ).splitlines(keepends=True)  # fmt: skip
        lines += table[2:3] if lines else table[:3]
        hub.close()
    return "".join([*lines, *table[3:]])


def new_repository(folder: Path) -> MiniRepository:
    """Return a new repository beside an installation, in place of an unfinished one."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return MiniRepository(folder)


def audit_table(
    name: str,
    tasks: str,
    repository: MiniRepository,
    data_options: tuple[str, ...],
    *extractor: str,
    device_options: Sequence[str] = (),
) -> str:
    """Return the table of one audit, from `run --receipt` to the level; `on` names its device."""
    run_cost = command_cost(
        *("reference_harness", "run", *data_options, *extractor, "--model-id", "row", "--quiet"),
        *("--output", "record.json", "--submission", "submissions/row.json"),
        *("--submitted-by", "a bench", "--receipt", "receipt"),
        folder=repository.root,
        environment=repository.environment,
    )
    audit_cost = command_cost(
        *(
            "geneb_ci",
            "audit",
            "submissions/row.json",
            "--sample",
            "embeddings",
            *data_options[:2],
            *device_options,
        ),
        *("--receipt", "receipt", "--key", "key.pem", "--work", "work"),
        *("--committed-at", COMMITTED_AT, "--beacon-file", "round.json"),
        folder=repository.root,
        environment=repository.environment,
    )
    (record,) = record_files(repository.root / "leaderboard/audits")
    outcome = json.loads(parse_envelope(record.read_bytes()).payload)["predicate"]
    trust_text = repository.run("geneb_ci", "trust", "--format", "json").stdout
    (level,) = (row["level"] for row in json.loads(trust_text)["rows"])
    rows = json.loads((repository.root / "submissions/row.json").read_text())["receipt"]["rows"]
    embedded = sum(len(task["deviation"].split()) for task in outcome["tasks"])
    cells = outcome["cells"]
    return (
        "| row | tasks | embeddings | `run --receipt` | `audit FILE --sample embeddings` "
        "| embedded again | cells | level | peak memory |\n"
        "|---|---|---:|---:|---:|---:|---:|---|---:|\n"
        f"| {name} | {tasks} | {rows:,} | {run_cost.seconds:.0f} s, {run_cost.processor:.0f} s "
        "of CPU "
        f"| {audit_cost.seconds:.0f} s, {audit_cost.processor:.0f} s of CPU | {embedded:,} "
        f"| {cells['equal']}/{cells['of']} | {level} | {audit_cost.mib:.0f} MiB |\n"
        f"\n{CORES} cores, {os.getloadavg()[0]:.0f} processes waiting for them on average.\n"
    )


def kernels_part(folder: Path) -> str:
    """Return the table of cells under two kernels of BLAS and one or two threads: all are equal."""
    model_folder = bert(folder / "model")
    rows = {
        "4-mers": (TASKS, ("--extractor", "kmer", "--option", "k=4")),
        "BERT 2 x 128, random": (
            ("mouse_3", "prom_core_tata"),
            ("--extractor", "huggingface", "--model", str(model_folder)),
        ),
    }
    lines = [
        "| embeddings | tasks | cells | kernels | threads | other predictions |",
        "|---|---:|---:|---|---|---:|",
    ]
    for number, (name, (tasks, extractor)) in enumerate(rows.items()):
        row_folder = folder / str(number)
        row_folder.mkdir(parents=True, exist_ok=True)
        write_receipt(row_folder, *extractor, names=tasks)
        cells_by_setting = [
            cells_under(row_folder, kernel, threads) for kernel in KERNELS for threads in THREADS
        ]
        first_cells = {
            (task, regime): cell
            for task in cells_by_setting[0]
            for regime, cell in cells_by_setting[0][task].items()
        }
        changed_count = sum(
            cells_of_tasks[task][regime] != cell
            for cells_of_tasks in cells_by_setting[1:]
            for (task, regime), cell in first_cells.items()
        )
        lines.append(
            f"| {name} | {len(tasks)} | {len(first_cells)} | {' and '.join(KERNELS)} | 1 and 2 "
            f"| {changed_count} |"
        )
    return "\n".join(lines) + "\n"


def cells_under(folder: Path, kernel: str, threads: int) -> Any:
    """Return the cells of a receipt, by task, as one kernel and number of threads give them."""
    output = f"{kernel}-{threads}.json"
    kernel_environment = {"OPENBLAS_CORETYPE": kernel, "PYTHONPATH": IMPORTABLE}
    run = functools.partial(
        command_cost, *("benchmarks.kernel_cells", str(threads), output), folder=folder,
        environment=os.environ | kernel_environment,
    )  # fmt: skip
    finished_step(folder, f"{kernel}-{threads}", run, output)
    result = json.loads((folder / output).read_text())
    if result["used"] != [[kernel, threads]]:
        sys.exit(f"expected {kernel} with {threads} threads, found {result['used']}")
    return result["cells"]


TABLES_BY_NAME: dict[str, Callable[[Path], str]] = {
    "verify": verify_part,
    "widths": widths_part,
    "kernels": kernels_part,
    "audit of words": kmers_part,
    "audit of a transformer": transformer_part,
}
"""Functions that measure a part in a folder, by the name of the part's marks on the page."""


def table(name: str, folder: Path) -> str:
    """Return the table of a part, and delete the files that were written to measure it."""
    text = TABLES_BY_NAME[name](folder)
    shutil.rmtree(folder)
    return f"{text}\nPython {platform.python_version()}, {os.cpu_count()} cores.\n"


def main() -> None:
    """Measure, print, and with --write keep the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--part", action="append", choices=list(TABLES_BY_NAME))
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="Folder in which measurements are kept."
    )
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    for name in options.part or TABLES_BY_NAME:
        with tempfile.TemporaryDirectory(prefix="geneb-ci-bench-") as folder_name:
            store = MeasurementStore((options.keep or Path(folder_name)).resolve())
            text = store.line(name, functools.partial(table, name, store.folder / name))
        print(text, flush=True)
        if options.write:
            begin, end = f"<!-- bench {name} -->\n", f"<!-- /bench {name} -->"
            before, after_begin = PAGE.read_text(encoding="utf-8").split(begin)
            PAGE.write_text(
                before + begin + text + end + after_begin.split(end)[1], encoding="utf-8"
            )


if __name__ == "__main__":
    main()
