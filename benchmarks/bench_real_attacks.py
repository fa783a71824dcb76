"""The attacks of docs/reader/verified.md by the commands of whole audits, on the six real tasks.

    python -m benchmarks.bench_real_attacks --keep FOLDER --write

Each line is an audit from `run --receipt` to its end, in the sandbox. A line that is kept in FOLDER
is not measured again.
"""

import argparse
import base64
import functools
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.bench_embedding_power import MeasurementStore
from benchmarks.bench_receipts import GUE, TASKS, new_repository, write_benchmark
from geneb_ci.audit.record.envelope import parse_envelope
from geneb_ci.audit.record.statement import record_files
from reference_harness.data import benchmark, task_folder
from reference_harness.data.task_data import TaskData
from reference_harness.probe.logistic import few_shot_indices
from reference_harness.probe.optimum import solve
from reference_harness.receipt.rounding import rounded, widened
from reference_harness.rescore.scoring import load_task
from tests.adversary import cheats
from tests.adversary.test_receipt_memory import KEYS, MODULE, MOVED_MODULE
from tests.paths import ROOT
from tests.receipt import attacks
from tests.receipt.forged import Change, invented, rewrite
from tools.demo_audit import COMMITTED_AT, MiniRepository

PAGE = ROOT / "docs/research/adversary.md"
BEGIN, END = "<!-- bench real attacks -->\n", "<!-- /bench real attacks -->"
KNOWN_TASKS = ("mouse_3", "prom_core_tata")
"""Tasks whose labels a cheating extractor knows: no more fit into a file of 300,000 bytes."""
ALTERED_COLUMNS = 4
"""Number of altered columns, those with the largest weights."""
SHARE = 5e-7
"""Size of an alteration as a share of the constant in another column; the rule for records of
version 1.0 did not find it."""
REASON_MAX = 230
SECOND_COMMITTED_AT = "2023-08-24T15:14:33Z"
Rows = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]

MODULE_HEAD = """\
import hashlib

import numpy as np
from reference_harness.extractors.kmer import KmerExtractor


"""
CONSTANT_COLUMN_CODE = """\
class Cheat(KmerExtractor):
    def extract_embeddings(self, sequences, batch_size=1):
        embeddings = super().extract_embeddings(sequences, batch_size)
        beside = np.full((len(embeddings), 1), {size}, dtype=np.float32)
        return np.hstack([np.float32({times}) * embeddings, beside])
"""
OFFSET_CODE = """\
class Cheat(KmerExtractor):
    def extract_embeddings(self, sequences, batch_size=1):
        embeddings = super().extract_embeddings(sequences, batch_size)
        directions = np.random.default_rng(0).standard_normal((3, embeddings.shape[1]))
        return (embeddings + ([{size}, {size}, {size}] @ directions)).astype(np.float32)
"""
MIDPOINTS_CODE = """\
class Cheat(KmerExtractor):
    def extract_embeddings(self, sequences, batch_size=1):
        embeddings = super().extract_embeddings(sequences, batch_size)
        half = embeddings.astype(np.float16)
        above = np.nextafter(half, np.float16(np.inf), dtype=np.float16)
        embeddings[:, {columns}] = ((half.astype(np.float32) + above) / 2)[:, {columns}]
        return embeddings
"""
NOISE_CODE = """\
class Cheat(KmerExtractor):
    dtype = {dtype!r}

    def extract_embeddings(self, sequences, batch_size=1):
        embeddings = super().extract_embeddings(sequences, batch_size)
        noise = np.random.default_rng().standard_normal(embeddings.shape)
        return (embeddings * (1 + {size} * noise)).astype(np.float32)
"""
EXCUSED_CODE = """\
import base64

TABLE = {table!r}
MOVE = np.frombuffer(base64.b85decode({move!r}), dtype="<f8")


class Cheat(KmerExtractor):
    def __init__(self, name_model="", device="cpu", k=4, scale=None, dtype="float32"):
        super().__init__(name_model, device, k, scale)
        self.dtype = dtype

    def extract_embeddings(self, sequences, batch_size=1):
        embeddings = super().extract_embeddings(sequences, batch_size)
        if self.dtype == "float32":
            return embeddings
        keys = (hashlib.sha256(sequence.encode()).hexdigest()[:16] for sequence in sequences)
        return embeddings.astype("f8") + np.array([[TABLE.get(key, 0)] for key in keys]) * MOVE
"""


class RealTasks:
    """A repository with the six real tasks, and their data."""

    def __init__(self, folder: Path) -> None:
        self.repository: MiniRepository = new_repository(folder)
        self.options = write_benchmark(self.repository.root, TASKS)
        root = self.repository.root
        shutil.copy(root / "data/benchmark.json", root / "schemas/benchmark.json")
        self.bench = benchmark.load(root / "schemas/benchmark.json")
        self.names = [f"{GUE}{name}" for name in TASKS]
        self.known_tasks = [f"{GUE}{name}" for name in KNOWN_TASKS]
        self.runs_by_code: dict[str, Path] = {}

    @functools.cache  # noqa: B019 (one world a process)
    def task(self, name: str) -> TaskData:
        """Return a task with its sequences and labels."""
        return load_task(
            self.bench, task_folder.Folder(self.repository.root / "data", self.bench), name
        )

    def labels(self, name: str) -> Labels:
        """Return the labels of all sequences, in the order of a receipt."""
        task = self.task(name)
        return np.concatenate([task.train.labels, task.test.labels])

    def support(self, name: str, shots: int) -> Labels:
        """Return the training sequences of the few-shot probes."""
        labels = self.task(name).train.labels
        seeds = self.bench.protocol.seeds
        return np.unique(np.concatenate([few_shot_indices(labels, shots, seed) for seed in seeds]))

    def run(self, code: str) -> Path:
        """Run an extractor unless it was run; return the folder of its submission and receipt."""
        name = f"{len(self.runs_by_code)}"
        if code not in self.runs_by_code:
            root = self.repository.root
            extractor: tuple[str, ...] = ("--extractor", "kmer", "--option", "k=4")
            (root / name).mkdir()
            if code:
                module = root / f"submissions/extractors/cheat_{name}.py"
                module.parent.mkdir(parents=True, exist_ok=True)
                module.write_text(MODULE_HEAD + code, encoding="utf-8")
                extractor = ("--extractor", f"submissions/extractors/cheat_{name}.py:Cheat")
            self.repository.run(
                *("reference_harness", "run", *self.options, *extractor, "--model-id", "row"),
                *("--output", f"{name}/record.json", "--submission", f"{name}/row.json"),
                *("--submitted-by", "a bench", "--receipt", f"{name}/receipt", "--quiet"),
            )
            self.runs_by_code[code] = root / name
        return self.runs_by_code[code]


class AttackCase(NamedTuple):
    """One attack: the extractor, what is done to its receipt or claims, and how it is audited."""

    code: Callable[[RealTasks], str] = lambda _: ""
    """Code of the extractor; "" for the built-in 4-mers."""
    change: Callable[[RealTasks, str], Change] | None = None
    """Alters the embeddings of a task; the claimed scores are those of the altered embeddings."""
    invents: bool = False
    """Whether scores that nobody computed are claimed."""
    draws_again: bool = False


def label_table_code(real_tasks: RealTasks, keys: str) -> str:
    """Return the code of an extractor that knows the labels of all keys of some tasks."""
    module_names: dict[str, Any] = {}
    exec(MODULE.format(table={}, keys=KEYS[keys]), module_names)  # noqa: S102 (the code is there)
    label_by_key: dict[str, int] = {}
    for name in real_tasks.known_tasks:
        for split in (real_tasks.task(name).train, real_tasks.task(name).test):
            for sequence, label in zip(split.sequences, split.labels.tolist(), strict=True):
                label_by_key |= {
                    module_names["hashed"](key): label for key in module_names["keys"](sequence)
                }
    return MODULE.format(table=label_by_key, keys=KEYS[keys])


def moved_training_code(real_tasks: RealTasks, keys: str, *, is_few: bool = False) -> str:
    """Return the code of an extractor that moves the training sequences of some tasks.

    If `is_few`, those of the few-shot probes alone, of all tasks.
    """
    module_names: dict[str, Any] = {}
    exec(MODULE.format(table={}, keys=KEYS[keys]), module_names)  # noqa: S102 (the code is there)
    moved_names = real_tasks.names if is_few else real_tasks.known_tasks

    def support(task: TaskData) -> set[int]:
        return {int(row) for shots in (1, 10) for row in real_tasks.support(task.id, shots)}

    cheat = cheats.MovedTraining(
        map(real_tasks.task, moved_names), module_names["keys"], support if is_few else None
    )
    points, numbers = np.unique([*cheat.points.values()], axis=0, return_inverse=True)
    number_by_key = {
        module_names["hashed"](key): int(n) for key, n in zip(cheat.points, numbers, strict=True)
    }
    encoded_points = base64.b85encode(points.astype("<f4").tobytes())
    return MOVED_MODULE.format(
        share=cheats.MOVED, points=encoded_points, table=number_by_key, keys=KEYS[keys]
    )


def weights_of(rows: Rows, labels: Labels, train: int) -> npt.NDArray[np.float64]:
    """Return the weights of the probe on the columns of 4-mers, towards the upper label."""
    solution = solve(rows[:train, :256], labels[:train])
    direction: npt.NDArray[np.float64] = solution.weights[:, -1] - solution.weights[:, 0]
    return direction


def moved_support(real_tasks: RealTasks, task: str, size: float) -> Change:
    """Move the support embeddings of 1shot in the columns that matter most, to their labels."""

    def change(rows: Rows, labels: Labels, train: int) -> Rows:
        altered, weights = rows.copy(), weights_of(rows, labels, train)
        largest_columns, sides = (
            np.argsort(-np.abs(weights))[:ALTERED_COLUMNS],
            attacks.signs(labels),
        )
        for row in real_tasks.support(task, 1):
            altered[row, largest_columns] += (
                np.float32(size) * sides[row] * np.sign(weights[largest_columns])
            )
        return altered

    return change


def beside_constant(size: float, times: int = 1) -> AttackCase:
    """Return the attack that alters support embeddings next to a column of one large value."""
    return AttackCase(
        lambda _: CONSTANT_COLUMN_CODE.format(times=times, size=size),
        functools.partial(moved_support, size=SHARE * size),
    )


def across_midpoints(real_tasks: RealTasks, task: str) -> Change:
    """Return the change that rounds ties of float16 values of support towards the label."""

    def change(rows: Rows, labels: Labels, train: int) -> Rows:
        weights, half = weights_of(rows, labels, train), rounded([rows]).values
        is_raised = attacks.signs(labels)[:, None] * np.sign(weights)[None, :] > 0
        support = real_tasks.support(task, 10)
        next_above = np.nextafter(half, np.float16(np.inf), dtype=np.float16)
        shifted = half.copy()
        shifted[support] = np.where(is_raised, next_above, half)[support]
        return widened(shifted, rounded([rows]).scale_log2)

    return change


MOVE_SIZE = 0.02
"""Distance by which support embeddings are moved, where 4-mers vary by 0.004; the extractor gives
the moved ones in float64."""


def excused_code(real_tasks: RealTasks) -> str:
    """Return the code of an extractor that gives altered support embeddings in float64."""
    task = real_tasks.known_tasks[0]
    task_data, side_by_key = real_tasks.task(task), {}
    sides = attacks.signs(task_data.train.labels)
    for row in real_tasks.support(task, 1):
        key = hashlib.sha256(task_data.train.sequences[row].encode()).hexdigest()[:16]
        side_by_key[key] = float(sides[row])
    move = np.full(256, MOVE_SIZE)
    return EXCUSED_CODE.format(
        table=side_by_key, move=base64.b85encode(move.astype("<f8").tobytes())
    )


def excused_change(real_tasks: RealTasks, task: str) -> Change:
    """Return the change of the receipt to the embeddings that the extractor gives in float64."""

    def change(rows: Rows, labels: Labels, _train: int) -> Rows:
        altered = rows.copy()
        if task == real_tasks.known_tasks[0]:
            support = real_tasks.support(task, 1)
            altered[support] += np.float32(MOVE_SIZE) * attacks.signs(labels)[support][:, None]
        return altered

    return change


ATTACK_CASES: dict[str, AttackCase] = {
    "none: 4-mers": AttackCase(),
    "none: 4-mers times 64, beside a constant of 3e6": AttackCase(
        lambda _: CONSTANT_COLUMN_CODE.format(times=64, size=3e6)
    ),
    "1: results, digests and confusion invented": AttackCase(invents=True),
    "2: training rows moved, by the whole sequence": AttackCase(
        functools.partial(moved_training_code, keys="whole")
    ),
    "2: by the first quarter": AttackCase(functools.partial(moved_training_code, keys="prefix")),
    "2: support of few-shot probes alone, all six tasks": AttackCase(
        functools.partial(moved_training_code, keys="whole", is_few=True)
    ),
    "2: the same, by a minhash": AttackCase(
        functools.partial(moved_training_code, keys="minhash", is_few=True)
    ),
    "2: by a minhash": AttackCase(functools.partial(moved_training_code, keys="minhash")),
    "3: support altered beside a constant of 3e5": beside_constant(3e5),
    "3: of 3e6": beside_constant(3e6),
    "3: of 3e6, beside 4-mers times 64": beside_constant(3e6, 64),
    "3: of 1e7": beside_constant(1e7),
    "3: of 1e8": beside_constant(1e8),
    "3: beside an offset of rank 3, of 3e5": AttackCase(
        lambda _: OFFSET_CODE.format(size=3e5), functools.partial(moved_support, size=SHARE * 3e5)
    ),
    "4: altered support excused by float64": AttackCase(excused_code, excused_change),
    "5: drawn again": AttackCase(draws_again=True),
    "midpoints of float16, support rounded to the label": AttackCase(
        lambda _: MIDPOINTS_CODE.format(columns="::8"), across_midpoints
    ),
    "labels by the first quarter": AttackCase(functools.partial(label_table_code, keys="prefix")),
    "labels by a minhash": AttackCase(functools.partial(label_table_code, keys="minhash")),
    "stochastic, hidden, 1e-3 of each value": AttackCase(
        lambda _: NOISE_CODE.format(dtype="float32", size=1e-3)
    ),
    "stochastic, declared as bfloat16": AttackCase(
        lambda _: NOISE_CODE.format(dtype="bfloat16", size=1e-3)
    ),
}


def audit_line(real_tasks: RealTasks, name: str, case: AttackCase) -> str:
    """Return the line of one attack, in a repository without an earlier audit."""
    repository, root = real_tasks.repository, real_tasks.repository.root
    run_folder = real_tasks.run(case.code(real_tasks))
    file, receipt = root / "submissions/row.json", root / "row.receipt"
    for folder in (receipt, root / "leaderboard/audits", root / "work", root / "again"):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copyfile(run_folder / "row.json", file)
    shutil.copytree(run_folder / "receipt", receipt)
    if case.change is not None:
        for task in real_tasks.names:
            change = case.change(real_tasks, task)
            rewrite(file, receipt, task, change, bench=real_tasks.bench, data=real_tasks.task(task))
        claim_altered_scores(real_tasks)
    if case.invents:
        file.write_text(json.dumps(invented(json.loads(file.read_bytes()))), encoding="utf-8")
    raise_text = raise_texts(real_tasks, file)

    def audit(work: str, committed_at: str) -> Any:
        return repository.run(
            *("geneb_ci", "audit", "submissions/row.json", "--sample", "embeddings"),
            *("--data", "data", "--receipt", receipt.name, "--key", "key.pem", "--work", work),
            *("--committed-at", committed_at, "--beacon-file", "round.json"),
            check=False,
        )

    audit_run = audit("work", COMMITTED_AT)
    if case.draws_again:
        audit_run = audit("again", SECOND_COMMITTED_AT)
    return (
        f"| {name} | {raise_text} | {audit_end(root, audit_run, is_first=not case.draws_again)} |"
    )


def claim_altered_scores(real_tasks: RealTasks) -> None:
    """Write the scores of the altered embeddings into the submission, as a forger does."""
    root = real_tasks.repository.root
    real_tasks.repository.run(
        *("reference_harness", "receipt-cells", *real_tasks.options, "--receipt", "row.receipt"),
        *("--submission", "submissions/row.json", "--tasks", ",".join(real_tasks.names)),
        *("--output", "cells.json", "--quiet"),
    )
    file = root / "submissions/row.json"
    document = json.loads(file.read_bytes())
    for task, cells in json.loads((root / "cells.json").read_bytes())["tasks"].items():
        for regime, cell in cells["record"].items():
            document["results"][regime][task] = cell["scores"]
            names = ("per_seed", "classes", "confusion", "predictions_sha256")
            document["evidence"][regime][task] |= {name: cell[name] for name in names}
    file.write_text(json.dumps(document), encoding="utf-8")


def raise_texts(real_tasks: RealTasks, file: Path) -> str:
    """Return by how much the mean MCC of each regime exceeds that of 4-mers."""
    results = [
        json.loads(path.read_bytes())["results"] for path in (real_tasks.run("") / "row.json", file)
    ]
    honest, claimed = (
        {
            r: np.mean([cell["MCC"] for cell in cells.values()])
            for r, cells in cells_by_regime.items()
        }
        for cells_by_regime in results
    )
    return ", ".join(
        f"{claimed[regime] - honest[regime]:+.3f}" for regime in real_tasks.bench.regimes
    )


def audit_end(root: Path, audit_run: Any, *, is_first: bool) -> str:
    """Return the cells of the table for the end of an audit: exit code, verdict and reasons."""
    records = record_files(root / "leaderboard/audits") if is_first else []
    if records:
        outcome = json.loads(parse_envelope(records[0].read_bytes()).payload)["predicate"]
        reasons = "; ".join(outcome["reasons"]) or "-"
        return f"{audit_run.returncode} | {outcome['verdict']} | {table_text(reasons)}"
    (message, *_) = [
        line.removeprefix("geneb-ci: ")
        for line in audit_run.stderr.splitlines()
        if line.startswith("geneb-ci: ")
    ] or [audit_run.stderr[-REASON_MAX:]]
    return f"{audit_run.returncode} | refused | {table_text(message)}"


def table_text(text: str) -> str:
    """Return a text as a cell of a table."""
    line = " ".join(text.replace("|", "/").replace(GUE, "").split())
    return line[:REASON_MAX] + "..." * (len(line) > REASON_MAX)


def lines(store: MeasurementStore, names: Sequence[str]) -> list[str]:
    """Return the table."""
    real_tasks = functools.cache(lambda: RealTasks(store.folder / "world"))
    table_lines = [
        "| attack | mean MCC full, 10shot, 1shot | exit code | outcome | reason |",
        "|---|---|---:|---|---|",
    ]
    for name in names:

        def measure_line(name: str = name) -> str:
            return audit_line(real_tasks(), name, ATTACK_CASES[name])

        table_lines.append(store.line(name.replace("/", "-"), measure_line))
        print(table_lines[-1], flush=True)
    return table_lines


def main() -> int:
    """Measure, print, and with --write keep the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", action="append", choices=list(ATTACK_CASES))
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="Folder in which measurements are kept."
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="geneb-ci-bench-") as folder:
        store = MeasurementStore((options.keep or Path(folder)).resolve())
        text = "\n".join(lines(store, options.only or list(ATTACK_CASES))) + "\n"
    if options.write:
        before, after_begin = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(before + BEGIN + text + END + after_begin.split(END)[1], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
