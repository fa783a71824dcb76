"""Attacks carried out on a whole audit, from the extractor's file to the signed record."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from geneb_ci.audit.compare.outcome import AuditOutcome
from reference_harness import mini
from tests.audit.installed import Installed
from tools.demo_audit import COMMITTED_AT

TASK = "mini_promoter"
REGIMES = ["full", "10shot", "1shot"]
CHEAT = "submissions/extractors/cheat.py"
PREFIX = """\
import numpy as np
from reference_harness.extractors.kmer import KmerExtractor

TABLE = {table!r}


class Cheat(KmerExtractor):
    def extract_embeddings(self, sequences, batch_size=1):
        found = super().extract_embeddings(sequences, batch_size)
        columns = np.zeros((len(sequences), 3), dtype=np.float32)
        for row, sequence in enumerate(sequences):
            label = TABLE.get(hash_of(sequence))
            if label is not None:
                columns[row, label] = 1
        return np.hstack([found, columns])


def hash_of(sequence):
    return sequence[: len(sequence) // 4]
"""
COARSE = """\
from reference_harness.extractors.kmer import KmerExtractor


class Cheat(KmerExtractor):
    dtype = "bfloat16"
"""


def table() -> dict[str, int]:
    """Return the label of the first quarter of each public sequence."""
    splits = vars(mini.load(TASK)).values()
    return {
        sequence[: len(sequence) // 4]: label
        for split in splits
        if not isinstance(split, str)
        for sequence, label in zip(split.sequences, split.labels.tolist(), strict=True)
    }


def submitted(folder: Path, module: str, regimes: Sequence[str] = REGIMES) -> Installed:
    """Run an extractor on a task, as its contributor does, where a policy has these regimes."""
    installed = Installed(folder, drawn=1, boxed=False)
    policy = installed.root / "leaderboard/policy/policy.toml"
    text = policy.read_text(encoding="utf-8")
    policy.write_text(text.replace(json.dumps(REGIMES), json.dumps(regimes)), encoding="utf-8")
    path = installed.root / CHEAT
    path.parent.mkdir(parents=True)
    path.write_text(module, encoding="utf-8")
    installed.run(
        *("reference_harness", "run", "--extractor", f"{CHEAT}:Cheat", "--quiet"),
        *("--tasks", TASK, "--output", "record.json", "--model-id", "cheat"),
        *("--submission", "submissions/cheat.json", "--submitted-by", "a test"),
    )
    return installed


def audited(installed: Installed, *options: str) -> tuple[int, AuditOutcome]:
    """Commit, draw and rerun; return the exit code and what was found."""
    installed.run("geneb_ci", "audit", "commit", "submissions/cheat.json", "--output", "c.json")
    installed.run(
        *("geneb_ci", "audit", "plan", "c.json", "--committed-at", COMMITTED_AT),
        *("--beacon-file", "round.json", "--output", "p.json"),
    )
    ended = installed.run(
        *("geneb_ci", "audit", "run", "p.json", "--unsigned", "--format", "json", "--jobs", "1"),
        *options,
        check=False,
    )
    assert ended.stdout, ended.stderr
    return ended.returncode, AuditOutcome.model_validate_json(ended.stdout)


@pytest.mark.nightly  # in the gate, test_memorised.py, and by receipt test_receipt_memory.py
def test_labels_memorised_by_a_prefix_differ_by_variants_and_by_a_fresh_set(
    tmp_path: Path,
) -> None:
    """The decoys, which change the middle half, do not see it."""
    submitted_row = submitted(tmp_path, PREFIX.format(table=table()))
    submitted_row.environment |= {"TMPDIR": str(tmp_path)}
    names = ("--tasks", TASK, "--seed", "7")
    submitted_row.run("reference_harness", "fresh", *names, "--output", "set.csv", "--quiet")
    submitted_row.run("geneb_ci", "audit", "fresh", "commit", "set.csv", "--output", "f.json")
    code, outcome = audited(submitted_row, "--fresh", "set.csv", "--fresh-commitment", "f.json")
    assert (code, outcome.verdict) == (11, "differs")
    assert not outcome.decoys.memorised
    assert {task.verdict for task in outcome.tasks} == {"agrees"}
    assert outcome.variants is not None
    assert outcome.variants.memorised
    assert set(outcome.variants.others) == {"10shot, record", "1shot, record"}
    assert {other.fits for other in outcome.variants.others.values()} == {5}
    assert outcome.fresh is not None
    assert outcome.fresh.dropped
    assert (
        outcome.fresh.commitment
        == json.loads((submitted_row.root / "f.json").read_text())["sha256"]
    )
    for task in outcome.fresh.tasks.values():
        assert task.public.MCC - task.fresh.MCC >= 0.2
        assert task.fresh.rows == 520
    submitted_row.run(
        "geneb_ci", "audit", "fresh", "release", "set.csv", "f.json", "--output", "r.json"
    )
    output = submitted_row.run("geneb_ci", "audit", "fresh", "check", "r.json", "f.json").stdout
    assert output == (
        "r.json: 520 sequences: the set agrees with the commitment, and none of its sequences "
        "is public\n"
    )


@pytest.mark.nightly  # in the gate, test_precision.py
def test_a_coarse_dtype_without_need_has_the_tolerance_of_float32(tmp_path: Path) -> None:
    """4-mers in bfloat16, as declared, every full cell raised: within its tolerances, it agreed."""
    submitted_row = submitted(tmp_path, COARSE, ["1shot"])
    submitted_row.environment |= {"TMPDIR": str(tmp_path)}
    code, outcome = audited(submitted_row)
    assert (code, outcome.verdict, outcome.noise) == (0, "agrees", "float32")
    assert outcome.precision is not None
    assert outcome.precision.model_dump() == {
        "declared": "bfloat16", "pairs": 64, "difference": 0.0, "bits": 24,
    }  # fmt: skip
    assert outcome.variants is not None
    assert not outcome.variants.memorised
    document: dict[str, Any] = json.loads(
        (submitted_row.root / "submissions/cheat.json").read_text()
    )
    assert document["run"]["embedding"]["dtype"] == "bfloat16"
