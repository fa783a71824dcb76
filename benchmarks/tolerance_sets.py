"""Make real embeddings that differ only by numerical noise, and their scores."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reference_harness.data import benchmark, task_folder
from reference_harness.data.task_folder import Source
from reference_harness.embedding import noise
from reference_harness.engine.worker_pool import Pool
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import write_bytes, write_json
from reference_harness.formats.submission_terms import Dtype
from reference_harness.loading.loader import load
from reference_harness.rescore.input_files import read_embedding_files, task_part_of
from reference_harness.rescore.job import TaskPart
from reference_harness.rescore.scoring import RescoreRequest, distinct_sequences, load_task, rescore
from reference_harness.run.task_job import ScoredRegime, score_regime
from tests.harness.extractors.models import save
from tests.paths import REAL_TASKS

MINI = tuple(task.id for task in benchmark.mini().tasks)
SOME_MINI = MINI[::3]
GUE = "leannmlindsey_GUE_"
REAL = tuple(
    GUE + name
    for name in (
        "human_tf_0",
        "human_tf_1",
        "mouse_0",
        "mouse_3",
        "prom_300_tata",
        "prom_core_tata",
    )
)
SMALL = (GUE + "mouse_3", GUE + "prom_core_tata")
CONTRIBUTOR_NOISE_SEED = 910_000
"""Seed of the noise of claims; the tolerances were designed with another seed, 900,000."""
BATCHES = {
    "budget-2048": ("budget", 2048, 8),
    "file-8": ("file", 2048, 8),
    "budget-8192": ("budget", 8192, 8),
    "exact": ("exact", 2048, 8),
}


@dataclass(frozen=True)
class Group:
    """One extractor on some tasks, with the batches and noise of honest contributors'
    embeddings."""

    name: str
    tasks: tuple[str, ...]
    dtype: Dtype
    batches: tuple[str, ...]
    """Ways to make batches; a k-mer count has one."""
    audited: int
    """Number of these embeddings that an auditor may have; they are rescored, which takes most
    time."""
    jittered: int
    """Number of further embeddings of claims, with noise added."""

    @property
    def mini(self) -> bool:
        return self.tasks[0] in MINI

    @property
    def benchmark_and_source(self) -> tuple[Benchmark, Source]:
        if self.mini:
            return benchmark.mini(), task_folder.MiniSource()
        bench = benchmark.geneb()
        return bench, task_folder.Folder(REAL_TASKS, bench)


GROUPS = (
    Group("4-mers, mini", MINI, "float32", ("counts",), 3, 24),
    Group("4-mers, real tasks", REAL, "float32", ("counts",), 1, 8),
    Group("BERT float32, mini", SOME_MINI, "float32", tuple(BATCHES), 2, 12),
    Group("BERT bfloat16, mini", SOME_MINI, "bfloat16", tuple(BATCHES), 2, 12),
    Group("BERT float32, real tasks", SMALL, "float32", tuple(BATCHES), 2, 12),
    Group("BERT bfloat16, real tasks", SMALL, "bfloat16", tuple(BATCHES), 2, 12),
)


class Claims(NamedTuple):
    """The scores of one task that a contributor claims."""

    task_id: str
    regimes: dict[str, ScoredRegime]


@dataclass(frozen=True)
class ClaimJob:
    """Scores one task, without what a rescoring adds."""

    part: TaskPart

    @property
    def task_id(self) -> str:
        return self.part.task_id

    def execute(self) -> Claims:
        embeddings = self.part.matrix()
        problem = self.part.problem(embeddings, self.part.scale(embeddings))
        regimes = {name: score_regime(problem, name, self.part) for name in self.part.regimes}
        return Claims(self.task_id, regimes)


class GroupFolder:
    """A folder with the embeddings and scores of a group, which are computed when first needed."""

    def __init__(self, folder: Path, group: Group) -> None:
        self.folder = folder / group.name.replace(", ", "-").replace(" ", "-")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.group = group
        self.benchmark, self.source = group.benchmark_and_source
        self.sequences = distinct_sequences(self.benchmark, self.source, group.tasks)
        self.lines = self.folder / "sequences.txt"
        write_bytes(self.lines, *(f"{sequence}\n".encode() for sequence in self.sequences))

    def embeddings(self) -> Iterator[tuple[str, Path]]:
        """Yield the embeddings of each way to make batches, then those with noise added."""
        for name in self.group.batches:
            path = self.folder / f"{name}.npy"
            if not path.exists():
                _save_whole(path, self._embed(name))
            yield name, path
        first = np.load(self.folder / f"{self.group.batches[0]}.npy")
        for number in range(self.group.jittered):
            path = self.folder / f"noise-{number}.npy"
            if not path.exists():
                # Other noise than the auditor's, whose seed is of his choice.
                contributor_noise = noise.Noise(self.group.dtype, CONTRIBUTOR_NOISE_SEED, number)
                _save_whole(path, noise.jitter(first, contributor_noise, "a contributor's machine"))
            yield f"noise-{number}", path

    def _embed(self, name: str) -> np.ndarray:
        if name == "counts":
            return np.asarray(load("kmer").extractor.extract_embeddings(self.sequences))
        mode, budget, rows = BATCHES[name]
        model = self.folder.parent / "bert"
        if not model.exists():
            save("bert", model, large=True)
        extractor = load(
            "huggingface", str(model), "cpu", batching=mode, token_budget=budget,
            dtype=self.group.dtype,
        ).extractor  # fmt: skip
        # Audits send sequences in an order of their own; file order then makes other batches.
        order = np.random.RandomState(len(name)).permutation(len(self.sequences))
        out: np.ndarray | None = None
        for start in range(0, len(order), 2048):
            indices = order[start : start + 2048]
            values = np.asarray(
                extractor.extract_embeddings([self.sequences[i] for i in indices], batch_size=rows)
            )
            if out is None:
                out = np.empty((len(order), values.shape[1]), dtype=values.dtype)
            out[indices] = values
        assert out is not None
        return out

    def rescored(self, path: Path) -> Path:
        """Return the file with the rescored values of an auditor who has these embeddings."""
        output = path.with_suffix(".rescored.json")
        if not output.exists():
            rescored = rescore(
                RescoreRequest(
                    benchmark=self.benchmark,
                    source=self.source,
                    tasks=self.group.tasks,
                    sequences=self.lines,
                    embeddings=path,
                    dtype=self.group.dtype,
                    seed=int(hashlib.sha256(path.name.encode()).hexdigest()[:8], 16),
                )
            )
            write_json(output, rescored.model_dump())
        return output

    def claims(self, path: Path, pool: Pool[Claims]) -> dict[str, dict[str, ScoredRegime]]:
        """Return the scores, by task and regime, that a contributor with these embeddings
        claims."""
        embeddings = read_embedding_files(self.lines, path, len(self.sequences))
        for task_id in self.group.tasks:
            task_part = task_part_of(
                load_task(self.benchmark, self.source, task_id), self.benchmark, embeddings
            )
            pool.submit(ClaimJob(task_part))
        regimes_by_task: dict[str, dict[str, ScoredRegime]] = {}
        while pool.waiting:
            for result in pool.results(block=True):
                regimes_by_task[result.task_id] = result.regimes
        return regimes_by_task


def _save_whole(path: Path, values: np.ndarray) -> None:
    part = path.with_suffix(".part.npy")
    np.save(part, values)
    part.rename(path)
