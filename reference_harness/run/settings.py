"""The settings of a run, and how the record and the cache store them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reference_harness import environment
from reference_harness.data.task_folder import Source
from reference_harness.embedding.extractor_calls import DEFAULT_BATCHING, Batching
from reference_harness.errors import DataError, OptionError, known_name, unknown_name
from reference_harness.formats.benchmark import Benchmark, Task
from reference_harness.formats.processes import processors
from reference_harness.formats.run_record import (
    BatchingRef,
    DatasetRef,
    EmbeddingRef,
    ExactRows,
    ExtractorRef,
    Hardware,
    HarnessRef,
    LibraryRef,
    Missing,
    ModelRef,
    NumericsRef,
    ProbeRef,
    RunRecord,
    TaskRecord,
)
from reference_harness.formats.scorer import ScorerRef
from reference_harness.formats.submission import BenchmarkRef, PredictionsFile
from reference_harness.loading.extractor_facts import ExtractorFacts
from reference_harness.loading.properties import properties_of_tasks
from reference_harness.probe import logistic


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a run."""

    benchmark: Benchmark
    source: Source
    facts: ExtractorFacts
    model_id: str
    output: Path
    """File for the run record."""
    cache: Path | str
    """A folder, or an address of fsspec."""
    tasks: tuple[str, ...] = ()
    """Ids of the tasks to run; empty for all of the source."""
    regimes: tuple[str, ...] = ()
    """Regimes to score; empty for all of the benchmark."""
    limit: int | None = None
    """Maximum number of sequences of a split that are used; None for all."""
    name_model: str = ""
    device: str = "cpu"
    options: dict[str, str] = field(default_factory=dict)
    """Keyword arguments of the extractor's constructor, as text."""
    batching: Batching = DEFAULT_BATCHING
    probe_device: logistic.Device = logistic.CPU
    workers: int = field(default_factory=processors)
    receipt: Path | None = None
    """Folder for the receipt; None for a run without one."""
    resume: bool = False
    """Whether to continue a stopped run."""
    fail_fast: bool = False
    """Whether the first task that fails ends the run."""

    @property
    def regimes_to_run(self) -> tuple[str, ...]:
        """The regimes to run, in the benchmark's order."""
        return self.regimes or tuple(self.benchmark.regimes)


def missing_tasks(settings: Settings) -> list[Missing]:
    """Return the benchmark's tasks that this run omits, in its order, with the reason."""
    available = settings.source.available()
    requested = set(settings.tasks)
    return [
        Missing(task=t.id, reason="not in the data" if t.id not in available else "not asked for")
        for t in settings.benchmark.tasks
        if t.id not in available or (requested and t.id not in requested)
    ]


def task_names(names: Iterable[str], benchmark: Benchmark) -> tuple[str, ...]:
    """Return names of tasks as the benchmark writes them, ignoring case.

    Raise OptionError for a task that it does not have.
    """
    task_ids = [task.id for task in benchmark.tasks]
    return tuple(
        known_name(_unknown_task_message(name, benchmark), name, task_ids) for name in names
    )


def unknown_task_error(name: str, benchmark: Benchmark) -> OptionError:
    """Return the error for a task that a benchmark does not have."""
    return unknown_name(
        _unknown_task_message(name, benchmark), name, [task.id for task in benchmark.tasks]
    )


def _unknown_task_message(name: str, benchmark: Benchmark) -> str:
    """Return the beginning of a message about an unknown task."""
    return f"task {name!r}: {benchmark.name} has no such task"


def tasks_to_run(settings: Settings) -> list[Task]:
    """Return the tasks of this run, in the benchmark's order.

    Raise OptionError for a task that the benchmark does not have, DataError for one that the data
    do not have.
    """
    task_ids = [task.id for task in settings.benchmark.tasks]
    available = settings.source.available()
    for task_id in settings.tasks:
        if task_id not in task_ids:
            raise unknown_task_error(task_id, settings.benchmark)
        if task_id not in available:
            raise DataError(
                [f"task {task_id}: the data folder has no file for it: pass a folder with its file"]
            )
    requested = set(settings.tasks) or available
    return [task for task in settings.benchmark.tasks if task.id in requested & available]


def key_parts(settings: Settings) -> dict[str, Any]:
    """Return everything that determines an embedding except the sequence: the cache key.

    The token budget, which changes only last digits, is not included; see `Batching`.
    """
    facts, batching = settings.facts, settings.batching
    return {
        "extractor": [facts.path, facts.class_name, facts.sha256],
        "siblings": facts.siblings,
        "name_model": settings.name_model,
        "description": facts.description,
        "options": settings.options,
        "device": settings.device,
        "hardware": facts.hardware,
        "batching": [batching.mode, batching.rows if batching.mode == "file" else None],
        "packages": facts.packages,
        # Embeddings without TF32 get another key; torch allows TF32 by default.
        **({"tf32": False} if settings.device.startswith("cuda") and not facts.tf32 else {}),
    }


def record_of(
    settings: Settings,
    *,
    tasks: dict[str, TaskRecord],
    libraries: list[LibraryRef],
    harness: HarnessRef,
    started_at: str,
    resumed: bool,
    scorer: ScorerRef,
    predictions: PredictionsFile | None,
    token_budget: int | None,
) -> RunRecord:
    """Return the record of a run that ends now.

    `token_budget` is the measured one, None if it was not measured.
    """
    facts = settings.facts
    protocol = settings.benchmark.protocol
    dataset = settings.benchmark.dataset
    return RunRecord(
        model_id=settings.model_id,
        benchmark=BenchmarkRef(name=settings.benchmark.name, sha256=settings.benchmark.sha256),
        dataset=DatasetRef(
            repo_id=dataset.repo_id, revision=dataset.revision, verified=settings.source.verified
        ),
        harness=harness,
        extractor=ExtractorRef(
            path=facts.path,
            class_name=facts.class_name,
            sha256=facts.sha256,
            siblings=facts.siblings,
            options=settings.options,
        ),
        model=ModelRef(**facts.description["model"]),
        embedding=EmbeddingRef(**facts.description["embedding"]),
        batching=BatchingRef(
            mode=settings.batching.mode,
            token_budget=token_budget or settings.batching.token_budget,
            measured=token_budget is not None,
            rows=settings.batching.rows,
            exact_rows=[ExactRows(**limit._asdict()) for limit in facts.exact_limits],
        ),
        probe=ProbeRef(
            device=settings.probe_device.name,
            array_api=settings.probe_device.torch,
            least_numbers=settings.probe_device.size_min if settings.probe_device.torch else None,
            seeds=protocol.seeds,
            few_shot_k=protocol.few_shot_k,
            workers=settings.workers,
            libraries=libraries,
        ),
        scorer=scorer,
        hardware=Hardware(device=settings.device, name=facts.hardware),
        tf32=facts.tf32,
        numerics=NumericsRef(**facts.numerics) if facts.numerics else None,
        packages=facts.packages,
        environment=facts.lock_sha256,
        started_at=started_at,
        finished_at=environment.now(),
        resumed=resumed,
        limit=settings.limit,
        properties=facts.properties | properties_of_tasks(tasks),
        regimes=list(settings.regimes_to_run),
        missing=missing_tasks(settings),
        tasks=tasks,
        predictions=predictions,
    )
