"""Read submissions by several processes, with their results reduced to arrays of numbers."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from geneb_ci.board.confusion import row_matrices
from geneb_ci.board.means import row_statistics
from geneb_ci.check.claims import Results
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.parallel import in_processes, jobs_for
from geneb_ci.statistics.metrics import RowStatistics
from geneb_ci.submission.document import Document, read_document
from geneb_ci.submission.structure import check_structure, fits_format_1_0
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import Submission, SubmissionV10

ROWS_AT_ONCE = 25
"""Rows that a process reads in one go."""
RowErrors = Callable[[Submission, Results, Benchmark], Mapping[str, Any]]
"""`uncertainty.row_scores_by_regime`: returns the scores of a row with their errors, by regime."""
_EMPTY_MEMBERS: dict[str, Any] = {"results": {}, "evidence": {}}
"""Members of a submission in place of those that are reduced to arrays."""


class BoardSubmission(NamedTuple):
    """A submission with the digests by which its evidence is looked up."""

    sha256: str
    """Digest of the file."""
    origin: str
    """Digest of the file of format 1.0 that it was upgraded from, else of the file itself."""
    scorer: str
    """Digest of the scorer that its run names, or ""."""
    submission: Submission
    numbers: RowStatistics | None = None
    """Its scores as arrays; if present, `submission` has empty results and evidence."""

    @classmethod
    def of(
        cls, document: Document, submission: Submission, numbers: RowStatistics | None = None
    ) -> Self:
        """Return the submission that was read from a document."""
        return cls(document.sha256, document.origin, document.scorer, submission, numbers)


class CheckedFile(NamedTuple):
    """A file, and its SHA-256 when it was checked."""

    path: Path
    sha256: str


def read_row(file: CheckedFile) -> BoardSubmission | None:
    """Return the submission in a file; None if the file has no valid submission.

    Raises UsageProblem if the file has changed since it was checked.
    """
    document = _document(file)
    submission, _ = check_structure(document.value)
    if submission is None:
        return None
    return BoardSubmission.of(document, submission)


def read_numbers(
    files: Sequence[CheckedFile],
    benchmark: Benchmark,
    *,
    errors_of: RowErrors | None = None,
    jobs: int | None = None,
) -> Iterator[BoardSubmission | None]:
    """Yield each submission with its numbers instead of its results, in the order of the files.

    A file without a valid submission yields None. `errors_of` computes the standard
    errors of a row; it is not called if a task's size is unknown. `jobs` is the number of
    processes; None chooses it by the number of files.
    Raises UsageProblem as `read_row` does.
    """
    errors_of = None if unknown_sizes(benchmark) else errors_of
    read_slim_row = functools.partial(_row_with_numbers, benchmark=benchmark, errors_of=errors_of)
    return in_processes(read_slim_row, files, jobs or jobs_for(len(files)), ROWS_AT_ONCE)


def unknown_sizes(benchmark: Benchmark) -> list[str]:
    """Return the ids of the tasks whose number of test sequences is unknown."""
    return [task.id for task in benchmark.tasks if task.n_test is None]


def _document(file: CheckedFile) -> Document:
    """Return the document of a file. Raises UsageProblem if it changed after it was checked."""
    document = read_document(file.path)
    if document.sha256 != file.sha256:
        raise UsageProblem(f"{file.path} changed while it was checked", "run the command again")
    return document


def _row_with_numbers(
    file: CheckedFile, benchmark: Benchmark, errors_of: RowErrors | None
) -> BoardSubmission | None:
    """Return the submission in a file with its numbers in place of its results."""
    document = _document(file)
    submission: Submission | None
    if fits_format_1_0(document.value):  # typed scores would take longer than all the rest
        submission = SubmissionV10.model_validate(document.value | {"results": {}})
    else:
        submission, _ = check_structure(document.value)
    if submission is None:
        return None
    results = document.value["results"]
    numbers = row_statistics(submission, results, benchmark)
    numbers = numbers._replace(matrices=row_matrices(submission, results, benchmark))
    if errors_of is not None:
        numbers = numbers._replace(errors=errors_of(submission, results, benchmark))
    empty_members = {
        member: empty for member, empty in _EMPTY_MEMBERS.items() if hasattr(submission, member)
    }
    slim_row = submission.model_copy(update=empty_members)
    return BoardSubmission.of(document, slim_row, numbers)
