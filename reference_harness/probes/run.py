"""Probes receipts task by task: each file is read once, and dropped when its task is scored."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from reference_harness import environment
from reference_harness.data import Source
from reference_harness.engine.local import Pool
from reference_harness.errors import OptionError
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.run_record import BenchmarkRef, DatasetRef, LibraryRef, ReceiptTask
from reference_harness.progress import Listener
from reference_harness.receipt.scoring import receipt_in
from reference_harness.receipt.task_file import file_of
from reference_harness.text import first_and_more

from .cost import TaskOfReceipt, cost, sentence
from .job import ProbedTask, ProbeJob
from .ranks import agreement, standings
from .report import ProbedReceipt, Probes, ProbeScores

BETWEEN = "="
"""Between a submission and the folder of its receipt, where that has another name."""


class Receipt(NamedTuple):
    """A submission's receipt, and where its files are."""

    model_id: str
    benchmark: str
    """Digest of the benchmark definition."""
    root: str
    tasks: dict[str, ReceiptTask]
    folder: Path


@dataclass(frozen=True, kw_only=True)
class ProbeRequest:
    """What is to be probed."""

    benchmark: Benchmark
    source: Source
    receipts: tuple[Receipt, ...]
    kinds: tuple[str, ...]
    regimes: tuple[str, ...]
    tasks: tuple[str, ...]
    """In the benchmark's order; every receipt has them."""
    seeds: tuple[int, ...]
    workers: int


def read_receipt(word: str) -> Receipt:
    """Return the receipt that a word of the command line names.

    `X.json` or `X` is the submission X.json with its files in the folder X; `FILE=DIR` is any other
    pair. Raises OptionError when one of the two is missing or cannot be used.
    """
    name, _, place = word.partition(BETWEEN)
    path = Path(name)
    file, folder = path, Path(place)
    if not place:
        stem = path.with_suffix("") if path.suffix == ".json" else path
        file, folder = stem.with_name(f"{stem.name}.json"), stem
    if not file.exists():
        msg = f"{file}: no such file: pass SUBMISSION=FOLDER, or keep both side by side as X.json "
        msg += "and X"
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
        raise OptionError(f"{file}: no submission: run `geneb-ci check {file}`") from error
    if not folder.is_dir():
        msg = f"{folder}: no such folder: pass SUBMISSION=FOLDER to name that of the receipt"
        raise OptionError(msg)
    return receipt


def common_tasks(receipts: tuple[Receipt, ...], benchmark: Benchmark) -> tuple[str, ...]:
    """Return the tasks that every receipt has, in the benchmark's order.

    Raises OptionError for two receipts of one model, one of another benchmark, or none in common.
    """
    ids = [one.model_id for one in receipts]
    if doubled := sorted({one for one in ids if ids.count(one) > 1}):
        msg = f"two receipts have the model_id {doubled[0]!r}: give each a name of its own with "
        msg += "`geneb-harness run --model-id`"
        raise OptionError(msg)
    for one in receipts:
        if one.benchmark != benchmark.sha256:
            msg = f"{one.model_id}: its benchmark definition has the sha256 {one.benchmark}, that "
            msg += f"of {benchmark.name} is {benchmark.sha256}: pass its --data and --benchmark"
            raise OptionError(msg)
    found = tuple(
        task.id for task in benchmark.tasks if all(task.id in one.tasks for one in receipts)
    )
    if not found:
        msg = f"the receipts have no task of {benchmark.name} in common"
        raise OptionError(msg)
    return found


def probe_receipts(asked: ProbeRequest, listener: Listener) -> Probes:
    """Fit every kind of probe on every task, say first what that costs, and return the scores.

    Raises DataError or ProbeError, which name receipt and task; OptionError for a missing file.
    """
    started = time.perf_counter()
    work = list(_work(asked))
    _refuse_missing(work)
    estimate = cost(
        (TaskOfReceipt(job.task_id, job.said) for job in work),
        asked.benchmark,
        asked.kinds,
        full=any(name not in asked.benchmark.protocol.few_shot_k for name in asked.regimes),
        seeds=len(asked.seeds),
    )
    workers = min(asked.workers, len(work))
    listener.say(
        sentence(estimate, len(asked.receipts), len(asked.tasks), len(asked.kinds), workers)
    )
    found: dict[tuple[str, str], ProbedTask] = {}
    used: dict[tuple[str, str, str, int], LibraryRef] = {}
    with Pool[ProbedTask](workers) as pool:
        for job in work:
            pool.submit(job)
        while pool.waiting:
            for one in pool.done(block=True):
                found[one.model_id, one.task_id] = one
                for library in one.libraries:
                    ref = LibraryRef(**library)
                    used[(ref.library, ref.version, ref.kernel, ref.threads)] = ref
                listener.finish(f"{one.model_id}: {one.task_id}", _summary(one))
    return _result(asked, found, [used[key] for key in sorted(used)], started)


def _work(asked: ProbeRequest) -> Iterator[ProbeJob]:
    """Yield one job a receipt and task, largest first, so that no worker is left with it."""
    pairs = [(one, task) for one in asked.receipts for task in asked.tasks]
    for one, task in sorted(pairs, key=lambda pair: -pair[0].tasks[pair[1]].bytes):
        yield ProbeJob(
            one.model_id,
            task,
            file_of(one.folder, task),
            one.tasks[task],
            asked.benchmark,
            asked.source,
            asked.kinds,
            asked.regimes,
            asked.seeds,
        )


def _refuse_missing(work: list[ProbeJob]) -> None:
    missing = [str(job.file) for job in work if not job.file.is_file()]
    if missing:
        msg = f"no such file: {first_and_more(missing)}"
        raise OptionError(msg)


def _summary(one: ProbedTask) -> str:
    """Return the MCC of each kind in the first regime."""
    by_kind = [next(iter(cells.items())) for cells in one.scores.values()]
    scores = zip(one.scores, by_kind, strict=True)
    return ", ".join(f"{kind} {cell.scores.MCC:.3f}" for kind, (_, cell) in scores) + (
        f" ({by_kind[0][0]})"
    )


def _result(
    asked: ProbeRequest,
    found: Mapping[tuple[str, str], ProbedTask],
    used: list[LibraryRef],
    started: float,
) -> Probes:
    def by_task(name: str, kind: str, regime: str) -> dict[str, ProbeScores]:
        return {task: found[name, task].scores[kind][regime] for task in asked.tasks}

    names = [one.model_id for one in asked.receipts]
    places = {
        regime: {
            kind: standings({name: by_task(name, kind, regime) for name in names}, asked.benchmark)
            for kind in asked.kinds
        }
        for regime in asked.regimes
    }
    pin = asked.benchmark.dataset
    return Probes(
        benchmark=BenchmarkRef(name=asked.benchmark.name, sha256=asked.benchmark.sha256),
        dataset=DatasetRef(
            repo_id=pin.repo_id, revision=pin.revision, verified=asked.source.verified
        ),
        harness=environment.harness(),
        packages=environment.packages(),
        libraries=used,
        kinds=list(asked.kinds),
        seeds=list(asked.seeds),
        tasks=list(asked.tasks),
        receipts={
            one.model_id: ProbedReceipt(
                root=one.root,
                dim=next(iter(one.tasks.values())).dim,
                scores={
                    kind: {name: by_task(one.model_id, kind, name) for name in asked.regimes}
                    for kind in asked.kinds
                },
            )
            for one in asked.receipts
        },
        standings=places,
        agreement={regime: agreement(by_kind) for regime, by_kind in places.items()},
        seconds=round(time.perf_counter() - started, 6),
    )
