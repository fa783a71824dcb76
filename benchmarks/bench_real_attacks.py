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

from benchmarks.bench_embedding_power import Kept
from benchmarks.bench_receipts import GUE, TASKS, laid, laid_out
from geneb_ci.audit.record.envelope import parse_envelope
from geneb_ci.audit.record.statement import record_files
from reference_harness import benchmark, data
from reference_harness.optimum import solve
from reference_harness.probe import few_shot_indices
from reference_harness.receipt.rounding import rounded, widened
from reference_harness.rescore import load
from reference_harness.tasks import TaskData
from tests.adversary import cheats
from tests.adversary.test_receipt_memory import KEYS, MODULE, MOVED_MODULE
from tests.paths import ROOT
from tests.receipt import attacks
from tests.receipt.forged import Change, invented, rewrite
from tools.demo_audit import COMMITTED_AT, MiniRepository

PAGE = ROOT / "docs/research/adversary.md"
BEGIN, END = "<!-- bench real attacks -->\n", "<!-- /bench real attacks -->"
KNOWN = ("mouse_3", "prom_core_tata")
"""Tasks whose sequences an extractor knows: its file may have 300,000 bytes."""
FEW = 4
"""Number of altered columns, those with the largest weights."""
SHARE = 5e-7
"""Alteration as a share of the constant beside it: the rule of records of version 1.0 let it
pass."""
REASON_MAX = 230
LATER = "2023-08-24T15:14:33Z"
Rows = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]

HEAD = """\
import hashlib

import numpy as np
from reference_harness.extractors.kmer import KmerExtractor


"""
BESIDE = """\
class Cheat(KmerExtractor):
    def extract_embeddings(self, sequences, batch_size=1):
        embeddings = super().extract_embeddings(sequences, batch_size)
        beside = np.full((len(embeddings), 1), {size}, dtype=np.float32)
        return np.hstack([np.float32({times}) * embeddings, beside])
"""
OFFSET = """\
class Cheat(KmerExtractor):
    def extract_embeddings(self, sequences, batch_size=1):
        embeddings = super().extract_embeddings(sequences, batch_size)
        directions = np.random.default_rng(0).standard_normal((3, embeddings.shape[1]))
        return (embeddings + ([{size}, {size}, {size}] @ directions)).astype(np.float32)
"""
MIDPOINTS = """\
class Cheat(KmerExtractor):
    def extract_embeddings(self, sequences, batch_size=1):
        embeddings = super().extract_embeddings(sequences, batch_size)
        half = embeddings.astype(np.float16)
        above = np.nextafter(half, np.float16(np.inf), dtype=np.float16)
        embeddings[:, {columns}] = ((half.astype(np.float32) + above) / 2)[:, {columns}]
        return embeddings
"""
NOISE = """\
class Cheat(KmerExtractor):
    dtype = {dtype!r}

    def extract_embeddings(self, sequences, batch_size=1):
        embeddings = super().extract_embeddings(sequences, batch_size)
        noise = np.random.default_rng().standard_normal(embeddings.shape)
        return (embeddings * (1 + {size} * noise)).astype(np.float32)
"""
EXCUSED = """\
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


class World:
    """A repository with the six real tasks, and their data."""

    def __init__(self, folder: Path) -> None:
        self.place: MiniRepository = laid(folder)
        self.options = laid_out(self.place.root, TASKS)
        root = self.place.root
        shutil.copy(root / "data/benchmark.json", root / "schemas/benchmark.json")
        self.bench = benchmark.load(root / "schemas/benchmark.json")
        self.names = [f"{GUE}{name}" for name in TASKS]
        self.known = [f"{GUE}{name}" for name in KNOWN]
        self.honest: dict[str, Path] = {}

    @functools.cache  # noqa: B019 (one world a process)
    def task(self, name: str) -> TaskData:
        """Return a task with its sequences and labels."""
        return load(self.bench, data.Folder(self.place.root / "data", self.bench), name)

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
        name = f"{len(self.honest)}"
        if code not in self.honest:
            root = self.place.root
            extractor: tuple[str, ...] = ("--extractor", "kmer", "--option", "k=4")
            (root / name).mkdir()
            if code:
                module = root / f"submissions/extractors/cheat_{name}.py"
                module.parent.mkdir(parents=True, exist_ok=True)
                module.write_text(HEAD + code, encoding="utf-8")
                extractor = ("--extractor", f"submissions/extractors/cheat_{name}.py:Cheat")
            self.place.run(
                *("reference_harness", "run", *self.options, *extractor, "--model-id", "row"),
                *("--output", f"{name}/record.json", "--submission", f"{name}/row.json"),
                *("--submitted-by", "a bench", "--receipt", f"{name}/receipt", "--quiet"),
            )
            self.honest[code] = root / name
        return self.honest[code]


class Case(NamedTuple):
    """One attack: the extractor, what is done to its receipt or claims, and how it is audited."""

    code: Callable[[World], str] = lambda _: ""
    """Code of the extractor; "" for the built-in 4-mers."""
    change: Callable[[World, str], Change] | None = None
    """Alters the embeddings of a task; the claimed scores are those of the altered embeddings."""
    invents: bool = False
    """Whether scores that nobody computed are claimed."""
    draws_again: bool = False


def table(world: World, keys: str) -> str:
    """Return the code of an extractor that knows the labels of all keys of some tasks."""
    own: dict[str, Any] = {}
    exec(MODULE.format(table={}, keys=KEYS[keys]), own)  # noqa: S102 (the code is there)
    label_by_key: dict[str, int] = {}
    for name in world.known:
        for split in (world.task(name).train, world.task(name).test):
            for sequence, label in zip(split.sequences, split.labels.tolist(), strict=True):
                label_by_key |= {own["hashed"](key): label for key in own["keys"](sequence)}
    return MODULE.format(table=label_by_key, keys=KEYS[keys])


def moved(world: World, keys: str, *, is_few: bool = False) -> str:
    """Return the code of an extractor that moves the training sequences of some tasks.

    If `is_few`, those of the few-shot probes alone, of all tasks.
    """
    own: dict[str, Any] = {}
    exec(MODULE.format(table={}, keys=KEYS[keys]), own)  # noqa: S102 (the code is there)
    tasks = world.names if is_few else world.known

    def support(task: TaskData) -> set[int]:
        return {int(row) for shots in (1, 10) for row in world.support(task.id, shots)}

    cheat = cheats.MovedTraining(map(world.task, tasks), own["keys"], support if is_few else None)
    points, numbers = np.unique([*cheat.points.values()], axis=0, return_inverse=True)
    known = {own["hashed"](key): int(n) for key, n in zip(cheat.points, numbers, strict=True)}
    text = base64.b85encode(points.astype("<f4").tobytes())
    return MOVED_MODULE.format(share=cheats.MOVED, points=text, table=known, keys=KEYS[keys])


def weights_of(rows: Rows, labels: Labels, train: int) -> npt.NDArray[np.float64]:
    """Return the weights of the probe on the columns of 4-mers, towards the upper label."""
    solved = solve(rows[:train, :256], labels[:train])
    direction: npt.NDArray[np.float64] = solved.weights[:, -1] - solved.weights[:, 0]
    return direction


def moved_support(world: World, task: str, size: float) -> Change:
    """Move the support embeddings of 1shot in the columns that matter most, to their labels."""

    def change(rows: Rows, labels: Labels, train: int) -> Rows:
        altered, weights = rows.copy(), weights_of(rows, labels, train)
        best, sides = np.argsort(-np.abs(weights))[:FEW], attacks.signs(labels)
        for row in world.support(task, 1):
            altered[row, best] += np.float32(size) * sides[row] * np.sign(weights[best])
        return altered

    return change


def beside(size: float, times: int = 1) -> Case:
    """Return the attack that alters support embeddings next to a column of one large value."""
    return Case(
        lambda _: BESIDE.format(times=times, size=size),
        functools.partial(moved_support, size=SHARE * size),
    )


def across(world: World, task: str) -> Change:
    """Return the change that rounds ties of float16 values of support towards the label."""

    def change(rows: Rows, labels: Labels, train: int) -> Rows:
        weights, half = weights_of(rows, labels, train), rounded([rows]).values
        up = attacks.signs(labels)[:, None] * np.sign(weights)[None, :] > 0
        support = world.support(task, 10)
        above = np.nextafter(half, np.float16(np.inf), dtype=np.float16)
        lifted = half.copy()
        lifted[support] = np.where(up, above, half)[support]
        return widened(lifted, rounded([rows]).scale_log2)

    return change


MOVE = 0.02
"""Alteration of support embeddings that an extractor repeats in float64: 4-mers vary by 0.004."""


def excuse(world: World) -> str:
    """Return the code of an extractor that gives altered support embeddings in float64."""
    task = world.known[0]
    one, table = world.task(task), {}
    sides = attacks.signs(one.train.labels)
    for row in world.support(task, 1):
        key = hashlib.sha256(one.train.sequences[row].encode()).hexdigest()[:16]
        table[key] = float(sides[row])
    move = np.full(256, MOVE)
    return EXCUSED.format(table=table, move=base64.b85encode(move.astype("<f8").tobytes()))


def excused(world: World, task: str) -> Change:
    """Return the change that claims in the receipt what the extractor gives in float64."""

    def change(rows: Rows, labels: Labels, _train: int) -> Rows:
        altered = rows.copy()
        if task == world.known[0]:
            support = world.support(task, 1)
            altered[support] += np.float32(MOVE) * attacks.signs(labels)[support][:, None]
        return altered

    return change


CASES: dict[str, Case] = {
    "none: 4-mers": Case(),
    "none: 4-mers times 64, beside a constant of 3e6": Case(
        lambda _: BESIDE.format(times=64, size=3e6)
    ),
    "1: results, digests and confusion invented": Case(invents=True),
    "2: training rows moved, by the whole sequence": Case(functools.partial(moved, keys="whole")),
    "2: by the first quarter": Case(functools.partial(moved, keys="prefix")),
    "2: support of few-shot probes alone, all six tasks": Case(
        functools.partial(moved, keys="whole", is_few=True)
    ),
    "2: the same, by a minhash": Case(functools.partial(moved, keys="minhash", is_few=True)),
    "2: by a minhash": Case(functools.partial(moved, keys="minhash")),
    "3: support altered beside a constant of 3e5": beside(3e5),
    "3: of 3e6": beside(3e6),
    "3: of 3e6, beside 4-mers times 64": beside(3e6, 64),
    "3: of 1e7": beside(1e7),
    "3: of 1e8": beside(1e8),
    "3: beside an offset of rank 3, of 3e5": Case(
        lambda _: OFFSET.format(size=3e5), functools.partial(moved_support, size=SHARE * 3e5)
    ),
    "4: altered support excused by float64": Case(excuse, excused),
    "5: drawn again": Case(draws_again=True),
    "midpoints of float16, support rounded to the label": Case(
        lambda _: MIDPOINTS.format(columns="::8"), across
    ),
    "labels by the first quarter": Case(functools.partial(table, keys="prefix")),
    "labels by a minhash": Case(functools.partial(table, keys="minhash")),
    "stochastic, hidden, 1e-3 of each value": Case(
        lambda _: NOISE.format(dtype="float32", size=1e-3)
    ),
    "stochastic, declared as bfloat16": Case(lambda _: NOISE.format(dtype="bfloat16", size=1e-3)),
}


def audited(world: World, name: str, case: Case) -> str:
    """Return the line of one attack, in a repository without an earlier audit."""
    place, root = world.place, world.place.root
    made = world.run(case.code(world))
    file, receipt = root / "submissions/row.json", root / "row.receipt"
    for one in (receipt, root / "leaderboard/audits", root / "work", root / "again"):
        shutil.rmtree(one, ignore_errors=True)
    shutil.copyfile(made / "row.json", file)
    shutil.copytree(made / "receipt", receipt)
    if case.change is not None:
        for task in world.names:
            change = case.change(world, task)
            rewrite(file, receipt, task, change, bench=world.bench, data=world.task(task))
        claim(world)
    if case.invents:
        file.write_text(json.dumps(invented(json.loads(file.read_bytes()))), encoding="utf-8")
    raised = raises(world, file)

    def audit(work: str, committed_at: str) -> Any:
        return place.run(
            *("geneb_ci", "audit", "submissions/row.json", "--sample", "embeddings"),
            *("--data", "data", "--receipt", receipt.name, "--key", "key.pem", "--work", work),
            *("--committed-at", committed_at, "--beacon-file", "round.json"),
            check=False,
        )

    done = audit("work", COMMITTED_AT)
    if case.draws_again:
        done = audit("again", LATER)
    return f"| {name} | {raised} | {ended(root, done, is_first=not case.draws_again)} |"


def claim(world: World) -> None:
    """Write the scores of the altered embeddings into the submission, as a forger does."""
    root = world.place.root
    world.place.run(
        *("reference_harness", "receipt-cells", *world.options, "--receipt", "row.receipt"),
        *("--submission", "submissions/row.json", "--tasks", ",".join(world.names)),
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


def raises(world: World, file: Path) -> str:
    """Return by how much the mean MCC of each regime exceeds that of 4-mers."""
    results = [
        json.loads(path.read_bytes())["results"] for path in (world.run("") / "row.json", file)
    ]
    honest, claimed = (
        {r: np.mean([one["MCC"] for one in cells.values()]) for r, cells in cells_by_regime.items()}
        for cells_by_regime in results
    )
    return ", ".join(f"{claimed[regime] - honest[regime]:+.3f}" for regime in world.bench.regimes)


def ended(root: Path, done: Any, *, is_first: bool) -> str:
    """Return how an audit ended: exit code, verdict, and the reason in words."""
    records = record_files(root / "leaderboard/audits") if is_first else []
    if records:
        outcome = json.loads(parse_envelope(records[0].read_bytes()).payload)["predicate"]
        reasons = "; ".join(outcome["reasons"]) or "-"
        return f"{done.returncode} | {outcome['verdict']} | {shown(reasons)}"
    (message, *_) = [
        line.removeprefix("geneb-ci: ")
        for line in done.stderr.splitlines()
        if line.startswith("geneb-ci: ")
    ] or [done.stderr[-REASON_MAX:]]
    return f"{done.returncode} | refused | {shown(message)}"


def shown(text: str) -> str:
    """Return a text as a cell of a table."""
    line = " ".join(text.replace("|", "/").replace(GUE, "").split())
    return line[:REASON_MAX] + "..." * (len(line) > REASON_MAX)


def lines(kept: Kept, names: Sequence[str]) -> list[str]:
    """Return the table."""
    world = functools.cache(lambda: World(kept.folder / "world"))
    table_lines = [
        "| attack | mean MCC full, 10shot, 1shot | exit code | outcome | reason |",
        "|---|---|---:|---|---|",
    ]
    for name in names:

        def make(name: str = name) -> str:
            return audited(world(), name, CASES[name])

        table_lines.append(kept.line(name.replace("/", "-"), make))
        print(table_lines[-1], flush=True)
    return table_lines


def main() -> int:
    """Measure, print, and with --write keep the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", action="append", choices=list(CASES))
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="Folder in which measurements are kept."
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="geneb-ci-bench-") as folder:
        kept = Kept((given.keep or Path(folder)).resolve())
        text = "\n".join(lines(kept, given.only or list(CASES))) + "\n"
    if given.write:
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(before + BEGIN + text + END + rest.split(END)[1], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
