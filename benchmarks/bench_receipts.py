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
from benchmarks.bench_embedding_power import Kept
from benchmarks.measured import Measured, measured, step
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
REPEATED = ("human_tf_0",) * 3 + ("human_tf_1",) * 3 + ("mouse_3",)
"""Six real tasks are at hand. With these seven more they are 13, and have the embeddings of the 13
tasks of the design: 282,808, where mouse 0, 2, 3, 4, human_tf 0 to 4, the three of core promoters
and prom_300_tata have 274,739."""
SECONDS_MAX, MIB_MAX, CORES = 180, 1024, 2
PROCESSOR_MAX = 53
"""Seconds of the processor at 768 columns: twice the share of 282,808 embeddings in what was
estimated for the 3,933,764 of GENEB, 6 minutes to fit and predict, and 10 s to read."""


def laid_out(folder: Path, names: Sequence[str] = (*TASKS, *REPEATED)) -> tuple[str, ...]:
    """Write tasks of real embeddings, 13 by default, and return the options that name them."""
    step(folder, "data", functools.partial(defined, folder, names), "data")
    return "--data", "data", "--benchmark", "data/benchmark.json"


def defined(folder: Path, names: Sequence[str]) -> Measured:
    """Copy tasks of real embeddings, and define a benchmark of them."""
    data = folder / "data"
    data.mkdir(parents=True)
    for number, name in enumerate(names):
        again = f"_again_{number - len(TASKS) + 1}" if number >= len(TASKS) else ""
        flat, remote = REAL_TASKS / f"{GUE}{name}.csv.gz", REAL_TASKS / "tasks" / f"{GUE}{name}"
        if flat.is_file():
            shutil.copyfile(flat, data / f"{GUE}{name}{again}.csv.gz")
        elif remote.is_dir():
            shutil.copytree(remote, data / "tasks" / f"{GUE}{name}{again}")
        else:
            sys.exit(f"{REAL_TASKS} lacks {GUE}{name}: run `make real-tasks`")
    return measured("reference_harness", "data", "define", "data", folder=folder)


def written(
    folder: Path, *extractor: str, names: Sequence[str] = (*TASKS, *REPEATED)
) -> tuple[str, ...]:
    """Write a receipt; return the options that name the data."""
    options = laid_out(folder, names)
    words = (
        *("reference_harness", "run", *options, *extractor, "--model-id", "row", "--quiet"),
        *("--output", "record.json", "--submission", "row.json", "--receipt", "receipt"),
    )
    made = ("record.json", "row.json", "receipt", "cache")
    step(folder, "run", functools.partial(measured, *words, folder=folder), *made)
    return options


def reverified(folder: Path, options: tuple[str, ...]) -> tuple[Measured, Any]:
    """Return cost and result of verifying a local receipt. Raise SystemExit if it is refused."""
    words = (
        *("geneb_ci", "receipt", "verify", "row.json", "--receipt", "receipt", *options),
        *("--quiet", "--format", "json"),
    )
    took = step(folder, "verify", functools.partial(measured, *words, folder=folder))
    found = json.loads(took.output)
    if not found["verified"]:
        sys.exit(f"refused at {found['refused_at']}")
    return took, found


def verify_part(folder: Path) -> str:
    """Return the table of `receipt verify` of thirteen tasks, at 256 and at 768 columns."""
    (folder / "768").mkdir(parents=True, exist_ok=True)
    (folder / "768/projected.py").write_text(PROJECTED, encoding="utf-8")
    lines = [
        (
            "| embeddings | width | bytes | cells | wall clock | limit | CPU | limit | peak "
            "memory | limit |"
        ),
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        verified(folder / "256", SECONDS_MAX, None, MIB_MAX),
        verified(
            folder / "768", None, PROCESSOR_MAX, None, "--extractor", "projected.py:Projected"
        ),
    ]
    return "\n".join(lines) + (
        f"\n\n4-mers, and 6-mers projected to 768 columns; {len(TASKS)} real tasks of GUE, and "
        f"{len(REPEATED)} of them once more under other ids, so that the embeddings are those of "
        f"13 tasks. {CORES} cores, {os.getloadavg()[0]:.0f} processes waiting for them on "
        "average.\n"
    )


def verified(
    folder: Path,
    seconds_max: int | None,
    processor_max: int | None,
    mib_max: int | None,
    *extractor: str,
) -> str:
    """Return the line of `receipt verify` for an extractor, 4-mers unless one is named."""
    folder.mkdir(parents=True, exist_ok=True)
    took, found = reverified(folder, written(folder, *extractor))
    cells, held = found["cells"], sum(one.stat().st_size for one in (folder / "receipt").iterdir())
    width = json.loads((folder / "row.json").read_text())["receipt"]["dim"]
    return (
        f"| {found['rows']:,} | {width} | {held / 1e6:.0f} MB "
        f"| {cells['equal']}/{cells['computed']} "
        f"| {took.seconds:.0f} s | {limit(took.seconds, seconds_max, 's')} "
        f"| {took.processor:.0f} s | {limit(took.processor, processor_max, 's')} "
        f"| {took.mib:.0f} MiB | {limit(took.mib, mib_max, 'MiB')} |"
    )


def limit(found: float, most: int | None, unit: str) -> str:
    """Return the text of a limit in the table, with a remark if it was exceeded."""
    if most is None:
        return ""
    return f"{most} {unit}{'' if found <= most else ', exceeded'}"


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
        place = folder / str(number)
        place.mkdir(parents=True, exist_ok=True)
        took, found = reverified(place, written(place, *extractor, names=[task]))
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
    words = laid(folder)
    data = laid_out(words.root, TASKS)
    shutil.copy(words.root / "data/benchmark.json", words.root / "schemas/benchmark.json")
    return audited("4-mers", "6 real", words, data, "--extractor", "kmer", "--option", "k=4")


def transformer_part(folder: Path) -> str:
    """Return the table of whole audits by receipt of a random transformer over GENEB-mini.

    With a GPU, runs on each of both devices are audited on each.
    """
    devices = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
    lines: list[str] = []
    for claimed, rerun in itertools.product(devices, repeat=2):
        hub = Hub()
        tiny = laid(folder)
        tiny.environment |= {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(folder / "hf")}
        files = {one.name: one.read_bytes() for one in save("bert", folder / "model").iterdir()}
        revision = hub.create("models/geneb/tiny", files).head.oid
        model = ("--extractor", "huggingface", "--model", "geneb/tiny", "--option")
        name = f"BERT, random, run on {claimed}, audited on {rerun}"
        table = audited(
            name if devices[1:] else "BERT, random",
            "13 of GENEB-mini", tiny, (), *model, f"revision={revision}", "--device", claimed,
            on=() if rerun == "cpu" else ("--device", rerun, "--gpu"),
        ).splitlines(keepends=True)  # fmt: skip
        lines += table[2:3] if lines else table[:3]
        hub.close()
    return "".join([*lines, *table[3:]])


def laid(folder: Path) -> MiniRepository:
    """Return a new repository beside an installation, in place of an unfinished one."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return MiniRepository(folder)


def audited(
    name: str,
    tasks: str,
    place: MiniRepository,
    data: tuple[str, ...],
    *extractor: str,
    on: Sequence[str] = (),
) -> str:
    """Return the table of one audit, from `run --receipt` to the level; `on` names its device."""
    ran = measured(
        *("reference_harness", "run", *data, *extractor, "--model-id", "row", "--quiet"),
        *("--output", "record.json", "--submission", "submissions/row.json"),
        *("--submitted-by", "a bench", "--receipt", "receipt"),
        folder=place.root,
        environment=place.environment,
    )
    took = measured(
        *("geneb_ci", "audit", "submissions/row.json", "--sample", "embeddings", *data[:2], *on),
        *("--receipt", "receipt", "--key", "key.pem", "--work", "work"),
        *("--committed-at", COMMITTED_AT, "--beacon-file", "round.json"),
        folder=place.root,
        environment=place.environment,
    )
    (record,) = record_files(place.root / "leaderboard/audits")
    outcome = json.loads(parse_envelope(record.read_bytes()).payload)["predicate"]
    label = place.run("geneb_ci", "trust", "--format", "json").stdout
    (level,) = (one["level"] for one in json.loads(label)["rows"])
    rows = json.loads((place.root / "submissions/row.json").read_text())["receipt"]["rows"]
    embedded = sum(len(task["deviation"].split()) for task in outcome["tasks"])
    cells = outcome["cells"]
    return (
        "| row | tasks | embeddings | `run --receipt` | `audit FILE --sample embeddings` "
        "| embedded again | cells | level | peak memory |\n"
        "|---|---|---:|---:|---:|---:|---:|---|---:|\n"
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
        "| embeddings | tasks | cells | kernels | threads | other predictions |",
        "|---|---:|---:|---|---|---:|",
    ]
    for number, (name, (tasks, extractor)) in enumerate(rows.items()):
        place = folder / str(number)
        place.mkdir(parents=True, exist_ok=True)
        written(place, *extractor, names=tasks)
        found = [cells_under(place, kernel, threads) for kernel in KERNELS for threads in THREADS]
        first = {(t, r): cell for t in found[0] for r, cell in found[0][t].items()}
        other = sum(
            one[task][regime] != cell for one in found[1:] for (task, regime), cell in first.items()
        )
        lines.append(
            f"| {name} | {len(tasks)} | {len(first)} | {' and '.join(KERNELS)} | 1 and 2 "
            f"| {other} |"
        )
    return "\n".join(lines) + "\n"


def cells_under(place: Path, kernel: str, threads: int) -> Any:
    """Return the cells of a receipt, by task, as one kernel and number of threads give them."""
    output = f"{kernel}-{threads}.json"
    own = {"OPENBLAS_CORETYPE": kernel, "PYTHONPATH": IMPORTABLE}
    run = functools.partial(
        measured, *("benchmarks.kernel_cells", str(threads), output), folder=place,
        environment=os.environ | own,
    )  # fmt: skip
    step(place, f"{kernel}-{threads}", run, output)
    found = json.loads((place / output).read_text())
    if found["used"] != [[kernel, threads]]:
        sys.exit(f"expected {kernel} with {threads} threads, found {found['used']}")
    return found["cells"]


PARTS: dict[str, Callable[[Path], str]] = {
    "verify": verify_part,
    "widths": widths_part,
    "kernels": kernels_part,
    "audit of words": words_part,
    "audit of a transformer": transformer_part,
}
"""Functions that measure a part in a folder, by the name of the part's marks on the page."""


def table(name: str, folder: Path) -> str:
    """Return the table of a part, and delete the files that were written to measure it."""
    text = PARTS[name](folder)
    shutil.rmtree(folder)
    return f"{text}\nPython {platform.python_version()}, {os.cpu_count()} cores.\n"


def main() -> None:
    """Measure, print, and with --write keep the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--part", action="append", choices=list(PARTS))
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="Folder in which measurements are kept."
    )
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    for name in options.part or PARTS:
        with tempfile.TemporaryDirectory(prefix="geneb-ci-bench-") as place:
            kept = Kept((options.keep or Path(place)).resolve())
            text = kept.line(name, functools.partial(table, name, kept.folder / name))
        print(text, flush=True)
        if options.write:
            begin, end = f"<!-- bench {name} -->\n", f"<!-- /bench {name} -->"
            before, rest = PAGE.read_text(encoding="utf-8").split(begin)
            PAGE.write_text(before + begin + text + end + rest.split(end)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
