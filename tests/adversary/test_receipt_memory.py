"""Sequences that an extractor looks up, through the commands of a whole audit by receipt."""

import base64
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geneb_ci.audit.rerun.few_shot import (
    OTHERS,
    TESTS,
    VARIANTS,
    FewShotResult,
    flagged_gains,
    gains_over_other_fits,
)
from geneb_ci.audit.rerun.honesty import (
    FRESH_OBJECTION,
    MEMORISED_OBJECTION,
    TRAINING_MARGIN,
    FreshResult,
    VariantResult,
    are_variants_flagged,
    net_error_share,
)
from geneb_ci.audit.rerun.receipt_variants import (
    MAIN_PROBE,
    decision_changes,
    receipt_variant_result,
)
from geneb_ci.audit.trust.level import RECOMPUTED_TEXT
from geneb_ci.receipt.direction import Probe, ProbeSet
from reference_harness import mini
from reference_harness.formats.rescored import ChangedDecisions
from tests.adversary import cheats
from tests.adversary.measure import few_shot_indices
from tests.audit.installed import Installed
from tests.audit.test_embedding_audit import (
    ROWS,
    audited,
    harnessed,
    installed,
    level,
    outcome_in,
    record_of,
)

HONEST = "words"
TASKS = ("mini_tf", "mini_splice")
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
        for embedding, sequence in enumerate(sequences):
            known = [TABLE[key] for key in map(hashed, keys(sequence)) if key in TABLE]
            if known:
                columns[embedding, max(known, key=known.count)] = 1
        return np.hstack([found, columns])


def hashed(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def keys(sequence):
    {keys}
"""
MOVED_MODULE = """\
import base64
import hashlib

import numpy as np
from reference_harness.extractors.kmer import KmerExtractor

SHARE = {share}
POINTS = np.frombuffer(base64.b85decode({points!r}), dtype="<f4").reshape(-1, 256)
TABLE = {table!r}


class Cheat(KmerExtractor):
    def extract_embeddings(self, sequences, batch_size=1):
        embeddings = super().extract_embeddings(sequences, batch_size)
        for embedding, sequence in enumerate(sequences):
            for point in (TABLE[key] for key in map(hashed, keys(sequence)) if key in TABLE):
                embeddings[embedding] += np.float32(SHARE) * (POINTS[point] - embeddings[embedding])
        return embeddings


def hashed(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def keys(sequence):
    {keys}
"""
"""Honest but on training sequences whose key it knows: they move along what separates test sets."""
KEYS: dict[str, str] = {
    "whole": "return [sequence]",
    "prefix": "return [sequence[: len(sequence) // 4]]",
    "minhash": """\
words = [sequence[i : i + 12] for i in range(len(sequence) - 11)]
    return [min(words, key=hashed)]""",
    "minhashes": """\
words = [sequence[i : i + 12] for i in range(len(sequence) - 11)]
    return [min((salt + word for word in words), key=hashed) for salt in "abcde"]""",
}
"""Model to its keys of a sequence, as code."""
HIDDEN = "hidden"
"""Model that hides labels in a column."""
FEW_SHOT = "few-shot probes score more on"
"""Beginning of the reason that the scores of few-shot probes give."""
HONEST_MEAN = 0.05
"""Of the MCC of 4-mers in these tasks, with all training data."""
MOVED = {f"moved-{name}": name for name in KEYS}
"""Model that moves training sequences, to its key."""
MOVED_FEW = "moved-few"
"""Model that moves the training sequences of few-shot probes alone."""


def labels_by(keys: Callable[[str], list[str]], hashed: Callable[[str], str]) -> dict[str, int]:
    """Return the label of each key of the public sequences."""
    label_by_key = {}
    for task in TASKS:
        data = mini.load(task)
        for split in (data.train, data.test):
            pairs = zip(split.sequences, split.labels.tolist(), strict=True)
            label_by_key.update(
                {hashed(key): label for sequence, label in pairs for key in keys(sequence)}
            )
    return label_by_key


def module(name: str) -> str:
    """Return the code of an extractor that knows the labels of all keys."""
    own: dict[str, Any] = {}
    exec(MODULE.format(table={}, keys=KEYS[name]), own)  # noqa: S102 (the code is above)
    return MODULE.format(table=labels_by(own["keys"], own["hashed"]), keys=KEYS[name])


HIDDEN_MODULE = """\
import hashlib

import numpy as np
from reference_harness.extractors.kmer import KmerExtractor

TABLE = {table!r}


class Cheat(KmerExtractor):
    def extract_embeddings(self, sequences, batch_size=1):
        embeddings = super().extract_embeddings(sequences, batch_size)
        column = [[TABLE.get(hashed(key(sequence)), 0.0)] for sequence in sequences]
        return np.hstack([embeddings, np.array(column, dtype=np.float32)])


def hashed(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def key(sequence):
    return sequence[: len(sequence) // 4]
"""
HARD_TASKS = ("mini_lncrna", "mini_mouse")
"""Of two classes, in which honest 4-mers have an MCC of 0.05."""


def hidden_module() -> str:
    """Return the code of an extractor with a column that the optimum of the probe ignores."""
    own: dict[str, Any] = {}
    exec(HIDDEN_MODULE.format(table={}), own)  # noqa: S102 (the code is above)
    tasks = map(mini.load, HARD_TASKS)
    cheat = cheats.UnfinishedMemoriser(tasks, lambda sequence: [own["key"](sequence)])
    return HIDDEN_MODULE.format(
        table={own["hashed"](key): value for key, value in cheat.column.items()}
    )


def moved_module(name: str, drawn: cheats.Drawn | None = None) -> str:
    """Return the code of an extractor that moves the training sequences of all keys.

    Of those alone that `drawn` names, where it is given.
    """
    own: dict[str, Any] = {}
    exec(MODULE.format(table={}, keys=KEYS[name]), own)  # noqa: S102 (the code is above)
    cheat = cheats.MovedTraining(map(mini.load, HARD_TASKS), own["keys"], drawn)
    points, numbers = np.unique([*cheat.points.values()], axis=0, return_inverse=True)
    table = {own["hashed"](key): int(n) for key, n in zip(cheat.points, numbers, strict=True)}
    text = base64.b85encode(points.astype("<f4").tobytes())
    return MOVED_MODULE.format(share=cheats.MOVED, points=text, table=table, keys=KEYS[name])


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return installed(tmp_path_factory)


@pytest.fixture
def prepared_repository(repository: Installed) -> Iterator[Installed]:
    """Return the repository, and remove what a test put there: embeddings that are near share
    draws."""
    yield repository
    for folder in ("submissions", "leaderboard/audits"):
        for path in (repository.root / folder).iterdir():
            if path.stem in {*KEYS, *MOVED, MOVED_FEW, HIDDEN, HONEST}:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def audit_of(
    prepared_repository: Installed, name: str, *extractor: str, fresh: tuple[str, ...] = ()
) -> tuple[int, Path]:
    """Run an extractor with a receipt, audit it; return exit code and record."""
    harnessed(prepared_repository, name, *extractor)
    return audited(prepared_repository, name, str(ROWS), *fresh).returncode, record_of(
        prepared_repository, name
    )


def written(prepared_repository: Installed, name: str, code: str) -> str:
    """Write the code of an extractor, and return how it is named."""
    path = prepared_repository.root / f"submissions/extractors/{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code, encoding="utf-8")
    return f"submissions/extractors/{name}.py:Cheat"


def fresh_set(prepared_repository: Installed, tasks: Sequence[str]) -> tuple[str, ...]:
    """Commit to a fresh set of some tasks, and return the options of an audit with it."""
    for name in ("set.csv", "set.csv.salt"):
        (prepared_repository.root / name).unlink(missing_ok=True)
    some = ("--tasks", ",".join(tasks), "--seed", "7")
    prepared_repository.run("reference_harness", "fresh", *some, "--output", "set.csv", "--quiet")
    prepared_repository.run("geneb_ci", "audit", "fresh", "commit", "set.csv", "--output", "f.json")
    return "--fresh", "set.csv", "--fresh-commitment", "f.json"


def unsound(prepared_repository: Installed, record: Path, receipt: str) -> dict[str, str]:
    """Return the steps of `audit verify --cells` that do not hold, with what they say."""
    words = ("geneb_ci", "audit", "verify", str(record), "--format", "json")
    done = prepared_repository.run(*words, "--cells", "--receipt", receipt, check=False)
    (result,) = json.loads(done.stdout)["records"]
    return {step["step"]: step["message"] for step in result["steps"] if step["state"] != "holds"}


# In the gate, such extractors in test_memorised.py; and by the commands, the one below.
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "tasks"), [("prefix", TASKS[:1]), ("whole", TASKS), ("minhash", TASKS)]
)
def test_labels_by_a_key_that_three_letters_break_are_found(prepared_repository, name, tasks):
    extractor = written(prepared_repository, name, module(name))
    code, record = audit_of(
        prepared_repository, name, "--extractor", extractor, "--tasks", ",".join(tasks)
    )
    outcome = outcome_in(record)
    assert (code, outcome["verdict"]) == (11, "differs")
    assert outcome["cells"]["equal"] == outcome["cells"]["of"] == 3 * len(tasks)
    assert not any(task["failed"] for task in outcome["tasks"]), (
        "the embeddings are the extractor's"
    )
    assert outcome["variants"]["memorised"]
    assert outcome["variants"]["kinds"]["substituted"]["rows"] == len(tasks) * 160
    assert MEMORISED_OBJECTION in outcome["reasons"]
    assert level(prepared_repository, name)["level"] == "disputed"


@pytest.mark.parametrize(
    ("name", "expected", "is_fresh"),
    [
        ("moved-whole", True, False),
        pytest.param("moved-prefix", True, False, marks=pytest.mark.nightly),
        pytest.param("moved-minhash", False, False, marks=pytest.mark.nightly),
        pytest.param("moved-minhash", False, True, marks=pytest.mark.nightly),
    ],
)
def test_moved_training_sequences_are_found_whatever_the_key(
    prepared_repository, name, expected, is_fresh
):
    """By draws of test sequences; by variants, if these break the key; and by a fresh set."""
    extractor = written(prepared_repository, name.replace("-", "_"), moved_module(MOVED[name]))
    some = ",".join(HARD_TASKS)
    fresh = fresh_set(prepared_repository, HARD_TASKS) if is_fresh else ()
    code, record = audit_of(
        prepared_repository, name, "--extractor", extractor, "--tasks", some, fresh=fresh
    )
    outcome = outcome_in(record)
    scores = json.loads((prepared_repository.root / f"submissions/{name}.json").read_bytes())[
        "results"
    ]["full"]
    assert np.mean([scores[task]["MCC"] for task in HARD_TASKS]) > HONEST_MEAN + 0.5
    assert outcome["cells"]["of_record"] == outcome["cells"]["equal"] == 3 * len(HARD_TASKS)
    assert not any(task["failed"] for task in outcome["tasks"]), (
        "the embeddings are the extractor's"
    )
    result = VariantResult.model_validate(outcome["variants"])
    assert not are_variants_flagged(result.kinds, None, result.others), (
        "it passes without the defence"
    )
    reasons = [reason for reason in outcome["reasons"] if not reason.startswith(FEW_SHOT)]
    assert reasons == [MEMORISED_OBJECTION] * expected + [FRESH_OBJECTION] * is_fresh
    if name != "moved-prefix":  # which some variants keep
        assert bool(flagged_gains(few_shot_of(outcome), VARIANTS)) == expected
    assert flagged_gains(few_shot_of(outcome), TESTS)
    assert (code, outcome["verdict"]) == (11, "differs")
    assert result.training is not None
    assert (net_error_share(result.training) > 2 * TRAINING_MARGIN) == expected
    if expected:
        assert level(prepared_repository, name)["level"] == "disputed"
        assert unsound(prepared_repository, record, f"{name}.receipt").keys() == {"policy"}, (
            "few tasks"
        )


@pytest.mark.nightly  # in the gate, such an extractor in test_memorised.py
def test_labels_by_a_key_that_variants_keep_are_found_by_a_fresh_set_alone(prepared_repository):
    """Without the set it passes: nothing else objects."""
    name, tasks = "minhashes", TASKS[:1]
    extractor, some = written(prepared_repository, name, module(name)), ",".join(tasks)
    fresh = fresh_set(prepared_repository, tasks)
    code, record = audit_of(
        prepared_repository, name, "--extractor", extractor, "--tasks", some, fresh=fresh
    )
    outcome = outcome_in(record)
    assert (code, outcome["reasons"]) == (11, [FRESH_OBJECTION])
    result = FreshResult.model_validate(outcome["fresh"])
    assert set(result.others) == set(outcome["variants"]["others"])
    for task in result.tasks.values():
        assert task.fresh.rows == 520
        assert task.public.MCC - task.fresh.MCC > 0.2
    assert outcome["not_proved"][0].startswith("that no label is known: the fresh set is of 1 of 1")
    assert level(prepared_repository, name)["level"] == "disputed"
    prepared_repository.run(
        "geneb_ci", "audit", "fresh", "release", "set.csv", "f.json", "--output", "r.json"
    )
    named = ("r.json", "f.json", "--record", str(record))
    output = prepared_repository.run("geneb_ci", "audit", "fresh", "check", *named).stdout
    assert output.endswith("none of its sequences is public; the record scored all of them\n")


@pytest.mark.nightly  # in the gate, such an extractor in test_memorised.py
def test_labels_that_the_probe_of_record_alone_uses_are_found_by_it(prepared_repository):
    """The board shows its scores; decisions at the optimum are honest."""
    extractor, some = written(prepared_repository, HIDDEN, hidden_module()), ",".join(HARD_TASKS)
    code, record = audit_of(prepared_repository, HIDDEN, "--extractor", extractor, "--tasks", some)
    outcome = outcome_in(record)
    scores = json.loads((prepared_repository.root / f"submissions/{HIDDEN}.json").read_bytes())[
        "results"
    ]
    assert min(scores["full"][task]["MCC"] for task in HARD_TASKS) > 0.99
    result = VariantResult.model_validate(outcome["variants"])
    optimum = {name: other for name, other in result.others.items() if "canonical" in name}
    assert not are_variants_flagged(result.kinds, None, optimum), "it passes without the defence"
    assert (code, outcome["reasons"]) == (11, [MEMORISED_OBJECTION])


@pytest.mark.nightly  # in the gate, such an extractor in test_memorised.py
def test_moved_sequences_of_few_shot_probes_are_found_by_other_draws_whatever_the_key(
    prepared_repository,
):
    """By a key that variants keep: nothing else objects, but draws of test sequences.

    In these small tasks, other draws contain some of the sequences, too. Where they contain few,
    the published fits gain beside them; where they contain many, they gain beside draws of test
    sequences. Mostly it is both.
    """
    extractor = written(prepared_repository, "moved_few", moved_module("minhash", few_shot_indices))
    some = ",".join(HARD_TASKS)
    code, record = audit_of(
        prepared_repository, MOVED_FEW, "--extractor", extractor, "--tasks", some
    )
    outcome = outcome_in(record)
    assert (code, outcome["verdict"]) == (11, "differs")
    assert {reason.partition(":")[0] for reason in outcome["reasons"]} <= {
        f"{FEW_SHOT} the published sequences than on others of the same tasks",
        f"{FEW_SHOT} training sequences than on test sequences",
    }
    assert all(
        gain.gain > 0
        for gain in gains_over_other_fits(few_shot_of(outcome))
        if gain.other_fits == OTHERS and not gain.task
    )
    assert not flagged_gains(few_shot_of(outcome), VARIANTS)
    assert level(prepared_repository, MOVED_FEW)["level"] == "disputed"


def few_shot_of(outcome: dict[str, Any]) -> FewShotResult:
    return FewShotResult.model_validate(outcome["few_shot"])


@pytest.mark.nightly  # in the gate, words of two letters in tests/audit/test_embedding_audit.py
def test_honest_words_agree_and_anybody_repeats_what_the_probes_decided(prepared_repository):
    code, record = audit_of(prepared_repository, HONEST, "--extractor", "kmer", "--option", "k=4")
    outcome = outcome_in(record)
    assert (code, outcome["verdict"]) == (0, "agrees")
    assert not outcome["variants"]["memorised"]
    assert set(outcome["variants"]["others"]) == {
        *("1shot, canonical", "10shot, canonical", "1shot, record", "10shot, record"),
        "full, record",
    }
    assert len(outcome["refits"]) == 5
    assert (
        abs(net_error_share(ChangedDecisions(**outcome["variants"]["training"]))) < TRAINING_MARGIN
    )
    assert level(prepared_repository, HONEST)["recomputed"].startswith(RECOMPUTED_TEXT)
    assert unsound(prepared_repository, record, f"{HONEST}.receipt") == {}


def test_a_variant_whose_row_no_receipt_holds_is_decided_wrong():
    """Infinite decisions would else count as the label that comes first."""
    probe = Probe(np.array([[-1.0, 1.0]]), np.zeros(2), np.array([0, 1]))
    probe_set = ProbeSet(np.array([[0, 0, 1]]), [probe])
    values = np.array([[-1e30], [1.0], [1.0]], dtype=np.float32)
    changes = decision_changes(np.array([0, 1, 1]), {MAIN_PROBE: probe_set}, 0, [0, 1, 2], values)
    assert changes == {MAIN_PROBE: [ChangedDecisions(rows=3, worse=1, better=1)]}
    result = receipt_variant_result({"a": changes, "b": changes}, [], "ab" * 32)
    assert result.kinds == {"substituted": ChangedDecisions(rows=6, worse=2, better=2)}
    assert not result.memorised
