"""Probe receipts task by task: each file is read once and released when its task is scored."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from reference_harness import environment
from reference_harness.data.task_folder import Source
from reference_harness.engine.worker_pool import Pool
from reference_harness.errors import OptionError
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.run_record import DatasetRef, LibraryRef, TaskReceipt
from reference_harness.formats.submission import BenchmarkRef
from reference_harness.formats.submission_terms import receipt_file
from reference_harness.receipt.cells import receipt_in
from reference_harness.run.progress import Listener
from reference_harness.text import first_and_more

from .cost import TaskOfReceipt, cost_sentence, estimated_cost
from .job import ProbedTask, ProbeJob
from .ranks import rank_agreements, standings
from .report import ProbedReceipt, Probes, ProbeScores

PAIR_SEPARATOR = "="
"""Separates a submission and the folder of its receipt in a word of the command line."""


class Receipt(NamedTuple):
    """The receipt of a submission, and the folder of its files."""

    model_id: str
    benchmark: str
    """SHA-256 of the benchmark definition."""
    root: str
    tasks: dict[str, TaskReceipt]
    folder: Path


@dataclass(frozen=True, kw_only=True)
class ProbeRequest:
    """The receipts and tasks to probe."""

    benchmark: Benchmark
    source: Source
    receipts: tuple[Receipt, ...]
    kinds: tuple[str, ...]
    regimes: tuple[str, ...]
    tasks: tuple[str, ...]
    """Task ids in the benchmark's order, which every receipt has."""
    seeds: tuple[int, ...]
    workers: int


def read_receipt(word: str) -> Receipt:
    """Return the receipt to which a word of the command line refers.

    `X.json` or `X` is the submission X.json with its files in the folder X; `FILE=DIR` is any other
    pair. Raise OptionError if one of the two is missing or invalid.
    """
    file_name, _, folder_name = word.partition(PAIR_SEPARATOR)
    path = Path(file_name)
    file, folder = path, Path(folder_name)
    if not folder_name:
        stem = path.with_suffix("") if path.suffix == ".json" else path
        file, folder = stem.with_name(f"{stem.name}.json"), stem
    if not file.exists():
        msg = (
            f"{file}: no such file: pass SUBMISSION=FOLDER, or put submission and receipt into one "
        )
        msg += "folder as X.json and X"
        raise OptionError(msg)
    document, tasks = receipt_in(file)
    try:
        receipt = Receipt(
            str(document["model_id"]),
            str(document["run"]["benchmark"]["sha256"]),
            str(document["receipt"]["root"]),
            tasks,
            folder,
        )
    except (KeyError, TypeError) as error:
        msg = f"{file} is not a valid submission: run `geneb-ci check {file}`"
        raise OptionError(msg) from error
    if not folder.is_dir():
        msg = f"{folder}: no such folder: pass SUBMISSION=FOLDER with the folder of the receipt"
        raise OptionError(msg)
    return receipt


def common_tasks(receipts: tuple[Receipt, ...], benchmark: Benchmark) -> tuple[str, ...]:
    """Return the tasks that every receipt has, in the benchmark's order.

    Raise OptionError if two receipts are of one model, one is of another benchmark, or no task is
    in all of them.
    """
    ids = [receipt.model_id for receipt in receipts]
    if repeated_ids := sorted({model_id for model_id in ids if ids.count(model_id) > 1}):
        msg = f"two receipts have the model_id {repeated_ids[0]!r}: give one of the models "
        msg += "another name with `geneb-harness run --model-id`"
        raise OptionError(msg)
    for receipt in receipts:
        if receipt.benchmark != benchmark.sha256:
            msg = (
                f"{receipt.model_id}: its benchmark definition has the sha256 {receipt.benchmark}, "
                f"expected {benchmark.sha256} of {benchmark.name}: pass the data and the "
                "definition of the receipt's benchmark as --data and --benchmark"
            )
            raise OptionError(msg)
    tasks = tuple(
        task.id for task in benchmark.tasks if all(task.id in receipt.tasks for receipt in receipts)
    )
    if not tasks:
        msg = f"the receipts have no task of {benchmark.name} in common, expected at least one"
        raise OptionError(msg)
    return tasks


def probe_receipts(request: ProbeRequest, listener: Listener) -> Probes:
    """Print the estimated cost, fit every kind of probe on every task, and return the scores.

    Raise DataError or ProbeError, which name receipt and task; OptionError for a missing file.
    """
    started = time.perf_counter()
    jobs = list(_jobs(request))
    _refuse_missing_files(jobs)
    estimate = estimated_cost(
        (TaskOfReceipt(job.task_id, job.receipt) for job in jobs),
        request.benchmark,
        request.kinds,
        has_full_regime=any(
            name not in request.benchmark.protocol.few_shot_k for name in request.regimes
        ),
        seeds=len(request.seeds),
    )
    workers = min(request.workers, len(jobs))
    listener.say(
        cost_sentence(
            estimate, len(request.receipts), len(request.tasks), len(request.kinds), workers
        )
    )
    probed: dict[tuple[str, str], ProbedTask] = {}
    library_by_key: dict[tuple[str, str, str, int], LibraryRef] = {}
    with Pool[ProbedTask](workers) as pool:
        for job in jobs:
            pool.submit(job)
        while pool.waiting:
            for task in pool.results(block=True):
                probed[task.model_id, task.task_id] = task
                for library in task.libraries:
                    ref = LibraryRef(**library)
                    library_by_key[(ref.library, ref.version, ref.kernel, ref.threads)] = ref
                listener.finish(f"{task.model_id}: {task.task_id}", _summary(task))
    return _probes_document(
        request, probed, [library_by_key[key] for key in sorted(library_by_key)], started
    )


def _jobs(request: ProbeRequest) -> Iterator[ProbeJob]:
    """Yield one job per receipt and task, the largest first, so that none is left for the end."""
    pairs = [(receipt, task) for receipt in request.receipts for task in request.tasks]
    for receipt, task in sorted(pairs, key=lambda pair: -pair[0].tasks[pair[1]].bytes):
        yield ProbeJob(
            receipt.model_id,
            task,
            receipt_file(receipt.folder, task),
            receipt.tasks[task],
            request.benchmark,
            request.source,
            request.kinds,
            request.regimes,
            request.seeds,
        )


def _refuse_missing_files(jobs: list[ProbeJob]) -> None:
    """Raise an error that names every missing file of a receipt."""
    missing_files = [str(job.file) for job in jobs if not job.file.is_file()]
    if missing_files:
        msg = (
            f"files of a receipt are missing: {first_and_more(missing_files)}: pass the complete "
            "folder"
        )
        raise OptionError(msg)


def _summary(task: ProbedTask) -> str:
    """Return a text with the MCC of each kind of probe in the first regime."""
    by_kind = [next(iter(cells.items())) for cells in task.scores.values()]
    scores = zip(task.scores, by_kind, strict=True)
    return ", ".join(f"{kind} {cell.scores.MCC:.3f}" for kind, (_, cell) in scores) + (
        f" ({by_kind[0][0]})"
    )


def _probes_document(
    request: ProbeRequest,
    probed: Mapping[tuple[str, str], ProbedTask],
    library_refs: list[LibraryRef],
    started: float,
) -> Probes:
    """Return the scores of all receipts with the ranks that follow."""

    def by_task(model_id: str, kind: str, regime: str) -> dict[str, ProbeScores]:
        return {task: probed[model_id, task].scores[kind][regime] for task in request.tasks}

    model_ids = [receipt.model_id for receipt in request.receipts]
    standings_by_regime = {
        regime: {
            kind: standings(
                {name: by_task(name, kind, regime) for name in model_ids}, request.benchmark
            )
            for kind in request.kinds
        }
        for regime in request.regimes
    }
    dataset = request.benchmark.dataset
    return Probes(
        benchmark=BenchmarkRef(name=request.benchmark.name, sha256=request.benchmark.sha256),
        dataset=DatasetRef(
            repo_id=dataset.repo_id, revision=dataset.revision, verified=request.source.verified
        ),
        harness=environment.harness(),
        packages=environment.packages(),
        libraries=library_refs,
        kinds=list(request.kinds),
        seeds=list(request.seeds),
        tasks=list(request.tasks),
        receipts={
            receipt.model_id: ProbedReceipt(
                root=receipt.root,
                dim=next(iter(receipt.tasks.values())).dim,
                scores={
                    kind: {name: by_task(receipt.model_id, kind, name) for name in request.regimes}
                    for kind in request.kinds
                },
            )
            for receipt in request.receipts
        },
        standings=standings_by_regime,
        agreement={
            regime: rank_agreements(by_kind) for regime, by_kind in standings_by_regime.items()
        },
        seconds=round(time.perf_counter() - started, 6),
    )
