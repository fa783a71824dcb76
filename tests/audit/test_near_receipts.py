"""A renamed or slightly changed receipt gets no new draw: embeddings drawn before are drawn
again."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geneb_ci.audit.commit import SubmissionFile
from geneb_ci.audit.compare.embedding_outcome import EmbeddingOutcome
from geneb_ci.audit.compare.embeddings import DrawnTask, EmbeddedVariants, rerun_file
from geneb_ci.audit.samples import EmbeddingSample
from geneb_ci.audit.sampling.beacon_source import BeaconSource
from geneb_ci.audit.sampling.embedding_draw import draw_embeddings, task_shares
from geneb_ci.audit.sampling.plan import EarlierEmbeddings, EmbeddingPlan
from geneb_ci.audit.workflow import draw_plan
from geneb_ci.common.config import find_layout
from geneb_ci.receipt.draw import EmbeddingCounts, drawn_embeddings
from geneb_ci.submission.document import parse_document
from reference_harness.formats.submission import EmbeddingReceipt, receipt_root
from reference_harness.receipt.rounding import rounded
from reference_harness.receipt.task_file import write_task
from tests.audit.examples import ROUNDS, beacon
from tests.audit.recorded import FIRST, MODEL, SECOND, commitment, committed_at, put, repository
from tests.audit.test_embedding_verify import sound
from tests.receipt.audited import receipt_with, strata_example
from tests.small import BENCHMARK, small_v12

TASK = BENCHMARK.task_ids[0]
TRAIN, TEST, WIDTH = 50, 30, 24
DRAW = np.random.default_rng(5)
ROWS = (DRAW.normal(size=(TRAIN + TEST, 5)) @ DRAW.normal(size=(5, WIDTH))).astype("f4")
ROWS += DRAW.normal(size=ROWS.shape).astype("f4")
NOISE = DRAW.normal(size=ROWS.shape).astype("f4")
SAMPLE = EmbeddingCounts(test=6, training=4, support=6, whole=False)
Said = list[str]


def receipt_of(folder: Path, rows: np.ndarray) -> EmbeddingReceipt:
    """Write embeddings as a receipt."""
    made = receipt_with(WIDTH, {TASK: write_task(folder, TASK, rounded([rows]), TRAIN)})
    return made.model_copy(update={"root": receipt_root(made, BENCHMARK.task_ids)})


@pytest.fixture
def repository_folder(tmp_path: Path) -> Path:
    """Lay out a repository whose row has a receipt."""
    receipt = receipt_of(tmp_path / "others" / MODEL, ROWS)
    document: dict[str, Any] = small_v12(MODEL) | {"receipt": receipt.model_dump()}
    return repository(tmp_path, json.dumps(document).encode())


def audited(folder: Path, *, embedded: bool) -> EmbeddingPlan:
    """Record an audit of the row's receipt, with the embeddings that it embedded beside it, or
    not."""
    raw = (folder / f"submissions/{MODEL}.json").read_bytes()
    root = json.loads(raw)["receipt"]["root"]
    plan = draw_embeddings(commitment(raw), committed_at(FIRST), beacon(FIRST), root, SAMPLE)
    every = [*range(TRAIN + TEST)]
    task = sound().tasks[0].model_copy(
        update={"train": TRAIN, "test": TEST, "rows": {"training": every}}
        | {"deviation": [0.0] * len(every), "mismatch": [0] * len(every)}
    )  # fmt: skip
    unread: Any = None  # what a file of rerun embeddings has no part of
    drawn = DrawnTask(
        TASK, unread, unread, unread, every, unread, unread, [], rounded([ROWS]).values,
        [[]] * len(every), unread, unread, unread, unread, unread, unread,
    )  # fmt: skip
    none = EmbeddedVariants([[]], [ROWS[:0]])
    file = rerun_file([drawn], [ROWS], none, none, none, [{}])
    outcome = sound().model_copy(
        update={"plan": plan, "tasks": [task], "rerun_sha256": hashlib.sha256(file).hexdigest()}
        | {"receipt": sound().receipt.model_copy(update={"root": root, "dim": WIDTH})}
    )
    path = put(folder, EmbeddingOutcome.model_validate_json(outcome.model_dump_json()))
    if embedded:
        path.with_name(f"{path.stem}.rows.npz").write_bytes(file)
    return plan


def planned(
    folder: Path, rows: np.ndarray, message: Said, others: Path | None = None
) -> EmbeddingPlan:
    """Draw for another model, of other weights and other claims, with these embeddings."""
    receipt = receipt_of(folder / "copy", rows)
    weights = {
        "kind": "huggingface", "location": "org/copy", "revision": "2" * 40,
        "files": {"model.safetensors": "e" * 64},
    }  # fmt: skip
    committed = commitment(b'{"run":' + json.dumps(small_v12("copy")["run"]).encode() + b"}",
                           model_id="copy", weights=weights)  # fmt: skip
    (folder / "round.json").write_text(
        json.dumps({"round": SECOND, "signature": ROUNDS[SECOND]}), encoding="utf-8"
    )
    document = small_v12("copy") | {"receipt": receipt.model_dump()}
    raw = json.dumps(document).encode()
    submission = SubmissionFile(raw, parse_document(raw, folder / "copy.json", "copy.json"))
    sample = EmbeddingSample(
        size=str(SAMPLE.test), receipt_folder=folder / "copy", other_receipts=others
    )
    return draw_plan(
        committed, committed_at(SECOND), submission, sample, find_layout(folder),
        BeaconSource(folder / "round.json", (), None, "", reveal=False), message.append,
    )  # fmt: skip


CHANGES: dict[str, tuple[Callable[[np.ndarray], np.ndarray], str]] = {
    "renamed": (lambda rows: rows, "the same embeddings"),
    "a touched weight": (lambda rows: rows + 1e-3 * NOISE, "within 0.01, as they are"),
    "columns in another order": (lambda rows: rows[:, ::-1] * 4, "after moving, scaling and"),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("embedded", [True, False])
def test_a_near_receipt_inherits_the_rows_drawn_before(
    name: str, embedded: bool, repository_folder: Path
) -> None:
    first, message = audited(repository_folder, embedded=embedded), Said()
    change, why = CHANGES[name]
    plan = planned(
        repository_folder, change(ROWS), message, None if embedded else repository_folder / "others"
    )
    assert plan.earlier == [EarlierEmbeddings(commitment=first.commitment_sha256, seed=first.seed)]
    (line,) = (note for note in message if note.startswith("this receipt nearly equals "))
    assert line.startswith(
        f"this receipt nearly equals another, whose draws are repeated here: {MODEL}: "
    )
    assert why in line
    strata = strata_example()
    share = task_shares(SAMPLE, receipt_of(repository_folder / "copy", ROWS), BENCHMARK)[TASK]
    before = drawn_embeddings([first.seed], strata, share).distinct_rows
    again = drawn_embeddings([plan.seed, *(draw.seed for draw in plan.earlier)], strata, share)
    assert set(before) <= set(again.distinct_rows)
    assert set(again.rows["earlier"]) == set(before)


def test_rows_of_another_model_inherit_nothing(repository_folder: Path) -> None:
    audited(repository_folder, embedded=True)
    notices = Said()
    assert planned(repository_folder, NOISE, notices).earlier == []
    assert not [note for note in notices if note.startswith("this receipt nearly equals ")]


def test_what_cannot_be_compared_is_said(repository_folder: Path) -> None:
    """The receipt is published nowhere, and no embeddings lie beside the record."""
    audited(repository_folder, embedded=False)
    notices = Said()
    assert planned(repository_folder, ROWS + 1e-3 * NOISE, notices).earlier == []
    assert notices == [
        f"{MODEL}: not compared: the receipt is not published: its location is null",
    ]
