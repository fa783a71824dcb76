"""What the harness' tests share: a way to run the command, and a small data folder."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reference_harness import mini
from reference_harness.data.task_data import Split, TaskData
from reference_harness.embedding.cache import Cache
from reference_harness.embedding.embedder import Embedder, EmbedJob, EmbedResult
from reference_harness.embedding.extractor_calls import Batching, current_budget
from reference_harness.embedding.memory import MemoryLimit
from reference_harness.errors import EmbeddingError
from reference_harness.run.sequence_owners import distinct_sequences
from tests import forked
from tests.paths import ROOT

REPOSITORY = ROOT
TEN_LINES = '''
"""The smallest extractor a new user writes: nothing is declared."""
import numpy as np
from .base import BaseEmbeddingExtractor


class Composition(BaseEmbeddingExtractor):
    def extract_embeddings(self, sequences, batch_size=8):
        rows = [[s.upper().count(c) / max(len(s), 1) for c in "ACGT"] for s in sequences]
        return np.array(rows, dtype=np.float32)
'''
COMMAND_SECONDS = 120  # a run of mini takes four on an idle machine


class Harness:
    """Runs `geneb-harness` as a user does, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "GENEB_HARNESS_CACHE": str(folder / "cache"),
            "PYTHONPATH": str(REPOSITORY),
        }

    def __call__(self, *words: object, code: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run to the end; `code`, in an interpreter of its own, replaces the module to run."""
        if code is None:
            arguments = map(str, words)
            return forked.run(
                "reference_harness", *arguments, cwd=self.folder, env=self.environment,
                timeout=COMMAND_SECONDS,
            )  # fmt: skip
        return self.alone(*words, code=code)

    def alone(self, *words: object, code: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run to the end in an interpreter of its own, as a user does."""
        return subprocess.run(
            self.command(*words, code=code),
            cwd=self.folder, env=self.environment, capture_output=True, text=True,
            timeout=COMMAND_SECONDS, check=False,
        )  # fmt: skip

    def command(self, *words: object, code: str | None = None) -> list[str]:
        start = ["-m", "reference_harness"] if code is None else ["-c", code]
        return [sys.executable, *start, *map(str, words)]

    def start(self, *words: object, code: str | None = None) -> forked.Started:
        """Start in a process group of its own, as a terminal does; `code` replaces the module."""
        arguments = map(str, words)
        return forked.start(
            "reference_harness",
            *arguments,
            cwd=self.folder,
            env=self.environment,
            code=code,
            group=True,
        )

    def started_alone(self, *words: object) -> subprocess.Popen[str]:
        """Start as `start` does, in an interpreter of its own, with workers of their own."""
        return subprocess.Popen(
            self.command(*words),
            cwd=self.folder, env=self.environment, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip


class TaskEmbedder:
    """Embeds task after task into one cache, as a run does on one machine."""

    def __init__(
        self, loaded: Any, folder: Path, batching: Batching, limit: MemoryLimit | None = None
    ) -> None:
        self.loaded, self.batching, self.limit = loaded, batching, limit or MemoryLimit()
        self.cache = Cache(folder, {})
        self._folder = folder

    def embed(self, data: TaskData) -> tuple[int, int]:
        """Return how many distinct sequences there are, and how many the cache lacked.

        Raises EmbeddingError with what the run would say.
        """
        facts: Any = None
        job = EmbedJob(data.id, list(self.missing(data).values()), self._folder, {})
        *_, done = Embedder(self.loaded, facts, self.batching, self.limit).embed(job)
        if isinstance(done, EmbedResult) and done.failure:
            raise EmbeddingError(done.failure)
        return len(distinct_sequences(data)), len(job.sequences)

    def missing(self, data: TaskData) -> dict[bytes, str]:
        """Return what the cache lacks, by digest."""
        named = distinct_sequences(data)
        here = self.cache.find(named)
        return {digest: member for digest, member in named.items() if digest not in here}

    @property
    def token_budget(self) -> int:
        """Padded tokens a batch may have by now."""
        return current_budget(self.loaded, self.batching, self.limit)


def write_flat(data: TaskData, folder: Path) -> Path:
    """Write a task as `<task_id>.csv`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{data.id}.csv"
    lines = ["text,label,split"]
    for name, split in (("train", data.train), ("test", data.test)):
        lines += [f"{s},{y},{name}" for s, y in zip(split.sequences, split.labels, strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_remote(data: TaskData, folder: Path) -> Path:
    """Write a task as `tasks/<task_id>/{train,test}.csv`."""
    path = folder / "tasks" / data.id
    path.mkdir(parents=True, exist_ok=True)

    def write(name: str, split: Split) -> None:
        rows = [f"{s},{y}" for s, y in zip(split.sequences, split.labels, strict=True)]
        (path / f"{name}.csv").write_text("\n".join(["text,label", *rows]) + "\n", "utf-8")

    write("train", data.train)
    write("test", data.test)
    return path


def counts_of_calls(log: Path, tasks: Iterable[str]) -> Counter[str]:
    """Count the sequences that were embedded for tasks of GENEB-mini, by the calls of an extractor.

    Not the one that loads what a forward pass does, nor those of which letters were changed, nor
    those that are embedded again alone, to see whether they drift.
    """
    splits = [split for task in tasks for split in (mini.load(task).train, mini.load(task).test)]
    of_tasks = frozenset(sequence for split in splits for sequence in split.sequences)
    counts: Counter[str] = Counter()
    for line in log.read_text().splitlines():
        call = line.split()
        if of_tasks >= set(call) and not (len(call) == 1 and counts[call[0]]):
            counts.update(call)
    return counts


def peak_rss() -> int:
    """Return the most memory this process has held, in bytes.

    Not `ru_maxrss`: a child inherits that of a large parent, and then nothing seems to grow.
    """
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    kilobytes = next(line for line in lines if line.startswith("VmHWM")).split()[1]
    return int(kilobytes) * 1024


def padded_tokens(lengths: Sequence[int], batches: Sequence[np.ndarray]) -> int:
    """Return the tokens that go through the model, padding included."""
    values = np.asarray(lengths, dtype=np.int64)
    return int(sum(values[batch].max() * len(batch) for batch in batches))


MEASURED = {
    *("seconds", "embed_seconds", "probe_seconds", "started_at", "finished_at"),
    *("embedded_letters", "peak_memory"),
}
"""What a record says of the run itself. Letters belong to the seconds of embedding: those of an
embedder that was killed are lost with its time."""


def timeless(value: Any) -> Any:
    """Return a record without what was measured."""
    if isinstance(value, dict):
        return {key: timeless(member) for key, member in value.items() if key not in MEASURED}
    return value
