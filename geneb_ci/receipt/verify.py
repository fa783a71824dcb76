"""Verify the receipt of a submission without a model: its claims, its files, and every cell.

Each step has a name, which a refusal contains. Steps after a refused one are not computed.
"""

import dataclasses
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from geneb_ci.check.registry import select
from geneb_ci.check.runner import Checker
from geneb_ci.common.config import Finder, Layout, find_layout
from geneb_ci.common.errors import NothingChecked, ResultRefused, UsageProblem
from geneb_ci.common.finding import Finding, Severity, first_and_more, known_name, name_hint
from geneb_ci.harness.process import (
    NO_LIMIT_OVERRIDES,
    HarnessProcess,
    ScoringLimitOverrides,
    TaskSource,
    task_source,
)
from geneb_ci.receipt.cells import (
    CellDifference,
    RemainingTime,
    claims_canonical_scores,
    computed_cells,
    cost_of,
    differences_from_claims,
    recomputed_cells,
)
from geneb_ci.receipt.embeddings import FILES, TREE, VALUES, EmbeddingsRefused
from geneb_ci.receipt.predictions import PredictionsRefused, read_predictions
from geneb_ci.receipt.source import ReceiptFiles, receipt_files
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.receipt_cells import ReceiptCells
from reference_harness.formats.submission import EmbeddingReceipt, SubmissionV12
from reference_harness.formats.text import Say, plural, silent

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

CLAIMS, EQUAL, CELLS, PREDICTED = "claims", "equality", "cells", "predictions"
STEPS = (CLAIMS, FILES, VALUES, TREE, EQUAL, CELLS, PREDICTED)
"""The steps in order; the last exists if the receipt has predictions and all its tasks are
verified."""
REQUIRED_RULES = (
    *("structure", "ranges", "arithmetic", "coverage"),
    *("wrong-receipt", "wrong-benchmark", "wrong-dataset-revision"),
)
"""Families and rules that the file must pass, since the numbers of a receipt depend on them."""
IGNORED_RULES = ("missing-regime", "missing-task", "missing-evidence")
"""Rules that do not apply, since a run of only some tasks also has a receipt."""
EXACT_DTYPES = frozenset({"float64", "float32"})
"""Dtypes whose noise is below the rounding of a receipt; larger noise could hide a label."""
StepResult = Literal["held", "refused", "unknown"]
"""The state of a step, unknown after a refused one."""


class ReceiptStep(NamedTuple):
    """One step of the verification."""

    name: str
    state: StepResult
    """Whether the step held or was refused."""
    reason: str = ""
    """Reason of the refusal; "" if the step was not refused."""
    fix: str = ""
    """Advice about the refusal."""


@dataclass(frozen=True)
class ReceiptVerification:
    """The result of verifying one receipt."""

    file: str
    model_id: str
    receipt: EmbeddingReceipt
    tasks: tuple[str, ...]
    """The verified tasks, in the benchmark's order."""
    steps: tuple[ReceiptStep, ...]
    """The state of each step."""
    cells: ReceiptCells | None = None
    """The recomputed cells; None if an earlier step was refused."""
    differences: tuple[CellDifference, ...] = ()
    """Claims that differ from the recomputed cells, and cells without a claim."""

    @property
    def holds(self) -> bool:
        """Whether every step held."""
        return all(step.state == "held" for step in self.steps)

    @property
    def refused(self) -> ReceiptStep | None:
        """The refused step, or None."""
        refusals = [step for step in self.steps if step.state == "refused"]
        return refusals[0] if refusals else None

    @property
    def embedding_count(self) -> int:
        """Number of embeddings of the verified tasks."""
        receipt_tasks = (self.receipt.tasks[task] for task in self.tasks)
        return sum(entry.train + entry.test for entry in receipt_tasks)

    @property
    def computed_count(self) -> int:
        """Number of cells computed from the receipt."""
        return sum(1 for _ in computed_cells(self.cells)) if self.cells else 0

    @property
    def unclaimed_count(self) -> int:
        """Number of computed cells without a claim."""
        return sum(difference.is_unclaimed for difference in self.differences)

    @property
    def equal_count(self) -> int:
        """Number of computed cells that equal their claims."""
        return self.computed_count - len(
            {(difference.regime, difference.task) for difference in self.differences}
        )

    @property
    def weakness(self) -> str:
        """Reason why an audit of the receipt raises no trust level; "" if there is none."""
        if self.receipt.compute_dtype not in EXACT_DTYPES:
            return f"it was computed in {self.receipt.compute_dtype}"
        return "TF32 was allowed on its device" if self.receipt.tf32 else ""


@dataclass(frozen=True)
class ReceiptRequest:
    """A receipt to verify, and the inputs of its verification."""

    file: Path
    """File of the submission."""
    folder: Path | None = None
    """Folder of the receipt's files; None: they are downloaded."""
    mirror: str | None = None
    """Address or data set from which to download the files instead of the published ones."""
    cache: Path | None = None
    """Folder in which downloaded files are kept."""
    data: Path | None = None
    """Folder of task data."""
    definition: Path | None = None
    """File of the benchmark definition; None: the one that `geneb-ci check` uses."""
    tasks: tuple[str, ...] = ()
    """Tasks to verify; empty: all of the receipt."""
    options: ScoringLimitOverrides = NO_LIMIT_OVERRIDES
    """Limits of scoring a task that the user set."""
    say: Say = silent
    """Called with each line of progress."""


@dataclass(frozen=True)
class ReceiptSubject:
    """A submission with a receipt, and the errors that the required rules found in it."""

    path: Path
    submission: SubmissionV12
    receipt: EmbeddingReceipt
    benchmark: Benchmark
    layout: Layout
    errors: tuple[Finding, ...]
    """Errors that the rules of `REQUIRED_RULES` found."""


def layout_finder(definition: Path | None) -> Finder:
    """Return a function that finds the settings of a folder, with `definition` as the benchmark."""
    if definition is None:
        return find_layout
    return lambda folder: dataclasses.replace(find_layout(folder), benchmark=definition.resolve())


def receipt_subject(path: Path, definition: Path | None = None) -> ReceiptSubject:
    """Return the submission in a file, with the errors of its claims.

    Raises NothingChecked for a file that cannot be read or has no receipt, BadConfiguration for
    invalid settings.
    """
    checker = Checker(select(REQUIRED_RULES, IGNORED_RULES), find=layout_finder(definition))
    context = checker.context(path)
    check = checker.run_rules(context)
    errors = tuple(finding for finding in check.findings if finding.severity is Severity.ERROR)
    submission = context.submission
    if not isinstance(submission, SubmissionV12) or submission.receipt is None:
        if errors:
            raise NothingChecked(
                f"{path} cannot be read as a submission: {errors[0].message}",
                f"run `geneb-ci check {path}`, and fix what it finds",
            )
        raise NothingChecked(
            f"{path} has no receipt",
            "write one with `geneb-harness run --receipt DIR --submission FILE`",
        )
    layout = checker.find(context.document.path.parent)
    return ReceiptSubject(path, submission, submission.receipt, context.benchmark, layout, errors)


def chosen_receipt_tasks(subject: ReceiptSubject, chosen: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the chosen tasks of a receipt, by default all, in the benchmark's order.

    Raises UsageProblem for a task that the receipt lacks.
    """
    available = list(subject.receipt.tasks)
    if unknown := [task for task in chosen if known_name(task, available) is None]:
        raise UsageProblem(
            f"--tasks {first_and_more(unknown)}: the receipt has no such task"
            f"{name_hint(unknown[0], available)}",
            f"name tasks of the receipt: {first_and_more(available)}",
        )
    chosen = [str(known_name(task, available)) for task in chosen]
    order = [task for task in subject.benchmark.task_ids if task in available]
    return tuple(task for task in order if not chosen or task in chosen)


def verify_receipt(request: ReceiptRequest) -> ReceiptVerification:
    """Return the result of verifying the receipt of a submission.

    The expected cost is reported first. Raises NothingChecked if an input of a step is missing,
    LimitExceeded for embeddings that cannot be scored within the limits, UsageProblem and
    BadConfiguration.
    """
    subject = receipt_subject(request.file, request.definition)
    run = _Verification(request, subject)
    if subject.errors:
        error_texts = [f"{error.pointer or '/'}: {error.message}" for error in subject.errors]
        fix = f"run `geneb-ci check {request.file}`, which lists every error"
        return run.refused_result(CLAIMS, first_and_more(error_texts, 3), fix)
    definition = request.definition or subject.layout.benchmark
    source = task_source(subject.benchmark, definition, request.data)
    files = receipt_files(
        subject.receipt, request.folder, mirror=request.mirror, cache=request.cache, say=request.say
    )
    with files, HarnessProcess() as harness:
        to_fetch, with_canonical = (
            files.bytes_to_fetch(list(run.tasks)),
            claims_canonical_scores(subject.submission),
        )
        request.say(
            cost_of(subject.receipt, run.tasks, to_fetch, with_canonical=with_canonical).text
        )
        return run.verified(files, source, harness)


class _Verification:
    """One verification of a receipt, after the check of the claims."""

    def __init__(self, request: ReceiptRequest, subject: ReceiptSubject) -> None:
        self.request = request
        self.subject = subject
        self.tasks = chosen_receipt_tasks(subject, request.tasks) if not subject.errors else ()

    def verified(
        self, files: ReceiptFiles, source: TaskSource, harness: HarnessProcess
    ) -> ReceiptVerification:
        """Return the result of all steps, up to the first that is refused."""
        if files.is_local and (refusals := list(self._file_refusals(files))):
            first = min(refusals, key=lambda refusal: STEPS.index(refusal.step))
            other_count = len(refusals) - 1
            others_text = (
                f"; {plural(other_count, 'other file')} refused as well" if other_count else ""
            )
            return self.refused_result(first.step, f"{first.message}{others_text}", first.fix)
        try:
            predicted = self._predictions_file(files)
            cells, truths = self._recomputed_cells(files, source, harness)
        except EmbeddingsRefused as error:
            return self.refused_result(error.step, error.message, error.fix)
        except ResultRefused as error:
            return self.refused_result(CELLS, error.message, error.fix)
        return self._compared_with_cells(predicted, cells, truths)

    def _recomputed_cells(
        self, files: ReceiptFiles, source: TaskSource, harness: HarnessProcess
    ) -> tuple[ReceiptCells, "dict[str, npt.NDArray[np.int64]]"]:
        """Return the recomputed cells, and the test labels by task if predictions are verified."""
        truths: dict[str, npt.NDArray[np.int64]] = {}
        with tempfile.TemporaryDirectory(prefix="geneb-ci-labels-") as folder:
            labels_folder = Path(folder) if self.verifies_predictions else None

            def keep_labels(task: str, _file: Path) -> None:
                if labels_folder is not None:
                    truths[task] = _take_labels(labels_folder, task)

            cells = recomputed_cells(
                self.request.file, self.subject.receipt, files, source, harness, self.tasks,
                benchmark=self.subject.benchmark, options=self.request.options,
                say=self.request.say, labels_folder=labels_folder, on_file=keep_labels,
            )  # fmt: skip
        return cells, truths

    def _compared_with_cells(
        self,
        predicted: Path | None,
        cells: ReceiptCells,
        truths: "dict[str, npt.NDArray[np.int64]]",
    ) -> ReceiptVerification:
        """Return the result after comparing the claims and the predictions with the cells."""
        if cells.unequal:
            return self.refused_result(EQUAL, "; ".join(cells.unequal), _EQUALITY_FIX, cells)
        cell_differences = differences_from_claims(self.subject.submission, cells)
        wrong_cells = {
            (difference.regime, difference.task)
            for difference in cell_differences
            if not difference.is_unclaimed
        }
        if wrong_cells:
            reason = (
                f"{plural(len(wrong_cells), 'cell')} claimed with other values than those computed "
                "from the receipt"
            )
            return self.refused_result(CELLS, reason, _CELLS_FIX, cells, cell_differences)
        if contradictions := self._prediction_contradictions(predicted, truths, cells):
            reason = first_and_more(contradictions, 3)
            return self.refused_result(PREDICTED, reason, _CELLS_FIX, cells, cell_differences)
        return self._result(None, cells, cell_differences)

    @property
    def verifies_predictions(self) -> bool:
        """Whether predictions are verified: only if there are any and all tasks are verified."""
        return self.subject.receipt.predictions is not None and not self.request.tasks

    def _predictions_file(self, files: ReceiptFiles) -> Path | None:
        """Return the file of predictions, or None if they are not verified.

        Raises EmbeddingsRefused for another file than the receipt's, before cells are computed.
        """
        try:
            return files.predictions() if self.verifies_predictions else None
        except PredictionsRefused as error:
            raise EmbeddingsRefused(FILES, error.message) from error

    def _prediction_contradictions(
        self,
        path: Path | None,
        truths: "dict[str, npt.NDArray[np.int64]]",
        cells: ReceiptCells,
    ) -> list[str]:
        """Return a sentence for each part of predictions.bin that contradicts claims or cells."""
        from geneb_ci.receipt.predicted import differing_predictions  # NumPy is slow

        subject, expected = self.subject, self.subject.receipt.predictions
        if path is None:
            return []
        try:
            predictions = read_predictions(path, subject.benchmark, expected)
        except PredictionsRefused as error:
            return [error.message]
        return differing_predictions(
            subject.submission, predictions, subject.benchmark, truths, cells
        )

    def _file_refusals(self, files: ReceiptFiles) -> Iterator[EmbeddingsRefused]:
        """Yield the refusal of each wrong file of a local folder, before anything is computed."""
        sizes = [self.subject.receipt.tasks[task].bytes for task in self.tasks]
        remaining = RemainingTime(sum(sizes))
        for number, task in enumerate(self.tasks):
            if remaining.is_due():
                time_left = remaining.text(sum(sizes[:number]))
                self.request.say(f"read {number} of {len(self.tasks)} files{time_left}")
            with _collected_refusals() as refusals:
                files.file(task)
            yield from refusals
        with _collected_refusals() as refusals:
            self._predictions_file(files)
        yield from refusals

    def refused_result(
        self,
        step: str,
        reason: str,
        fix: str,
        cells: ReceiptCells | None = None,
        differences: Sequence[CellDifference] = (),
    ) -> ReceiptVerification:
        """Return the result of a verification that ended at a refused step."""
        return self._result(ReceiptStep(step, "refused", reason, fix), cells, differences)

    def _result(
        self,
        refused: ReceiptStep | None,
        cells: ReceiptCells | None,
        differences: Sequence[CellDifference],
    ) -> ReceiptVerification:
        """Return the result: the steps before `refused` held, and those after are unknown."""
        step_names = STEPS if self.verifies_predictions else STEPS[:-1]
        refused_index = step_names.index(refused.name) if refused is not None else len(step_names)
        steps = [ReceiptStep(name, "held") for name in step_names[:refused_index]]
        if refused is not None:
            steps.append(refused)
            steps += [ReceiptStep(name, "unknown") for name in step_names[refused_index + 1 :]]
        return ReceiptVerification(
            file=str(self.request.file),
            model_id=self.subject.submission.model_id,
            receipt=self.subject.receipt,
            tasks=self.tasks,
            steps=tuple(steps),
            cells=cells,
            differences=tuple(differences),
        )


_EQUALITY_FIX = (
    "equal sequences have equal embeddings: ask for a receipt that `geneb-harness run --receipt` "
    "wrote"
)
_CELLS_FIX = "write submission and receipt together: geneb-harness run --receipt DIR --submission F"


def _take_labels(folder: Path, task: str) -> "npt.NDArray[np.int64]":
    """Return the test labels of a task that the harness wrote, and remove the files."""
    import numpy as np

    with np.load(folder / f"{task}.npz", allow_pickle=False) as archive:
        labels: npt.NDArray[np.int64] = archive["test_labels"]
    for path in folder.glob(f"{task}.*"):
        path.unlink()
    return labels


@contextmanager
def _collected_refusals() -> Iterator[list[EmbeddingsRefused]]:
    """Yield a list; a refusal raised in the block is added to it, not passed on."""
    refusals: list[EmbeddingsRefused] = []
    try:
        yield refusals
    except EmbeddingsRefused as error:
        refusals.append(error)
