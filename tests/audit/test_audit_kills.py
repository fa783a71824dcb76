"""`audit FILE` is killed at several stages; the same command finishes, and embeds no row twice."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geneb_ci.audit.errors import AuditRefused
from geneb_ci.audit.record.statement import record_files
from geneb_ci.audit.rerun.prepare import Machine, PreparedRerun, provided_weights
from geneb_ci.audit.rerun.task_embedding import EmbeddingLocation, task_matrix
from geneb_ci.audit.rerun.workspace import EmbeddedTask, WorkSettings, open_work_folder
from geneb_ci.common.errors import ResultRefused
from geneb_ci.sandbox.run import ExtractorSpec
from reference_harness.formats.files import file_sha256
from tests import forked
from tests.audit.file_place import GO, MODEL, TASKS, made, work_of
from tests.audit.recorded import commitment, submission_bytes
from tests.audit.test_weights import SOUND, committed, folder_of, hub, more
from tests.sandbox.conftest import sandbox_of

__all__ = ["hub", "more"]  # fixtures: pytest finds them by their names here

STAGES = (
    "are those of the commitment",
    "escapes attempted",
    "reading the data",
    "timing the extractor",
    "timing the scoring",
    "drawn: ",
    ": embedding ",
    ": scoring ",
    "task 2 of 2",
    "wrote ",
)
"""Text of the line at which the process is killed: each is later than the one before."""
TWO = (": scoring ", "wrote ")
"""Both while what is kept is used: all embeddings, then all scores."""


@pytest.mark.parametrize(
    ("stages", "boxed"),
    [
        pytest.param(TWO, False, id="two"),
        pytest.param(STAGES, True, id="ten", marks=pytest.mark.nightly),
    ],
)
def test_kills_lose_nothing_that_was_kept(
    tmp_path: Path, stages: tuple[str, ...], boxed: bool
) -> None:
    for _ in sandbox_of(2, tmp_path / "trial") if boxed else ():
        pass  # fails or skips where there is none
    (tmp_path / "scratch").mkdir()
    installation = made(tmp_path, tmp_path / "scratch", boxed=boxed)
    command = ("submissions/two-mers.json", "--key", "key.pem", *GO)
    stored_files: dict[str, bytes] = {}
    for stage in stages:
        process = installation.start("geneb_ci", "audit", *command)
        messages = []
        for line in process.lines():
            messages.append(line)
            if stage in line:
                process.kill()
                break
        rest = process.communicate()[1]
        # Whoever reads the last line on a busy machine may kill a process that has ended.
        ended = {-9, 0} if stage == STAGES[-1] else {-9}
        assert process.returncode in ended, (stage, messages, rest)
        for task in stored_files:
            assert not any(f"{task}: embedding" in line for line in messages), (stage, messages)
        for file in work_of(installation).glob("tasks/*/embedded.json"):
            assert stored_files.setdefault(file.parent.name, file.read_bytes()) == file.read_bytes()
    done = installation.run("geneb_ci", "audit", *command)
    assert ": embedding" not in done.stderr
    (record,) = record_files(installation.root / "leaderboard" / "audits")
    assert installation.run("geneb_ci", "audit", "verify", str(record)).returncode == 0
    rows = {
        task: json.loads((work_of(installation) / "tasks" / task / "embedded.json").read_bytes())
        for task in TASKS
    }
    lines = [
        (work_of(installation) / "tasks" / task / "sequences.txt").read_text() for task in TASKS
    ]
    distinct = {sequence for text in lines for sequence in text.splitlines()}
    assert sum(row["computed"] for row in rows.values()) == len(distinct)
    assert not (work_of(installation) / "scratch").exists()
    assert record.parent.name == MODEL


@pytest.mark.parametrize("damage", ["embeddings.npy", "sequences.txt"])
def test_a_file_that_changed_is_refused_by_name(tmp_path: Path, damage: str) -> None:
    with open_work_folder(tmp_path / "work") as work:
        folder = work.task_folder("mini_splice")
        for name in ("embeddings.npy", "sequences.txt"):
            (folder / name).write_bytes(name.encode())
        entry = EmbeddedTask(
            sequences_sha256=file_sha256(folder / "sequences.txt"),
            embeddings_sha256=file_sha256(folder / "embeddings.npy"),
            computed=1, decoys=None, attempts=[], seconds=1.0, peak=1,
            token_budget=2048, further=0, further_sha256=None, repeated=None,
        )  # fmt: skip
        assert work.embedded_task("mini_splice") is None
        work.write_text(folder / "embedded.json", entry.model_dump_json())
        assert work.embedded_task("mini_splice") is None  # not written as a result of this audit
        work.write_result(folder / "embedded.json", entry.model_dump_json())
        assert work.embedded_task("mini_splice") == entry
        (folder / damage).write_bytes(b"other")
        with pytest.raises(AuditRefused, match=f"{damage}: was changed after the audit wrote it"):
            work.embedded_task("mini_splice")


@given(
    first=st.lists(st.integers(0, 30), min_size=1, unique=True),
    second=st.lists(st.integers(0, 30), min_size=1, unique=True),
)
@settings(max_examples=25, deadline=None)
def test_rows_of_earlier_tasks_are_taken_over_and_all_stay_in_place(
    first: list[int], second: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as folder, open_work_folder(Path(folder) / "work") as work:
        known: dict[str, EmbeddingLocation] = {}
        for task, numbers in (("first", first), ("second", second)):
            names = [f"s{number}" for number in numbers]
            new = [number for number in numbers if f"s{number}" not in known]
            values = np.array([[n, -n] for n in new], dtype=np.float16) if new else None
            matrix = task_matrix(task, names, values, known, work)
            assert matrix.dtype == np.float16
            assert matrix.tolist() == [[n, -n] for n in numbers]
            np.save(work.task_folder(task) / "embeddings.npy", matrix)
            for row, name in enumerate(names):
                known.setdefault(name, EmbeddingLocation(task, row))


@pytest.mark.parametrize(
    ("embeddings", "message"),
    [
        (np.zeros((1, 3), np.float32), "task second has embeddings of 3 numbers of float32; "),
        (np.zeros((1, 2), np.float16), "task second has embeddings of 2 numbers of float16; "),
    ],
)
def test_tasks_with_embeddings_of_different_shape_are_refused(
    tmp_path: Path, embeddings: np.ndarray, message: str
) -> None:
    with open_work_folder(tmp_path / "work") as work:
        np.save(work.task_folder("first") / "embeddings.npy", np.ones((2, 2), np.float32))
        known = {"a": EmbeddingLocation("first", 0), "b": EmbeddingLocation("first", 1)}
        with pytest.raises(ResultRefused) as caught:
            task_matrix("second", ["a", "c"], embeddings, known, work)
        assert caught.value.message == (
            f"{message}expected 2 of float32, as task first has, with which it shares sequences"
        )
        np.save(work.task_folder("second") / "embeddings.npy", embeddings)
        with pytest.raises(ResultRefused, match=message):
            task_matrix(
                "third", ["b", "c"], None, known | {"c": EmbeddingLocation("second", 0)}, work
            )


A, C = "a" * 64, "c" * 64
SETTINGS = WorkSettings(
    commitment="0" * 64, version="1", level=2, device="cpu", noise="float32", copies=16,
    seed=1, nonce="d" * 64, started_at="2026-11-20T08:30:00Z",
)  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"config.json": C}, f"config.json of the weights: this audit began with sha256 {A}, now"),
        ({"vocab.txt": C}, "vocab.txt of the weights: this audit began with no such file, now"),
    ],
)
def test_weights_are_pinned_with_their_configuration(
    tmp_path: Path, changed: dict[str, str], message: str
) -> None:
    first = {"config.json": A, "model.safetensors": "b" * 64}
    with open_work_folder(tmp_path / "work") as work:
        work.pin_settings(SETTINGS)
        work.pin_weights(first)
    with open_work_folder(tmp_path / "work") as work:
        assert work.pin_settings(SETTINGS).weights == first
        work.pin_weights(dict(reversed(first.items())))
        with pytest.raises(AuditRefused) as caught:
            work.pin_weights(first | changed)
        assert message in caught.value.message
        with pytest.raises(AuditRefused, match="now there is no such file"):
            work.pin_weights({"config.json": A})


def test_weights_are_hashed_again_at_the_end(tmp_path: Path) -> None:
    pinned = committed({"model.safetensors": SOUND})
    folder = folder_of(tmp_path / "model", {"config.json": b"{}", "model.safetensors": SOUND})
    unused: Any = None
    with open_work_folder(tmp_path / "work") as work:
        work.pin_settings(SETTINGS)
        _, digests = provided_weights(pinned, Machine(weights=folder), work, 2, print)
        work.pin_weights(digests)
        here = PreparedRerun(
            commitment=commitment(submission_bytes()).model_copy(update={"weights": pinned}),
            subject=unused, source=unused, machine=Machine(weights=folder), settings=SETTINGS,
            work=work, runner=unused, weight_digests=digests,
            spec=ExtractorSpec("huggingface", weights=folder),
        )  # fmt: skip
        here.check_weights()
        (folder / "config.json").write_bytes(b"[]")
        with pytest.raises(AuditRefused, match=r"file config\.json of the weights"):
            here.check_weights()


def test_a_result_that_was_not_written_to_its_end_is_none(tmp_path: Path) -> None:
    with open_work_folder(tmp_path / "work") as work:
        work.write_result("outcome.json", "old")
        with pytest.raises(UnicodeEncodeError):
            work.write_result("outcome.json", "\ud800")  # ends it before the digest is noted
        assert not work.has_result("outcome.json")
        work.write_result("outcome.json", "new")
        (work.folder / "outcome.json").unlink()  # the digest is noted, and the file not written
        assert not work.has_result("outcome.json")
        work.write_result("outcome.json", "last")
        assert work.has_result("outcome.json")
        (work.folder / "outcome.json").write_bytes(b"edited")
        with pytest.raises(
            AuditRefused, match=r"outcome\.json: was changed after the audit wrote it"
        ):
            work.has_result("outcome.json")


def test_a_work_folder_may_be_named_from_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with open_work_folder(Path("work")) as work:
        work.write_result(work.task_folder("one") / "a.json", "{}")
        assert work.has_result("tasks/one/a.json")
    assert (tmp_path / "work/tasks/one/a.json").read_bytes() == b"{}"


DOWNLOAD = """
import sys
from pathlib import Path
from geneb_ci.audit.commitment import Weights
from reference_harness.formats.files import file_sha256
from geneb_ci.audit.rerun.prepare import Machine, provided_weights
from geneb_ci.audit.rerun.workspace import open_work_folder

pinned = Weights.model_validate_json(sys.argv[2])
with open_work_folder(Path(sys.argv[1])) as work:
    for _ in range(2):
        folder, digests = provided_weights(pinned, Machine(), work, 2, print)
    assert folder == work.folder / "weights"
    print(digests["model.safetensors"])
"""


def test_a_download_that_was_stopped_continues(hub: str, tmp_path: Path) -> None:
    pinned = committed({"model.safetensors": SOUND})
    folder_of(tmp_path / "work" / "weights", {"config.json": b"{}"})
    done = forked.start(
        *("download", str(tmp_path / "work"), pinned.model_dump_json()),
        cwd=tmp_path, env=os.environ | {"HF_ENDPOINT": hub}, code=DOWNLOAD,
    )  # fmt: skip
    output, errors = done.communicate()
    assert done.returncode == 0, errors
    assert output.splitlines() == [
        "fetching the weights: org/model",  # once: a complete download is not fetched again
        pinned.files["model.safetensors"],
    ]
