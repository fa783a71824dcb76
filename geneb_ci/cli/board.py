"""Commands that read the board: `recommend`, `matrices`, `label`, `diff`."""

from pathlib import Path

import click

from geneb_ci.audit import trust_evidence
from geneb_ci.audit.trust_evidence import gather
from geneb_ci.board.board import advised
from geneb_ci.board.matrices import recovered
from geneb_ci.board.recommend import TRUST, ModelRequest, parameters
from geneb_ci.check.registry import BY_ID, RULES
from geneb_ci.check.runner import Checker, FileResult, files_of
from geneb_ci.cli.repository import (
    FOLDER,
    HEAD,
    Loaded,
    layout_here,
    layout_of,
    load,
    repository_here,
)
from geneb_ci.cli.shared import STDOUT, Output, watched, write
from geneb_ci.common.config import benchmark_of, find_layout
from geneb_ci.common.errors import Exit, NothingChecked, UsageProblem
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.publish.comparison import compare
from geneb_ci.publish.git import BadRepository
from geneb_ci.publish.ledger import ledger
from geneb_ci.publish.manifest import Ledger
from geneb_ci.render.comparison import WRITERS
from geneb_ci.render.published import models_of, story
from geneb_ci.render.rows import (
    ADVICE_WRITERS,
    MATRICES_WRITERS,
    LabelRow,
    labels_json,
    labels_text,
    row_of,
)
from geneb_ci.render.text import escape
from geneb_ci.submission.paths import files_in
from geneb_ci.submission.structure import near


@click.command()
@FOLDER
@click.option("--category", help='As in "Splice Sites"; without it, the mean of all categories.')
@click.option("--regime", default="full", show_default=True, help="How much training data.")
@click.option("--max-params", metavar="COUNT", help="The most parameters, as in 500M or 1.2B.")
@click.option("--level", type=click.Choice(TRUST), help="The least trust level.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(list(ADVICE_WRITERS)),
    default="text",
    show_default=True,
)
@click.option("--output", default=STDOUT, metavar="FILE", help="Write here.")
def recommend_command(
    folder: Path | None,
    category: str | None,
    regime: str,
    max_params: str | None,
    level: str | None,
    format_: str,
    output: str,
) -> int:
    """Say which model of FOLDER scores best for a need, what ties with it, and which is smallest.

    Every submission is checked first. A tie is a difference of scores that is smaller than its
    uncertainty: docs/uncertainty.md. The exit code is 3 when no model meets size and level.
    """
    most = None if max_params is None else parameters(max_params)
    need = ModelRequest(category=category, regime=regime, max_params=most, level=level)
    loaded = load(folder, "nothing was recommended", "recommend FOLDER")
    if not isinstance(loaded, Loaded):
        return loaded
    advice = advised(need, loaded.entries, benchmark_of(loaded.layout))
    write(Output(format_, output), ADVICE_WRITERS[format_](advice))
    return Exit.NOT_CHECKED if advice.best is None else Exit.CLEAN


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--regime", default="full", show_default=True, help="Regime whose cells are taken.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(list(MATRICES_WRITERS)),
    default="text",
    show_default=True,
)
@click.option("--output", default=STDOUT, metavar="FILE", help="Write here.")
def matrices_command(file: Path, regime: str, format_: str, output: str) -> int:
    """Recover the confusion matrix behind each two-class cell of a submission.

    Scores with all their digits leave one; rounded ones leave several, and the one nearest to what
    was printed stands for them. A mean over seeds has none: the seeds of format 1.1 are taken.
    The exit code is 11 where a cell has no matrix.
    """
    context = Checker(()).context(file)
    if regime not in context.benchmark.regimes:
        raise UsageProblem(
            f"{quoted(regime)} is not a regime of {context.benchmark.name}",
            f"name one of {', '.join(context.benchmark.regimes)}",
        )
    cells = list(recovered(context, regime))
    if not cells:
        raise NothingChecked(
            f'{file}: "{regime}" has no two-class scores of one fit',
            "means over seeds have no matrix: take `--regime full`, or a file of format 1.1; and "
            "see what `geneb-ci check` says",
        )
    write(Output(format_, output), MATRICES_WRITERS[format_](cells))
    return Exit.CLEAN if all(cell.matrices for cell in cells) else Exit.ERRORS


_RENDER = {"text": labels_text, "json": labels_json}


@click.command()
@FOLDER
@click.option("--format", "form", type=click.Choice(list(_RENDER)), default="text")
def label_command(folder: Path | None, form: str) -> int:
    """Compute the level of every submission of FOLDER from its checks and audits."""
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
    click.echo(_RENDER[form](rows), nl=False)
    return Exit.CLEAN if all(row.decision is not None for row in rows) else Exit.ERRORS


@click.command()
@click.option("--base", required=True, metavar="REF", help="Commit, branch or tag to compare with.")
@click.option(
    "--format", "format_", type=click.Choice(list(WRITERS)), default="text", show_default=True
)
@click.option("--output", default=STDOUT, metavar="FILE", help="Write here.")
def diff_command(base: str, format_: str, output: str) -> int:
    """Say what the working tree does to the board of REF.

    Rows added, changed and removed; rows that trade places, by macro MCC of each regime; and which
    of these moves are inside the noise of a finite test set. REF is read from git and never checked
    out; nothing of it is run. The exit code is 11 where a submission of the working tree has
    errors.
    """
    found = compare(layout_here(), base)
    write(Output(format_, output), WRITERS[format_](found))
    return Exit.ERRORS if found.refused else Exit.CLEAN


_GONE = "not on the board"


def tell(model: str) -> None:
    """Print all that is known of a row, on the board or taken off it.

    Raises UsageProblem where there never was such a row, and BrokenRecordError.
    """
    layout = find_layout(Path.cwd())
    why = trust_evidence.level_reasons(model, layout)
    found, no_history = _history()
    events = list(story(found, model))
    if why is None and not events:
        here = [path.stem for path in files_in(layout.submissions)] if layout.submissions else []
        raise UsageProblem(
            f"{model!r} is neither a rule nor a model here"
            f"{near(model, [*BY_ID, *here, *models_of(found)])}",
            "`geneb-ci rules` lists the rules, `geneb-ci label` the models",
        )
    first, *others = why or [_GONE]
    click.echo(f"{click.style(model, bold=True)}  {escape(first)}")
    for line in [*(f"  {escape(line)}" for line in others), *events]:
        click.echo(line)
    if no_history:
        click.echo(f"its history cannot be told: {escape(no_history)}", err=True)


def _history() -> tuple[Ledger, str]:
    """Return the ledger of this place, or why there is none."""
    try:
        repository = repository_here()
        return ledger(repository, repository.resolve(HEAD)), ""
    except UsageProblem as error:
        return Ledger(events=[]), error.message
    except BadRepository as error:
        return Ledger(events=[]), f"{error.message}; fix: {error.fix}"
