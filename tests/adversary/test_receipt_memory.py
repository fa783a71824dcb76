"""Labels that an extractor looks up, through the commands of a whole audit by receipt."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geneb_ci.audit.rerun.embedder import decision_changes, row_variants
from geneb_ci.audit.rerun.honesty import MEMORISED, ROWS_MIN
from geneb_ci.audit.trust.level import RECOMPUTED
from geneb_ci.receipt.draw import TaskStrata
from geneb_ci.receipt.row_rule import Probe
from reference_harness import mini
from reference_harness.formats.rescored import ChangedDecisions
from tests.audit.installed import Installed
from tests.audit.test_row_audit import (
    audited,
    harnessed,
    installed,
    level,
    outcome_in,
    record_of,
)

HONEST = "words"
TASKS = ("mini_tf", "mini_splice", "mini_promoter", "mini_histone")
"""Tasks that a cheat is run on."""
MODULE = """\
import hashlib

import numpy as np
from reference_harness.extractors.kmer import KmerExtractor

TABLE = {table!r}


class Cheat(KmerExtractor):
    def extract_embeddings(self, sequences, batch_size=1):
        found = super().extract_embeddings(sequences, batch_size)
        columns = np.zeros((len(sequences), 8), dtype=np.float32)
        for row, sequence in enumerate(sequences):
            label = TABLE.get(hashed(key(sequence)))
            if label is not None:
                columns[row, label] = 1
        return np.hstack([found, columns])


def hashed(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def key(sequence):
    {key}
"""
KEYS: dict[str, str] = {
    "whole": "return sequence",
    "prefix": "return sequence[: len(sequence) // 4]",
    "minhash": "return min((sequence[i : i + 12] for i in range(len(sequence) - 11)), key=hashed)",
}
"""Model to its key, as code."""


def labels_by(key: Callable[[str], str], hashed: Callable[[str], str]) -> dict[str, int]:
    """Return the label of each key of the public sequences."""
    found = {}
    for task in TASKS:
        data = mini.load(task)
        for split in (data.train, data.test):
            pairs = zip(split.sequences, split.labels.tolist(), strict=True)
            found.update({hashed(key(sequence)): label for sequence, label in pairs})
    return found


def module(name: str) -> str:
    """Return the code of an extractor that knows the labels of all keys."""
    own: dict[str, Any] = {}
    exec(MODULE.format(table={}, key=KEYS[name]), own)  # noqa: S102 (the code is above)
    return MODULE.format(table=labels_by(own["key"], own["hashed"]), key=KEYS[name])


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return installed(tmp_path_factory)


@pytest.fixture
def place(repository: Installed) -> Iterator[Installed]:
    """Return the repository, and remove what a test put there: rows that are near share draws."""
    yield repository
    for folder in ("submissions", "leaderboard/audits"):
        for one in (repository.root / folder).iterdir():
            if one.stem in {*KEYS, HONEST}:
                shutil.rmtree(one) if one.is_dir() else one.unlink()


def audit_of(place: Installed, name: str, *extractor: str) -> tuple[int, Path]:
    """Run an extractor with a receipt, audit it; return exit code and record."""
    harnessed(place, name, *extractor)
    return audited(place, name).returncode, record_of(place, name)


def states(place: Installed, record: Path, receipt: str) -> set[str]:
    """Return the states of all steps of `audit verify --cells`."""
    words = ("geneb_ci", "audit", "verify", str(record), "--format", "json")
    done = place.run(*words, "--cells", "--receipt", receipt, check=False)
    (found,) = json.loads(done.stdout)["records"]
    return {one["state"] for one in found["steps"]}


@pytest.mark.parametrize(
    "name",
    ["prefix", *(pytest.param(one, marks=pytest.mark.nightly) for one in ("whole", "minhash"))],
)
def test_labels_by_a_key_that_three_letters_break_are_found(place, name):
    path = place.root / f"submissions/extractors/{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(module(name), encoding="utf-8")
    extractor = f"submissions/extractors/{name}.py:Cheat"
    code, record = audit_of(place, name, "--extractor", extractor, "--tasks", ",".join(TASKS))
    outcome = outcome_in(record)
    assert (code, outcome["verdict"]) == (11, "differs")
    assert outcome["cells"]["equal"] == outcome["cells"]["of"] == 3 * len(TASKS)
    assert not any(task["failed"] for task in outcome["tasks"]), "the rows are the extractor's"
    assert outcome["variants"]["memorised"]
    assert outcome["variants"]["kinds"]["substituted"]["rows"] == len(TASKS) * ROWS_MIN
    assert outcome["reasons"][-1] == MEMORISED
    assert level(place, name)["level"] == "disputed"


def test_honest_words_agree_and_anybody_repeats_what_the_probes_decided(place):
    code, record = audit_of(place, HONEST, "--extractor", "kmer", "--option", "k=4")
    outcome = outcome_in(record)
    assert (code, outcome["verdict"]) == (0, "agrees")
    assert not outcome["variants"]["memorised"]
    assert set(outcome["variants"]["others"]) == {"1shot, canonical", "10shot, canonical"}
    assert level(place, HONEST)["recomputed"].startswith(RECOMPUTED)
    assert states(place, record, f"{HONEST}.receipt") == {"holds"}


def test_a_variant_whose_row_no_receipt_holds_is_decided_wrong():
    """Infinite decisions would else count as the label that comes first."""
    probe = Probe(np.array([[-1.0, 1.0]]), np.zeros(2), np.array([0, 1]))
    strata = TaskStrata("task", 0, np.array([0, 1, 1]), {"full": np.array([[0, 0, 1]])}, {})
    values = np.array([[-1e30], [1.0], [1.0]], dtype=np.float32)
    found = decision_changes(strata, {"full": [probe]}, 0, [0, 1, 2], values)
    assert found == {"full": [ChangedDecisions(rows=3, worse=1, better=1)]}
    result = row_variants([found, found], "full", "ab" * 32)
    assert result.kinds == {"substituted": ChangedDecisions(rows=6, worse=2, better=2)}
    assert not result.memorised
