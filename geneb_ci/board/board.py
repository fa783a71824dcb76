"""Make the files of a board from submissions; nothing is built unless every check passes."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from geneb_ci.audit.sampling.design import audit_policy
from geneb_ci.board.advice import (
    DEFAULT_MARGIN,
    Advice,
    ModelRequest,
    has_built_board,
    model_request,
)
from geneb_ci.board.columns import Row, row_of
from geneb_ci.board.marks import letters_read, marks_of, read_defects, row_decider
from geneb_ci.board.means import ranked_regimes
from geneb_ci.board.page import INDEX, delete_former_scripts, page_files, with_data, write_page
from geneb_ci.board.page_data import page_scripts
from geneb_ci.board.parts import (
    BoardSubmission,
    CheckedFile,
    RowErrors,
    read_numbers,
    read_row,
    unknown_sizes,
)
from geneb_ci.board.rows import (
    DIAGNOSTICS,
    LEADERBOARD,
    TASKS,
    board_file_chunks,
    extra_required,
    figure_inputs,
    leaderboards,
)
from geneb_ci.board.site.inputs import Site, SourceCommit, site_of
from geneb_ci.board.tables import (
    CODEBOOK_FILE,
    PAGE_TABLES,
    VALUES_CSV,
    VALUES_PARQUET,
    codebook,
    csv_text,
    parquet_text,
    values_table,
)
from geneb_ci.board.texts import Texts
from geneb_ci.check.cached import CachedChecker
from geneb_ci.check.registry import chosen_rule_ids
from geneb_ci.check.rule import Rule
from geneb_ci.check.runner import Checker, FileResult, Report, files_of
from geneb_ci.common.config import Layout, LayoutKind, benchmark_of, find_layout
from geneb_ci.common.errors import Exit, GenebError, NothingChecked, UsageProblem
from geneb_ci.common.files import ChunkedText, write_files
from geneb_ci.common.finding import Finding, Severity
from geneb_ci.common.parallel import in_processes, jobs_for
from geneb_ci.models.registry import ModelRegistry
from geneb_ci.models.tasks import TaskNotes, task_notes
from geneb_ci.receipt.seen import published_state, read_receipt_notes, read_shared_errors
from geneb_ci.submission.reading import files_in
from reference_harness.formats.benchmark import Benchmark

CheckResults = Iterable[Any]
"""CheckResults of checks of submissions, one after the other."""
WatchResults = Callable[[CheckResults, int], CheckResults]
"""Returns the results that it is given, and may show progress meanwhile; the integer is their
number."""
RowMaker = Callable[[BoardSubmission, Iterable[Finding]], Row]
"""Returns the row of a submission, given the findings of its checks."""


def row_maker(layout: Layout) -> RowMaker:
    """Return a function that makes the row of a checked submission, with its trust level.

    Raises BadConfiguration, and BrokenRecordError where an audit record is broken.
    """
    decide_row = row_decider(layout)
    registry, defects = ModelRegistry(layout), read_defects(layout)
    receipts_seen, days = read_receipt_notes(layout), audit_policy(layout).receipt_days
    covariances, benchmark = read_shared_errors(layout), benchmark_of(layout)

    def make_row(checked: BoardSubmission, findings: Iterable[Finding]) -> Row:
        submission = checked.submission
        decision = decide_row(checked.sha256, checked.origin, checked.scorer)
        is_official = decision.is_official
        marks = marks_of(submission.model_id, findings, defects, is_official=is_official)
        receipt = published_state(submission, receipts_seen, days)
        letters = letters_read(submission, benchmark)
        row = row_of(submission, decision, registry, marks, receipt, letters)
        return dataclasses.replace(
            row, shared_errors=covariances, sha256=checked.sha256, numbers=checked.numbers
        )

    return make_row


class RejectedSubmission(NamedTuple):
    """A submission that fails a check, and therefore is no row of a board."""

    file: str
    """Path of the file."""
    errors: int
    """Number of findings that are errors; 0 if the file could not be read as a submission."""
    rules: tuple[str, ...] = ()
    """Ids of the rules that found these errors, without repetition."""


class CheckedFolder(NamedTuple):
    """The result of checking a folder: rows that passed, and submissions that did not."""

    rows: tuple[Row, ...]
    """Rows of the submissions that passed."""
    refused: tuple[RejectedSubmission, ...]
    """Submissions that did not pass."""


def read_checked_rows(root: Path, rules: tuple[Rule, ...]) -> CheckedFolder:
    """Read every submission of a repository, each checked by `rules`.

    Raises NothingChecked if there is no submission, BadConfiguration if the benchmark or the policy
    cannot be used, BrokenRecordError if an audit record is broken.
    """
    rows: list[Row] = []
    refused: list[RejectedSubmission] = []
    files = files_of([root])
    make_row = row_maker(find_layout(root))
    for path, result in zip(files, Checker(rules).run(files), strict=True):
        findings = result.findings if isinstance(result, FileResult) else ()
        failed_rules = [finding.rule for finding in findings if finding.severity is Severity.ERROR]
        if failed_rules or not isinstance(result, FileResult) or result.submission is None:
            rule_ids = tuple(dict.fromkeys(failed_rules))
            refused.append(RejectedSubmission(path.name, len(failed_rules), rule_ids))
        else:
            submission = BoardSubmission.of(result.document, result.submission)
            rows.append(make_row(submission, findings))
    return CheckedFolder(tuple(rows), tuple(refused))


class Analyses(NamedTuple):
    """Results that are computed from the standard errors of all rows."""

    diagnostics: dict[str, Any]
    """The content of diagnostics.json."""
    first_advice: Advice
    """Advice that the page shows at first: on all tasks, in the first regime, for any model."""


def analyses_of(
    rows: Iterable[Row],
    benchmark: Benchmark,
    notes: TaskNotes,
    boards: tuple[dict[str, Any], dict[str, Any]] | None = None,
    jobs: int = 1,
) -> Analyses:
    """Return diagnostics.json and the advice that the page begins with.

    `boards` is the result of `leaderboards` for these rows; by default it is computed.
    Raises UsageProblem when the extra `build` is not installed.
    """
    with _build_extra():
        from geneb_ci.board import recommend, uncertainty  # 0.3 s
        from geneb_ci.board.diagnostics import whole
    rows = list(rows)
    scores = uncertainty.scores_by_regime(rows, benchmark)
    contents_by_file = figure_inputs(rows, benchmark, boards)
    advice_facts = recommend.advice_facts_of(rows, scores, benchmark, notes)
    request = model_request(None, None, benchmark.regimes[0], None, None, None, DEFAULT_MARGIN)
    rank_steps: dict[str, Callable[[], Any]] = {
        f"ranks {regime}": functools.partial(uncertainty.ranks_by_score_name, board)
        for regime, board in scores.items()
    }
    # Forked processes inherit the inputs of the steps; only the small results are sent.
    steps = (
        whole.diagnostic_steps(scores, contents_by_file, benchmark)
        | {
            "first": lambda: recommend.advise(
                request, advice_facts, DEFAULT_MARGIN
            ).model_dump_json()
        }
        | rank_steps
    )
    step_names = list(steps)
    step_results = dict(
        zip(step_names, in_processes(lambda name: steps[name](), step_names, jobs, 1), strict=True)
    )
    intervals = uncertainty.ranked_intervals(
        scores, benchmark, {regime: step_results[f"ranks {regime}"] for regime in scores}
    )
    return Analyses(
        whole.diagnostics(rows, benchmark, intervals, step_results),
        Advice.model_validate_json(step_results["first"]),
    )


@dataclass(frozen=True)
class Board:
    """The files of a board by name, and what a build reports about them."""

    files: Texts
    """Contents by file name."""
    scripts: Callable[[], Texts]
    """Returns the data of the page as scripts: a page opened from a disk can fetch no JSON."""
    models: int
    """Number of rows."""
    unranked: tuple[str, ...]
    """Model and regime of each row that is not ranked, since it has missing cells."""
    unsized: tuple[str, ...] = ()
    """Tasks with an unknown number of test sequences; if there are any, no interval is computed."""
    parsed_files: Mapping[str, Any] = field(default_factory=dict)
    """The parsed values of the JSON files, by name."""


class KeptNumbers(Enum):
    """Which numbers are kept of each row instead of its results."""

    SCORES = "scores, means and confusion matrices"
    ERRORS = "standard errors, too, which need the extra `build`"


def checked_rows(
    layout: Layout,
    files: list[Path],
    watch: WatchResults = lambda results, _: results,
    *,
    numbers: KeptNumbers | None = None,
    jobs: int | None = None,
    cache: bool = False,
) -> list[Row]:
    """Check submissions, all of which have to pass, and return their rows.

    With `numbers`, rows have these instead of results. `jobs` is the number of processes; None
    chooses it by the number of files. With `cache`, findings saved by an earlier check of the same
    bytes are used. Raises SubmissionsRefused if one fails, BadConfiguration, BrokenRecordError if
    an audit record is broken, and UsageProblem if a file changed before it was read again.
    """
    errors_of: RowErrors | None = None
    if numbers is KeptNumbers.ERRORS:
        with _build_extra():
            from geneb_ci.board.uncertainty import row_scores_by_regime as errors_of  # numpy: 0.2 s
    make_row = row_maker(layout)
    rule_ids = chosen_rule_ids((), ())
    checker = CachedChecker(rule_ids, jobs=jobs, cache=cache)
    report = Report(rules=len(rule_ids))
    checked: list[CheckedFile] = []
    findings: list[tuple[Finding, ...]] = []
    for path, result in zip(files, watch(checker.run(files), len(files)), strict=True):
        if isinstance(result, NothingChecked):
            report.unreadable.append(result)
        else:
            report.add_findings(result)
            checked.append(CheckedFile(path, result.sha256))
            findings.append(result.findings)
    report.benchmarks = checker.benchmarks
    report.findings.sort(key=Finding.sort_key)
    if not _has_no_error(report):
        raise SubmissionsRefused(report)
    submissions: Iterable[BoardSubmission | None] = (
        map(read_row, checked)
        if numbers is None
        else read_numbers(checked, benchmark_of(layout), errors_of=errors_of, jobs=jobs)
    )
    pairs = zip(submissions, findings, strict=True)
    return [make_row(row, findings_of_row) for row, findings_of_row in pairs if row is not None]


class SubmissionsRefused(GenebError):  # noqa: N818 (named after what is wrong)
    """Not every submission of a board passes the checks; `report` has the findings."""

    exit_code = Exit.ERRORS

    def __init__(self, report: Report) -> None:
        super().__init__(
            "not every submission passes every check",
            "run geneb-ci check FOLDER, or read `report` of this error",
        )
        self.report = report


def is_built_board(folder: Path | None) -> bool:
    """Whether a folder is a built board, and not a repository with a board at its root."""
    if folder is None or not has_built_board(folder):
        return False
    layout = find_layout(folder.resolve())
    return layout.kind is LayoutKind.ALONE or layout.root != folder.resolve()


def layout_of_folder(folder: Path | None, usage: str) -> Layout:
    """Return the layout of the repository of a folder, or of the current folder.

    `usage` is the command that a message suggests. Raises UsageProblem for a built board, and if
    no folder is given and the current one has no submissions.
    """
    layout = find_layout((folder or Path.cwd()).resolve())
    if is_built_board(folder):
        raise UsageProblem(
            f"{folder}: this is a built board, expected a repository or a folder of submissions",
            f"pass the folder that the board was built from: {usage}",
        )
    if folder is None and layout.kind is LayoutKind.ALONE:
        raise UsageProblem("the current folder has no submissions", f"pass a folder: {usage}")
    return layout


def submission_files_at(folder: Path | None, usage: str) -> tuple[Layout, list[Path]]:
    """Return the layout of a folder, or of the current one, and its files of submissions.

    Raises NothingChecked if there is no submission, and UsageProblem as `layout_of_folder` does.
    """
    layout = layout_of_folder(folder, usage)
    if folder is None and layout.submissions is not None and not any(files_in(layout.submissions)):
        raise NothingChecked(
            f"the board has no row yet: {layout.submissions} has no submission",
            "measure a first model: geneb-ci run --data DIR --submission submissions/MODEL.json; "
            "docs/contributor/add-a-model.md has the other options",
        )
    return layout, files_of([folder or layout.root])


def require_separate_output(out: Path, layout: Layout, files: Iterable[Path] = ()) -> None:
    """Raise UsageProblem if the output folder is one that submissions are read from."""
    folders = {file.parent for file in files}
    if layout.submissions is not None:
        folders.add(layout.submissions)
    if out.resolve() in {folder.resolve() for folder in folders}:
        raise UsageProblem(
            f"{out}: submissions are read from this folder, and the files of a board would be "
            "read as submissions",
            "name another folder by --output, such as build/board",
        )


def advice_of(
    folder: Path | None,
    request: ModelRequest,
    margin: float,
    watch: WatchResults = lambda results, _: results,
    *,
    cache: bool = False,
) -> Advice:
    """Check the submissions of a folder and return advice.

    Raises SubmissionsRefused, and UsageProblem for an unknown folder, category or regime.
    """
    with _build_extra():
        from geneb_ci.board.recommend import advise_rows  # numpy: 0.2 s
    layout, files = submission_files_at(folder, "geneb-ci recommend FOLDER")
    rows = checked_rows(layout, files, watch, cache=cache)
    return advise_rows(rows, benchmark_of(layout), task_notes(layout), request, margin)


def _build_extra() -> AbstractContextManager[None]:
    """Wrap imports of packages that only the extra `build` installs."""
    return extra_required("; without it, only `build --no-diagnostics` works")


def _has_no_error(report: Report) -> bool:
    """Whether files were checked, all of them could be read, and none has an error."""
    has_error = any(finding.severity is Severity.ERROR for finding in report.findings)
    return bool(report.files) and not report.unreadable and not has_error


def board_of(
    rows: list[Row],
    layout: Layout,
    *,
    has_intervals: bool = True,
    jobs: int | None = None,
    events: Sequence[Mapping[str, Any]] | None = None,
) -> Board:
    """Return the files of a board.

    `events` are the events of the ledger; None if there is no ledger.

    With `has_intervals`, the board has intervals and advice, which need the extra `build`, unless
    the benchmark lacks the number of test sequences of a task. `jobs` is the number of processes;
    None chooses it by the number of rows.

    Raises BadConfiguration, and UsageProblem if the extra is not installed. A file is made when it
    is first read or written, which raises InvalidBoard if the file does not fit its schema.
    """
    benchmark = benchmark_of(layout)
    jobs = jobs or jobs_for(len(rows))
    notes = task_notes(layout)
    categories, tasks = leaderboards(rows, benchmark, notes)
    parsed_files = {LEADERBOARD: categories, TASKS: tasks}
    unsized, first_advice = unknown_sizes(benchmark) if has_intervals else [], None
    if has_intervals and not unsized:
        analyses = analyses_of(rows, benchmark, notes, (categories, tasks), jobs)
        parsed_files[DIAGNOSTICS], first_advice = analyses
    table = values_table(rows, benchmark, has_errors=has_intervals and not unsized)
    sources: dict[str, ChunkedText] = {
        name: functools.partial(board_file_chunks, name, content)
        for name, content in parsed_files.items()
    }
    sources[VALUES_CSV] = functools.partial(csv_text, table)
    sources[VALUES_PARQUET] = functools.partial(parquet_text, table)
    sources[CODEBOOK_FILE] = [codebook((table, *PAGE_TABLES))].copy
    return Board(
        files=Texts(sources),
        scripts=functools.cache(
            functools.partial(page_scripts, parsed_files, rows, benchmark, events, first_advice)
        ),
        models=len(rows),
        unranked=tuple(_unranked_rows(rows, benchmark)),
        unsized=tuple(unsized),
        parsed_files=parsed_files,
    )


def _unranked_rows(rows: list[Row], benchmark: Benchmark) -> Iterator[str]:
    """Yield model and regime of each row that misses a cell of the regime, as text."""
    for row in rows:
        for regime in benchmark.regimes:
            if regime not in ranked_regimes(row.submission, benchmark):
                yield f"{row.submission.model_id} ({regime})"


def page_files_of(rows: list[Row], board: Board, layout: Layout) -> dict[str, bytes]:
    """Return the contents of the page's files by path, without the files of the board itself."""
    from geneb_ci.board.site.render import site_files  # Jinja2

    site, page = _site_and_page(rows, board, layout)
    return page | board.scripts() | site_files(site)


def write_board(
    rows: list[Row], board: Board, layout: Layout, folder: Path, jobs: int | None = None
) -> None:
    """Write the files of a board and of its page into a folder.

    `jobs` is the number of processes. Raises what `write_files` raises.
    """
    from geneb_ci.board.site.render import write_site  # Jinja2

    scripts = board.scripts()
    sources = board.files.sources | scripts.sources
    write_files(folder, sources, jobs or jobs_for(len(rows)))
    site, page = _site_and_page(rows, board, layout)
    write_page(folder, page)
    delete_former_scripts(folder, scripts)
    write_site(folder, site, jobs)


def _site_and_page(rows: list[Row], board: Board, layout: Layout) -> tuple[Site, dict[str, bytes]]:
    """Return the inputs of the pages, and the files of the page with its data."""
    from geneb_ci.board.site.render import completed_index  # Jinja2

    site = site_of(rows, board.parsed_files, benchmark_of(layout), layout, SourceCommit())
    page = with_data(page_files(), board.scripts())
    page[INDEX] = completed_index(page[INDEX], site)
    return site, page | site.picture
