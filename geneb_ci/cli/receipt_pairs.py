"""The commands `geneb-ci receipt predictions`, `near` and `pairs`."""

from pathlib import Path
from typing import NamedTuple

import click

from geneb_ci.check.runner import files_of
from geneb_ci.cli.main import echo
from geneb_ci.cli.receipt import BENCHMARK_OPTION
from geneb_ci.cli.shared import format_option
from geneb_ci.common.config import benchmark_of, find_layout
from geneb_ci.common.errors import Exit, GenebError, NothingChecked, UsageProblem
from geneb_ci.receipt.near import ReceiptSample, nearness_of, sample_of
from geneb_ci.receipt.predicted import claim_contradictions, shared_errors_of
from geneb_ci.receipt.predictions import PREDICTIONS_FILE, Predictions, read_predictions
from geneb_ci.receipt.seen import PAIRS, write_notes
from geneb_ci.receipt.source import receipt_files, size_text
from geneb_ci.receipt.verify import ReceiptSubject, receipt_subject
from geneb_ci.render.receipts import nearness_json, nearness_text
from geneb_ci.submission.document import read_document
from geneb_ci.submission.structure import check_structure
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import EmbeddingReceipt, SubmissionV12
from reference_harness.formats.text import plural

_RECEIPT_METAVAR = "FILE|DIR"
RECEIPTS_COMPARED = 2
"""Number of receipts that a comparison takes."""
_RECEIPT_ARGUMENT_HELP = """

    X.json or X means the submission X.json with the files of its receipt in the folder X; write
    FILE=DIR if the receipt is in another folder."""
_NEARNESS_WRITERS = {"text": nearness_text, "json": nearness_json}
"""Functions that write a comparison of two receipts, by format."""


class NamedReceipt(NamedTuple):
    """A receipt that the command line names, with its submission."""

    subject: ReceiptSubject
    folder: Path

    def predictions(self) -> Predictions | None:
        """Return the predictions beside the receipt; None where the receipt names none."""
        file = self.subject.receipt.predictions
        if file is None:
            return None
        return read_predictions(self.folder / PREDICTIONS_FILE, self.subject.benchmark, file)

    def required_predictions(self) -> Predictions:
        """Return the predictions. Raises NothingChecked where the receipt names none."""
        predictions = self.predictions()
        if predictions is None:
            raise NothingChecked(
                f"{self.subject.path}: the receipt names no {PREDICTIONS_FILE}",
                f"write {PREDICTIONS_FILE} with `geneb-harness run --receipt DIR --submission "
                "FILE`",
            )
        return predictions


def _named_receipt(word: str, definition: Path | None) -> NamedReceipt:
    """Return the receipt that an argument names: FILE=DIR, or X.json or X for X.json=X.

    Raises NothingChecked for a submission without a receipt, and UsageProblem without DIR.
    """
    file_name, _, folder_name = word.partition("=")
    file, folder = Path(file_name), Path(folder_name)
    if not folder_name:
        stem = file.with_suffix("") if file.suffix == ".json" else file
        file, folder = stem.with_name(f"{stem.name}.json"), stem
    subject = receipt_subject(file, definition)
    if not folder.is_dir():
        raise UsageProblem(
            f"{folder}: no such folder",
            "pass FILE=DIR, where DIR is the folder of the receipt",
        )
    return NamedReceipt(subject, folder)


def _two_receipts(
    arguments: tuple[str, ...], definition: Path | None
) -> tuple[NamedReceipt, NamedReceipt]:
    """Return the two receipts that the arguments name.

    Raises UsageProblem unless there are two different ones, of the same benchmark.
    """
    if len(arguments) != RECEIPTS_COMPARED:
        raise UsageProblem(
            f"found {plural(len(arguments), 'argument')}, expected two submissions with receipts",
            "pass one.json two.json, or FILE=DIR for a receipt in a folder of another name",
        )
    first, second = (_named_receipt(word, definition) for word in arguments)
    if first.subject.path.samefile(second.subject.path) and first.folder.samefile(second.folder):
        raise UsageProblem(
            f"both files are {first.subject.path}, expected submissions of two models",
            "pass the submission of another model as the second argument",
        )
    digests = {receipt.subject.submission.run.benchmark.sha256 for receipt in (first, second)}
    if digests != {first.subject.benchmark.sha256}:
        raise UsageProblem(
            f"the runs have the benchmark definitions {' and '.join(sorted(digests))}, "
            f"expected {first.subject.benchmark.sha256} ({first.subject.benchmark.name}) for both",
            "if both were run with another definition, pass it: --benchmark FILE",
        )
    return first, second


def _two_model_ids(*receipts: NamedReceipt) -> tuple[str, str]:
    """Return the model ids of two receipts."""
    first, second = (receipt.subject.submission.model_id for receipt in receipts)
    return first, second


@click.command(
    help="Compare matrices and digests of FILE with its predictions.bin." + _RECEIPT_ARGUMENT_HELP
)
@click.argument("word", metavar=_RECEIPT_METAVAR)
@BENCHMARK_OPTION
def predictions_command(word: str, definition: Path | None) -> int:
    """Compare a submission with the predictions beside its receipt."""
    receipt = _named_receipt(word, definition)
    predictions = receipt.required_predictions()
    if not predictions.tasks:
        raise NothingChecked(
            "predictions.bin has no task, so nothing was compared",
            "write predictions.bin again: geneb-harness run --receipt DIR --submission FILE",
        )
    contradiction_lines = claim_contradictions(
        receipt.subject.submission, predictions, receipt.subject.benchmark
    )
    for line in contradiction_lines:
        echo(line)
    tasks = plural(len(predictions.tasks), "task")
    echo(
        f"{plural(len(contradiction_lines), 'contradiction')} in {tasks}" if contradiction_lines
        else f"{tasks}: every matrix and digest follows from the predictions"
    )  # fmt: skip
    return Exit.ERRORS if contradiction_lines else Exit.CLEAN


@click.command(
    help="Compare the embeddings of two receipts: do they come from one model?"
    + _RECEIPT_ARGUMENT_HELP
)
@click.argument("receipts", metavar=f"{_RECEIPT_METAVAR} {_RECEIPT_METAVAR}", nargs=-1)
@BENCHMARK_OPTION
@format_option(_NEARNESS_WRITERS)
def near_command(receipts: tuple[str, ...], definition: Path | None, format_: str) -> int:
    """Compare the embeddings of two receipts, and print whether they come from one model."""
    pair = _two_receipts(receipts, definition)
    first, second = (_receipt_sample(receipt) for receipt in pair)
    click.echo(
        _NEARNESS_WRITERS[format_](_two_model_ids(*pair), nearness_of(first, second)), nl=False
    )
    return Exit.CLEAN


def _receipt_sample(named_receipt: NamedReceipt) -> ReceiptSample:
    """Return the embeddings of a receipt that a comparison of two receipts reads."""
    receipt, benchmark = named_receipt.subject.receipt, named_receipt.subject.benchmark
    with receipt_files(receipt, named_receipt.folder) as files:
        return sample_of(files, receipt, benchmark, named_receipt.predictions())


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@click.option(
    "--receipts",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder with receipts on this machine, one subfolder per model; the others are fetched.",
)
@click.option("--write", "is_written", is_flag=True, help="Write the result to the policy folder.")
def pairs_command(paths: tuple[Path, ...], receipts: Path | None, is_written: bool) -> int:
    """Measure how similar the errors of two rows are, for all rows with published predictions.

    Without FILE, all submissions of the repository are read. With --write the result is written to
    leaderboard/policy/pairs.json, from which the board computes the standard error of the
    difference of each pair. Predictions that contradict their submission, or cannot be read or
    fetched, are left out and named, and the exit code is 11.
    """
    layout = find_layout(Path.cwd())
    if is_written and layout.policy is None:
        raise UsageProblem(
            "the current folder is not in a board's repository: no policy folder was found",
            "run the command in the board's repository",
        )
    benchmark = benchmark_of(layout)
    rows: dict[Path, tuple[SubmissionV12, EmbeddingReceipt, Path | None]] = {}
    to_fetch = left_out_count = 0
    for path in files_of(paths or [Path()]):
        submission, _ = check_structure(read_document(path, spans=False).value)
        if submission is None:
            left_out_count += 1
            echo(f"{path}: cannot be read; `geneb-ci check {path}` says why")
        receipt = submission.receipt if isinstance(submission, SubmissionV12) else None
        if not isinstance(submission, SubmissionV12) or receipt is None:
            continue
        if receipt.predictions is not None:
            folder = receipts / submission.model_id if receipts is not None else None
            receipt_folder = folder if folder is not None and folder.is_dir() else None
            rows[path] = submission, receipt, receipt_folder
            to_fetch += 0 if receipt_folder is not None else receipt.predictions.bytes
    echo(f"{plural(len(rows), 'row')} with predictions, {size_text(to_fetch)} to fetch")
    predictions: dict[str, Predictions] = {}
    for path, (submission, receipt, receipt_folder) in rows.items():
        objection = _add_predictions(submission, receipt, receipt_folder, benchmark, predictions)
        left_out_count += bool(objection)
        echo(f"{path}: {objection or 'included'}")
    shared = shared_errors_of(predictions, benchmark)
    echo(f"{plural(len(predictions), 'row')} included, {left_out_count} left out")
    if is_written and layout.policy is not None:
        write_notes(layout.policy / PAIRS, shared)
        echo(f"wrote {layout.policy / PAIRS}")
    return Exit.ERRORS if left_out_count else Exit.CLEAN


def _add_predictions(
    submission: SubmissionV12,
    receipt: EmbeddingReceipt,
    folder: Path | None,
    benchmark: Benchmark,
    predictions_by_model: dict[str, Predictions],
) -> str:
    """Return why the predictions of a row cannot be used; "" after adding them to the mapping.

    The mapping is `predictions_by_model`.
    """
    try:
        with receipt_files(receipt, folder) as files:
            path = files.predictions()
            if path is None:
                return "its receipt has no predictions"
            predictions = read_predictions(path, benchmark, receipt.predictions)
    except GenebError as error:
        return error.message
    if contradiction_texts := claim_contradictions(submission, predictions, benchmark):
        return f"{plural(len(contradiction_texts), 'contradiction')}: {contradiction_texts[0]}"
    predictions_by_model[submission.model_id] = predictions
    return ""
