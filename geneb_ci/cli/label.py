"""`geneb-ci label`: the trust level of every row, and why; nothing is written."""

from pathlib import Path

import click

from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker, FileResult, files_of
from geneb_ci.cli.folder import FOLDER, layout_of
from geneb_ci.cli.progress import watched
from geneb_ci.errors import Exit
from geneb_ci.finding import Severity
from geneb_ci.label.evidence import gather
from geneb_ci.report.labels import Row, labels_json, labels_text, row_of

_RENDER = {"text": labels_text, "json": labels_json}


@click.command()
@FOLDER
@click.option("--format", "form", type=click.Choice(list(_RENDER)), default="text")
def command(folder: Path | None, form: str) -> int:
    """Compute the level of every submission of FOLDER from its checks and audits."""
    layout = layout_of(folder, "label FOLDER")
    evidence = gather(layout)
    evidence.require_sound()
    files = files_of([folder or layout.root])
    rows: list[Row] = []
    for path, result in zip(
        files, watched(Checker(RULES).run(files), len(files), "checking"), strict=True
    ):
        if not isinstance(result, FileResult):
            rows.append(Row(path.stem, None, (result.message,)))
            continue
        errors = sum(finding.severity is Severity.ERROR for finding in result.findings)
        rows.append(row_of(path.stem, result.document.sha256, errors, evidence))
    click.echo(_RENDER[form](rows), nl=False)
    return Exit.CLEAN if all(row.decision is not None for row in rows) else Exit.ERRORS
