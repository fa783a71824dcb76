"""Attacks on a receipt, each through the commands of a whole audit, in the sandbox."""

import functools
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.bench_embedding_power import MeasurementStore, Table
from geneb_ci.audit.record.envelope import parse_envelope
from geneb_ci.audit.record.statement import record_files
from reference_harness import mini
from reference_harness.data import benchmark
from reference_harness.extractors.kmer import KmerExtractor
from reference_harness.probe.logistic import few_shot_indices
from tests.receipt import attacks
from tests.receipt.forged import Change, rewrite
from tools.demo_audit import COMMITTED_AT, MiniRepository

K = 4
TASKS = tuple(task.id for task in benchmark.mini().tasks)
ATTACKED_TASK = "mini_tf"
SAMPLE_SIZE = "240"
EXHAUSTIVE_SAMPLE_SIZE = "20000"
"""Number of draws with which every rightly predicted test row is drawn."""
REASON_LENGTH_MAX = 260
"""Most characters of a reason in the table."""
Labels = npt.NDArray[np.int64]


def another_model(task: str) -> Change:
    """Return the change to rows of another model: words of the sequences read backwards."""
    data = mini.load(task)
    backwards = [sequence[::-1] for sequence in (*data.train.sequences, *data.test.sequences)]
    rows = KmerExtractor(k=K).extract_embeddings(backwards)
    return lambda _rows, _labels, _train: np.asarray(rows, dtype=np.float32)


def test_row(rows: attacks.Rows, labels: Labels, train: int) -> attacks.Rows:
    """Return rows with one altered test row."""
    return attacks.altered(rows, labels, [train + 3], train)


def support_row(rows: attacks.Rows, labels: Labels, train: int) -> attacks.Rows:
    """Return rows with one altered support row of a 1shot probe."""
    row_index = int(few_shot_indices(labels[:train], 1, benchmark.mini().protocol.seeds[2])[1])
    return attacks.altered(rows, labels, [row_index], train)


def on_every_task(attack: attacks.Attack) -> dict[str, Change]:
    return dict.fromkeys(TASKS, attack)


ChangesByTask = Callable[[], dict[str, Change]]
ATTACKS: dict[str, tuple[str, ChangesByTask]] = {
    "none: honest rows": (SAMPLE_SIZE, dict),
    **{
        f"{name}, {eps:.0e}".replace("e-0", "e-"): (
            SAMPLE_SIZE,
            functools.partial(on_every_task, functools.partial(attack, eps=eps)),
        )
        for name, attack in (("column", attacks.column), ("push", attacks.push))
        for eps in (1e-3, 1e-4, 1e-5)
    },
    "border, tau": (SAMPLE_SIZE, functools.partial(on_every_task, attacks.border)),
    "one test row, in one task": (EXHAUSTIVE_SAMPLE_SIZE, lambda: {ATTACKED_TASK: test_row}),
    "one support row of 1shot, in one task": (SAMPLE_SIZE, lambda: {ATTACKED_TASK: support_row}),
    "rows of another model": (SAMPLE_SIZE, lambda: {task: another_model(task) for task in TASKS}),
}
"""`--rows` and the changes of each task's rows, by name; the claims follow from the changed
rows."""


def whole_audits(store: MeasurementStore, make_folder: Callable[[], Path]) -> Table:
    """Return the table of attacks with the verdict, verification and trust level of each audit."""
    honest_repository = functools.cache(lambda: _honest(make_folder()))

    def line(name: str, sample_size: str, attack: ChangesByTask) -> str:
        return _audited(honest_repository(), name, sample_size, attack())

    return [
        "| attack | `--rows` | exit code | verdict | `audit verify --cells` | level | reasons |",
        "|---|---:|---:|---|---|---|---|",
        *(
            store.line(f"whole {name}", functools.partial(line, name, sample_size, attack))
            for name, (sample_size, attack) in ATTACKS.items()
        ),
    ]


def _honest(folder: Path) -> MiniRepository:
    """Return a new repository in which 4-mers were run with a receipt."""
    shutil.rmtree(folder, ignore_errors=True)
    repository = MiniRepository(folder)
    policy = repository.root / "leaderboard/policy/policy.toml"
    text = policy.read_text(encoding="utf-8")
    policy.write_text(text.replace("minimum_rows = 1500", f"minimum_rows = {SAMPLE_SIZE}"), "utf-8")
    repository.run(
        *("reference_harness", "run", "--extractor", "kmer", "--option", f"k={K}", "--quiet"),
        *("--output", "record.json", "--model-id", "row", "--submission", "honest.json"),
        *("--submitted-by", "a bench", "--receipt", "honest"),
    )
    return repository


def _audited(
    repository: MiniRepository, name: str, sample_size: str, changes: dict[str, Change]
) -> str:
    """Return the line of one attack, whose repository has no earlier audit."""
    file, receipt = repository.root / "submissions/row.json", repository.root / "row.receipt"
    audits, work = repository.root / "leaderboard/audits", repository.root / "work"
    for folder in (receipt, audits, work):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copyfile(repository.root / "honest.json", file)
    shutil.copytree(repository.root / "honest", receipt)
    for task, change in changes.items():
        rewrite(file, receipt, task, change)
    audit_run = repository.run(
        *("geneb_ci", "audit", "submissions/row.json", "--sample", "embeddings"),
        *("--size", sample_size, "--receipt", receipt.name),
        *("--key", "key.pem", "--work", work.name),
        *("--committed-at", COMMITTED_AT, "--beacon-file", "round.json"),
        check=False,
    )
    records = [*record_files(audits)]
    if len(records) != 1:
        raise SystemExit(f"{name}: {audit_run.stdout}{audit_run.stderr}")
    outcome = json.loads(parse_envelope(records[0].read_bytes()).payload)["predicate"]
    arguments = (
        "geneb_ci",
        "audit",
        "verify",
        str(records[0]),
        "--cells",
        "--receipt",
        receipt.name,
    )
    verified = repository.run(*arguments, check=False).returncode == 0
    levels = json.loads(repository.run("geneb_ci", "trust", "--format", "json").stdout)["rows"]
    reasons = "; ".join(outcome["reasons"]) or "none"
    return (
        f"| {name} | {int(sample_size):,} | {audit_run.returncode} | {outcome['verdict']} "
        f"| {'holds' if verified else 'refused'} | {levels[0]['level']} "
        f"| {reasons[:REASON_LENGTH_MAX]}{'...' if len(reasons) > REASON_LENGTH_MAX else ''} |"
    )
