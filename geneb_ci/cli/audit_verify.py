"""`geneb-ci audit verify`: every step of a record recomputed, without network."""

import os
from pathlib import Path

import click

from geneb_ci.audit.record import record_files
from geneb_ci.audit.repository import Repository
from geneb_ci.audit.verify import State, Verification
from geneb_ci.cli.progress import watched
from geneb_ci.config import find_layout
from geneb_ci.errors import Exit, NothingChecked
from geneb_ci.read.paths import is_folder, located
from geneb_ci.report.audit import verification_json, verification_text

_RENDER = {"text": verification_text, "json": verification_json}


@click.command()
@click.argument("records", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--submissions",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder of the submissions; that of the repository unless said.",
)
@click.option("--format", "form", type=click.Choice(list(_RENDER)), default="text")
def command(records: tuple[Path, ...], submissions: Path | None, form: str) -> int:
    """Verify RECORDS, or every record of the repository, against public data.

    Keys, policy and benchmark are those of the folder the command is run in, never of the record's.
    """
    layout = find_layout(Path.cwd())
    repository = Repository(layout, submissions.resolve() if submissions else None)
    files = _files(records) if records else repository.files
    if not files:
        raise NothingChecked("there is no record to verify", "name one, or run it in a repository")
    names = {path: os.path.relpath(path) if not records else str(path) for path in files}
    found = [
        repository.verify(located(path), names[path])
        for path in watched(iter(files), len(files), "verifying")
    ]
    click.echo(_RENDER[form](found), nl=False)
    return _exit_code(found)


def _files(arguments: tuple[Path, ...]) -> list[Path]:
    """List what is named: files, or folders as `leaderboard/audits` is one."""
    found: list[Path] = []
    for path in arguments:
        inside = record_files(path) if is_folder(path) else [path]
        if not inside:
            raise NothingChecked(f"{path}: the folder holds no <model_id>/<audit_id>.json")
        found += inside
    return found


def _exit_code(found: list[Verification]) -> Exit:
    if any(one.differs for one in found):
        return Exit.ERRORS
    unknown = any(step.state is State.UNKNOWN for one in found for step in one.steps)
    return Exit.NOT_CHECKED if unknown else Exit.CLEAN
