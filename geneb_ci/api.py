"""The Python interface: check, fix, build, and the other commands (docs/developer/python.md).

The commands of the same names parse options, call these functions and print what they return. A
function imports the modules that it needs when it is called, so that commands start fast. Paths are
relative to the current folder, whose repository and settings are used, as on the command line.
"""

import contextlib
import datetime as dt
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geneb_ci.check.report import Report, Verdict, named_files, read_baseline
from geneb_ci.common.config import Finder, Layout, benchmark_of, find_layout, layout_finder
from geneb_ci.common.errors import BadConfiguration, NothingChecked, UsageProblem
from geneb_ci.render.formats import DEFAULT_WIDTH, render, verdict_of
from reference_harness.formats.processes import module_command
from reference_harness.formats.text import Say, plural, silent

if TYPE_CHECKING:
    import pandas as pd

    from geneb_ci.audit.rerun.prepare import Machine
    from geneb_ci.audit.sampling.beacon_source import BeaconSource
    from geneb_ci.check.cached import CachedChecker
    from geneb_ci.check.fixes import Fixed
    from geneb_ci.check.folder_context import ComparisonRows
    from geneb_ci.check.rule import Rule
    from geneb_ci.render.results import (
        AuditResult,
        BuiltBoard,
        CommandResult,
        ModelComparison,
        Recommendation,
        RowTrust,
        Verifications,
    )
    from geneb_ci.situation.table import NextStep

PathLike = str | os.PathLike[str]
"""A path, as a text or an object."""
Progress = Callable[[Iterable[Any], int], Iterator[Any]]
"""A function that yields the elements of an iterable, given with its length, and may show
progress."""
STDIN = "-"
"""Name in findings of a submission that was given as bytes, or on standard input."""


def _no_progress(results: Iterable[Any], _: int) -> Iterator[Any]:
    """Yield the results, and show no progress."""
    return iter(results)


@dataclass
class CheckReport(Report):
    """Findings of a check, in order, and the files that could not be checked."""

    @property
    def verdict(self) -> Verdict:
        """The verdict: errors outweigh unchecked files, which outweigh warnings."""
        return verdict_of(self)

    def text(self, width: int = DEFAULT_WIDTH, format_: str = "text") -> str:
        """Return what `geneb-ci check --format FORMAT` prints.

        Raises UsageProblem for an unknown format.
        """
        return render(format_, self, width=width)

    def to_json(self) -> str:
        """Return what `geneb-ci check --format json` prints."""
        return render("json", self)

    def _repr_html_(self) -> str:
        """Return the findings as a table, for a notebook."""
        from geneb_ci.render.results import findings_html  # for a notebook alone

        return findings_html(self)


@contextlib.contextmanager
def _notebook_report() -> Iterator[None]:
    """Add a report that notebooks show as a table to a SubmissionsRefused of the block."""
    from geneb_ci.board.board import SubmissionsRefused  # 0.3 s

    try:
        yield
    except SubmissionsRefused as error:
        error.report = _check_report(error.report)
        raise


def next_step(
    role: str | None = None,
    *,
    repository: str | None = None,
    space: str | None = None,
    now: dt.datetime | None = None,
) -> "NextStep":
    """Return the state of the work in the current folder, and the next command.

    `role` is "contributor" or "maintainer"; None means the role whose work the folder contains.
    Nothing is written, no code of a submission is run, and only the named servers are asked:
    `repository` on GitHub, with the token in GH_TOKEN, and `space` on the Hub. `now` is the time;
    None means the present. Raises UsageProblem for another role, or without a token;
    BadConfiguration where settings or policy cannot be used; and another GenebError where a server
    does not answer.
    """
    from geneb_ci.common.finding import exact_name
    from geneb_ci.situation.step import step_in
    from geneb_ci.situation.table import Role

    chosen_role = None
    if role is not None:
        role_names = [str(value) for value in Role]
        fix = 'pass role="contributor" or role="maintainer"'
        chosen_role = Role(exact_name(role, role_names, "role", fix))
    return step_in(Path.cwd(), chosen_role, repository, space, now or dt.datetime.now(dt.UTC))


def check(
    *sources: PathLike | bytes,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    against: PathLike | None = None,
    isolated: bool = False,
    config_from: PathLike | None = None,
    baseline: PathLike | None = None,
    jobs: int | None = None,
    cache: bool = True,
    progress: Progress = _no_progress,
) -> CheckReport:
    """Check submissions: files, folders, or the bytes of one file.

    Without sources, the submissions of the repository are checked. `against` is "shipped", "none"
    or a folder of rows; `jobs` is the number of processes, None means as many as the files need;
    without `cache` every result is computed again. A path that cannot be read is in `unreadable` of
    the report, as are settings errors that affect only some files. Raises UsageProblem for an
    unknown rule, folder or baseline, and BadConfiguration if settings, benchmark or policy cannot
    be used for any file.
    """
    from geneb_ci.check.cached import CachedChecker
    from geneb_ci.check.folder_context import comparison_rows_of
    from geneb_ci.check.registry import chosen_rule_ids

    find = layout_finder(
        isolated=isolated, config_from=None if config_from is None else Path(config_from)
    )
    layout = find(Path.cwd())
    rules = chosen_rule_ids((*layout.select, *select), (*layout.ignore, *ignore))
    known_findings = None if baseline is None else read_baseline(Path(baseline))
    comparison_rows = comparison_rows_of(None if against is None else os.fspath(against), find)
    if any(isinstance(source, bytes) for source in sources):
        report = _check_bytes(sources, rules, find, comparison_rows)
    else:
        paths = [Path(source) for source in sources if not isinstance(source, bytes)]
        files, unreadable = named_files(paths or _submissions_folder(layout), find)
        checker = CachedChecker(rules, find, comparison_rows, cache=cache, jobs=jobs)
        report = _check_files(files, unreadable, checker, progress)
    report.findings.sort(key=lambda finding: finding.sort_key())
    if known_findings is not None:
        report.remove_known(known_findings, rules)
    return report


def check_branch(base: str | None = None, *, say: Say = silent) -> CheckReport:
    """Check the commit HEAD of a clone as the server would check a pull request to `base`.

    `base` is a branch or commit; None means the first that exists of main of the remote `upstream`,
    of `origin` and of the clone. The verdict is in `proposal` of the report. Raises NothingChecked
    outside of a clone of submissions, if no base is found, or if HEAD adds nothing to the base; and
    BadRepository if git fails.
    """
    from geneb_ci.publish.git import require_clone

    if base is None:
        require_clone(Path.cwd())
    from geneb_ci.github.verdict.branch import judge_branch  # 0.3 s

    return _check_report(judge_branch(Path.cwd(), base, say).report)


def check_pull(number: int, *, repo: str | None = None, say: Say = silent) -> CheckReport:
    """Check an open pull request as the server does, and compare it with the other open ones.

    All of them are read over GitHub's API. `repo` is OWNER/NAME; default: GITHUB_REPOSITORY. The
    verdict is in `proposal` of the report. Raises UsageProblem without a repository or where no
    such pull request is open, and GitHubProblem where GitHub does not answer.
    """
    from geneb_ci.github.open_pull import judge_pull  # of the extra
    from geneb_ci.github.verdict.branch import report_of

    return _check_report(report_of(judge_pull(number, repo, say), "main"))


def _check_report(report: Report) -> CheckReport:
    """Return a report of the checks as a CheckReport, which has the methods for Python."""
    return CheckReport(**{field.name: getattr(report, field.name) for field in fields(Report)})


def _submissions_folder(layout: Layout) -> list[Path]:
    """Return the repository's folder of submissions, as the only element of a list.

    Raises UsageProblem outside of a repository.
    """
    if layout.submissions is None:
        raise UsageProblem(
            "no submission is named, and the current folder is not in a repository",
            "name a submission: geneb-ci check submission.json",
        )
    return [Path(os.path.relpath(str(layout.submissions)))]


def _check_files(
    files: list[Path],
    unreadable: list[NothingChecked],
    checker: "CachedChecker",
    progress: Progress,
) -> CheckReport:
    """Return the report on all files.

    If no file could be checked, a BadConfiguration is raised; else it is added to the report.
    """
    report = CheckReport(rules=len(checker.rules), unreadable=[*unreadable])
    try:
        for file_result in progress(checker.run(files), len(files)):
            if isinstance(file_result, NothingChecked):
                report.unreadable.append(file_result)
            else:
                report.add_findings(file_result)
    except BadConfiguration as error:
        if not report.files:
            raise
        report.unreadable.append(error)
    report.benchmarks = checker.benchmarks
    return report


def _check_bytes(
    sources: Sequence[PathLike | bytes],
    rules: tuple[str, ...],
    find: Finder,
    comparison_rows: "ComparisonRows | None",
) -> CheckReport:
    """Check the bytes of one submission, as if it were a file outside a folder of submissions.

    Raises UsageProblem where there is more than one source.
    """
    from geneb_ci.check.registry import select as select_rules  # imports the rules
    from geneb_ci.check.runner import Checker
    from geneb_ci.submission.reading import too_large
    from geneb_ci.submission.structure import check_structure
    from reference_harness.formats.submission_terms import SUBMISSION_BYTES_MAX

    (raw, *further_sources) = sources
    if further_sources or not isinstance(raw, bytes):
        raise UsageProblem(
            f"{STDIN} (standard input) is named with {plural(len(sources) - 1, 'other file')}, "
            "expected none",
            "check standard input and the files with two commands",
        )
    content = too_large(len(raw)) if len(raw) > SUBMISSION_BYTES_MAX else raw
    checker = Checker(select_rules(rules, ()), check_structure, find, comparison_rows)
    report = CheckReport(rules=len(rules))
    # A folder that does not exist, so that it is in no folder of submissions.
    report.add(checker.check_bytes(content, Path.cwd() / STDIN / STDIN, STDIN))
    report.benchmarks = checker.benchmarks
    return report


def rules(*, select: Iterable[str] = (), ignore: Iterable[str] = ()) -> "list[Rule]":
    """Return the rules that `check` runs, ordered by family, without settings of the repository.

    `select` and `ignore` name rules or families, as in `check`. Raises UsageProblem for an unknown
    name, and where no rule is left.
    """
    from geneb_ci.check.registry import select as rules_by_name  # imports the rules

    return list(rules_by_name(select, ignore))


def fix(*paths: PathLike, write: bool = True) -> "list[Fixed]":
    """Fix errors that have only one fix, in files or folders, and return one result per file.

    Without `write` nothing is written: `diff()` of each result shows what would change. Raises
    NothingChecked for a path without submissions, UsageProblem for a file that cannot be written,
    and BadConfiguration as `check` does.
    """
    from geneb_ci.check.fixes import fixed_file
    from geneb_ci.check.runner import Checker, files_of

    layout = find_layout(Path.cwd())
    files = files_of([Path(path) for path in paths] or _submissions_folder(layout))
    checker = Checker(())
    repairs = [fixed_file(path, checker) for path in files]
    for repair in repairs if write else ():
        repair.write()
    return repairs


def build(
    folder: PathLike | None = None,
    *,
    diagnostics: bool = True,
    parquet: bool = False,
    out: PathLike | None = None,
    cache: bool = True,
    jobs: int | None = None,
    progress: Progress = _no_progress,
) -> "BuiltBoard":
    """Build the board of the submissions in `folder`, by default those of the repository.

    With `out`, write the board and its page into this folder; with `parquet`, also write tables.
    `cache` and `jobs` are those of `check`. Raises SubmissionsRefused for submissions with errors,
    NothingChecked for a folder without submissions, and UsageProblem where an extra is missing or
    `out` cannot be written.
    """
    from geneb_ci.board import board as boards  # 0.3 s
    from geneb_ci.render.results import BuiltBoard

    if parquet:
        from geneb_ci.render.export_tables import parquet_of
    path, example = None if folder is None else Path(folder), "geneb-ci build FOLDER --output DIR"
    layout, paths = boards.submission_files_at(path, example)
    if out is not None:
        boards.require_separate_output(Path(out), layout, paths)
    numbers = boards.KeptNumbers.ERRORS if diagnostics else boards.KeptNumbers.SCORES
    with _notebook_report():
        rows = boards.checked_rows(
            layout,
            paths,
            progress,
            numbers=None if parquet else numbers,  # Parquet tables contain every result
            jobs=jobs,
            cache=cache,
        )
    board = boards.board_of(rows, layout, has_intervals=diagnostics, jobs=jobs)
    tables = parquet_of(rows, layout) if parquet else {}
    built = BuiltBoard(
        board.files.with_files(tables),
        board.models,
        board.unranked,
        board.unsized,
        page=functools.partial(boards.page_files_of, rows, board, layout),
        write_all=functools.partial(boards.write_board, rows, board, layout, jobs=jobs),
        tables=tables,
    )
    if out is not None:
        built.write(Path(out))
    return built


def board(
    folder: PathLike | None = None,
    *,
    cache: bool = True,
    jobs: int | None = None,
    progress: Progress = _no_progress,
) -> "pd.DataFrame":
    """Return every score of the submissions of a folder as one long table.

    Each line is one score. The columns are model, task, category, regime, metric, value and
    standard_error; docs/developer/python.md describes them. The default folder has the submissions
    of the repository; `cache` and `jobs` are those of `check`. Raises SubmissionsRefused for
    submissions with errors, NothingChecked for a folder without submissions, and UsageProblem
    without the extra `tables`.
    """
    from geneb_ci.board import board as boards  # 0.3 s
    from geneb_ci.board.rows import extra_required

    with extra_required():
        from geneb_ci.board.frame import score_frame  # pandas
    path = None if folder is None else Path(folder)
    layout, paths = boards.submission_files_at(path, "geneb_ci.board(FOLDER)")
    with _notebook_report():
        rows = boards.checked_rows(layout, paths, progress, jobs=jobs, cache=cache)
    return score_frame(rows, benchmark_of(layout))


def verify(
    *records: PathLike,
    submissions: PathLike | None = None,
    cells: bool = False,
    receipt: PathLike | None = None,
    data: PathLike | None = None,
    evidence: str | None = None,
    say: Say = silent,
    progress: Progress = _no_progress,
) -> "Verifications":
    """Verify audit records, given as files or folders, from public data.

    Without `records`, all records of the repository are verified. `submissions` is the folder of
    their submissions, by default the repository's. With `cells`, cells and embeddings of audits by
    receipt are computed again, from the files of the receipt in the folder `receipt` and the task
    data in the folder `data`. With `evidence`, `rated` of the result says of each submission
    whether it has at least this evidence. A record that does not verify raises no exception: see
    `hold` of the result. Raises NothingChecked if there is no record, and UsageProblem for
    `receipt` or `data` without `cells`.
    """
    from geneb_ci.audit.record.recompute_embeddings import (
        receipt_tools_of,
        verification_with_embeddings,
    )
    from geneb_ci.audit.record.repository import AuditRepository
    from geneb_ci.audit.record.statement import named_records  # cryptography
    from geneb_ci.audit.trust.evidence import rated_submissions
    from geneb_ci.render.results import Verifications
    from geneb_ci.submission.reading import located

    submissions_folder = Path(submissions).resolve() if submissions is not None else None
    repository = AuditRepository(find_layout(Path.cwd()), submissions_folder)
    files = named_records(map(Path, records)) or repository.files
    lost_statements = [] if records else list(repository.lost_statements())
    if not files and not lost_statements:
        fix = "name a record, or run the command in a repository with records"
        raise NothingChecked("there is no record to verify", fix)
    if not cells and (receipt is not None or data is not None):
        raise UsageProblem(
            "--receipt and --data have no effect without --cells",
            "add --cells, or leave out --receipt and --data",
        )
    receipt_folder, data_folder = (None if f is None else Path(f) for f in (receipt, data))
    receipt_tools = (
        receipt_tools_of(repository.layout, receipt_folder, data_folder, say) if cells else None
    )

    def verified_files() -> Iterator[Any]:
        for path in files:
            record_name = str(path) if records else os.path.relpath(path)
            yield verification_with_embeddings(
                repository, located(path), record_name, receipt_tools, is_named=bool(records)
            )

    verifications = Verifications([*progress(verified_files(), len(files)), *lost_statements])
    verifications.rated = rated_submissions(repository, verifications, evidence) if evidence else ()
    return verifications


def audit(
    file: PathLike,
    *,
    sample: str = "tasks",
    size: str | None = None,
    receipt: PathLike | None = None,
    near: PathLike | None = None,
    machine: "Machine | None" = None,
    source: "BeaconSource | None" = None,
    commitment: PathLike | None = None,
    committed_at: str | None = None,
    earlier: Iterable[PathLike] = (),
    work: PathLike | None = None,
    key: PathLike | None = None,
    unsigned: bool = False,
    output: PathLike | None = None,
    dry_run: bool = False,
    shown_on: str | None = None,
    again: str = "",
    say: Say = silent,
    show: Say = silent,
) -> "AuditResult":
    """Take as many steps of the audit of a file as possible now; another call continues from them.

    `sample` is what is drawn: "tasks", or "embeddings" of the submission's receipt, of which `size`
    is "standard", "full" or the number of test embeddings of each regime. `receipt` is the folder
    of the receipt, `near` a folder with receipts of other models; both are fetched unless given.
    `machine` has the options of the rerun, `source` those of the beacon. `key` is the private key
    that signs the record, which is written below `output`; with `unsigned` no record is written.
    `committed_at` is the time of publication of the digest, in UTC: without it the audit stops and
    returns the digest. `shown_on` is the commit on GitHub whose status contains the digest. `again`
    is the command line that the result's next command repeats. `say` is called with lines of
    progress, `show` with lines of output. A claim that differs raises no exception: see `state` of
    the result. Raises UsageProblem for options that contradict each other, and another GenebError
    where the audit is refused or fails.
    """
    from geneb_ci.audit.record.signing import check_record_options
    from geneb_ci.audit.rerun.prepare import Machine
    from geneb_ci.audit.samples import sample_by_name
    from geneb_ci.audit.sampling.beacon_source import BeaconSource
    from geneb_ci.audit.workflow import AuditRequest, audit_file
    from geneb_ci.publish.git import has_remote
    from geneb_ci.render.results import AuditResult
    from geneb_ci.situation.after_record import command_after_record

    def path_of(path: PathLike | None) -> Path | None:
        return None if path is None else Path(path)

    paths = {"commitment": commitment, "work": work, "key": key, "output": output}
    path_options: dict[str, Any] = {name: path_of(path) for name, path in paths.items()}
    check_record_options(path_options["key"], path_options["output"], unsigned=unsigned)
    layout = find_layout(Path.cwd())
    request = AuditRequest(
        file=Path(file),
        sample=sample_by_name(
            sample,
            size=size,
            receipt=path_of(receipt),
            near=path_of(near),
            earlier=tuple(map(Path, earlier)),
        ),
        machine=machine or Machine(),
        source=source or BeaconSource(),
        committed_at=committed_at,
        unsigned=unsigned,
        dry_run=dry_run,
        shown_on=shown_on,
        command=again or f"geneb-ci audit {file}",
        has_remote=has_remote(layout.root),
        **path_options,
    )
    progress = audit_file(request, layout, say, show)
    if progress.record is not None:
        progress = progress._replace(next=command_after_record(progress.record))
    return AuditResult(**progress._asdict())


def recommend(
    folder: PathLike | None = None,
    *,
    category: str | None = None,
    species: str | None = None,
    regime: str = "full",
    max_params: int | str | None = None,
    memory: float | None = None,
    evidence: str | None = None,
    margin: float | None = None,
    cache: bool = True,
    progress: Progress = _no_progress,
) -> "Recommendation":
    """Return the models of a folder that meet a need, ordered by their mean over matching tasks.

    The folder contains submissions, which are checked first, or a board that `build` wrote.
    `species` is a species or a kingdom. `regime` is a regime, or "hundreds" for hundreds of
    labelled examples, which lie between two regimes. `max_params` is a number or a text such as
    "500M", `memory` is the GPU's memory in gigabytes, `margin` the loss of MCC that is accepted for
    a smaller model. Letter case of names does not matter. Without `cache`, every result is computed
    again. Where no task matches or no model meets the need, `regimes` is empty. Raises UsageProblem
    for an unknown name, and the exceptions of `build`.
    """
    from geneb_ci.board.advice import DEFAULT_MARGIN, has_built_board, model_request  # pydantic
    from geneb_ci.board.rows import extra_required
    from geneb_ci.render.results import Recommendation

    path = None if folder is None else Path(folder)
    margin = DEFAULT_MARGIN if margin is None else margin
    need = model_request(category, species, regime, max_params, memory, evidence, margin)
    with extra_required(", which brings numpy"), _notebook_report():
        if path is not None and has_built_board(path):
            from geneb_ci.board.recommend import advise_built  # 0.3 s

            advice = advise_built(path, need, margin)
        else:
            from geneb_ci.board.board import advice_of

            advice = advice_of(path, need, margin, progress, cache=cache)
    return Recommendation.model_construct(**dict(advice))


def compare(
    a: PathLike,
    b: PathLike,
    *,
    resamples: int | None = None,
    benchmark: PathLike | None = None,
) -> "ModelComparison":
    """Compare two submissions or run records: MCC of `a` less that of `b`, with 95 % intervals.

    Name each as on the command line: a file, or FILE=DIR with the folder of its predictions. If
    both have predictions, the intervals come from `resamples` resamples of the test sequences,
    otherwise of the tasks (default: 2,000). `benchmark` is the file of another benchmark
    definition. `regimes` of the result has the regimes that both models have. Raises UsageProblem
    for the same model twice, or for two benchmarks; and NothingChecked for a file that cannot be
    read, or if no score of the two models can be compared.
    """
    from geneb_ci.receipt.compared import RESAMPLES, compared_regimes, scored_model  # 0.3 s
    from geneb_ci.render.results import ModelComparison

    models = (os.fspath(a), os.fspath(b))
    if models[0] == models[1]:
        raise UsageProblem(
            f"both models are {models[0]}, expected two different models",
            "name another model as the second one",
        )
    definition = None if benchmark is None else Path(benchmark)
    first, second = (scored_model(name, definition) for name in models)
    regimes = compared_regimes(first, second, RESAMPLES if resamples is None else resamples)
    return ModelComparison(first.model_id, second.model_id, regimes)


def trust(folder: PathLike | None = None, *, progress: Progress = _no_progress) -> "RowTrust":
    """Return the evidence of every submission in `folder`, from checks and audits.

    The default folder has the submissions of the repository. A file with errors becomes a row
    without a decision. Raises UsageProblem or NothingChecked where the folder has no submissions,
    and BrokenRecordError for a record that cannot be read.
    """
    from geneb_ci.audit.trust.evidence import gather_evidence  # cryptography
    from geneb_ci.board.board import layout_of_folder  # 0.3 s
    from geneb_ci.check.registry import RULES
    from geneb_ci.check.runner import Checker, FileResult, files_of
    from geneb_ci.common.finding import Severity
    from geneb_ci.render.results import RowTrust
    from geneb_ci.render.rows import RowEvidence, row_evidence_of

    path = None if folder is None else Path(folder)
    layout = layout_of_folder(path, "geneb-ci trust FOLDER")
    evidence = gather_evidence(layout)
    evidence.require_sound()
    files = files_of([path or layout.root])
    rows = RowTrust()
    results = progress(Checker(RULES).run(files), len(files))
    for file, result in zip(files, results, strict=True):
        if isinstance(result, FileResult):
            errors = sum(finding.severity is Severity.ERROR for finding in result.findings)
            rows.append(row_evidence_of(file.stem, result.document, errors, evidence))
        else:
            rows.append(RowEvidence(file.stem, None, (result.message,)))
    return rows


def command(*words: PathLike) -> "CommandResult":
    """Run any command of `geneb-ci` in a process of its own, and return what it printed.

    `words` are the words after `geneb-ci`, such as "figures", "board", "--format", "json". Standard
    input is empty, so the command cannot ask questions. The function returns when the command ends,
    so do not call it with `serve`. An error of the command raises no exception: see `exit_code` of
    the result.
    """
    import subprocess  # beside its use: no other function needs it

    from geneb_ci.render.results import CommandResult

    process = subprocess.run(  # noqa: S603 (our own module)
        [*module_command("geneb_ci"), *map(str, words)],
        stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False,
        env=os.environ | {"PYTHONUTF8": "1"},
    )  # fmt: skip
    return CommandResult(process.returncode, process.stdout, process.stderr)
