"""Attacks on a receipt, each through the commands of a whole audit, in the sandbox."""

import functools
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.bench_embedding_power import Kept, Table
from geneb_ci.audit.record.envelope import parse_envelope
from geneb_ci.audit.record.statement import record_files
from reference_harness import benchmark, mini
from reference_harness.extractors.kmer import KmerExtractor
from reference_harness.probe import few_shot_indices
from tests.receipt import attacks
from tests.receipt.forged import Change, rewrite
from tools.demo_audit import COMMITTED_AT, MiniRepository

K = 4
TASKS = tuple(task.id for task in benchmark.mini().tasks)
ONE = "mini_tf"
DRAWN = "240"
EVERY = "20000"
"""Number of draws with which every rightly predicted test row is drawn."""
SHOWN = 260
"""Most characters of a reason in the table."""
Labels = npt.NDArray[np.int64]


def another_model(task: str) -> Change:
    """Return the change to rows of another model: words of the sequences read backwards."""
    data = mini.load(task)
    backwards = [one[::-1] for one in (*data.train.sequences, *data.test.sequences)]
    rows = KmerExtractor(k=K).extract_embeddings(backwards)
    return lambda _rows, _labels, _train: np.asarray(rows, dtype=np.float32)


def test_row(rows: attacks.Rows, labels: Labels, train: int) -> attacks.Rows:
    """Return rows with one altered test row."""
    return attacks.altered(rows, labels, [train + 3], train)


def support_row(rows: attacks.Rows, labels: Labels, train: int) -> attacks.Rows:
    """Return rows with one altered support row of a 1shot probe."""
    place = int(few_shot_indices(labels[:train], 1, benchmark.mini().protocol.seeds[2])[1])
    return attacks.altered(rows, labels, [place], train)


def everywhere(attack: attacks.Attack) -> dict[str, Change]:
    return dict.fromkeys(TASKS, attack)


Attacked = Callable[[], dict[str, Change]]
ATTACKS: dict[str, tuple[str, Attacked]] = {
    "none: honest rows": (DRAWN, dict),
    **{
        f"{name}, {eps:.0e}".replace("e-0", "e-"): (
            DRAWN,
            functools.partial(everywhere, functools.partial(attack, eps=eps)),
        )
        for name, attack in (("column", attacks.column), ("push", attacks.push))
        for eps in (1e-3, 1e-4, 1e-5)
    },
    "border, tau": (DRAWN, functools.partial(everywhere, attacks.border)),
    "one test row, in one task": (EVERY, lambda: {ONE: test_row}),
    "one support row of 1shot, in one task": (DRAWN, lambda: {ONE: support_row}),
    "rows of another model": (DRAWN, lambda: {task: another_model(task) for task in TASKS}),
}
"""`--rows` and the changes of each task's rows, by name; the claims follow from the changed
rows."""


def whole_audits(kept: Kept, place: Callable[[], Path]) -> Table:
    """Return the end of each audit from `run --receipt`: verdict, verification and level."""
    honest = functools.cache(lambda: _honest(place()))

    def line(name: str, rows: str, attack: Attacked) -> str:
        return _audited(honest(), name, rows, attack())

    return [
        "| attack | `--rows` | exit code | verdict | `audit verify --cells` | level | reasons |",
        "|---|---:|---:|---|---|---|---|",
        *(
            kept.line(f"whole {name}", functools.partial(line, name, rows, attack))
            for name, (rows, attack) in ATTACKS.items()
        ),
    ]


def _honest(folder: Path) -> MiniRepository:
    """Return a new repository in which 4-mers were run with a receipt."""
    shutil.rmtree(folder, ignore_errors=True)
    made = MiniRepository(folder)
    policy = made.root / "leaderboard/policy/policy.toml"
    text = policy.read_text(encoding="utf-8")
    policy.write_text(text.replace("minimum_rows = 1500", f"minimum_rows = {DRAWN}"), "utf-8")
    made.run(
        *("reference_harness", "run", "--extractor", "kmer", "--option", f"k={K}", "--quiet"),
        *("--output", "record.json", "--model-id", "row", "--submission", "honest.json"),
        *("--submitted-by", "a bench", "--receipt", "honest"),
    )
    return made


def _audited(place: MiniRepository, name: str, rows: str, changes: dict[str, Change]) -> str:
    """Return the line of one attack, whose repository has no earlier audit."""
    file, receipt = place.root / "submissions/row.json", place.root / "row.receipt"
    audits, work = place.root / "leaderboard/audits", place.root / "work"
    for one in (receipt, audits, work):
        shutil.rmtree(one, ignore_errors=True)
    shutil.copyfile(place.root / "honest.json", file)
    shutil.copytree(place.root / "honest", receipt)
    for task, change in changes.items():
        rewrite(file, receipt, task, change)
    ran = place.run(
        *("geneb_ci", "audit", "submissions/row.json", "--sample", "embeddings"),
        *("--size", rows, "--receipt", receipt.name),
        *("--key", "key.pem", "--work", work.name),
        *("--committed-at", COMMITTED_AT, "--beacon-file", "round.json"),
        check=False,
    )
    found = [*record_files(audits)]
    if len(found) != 1:
        raise SystemExit(f"{name}: {ran.stdout}{ran.stderr}")
    outcome = json.loads(parse_envelope(found[0].read_bytes()).payload)["predicate"]
    words = ("geneb_ci", "audit", "verify", str(found[0]), "--cells", "--receipt", receipt.name)
    verified = place.run(*words, check=False).returncode == 0
    levels = json.loads(place.run("geneb_ci", "trust", "--format", "json").stdout)["rows"]
    reasons = "; ".join(outcome["reasons"]) or "none"
    return (
        f"| {name} | {int(rows):,} | {ran.returncode} | {outcome['verdict']} "
        f"| {'holds' if verified else 'refused'} | {levels[0]['level']} "
        f"| {reasons[:SHOWN]}{'...' if len(reasons) > SHOWN else ''} |"
    )
