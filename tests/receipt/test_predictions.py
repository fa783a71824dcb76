"""predictions.bin: the harness writes it, the toolkit reads it; hostile bytes are refused."""

import hashlib
import json
import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.common.benchmark import parse_benchmark, shipped_benchmark
from geneb_ci.receipt import predictions as toolkit
from geneb_ci.receipt.predicted import claim_contradictions, repeated_per_seed
from geneb_ci.receipt.predictions import (
    HEADER,
    HEADER_BIT_BY_SET,
    OF_RECORD,
    PREDICTIONS_BYTES_MAX,
    PredictionsRefused,
    decode_predictions,
    read_predictions,
)
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import PredictionsFile, SubmissionV12
from reference_harness.receipt import predictions as harness
from tests import forked
from tests.each import each
from tests.harness.support import Harness
from tests.paths import ROOT

MINI = shipped_benchmark("benchmark-mini.json")
FITS = {"full": 1, "10shot": 5, "1shot": 5}
WORDS = (
    "run", "--tasks", "mini_tf,mini_species", "--output", "record.json", "--quiet",
    "--submission", "sub.json", "--receipt", "receipt",
)  # fmt: skip


def test_both_programs_have_the_same_constants() -> None:
    assert (toolkit.PREDICTIONS_FILE, toolkit.MAGIC, toolkit.VERSION, HEADER.format) == (
        harness.FILE_NAME, harness.MAGIC, harness.VERSION, harness.HEADER,
    )  # fmt: skip
    assert list(HEADER_BIT_BY_SET.values()) == [harness.OF_RECORD, harness.CANONICAL]


SETS_AT = 10
"""After magic and version."""


def with_bytes(raw: bytes, at: int, new: bytes) -> bytes:
    return raw[:at] + new + raw[at + len(new) :]


def open_benchmark(sizes: list[int]) -> Benchmark:
    """Return mini's first tasks, without what is known of their test splits."""
    document = MINI.document()
    document["tasks"] = [
        task | {"n_test": None, "test_class_counts": None}
        for task in document["tasks"][: len(sizes)]
    ]
    document["category_order"] = [task["category"] for task in document["tasks"]]
    return parse_benchmark(json.dumps(document).encode(), "mini")


@given(
    sizes=st.lists(st.tuples(st.integers(2, 40), st.integers(1, 60)), min_size=1, max_size=3),
    regimes=st.sets(st.sampled_from(list(FITS)), min_size=1),
    seed=st.integers(0, 2**32 - 1),
    is_of_earlier_run=st.booleans(),
)
def test_what_is_written_is_read(
    sizes: list[tuple[int, int]], regimes: set[str], seed: int, is_of_earlier_run: bool
) -> None:
    """Also the files of earlier runs, which have two sets of predictions."""
    sets = list(HEADER_BIT_BY_SET) if is_of_earlier_run else [OF_RECORD]
    rng = np.random.default_rng(seed)
    bench = open_benchmark([n for _, n in sizes])
    theirs = replace(MINI, sha256=bench.sha256, tasks=MINI.tasks[: len(sizes)])
    fits = [name for name in FITS if name in regimes for _ in range(FITS[name])]
    written, sections = {}, {}
    for task, (classes, rows) in zip(bench.tasks, sizes, strict=True):
        labels = np.sort(rng.choice(np.arange(-1000, 1000), classes, replace=False))
        drawn = labels[rng.integers(0, classes, (1 + len(sets) * len(fits), rows))]
        written[task.id] = drawn
        sections[task.id] = harness.encoded_task(labels, drawn[0], list(drawn[1:]))
    raw = harness.encoded_file(theirs, [n for n in FITS if n in regimes], sections)
    if is_of_earlier_run:
        raw = with_bytes(raw, SETS_AT, bytes([harness.OF_RECORD | harness.CANONICAL]))
    predictions = decode_predictions(raw, bench)
    assert predictions.sha256 == hashlib.sha256(raw).hexdigest()
    for task_id, drawn in written.items():
        decoded_task = predictions.tasks[task_id]
        known = np.asarray(decoded_task.labels)
        codes = [
            decoded_task.truth,
            *(row for by in decoded_task.fits.values() for f in by.values() for row in f),
        ]
        assert np.array_equal(known[np.stack(codes)], drawn)
        assert {name: list(by) for name, by in decoded_task.fits.items()} == {
            name: [regime for regime in FITS if regime in regimes] for name in sets
        }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Harness(tmp_path_factory.mktemp("predictions"))
    done = made(*WORDS)
    assert (done.returncode, done.stderr) == (0, "")
    return made.folder


@pytest.fixture(scope="module")
def raw(made: Path) -> bytes:
    return (made / "receipt" / toolkit.PREDICTIONS_FILE).read_bytes()


def submission(made: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((made / "sub.json").read_bytes())
    return document


def test_matrices_and_digests_of_a_run_follow_from_its_predictions(made: Path) -> None:
    document = submission(made)
    typed = SubmissionV12.model_validate(document)
    assert typed.receipt is not None
    predictions = read_predictions(
        made / "receipt" / toolkit.PREDICTIONS_FILE, MINI, typed.receipt.predictions
    )
    assert list(predictions.tasks) == ["mini_tf", "mini_species"]
    assert {
        (name, regime): codes.shape
        for name, by in predictions.tasks["mini_tf"].fits.items()
        for regime, codes in by.items()
    } == {(name, regime): (FITS[regime], 160) for name in [OF_RECORD] for regime in FITS}
    assert claim_contradictions(typed, predictions, MINI) == []
    record = json.loads((made / "record.json").read_bytes())
    assert record["predictions"] == document["receipt"]["predictions"]


CELL = '"mini_tf" in "1shot": '


def moved_count(cell: Any) -> None:
    row = cell["confusion"][4][0]
    row[:] = [row[0] - 1, row[1] + 1]


def other_digest(cell: Any) -> None:
    cell["predictions_sha256"] = "0" * 64


def fewer_seeds(cell: Any) -> None:
    cell["confusion"] = cell["confusion"][:3]


def other_classes(cell: Any) -> None:
    cell["classes"] = [0, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (moved_count, f"{CELL}confusion matrix 5 of 5 (of record) is [["),
        (other_digest, f"{CELL}predictions_sha256 (of record) is {'0' * 64}; the predictions"),
        (
            fewer_seeds,
            f"{CELL}the evidence has 3 confusion matrices (of record); the predictions give 5",
        ),
        (other_classes, f"{CELL}the evidence has the classes [0, 2], the predictions have [0, 1]"),
    ],
)
def test_what_does_not_follow_is_named(
    made: Path, raw: bytes, change: Callable[[Any], None], message: str
) -> None:
    document = submission(made)
    change(document["evidence"]["1shot"]["mini_tf"])
    contradiction_list = claim_contradictions(
        SubmissionV12.model_validate(document), decode_predictions(raw, MINI), MINI
    )
    assert [line[: len(message)] for line in contradiction_list] == [message]


def test_cells_on_one_side_alone_are_named(made: Path, raw: bytes) -> None:
    document = submission(made)
    whole = decode_predictions(raw, MINI)
    part = whole._replace(tasks={"mini_tf": whole.tasks["mini_tf"]})
    typed = SubmissionV12.model_validate(document)
    assert claim_contradictions(typed, part, MINI) == [
        f'"mini_species" in "{regime}" has evidence, but no predictions' for regime in FITS
    ]
    for cells in document["evidence"].values():
        del cells["mini_species"]
    typed = SubmissionV12.model_validate(document)
    assert claim_contradictions(typed, whole, MINI) == [
        '"mini_species" has predictions, but no evidence'
    ]


def test_one_fit_stands_for_every_seed(raw: bytes) -> None:
    full = decode_predictions(raw, MINI).tasks["mini_tf"].fits[OF_RECORD]["full"]
    assert np.array_equal(repeated_per_seed(full, 5), np.vstack([full] * 5))
    few = decode_predictions(raw, MINI).tasks["mini_tf"].fits[OF_RECORD]["1shot"]
    assert repeated_per_seed(few, 5) is few


HEAD = HEADER.size
FIRST = HEAD + 8 + 2 * 4  # after place, counts and two labels


MALFORMED: dict[str, Callable[[bytes], bytes]] = {
    "magic": lambda raw: with_bytes(raw, 0, b"\x89PNG\r\n\x1a\n"),
    "version": lambda raw: with_bytes(raw, 8, b"\x00\x02"),
    "sets": lambda raw: with_bytes(raw, 10, b"\x04"),
    "regimes": lambda raw: with_bytes(raw, 11, b"\x08"),
    "seeds": lambda raw: with_bytes(raw, 12, b"\xff\xff"),
    "tasks": lambda raw: with_bytes(raw, 14, b"\x00\x00"),
    "benchmark": lambda raw: with_bytes(raw, 16, b"\x00" * 32),
    "place": lambda raw: with_bytes(raw, HEAD, struct.pack(">H", 13)),
    "classes": lambda raw: with_bytes(raw, HEAD + 2, struct.pack(">H", 1)),
    "rows": lambda raw: with_bytes(raw, HEAD + 4, struct.pack(">I", 2**32 - 1)),
    "labels": lambda raw: with_bytes(raw, HEAD + 8, struct.pack(">ii", 1, 0)),
    "truth": lambda raw: with_bytes(raw, FIRST, b"\xff" * 20),
    "length": lambda raw: raw[:-1],
    "end": lambda raw: raw + b"\x00",
}


@each("member", MALFORMED)
def test_hostile_bytes_are_refused_by_name(raw: bytes, member: str) -> None:
    with pytest.raises(PredictionsRefused) as refused:
        decode_predictions(MALFORMED[member](raw), MINI)
    assert refused.value.member == member


def test_codes_and_padding_are_checked() -> None:
    """Three classes take two bits, of which one value is no class; 7 columns leave bits over."""
    bench = open_benchmark([3])
    header = HEADER.pack(
        toolkit.MAGIC, 1, 1, 1, 5, 1, bytes.fromhex(bench.sha256)
    ) + struct.pack(">HHI3i", 0, 3, 3, 0, 1, 2)  # fmt: skip
    codes = 0b00_01_10_00_01_10_0000
    good = decode_predictions(header + struct.pack(">H", codes), bench)
    assert good.tasks["mini_histone"].truth.tolist() == [0, 1, 2]
    for wrong, member in ((codes | 1, "padding"), (codes | 0b11 << 4, "codes")):
        with pytest.raises(PredictionsRefused) as refused:
            decode_predictions(header + struct.pack(">H", wrong), bench)
        assert refused.value.member == member


@given(data=st.data())
def test_any_other_bytes_are_refused_or_read_as_other_predictions(
    raw: bytes, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(raw) - 1))
    new = data.draw(st.binary(min_size=1, max_size=8))
    changed = with_bytes(raw, at, new)[: data.draw(st.integers(0, len(raw) + 8))]
    try:
        predictions = decode_predictions(changed, MINI)
    except PredictionsRefused:
        return
    same = predictions.sha256 == decode_predictions(raw, MINI).sha256
    assert same == (changed == raw)


def test_a_file_is_compared_with_its_receipt_and_bounded(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "predictions.bin"
    path.write_bytes(raw)
    with pytest.raises(
        PredictionsRefused, match=f"has {len(raw):,} bytes and the sha256"
    ) as refused:
        read_predictions(path, MINI, PredictionsFile(bytes=len(raw), sha256="0" * 64))
    assert refused.value.member == "file"
    path.write_bytes(bytes(PREDICTIONS_BYTES_MAX + 1))
    with pytest.raises(PredictionsRefused, match="the limit is 8,388,608"):
        read_predictions(path, MINI)
    with pytest.raises(PredictionsRefused, match="No such file"):
        read_predictions(tmp_path / "none", MINI)


def test_pairs_of_published_predictions_are_noted(made: Path, tmp_path: Path) -> None:
    """A row whose matrices do not follow from its predictions is left out, and named.

    So is one that cannot be read, of which nothing was said.
    """
    test_harness = Harness(tmp_path)
    for folder in ("schemas", "leaderboard/policy", "submissions"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / "schemas/benchmark-mini.json", tmp_path / "schemas/benchmark.json")
    for name, change in {"one": None, "two": None, "wrong": moved_count}.items():
        document = submission(made) | {"model_id": name}
        if change is not None:
            change(document["evidence"]["1shot"]["mini_tf"])
        (tmp_path / f"submissions/{name}.json").write_text(json.dumps(document))
        (tmp_path / "receipts" / name).mkdir(parents=True)
        shutil.copy(made / "receipt" / toolkit.PREDICTIONS_FILE, tmp_path / "receipts" / name)
    (tmp_path / "submissions/unread.json").write_text('{"model_id": "unread", "results": {}}')
    done = forked.run(
        "geneb_ci", "receipt", "pairs", "--receipts", "receipts", "--write", cwd=test_harness.folder
    )
    assert done.returncode == 11, done.stderr
    assert "unread.json: cannot be read; `geneb-ci check " in done.stdout
    assert "wrong.json: 1 contradiction: " in done.stdout
    assert "3 rows with predictions, 0 bytes to fetch\n" in done.stdout
    assert "2 rows included, 2 left out" in done.stdout
    noted = json.loads((tmp_path / "leaderboard/policy/pairs.json").read_text())
    assert list(noted["rows"]) == ["one", "two"]
    (own,), (shared, other) = noted["regimes"]["full"]["micro"]
    assert own == other >= shared > 0, "two copies of one row"
