"""Commands about rows and the board: `recommend`, `matrices`, `label`, `diff`."""

from pathlib import Path

import click

from geneb_ci.audit.trust_evidence import gather
from geneb_ci.board.board import advised
from geneb_ci.board.matrices import recovered
from geneb_ci.board.recommend import TRUST, ModelRequest, parameters
from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker, FileResult, files_of
from geneb_ci.cli.repository import (
    FOLDER,
    Loaded,
    layout_here,
    layout_of,
    load,
)
from geneb_ci.cli.shared import STDOUT, Output, format_option, row_width, watched, write
from geneb_ci.common.config import benchmark_of
from geneb_ci.common.errors import Exit, NothingChecked, UsageProblem
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.publish.comparison import compare
from geneb_ci.render.comparison import WRITERS
from geneb_ci.render.rows import (
    ADVICE_WRITERS,
    MATRICES_WRITERS,
    LabelRow,
    labels_json,
    labels_text,
    matrices_text,
    row_of,
)
from geneb_ci.render.tables import fitted
from geneb_ci.submission.document import Document
from geneb_ci.submission.kind import FileKind, other_kind, require_file


@click.command()
@FOLDER
@click.option("--category", help='Such as "Splice Sites"; default: mean over categories.')
@click.option(
    "--regime",
    default="full",
    show_default=True,
    help="Amount of training data: full, 10shot or 1shot.",
)
@click.option(
    "--max-params", metavar="COUNT", help="Maximum number of parameters, such as 500M or 1.2B."
)
@click.option("--level", type=click.Choice(TRUST), help="Minimum trust level.")
@format_option(ADVICE_WRITERS)
@click.option("--output", default=STDOUT, metavar="FILE", help="File to write.")
def recommend_command(
    folder: Path | None,
    category: str | None,
    regime: str,
    max_params: str | None,
    level: str | None,
    format_: str,
    output: str,
) -> int:
    """Recommend a model of FOLDER: the best score, models tied with it, and the smallest of them.

    Every submission is checked first. Models are tied if their scores do not differ significantly
    (docs/uncertainty.md). The exit code is 3 if no model meets size and level.
    """
    most = None if max_params is None else parameters(max_params)
    need = ModelRequest(category=category, regime=regime, max_params=most, level=level)
    loaded = load(folder, "nothing was recommended", "recommend FOLDER")
    if not isinstance(loaded, Loaded):
        return loaded
    advice = advised(need, loaded.entries, benchmark_of(loaded.layout))
    text = ADVICE_WRITERS[format_](advice)
    columns = row_width(output)
    write(Output(format_, output), fitted(text, columns) if format_ == "text" else text)
    return Exit.NOT_CHECKED if advice.best is None else Exit.CLEAN


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--regime",
    default="full",
    show_default=True,
    help="Regime of the cells: full, 10shot or 1shot.",
)
@format_option(MATRICES_WRITERS)
@click.option("--output", default=STDOUT, metavar="FILE", help="File to write.")
def matrices_command(file: Path, regime: str, format_: str, output: str) -> int:
    """Recover the confusion matrix of each two-class cell of a submission.

    Unrounded scores determine one matrix. Rounded scores fit several; the nearest is shown. Means
    over seeds have none, so per-seed scores (format 1.1) are used. The exit code is 11 if no matrix
    gives the scores of a cell.
    """
    require_file(file, FileKind.SUBMISSION, "matrices")
    context = Checker(()).context(file)
    if not FileKind.SUBMISSION.fits(context.document.value):
        reason = other_kind(context.document.value, FileKind.SUBMISSION)
        raise NothingChecked(
            f"{file}: {reason or _not_a_submission(context.document)}", FileKind.SUBMISSION.fix
        )
    if regime not in context.benchmark.regimes:
        raise UsageProblem(
            f"{quoted(regime)} is not a regime of {context.benchmark.name}",
            f"use one of {', '.join(context.benchmark.regimes)}",
        )
    cells = list(recovered(context, regime))
    if not cells:
        raise NothingChecked(
            f'{file}: "{regime}" has no scores of single fits on two-class tasks',
            "use `--regime full` or a file of format 1.1, since means over seeds have no matrix; "
            "run `geneb-ci check` for errors of the file",
        )
    columns = row_width(output)
    is_text = format_ == "text"
    text = matrices_text(cells, columns) if is_text else MATRICES_WRITERS[format_](cells)
    write(Output(format_, output), text)
    return Exit.CLEAN if all(cell.matrices for cell in cells) else Exit.ERRORS


def _not_a_submission(document: Document) -> str:
    reason = document.faults[0].message if document.faults else 'the member "results" is missing'
    return f"this is not a submission: {reason}"


_RENDER = {"text": labels_text, "json": labels_json}


@click.command()
@FOLDER
@format_option(_RENDER)
def label_command(folder: Path | None, format_: str) -> int:
    """Compute the trust level of every submission of FOLDER from checks and audits."""
    layout = layout_of(folder, "label FOLDER")
    evidence = gather(layout)
    evidence.require_sound()
    files = files_of([folder or layout.root])
    rows: list[LabelRow] = []
    for path, result in zip(
        files, watched(Checker(RULES).run(files), len(files), "checking"), strict=True
    ):
        if not isinstance(result, FileResult):
            rows.append(LabelRow(path.stem, None, (result.message,)))
            continue
        errors = sum(finding.severity is Severity.ERROR for finding in result.findings)
        rows.append(row_of(path.stem, result.document.sha256, errors, evidence))
    text = _RENDER[format_](rows)
    click.echo(fitted(text, row_width()) if format_ == "text" else text, nl=False)
    return Exit.CLEAN if all(row.decision is not None for row in rows) else Exit.ERRORS


@click.command()
@click.option("--base", required=True, metavar="REF", help="Commit, branch or tag to compare with.")
@format_option(WRITERS)
@click.option("--output", default=STDOUT, metavar="FILE", help="File to write.")
def diff_command(base: str, format_: str, output: str) -> int:
    """Compare the board of the working tree with the board of REF.

    Lists rows added, changed and removed, changes of rank by macro MCC of each regime, and which of
    them are not significant. REF is read from git; it is not checked out, and none of its code is
    run. The exit code is 11 if a submission of the working tree has errors.
    """
    found = compare(layout_here(), base)
    write(Output(format_, output), WRITERS[format_](found))
    return Exit.ERRORS if found.refused else Exit.CLEAN
