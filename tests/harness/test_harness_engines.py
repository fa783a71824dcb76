"""What a run does the same on every engine: who embeds what, in which batches, for which models."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_harness import mini
from reference_harness.data.task_data import Split, TaskData, sequence_digests
from reference_harness.embedding import cache as store
from reference_harness.embedding.cache import Cache
from reference_harness.embedding.embedder import Embedder, EmbedJob, EmbedResult, EmbedStep
from reference_harness.embedding.extractor_calls import Batching
from reference_harness.embedding.memory import MemoryLimit
from reference_harness.run.sequence_owners import owned_sequences, packed_digests
from tests.harness.support import COMMAND_SECONDS, Harness, timeless, write_flat

LETTERS = st.sets(st.sampled_from("ABCDEFGH"))


class Calls:
    """Counts letters, and remembers the batches it was given."""

    def __init__(self) -> None:
        self.made: list[list[str]] = []

    def extract_embeddings(self, sequences: Sequence[str], batch_size: int) -> Any:
        del batch_size
        self.made.append(list(sequences))
        return np.array([[s.count(c) for c in "ACGT"] for s in sequences], dtype=np.float32)


@given(st.lists(LETTERS, min_size=1, max_size=5), LETTERS)
@settings(max_examples=50, deadline=None)
def test_the_first_task_that_lacks_a_sequence_embeds_it(
    tasks: list[set[str]], here: set[str]
) -> None:
    cache: Any = SimpleNamespace(find=lambda expected: set(expected) & set(sequence_digests(here)))
    named = {
        f"t{i}": packed_digests(sequence_digests(sorted(task))) for i, task in enumerate(tasks)
    }
    seen: dict[str, str] = {}
    for (task_id, claim), letters in zip(owned_sequences(named, cache).items(), tasks, strict=True):
        lacking = sorted(letters - here - seen.keys())
        source_tasks = {seen[letter] for letter in letters - here if letter in seen}
        assert [digest.tobytes() for digest in claim.missing] == sequence_digests(lacking)
        assert claim.source_tasks == source_tasks
        seen |= dict.fromkeys(lacking, task_id)


def test_the_rest_of_a_killed_job_has_the_batches_it_would_have_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "FLUSH_SECONDS", 0)
    sequences = ["ACGT"[i % 4] * (1 + i * 7 % 23) + "A" * i for i in range(40)]

    def embedder(folder: Path) -> tuple[Calls, Embedder, EmbedJob]:
        calls, facts = Calls(), SimpleNamespace()
        loaded: Any = SimpleNamespace(
            extractor=calls, path="mine.py", class_name="Calls", is_unit=False
        )
        made = Embedder(loaded, facts, Batching(token_budget=256), MemoryLimit())  # type: ignore[arg-type]
        return calls, made, EmbedJob("t", sequences, folder, {})

    whole, claim, job = embedder(tmp_path / "whole")
    *_, done = claim.embed(job)
    assert isinstance(done, EmbedResult)
    assert len(whole.made) > 5
    first, claim, job = embedder(tmp_path / "killed")
    steps = claim.embed(job)
    for _ in range(3):
        assert isinstance(next(steps), EmbedStep)
    # A killed process leaves what was flushed, and runs nothing more.
    rest, claim, job = embedder(tmp_path / "killed")
    list(claim.embed(job))
    assert first.made[:2] + rest.made in (whole.made, whole.made[:2] + whole.made[3:])
    digests = sequence_digests(sequences)
    caches = [Cache(tmp_path / name, {}).read(digests) for name in ("whole", "killed")]
    assert caches[0].tobytes() == caches[1].tobytes()


@pytest.fixture(scope="module")
def sharing(tmp_path_factory: pytest.TempPathFactory) -> Harness:
    """Lay three tasks, of which one is the longest and has sequences of both others."""
    harness = Harness(tmp_path_factory.mktemp("sharing"))
    parts = [
        mini.load(name).balanced_subset(30) for name in ("mini_mouse", "mini_tf", "mini_phage")
    ]
    train = [part.train for part in parts]
    every = Split([s for task_data in train for s in task_data.sequences], np.arange(90) % 2)
    for part in (*parts[:2], TaskData("mini_phage", every, parts[2].test)):
        write_flat(part, harness.folder / "data")
    assert harness("data", "define", "data").returncode == 0
    return harness


def test_the_order_of_tasks_changes_no_record(sharing: Harness) -> None:
    words = (
        "run", "--data", "data", "--benchmark", "data/benchmark.json", "--jobs", 1,
    )  # fmt: skip
    code = (
        "from reference_harness.engine.devices import InProcessEmbedder\n"
        "InProcessEmbedder.longest_first = True\n"
        "from reference_harness.cli.main import main; main()"
    )
    records = []
    for name, ordered in (("plain", None), ("longest", code)):
        process = sharing.start(
            *words, "--output", f"{name}.json", "--cache", name, "--quiet", code=ordered
        )
        _, message = process.communicate(COMMAND_SECONDS)
        assert process.returncode == 0, message
        records.append(timeless(json.loads((sharing.folder / f"{name}.json").read_text())))
    assert records[0] == records[1]
    assert {name: task["embedded_now"] for name, task in records[0]["tasks"].items()} == {
        "mini_mouse": 60, "mini_phage": 90, "mini_tf": 30
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected tables [[run]] and nothing else"),
        ("[[run]", "not a TOML file"),
        ("[[run]]\nk = 1", "run 1: 'k' is not an option of a run"),
        ('[[run]]\nengine = "ray"', "run 1: 'engine' is not an option of a run"),
        ('[[run]]\noutput = "a"\njobs = 0', "run 1: jobs: 0 is not in the range x>=1."),
        ("[[run]]\njobs = 2", "run 1: the run names no output: give each run an output of its own"),
        ('[[run]]\noutput = "a"\n' * 2, "run 1: another run names the output a too"),
    ],
)
def test_a_list_of_models_that_is_wrong_is_refused(
    harness: Harness, text: str, message: str
) -> None:
    (harness.folder / "models.toml").write_text(text)
    done = harness("run", "--from", "models.toml")
    assert done.returncode == 2
    assert done.stderr.startswith("error: models.toml: ")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_earlier_key_of_a_list_stands_for_the_present_one(harness: Harness) -> None:
    (harness.folder / "models.toml").write_text('[[run]]\noutput = "a.json"\nworkers = 0\n')
    done = harness("run", "--from", "models.toml")
    assert done.stderr.splitlines() == [
        "models.toml: run 1: workers is now jobs; the next release will not accept the old name",
        "error: models.toml: run 1: jobs: 0 is not in the range x>=1.",
    ]


def test_a_model_that_fails_does_not_end_the_others(harness: Harness) -> None:
    (harness.folder / "models.toml").write_text(
        '[[run]]\noutput = "a.json"\noption = ["k=99"]\n[[run]]\noutput = "b.json"\n'
    )
    done = harness("run", "--from", "models.toml", "--tasks", "mini_tf", "--limit", 20)
    lines = done.stderr.splitlines()
    assert done.returncode == 11
    assert lines[0].startswith("b: mini_tf: full MCC ")
    assert lines[1:3] == [
        "b: wrote b.json: 1 task, model_id 4-mer-frequency", "error: 1 of 2 runs failed:"
    ]  # fmt: skip
    assert lines[3].startswith("  a.json: k is 99, expected an integer from 1 to 10")
    assert not (harness.folder / "a.json").exists()
