"""The commands `geneb-ci receipt verify`, `pull`, `push` and `seen`."""

import datetime as dt
import shlex
import signal
from pathlib import Path
from typing import ClassVar

import click

from geneb_ci.check.runner import files_of
from geneb_ci.cli.main import LazyGroup, echo
from geneb_ci.cli.shared import (
    DATA_OPTION,
    SCORING_MEMORY_OPTION,
    SCORING_TIME_OPTION,
    format_option,
    old_option,
)
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import Exit, UsageProblem
from geneb_ci.harness.process import ScoringLimitOverrides
from geneb_ci.receipt.cells import network_text
from geneb_ci.receipt.seen import (
    missing_file_reason,
    notes_path,
    published_receipt,
    read_receipt_notes,
    updated_notes,
    write_notes,
)
from geneb_ci.receipt.verify import (
    ReceiptRequest,
    ReceiptSubject,
    chosen_receipt_tasks,
    receipt_subject,
    verify_receipt,
)
from geneb_ci.render.plain import visible
from geneb_ci.render.receipts import receipt_json, receipt_text
from geneb_ci.submission.document import read_document
from geneb_ci.submission.structure import check_structure
from reference_harness.formats.text import Say, next_line, plural, silent

_FILE_ARGUMENT = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
_FOLDER_PATH = click.Path(path_type=Path, file_okay=False)
_EXISTING_FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)
BENCHMARK_OPTION = click.option(
    "--benchmark",
    "definition",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Benchmark definition; default: the one that `geneb-ci check` uses.",
)
"""The option `--benchmark`."""
_TASKS_OPTION = click.option(
    "--tasks", multiple=True, metavar="ID[,ID]", help="Only these tasks; repeatable."
)
_MIRROR_OPTION = click.option(
    "--mirror",
    metavar="URL|OWNER/NAME[@REV]",
    help="Fetch from this address instead; only the digests of the files are verified.",
)
_QUIET_OPTION = click.option("--quiet", is_flag=True, help="Print no cost and no progress.")
PUSH_COMMIT_MESSAGE = "Embeddings of a receipt"
"""Message of the commit that `receipt push` makes on the Hub."""
_VERIFICATION_WRITERS = {"text": receipt_text, "json": receipt_json}
"""Functions that write the result of a verification, by format."""


def _progress_printer(*, quiet: bool) -> Say:
    """Return the function that prints lines of progress; with `quiet` it prints nothing."""
    return silent if quiet else lambda line: _print_escaped(line, err=True)


def _print_escaped(line: str, *, err: bool = False) -> None:
    """Print a line that may contain untrusted names."""
    echo(visible(line, len(line) * 10), err=err)


def _task_ids(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return the task ids of the option --tasks, whose values are lists with commas."""
    return tuple(name.strip() for word in arguments for name in word.split(",") if name.strip())


@click.command()
@_FILE_ARGUMENT
@click.option(
    "--receipt",
    "folder",
    type=_EXISTING_FOLDER,
    help="Folder with the receipt's files; fetched unless given.",
)
@_MIRROR_OPTION
@click.option(
    "--cache",
    type=_FOLDER_PATH,
    help="Folder that keeps fetched files; default: keep the file of one task at a time.",
)
@DATA_OPTION
@BENCHMARK_OPTION
@_TASKS_OPTION
@SCORING_TIME_OPTION
@SCORING_MEMORY_OPTION
@_QUIET_OPTION
@format_option(_VERIFICATION_WRITERS)
def verify_command(
    file: Path,
    folder: Path | None,
    mirror: str | None,
    cache: Path | None,
    data: Path | None,
    definition: Path | None,
    tasks: tuple[str, ...],
    limit_scoring_time: int | None,
    limit_scoring_memory: int | None,
    quiet: bool,
    format_: str,
) -> int:
    """Verify the receipt of FILE: every cell recomputed from its embeddings, without a model.

    The steps are, in this order: members of FILE that must agree; sizes and digests of the files;
    values of the embeddings; the Merkle tree; equal embeddings for equal sequences; every cell,
    exactly. The exit code is 11 when a step fails, 3 when something that a step needs is missing.
    """
    if folder is not None and (mirror is not None or cache is not None):
        raise UsageProblem(
            "--receipt excludes --mirror and --cache: with a folder nothing is fetched",
            "leave out --mirror and --cache, or --receipt",
        )
    # A service manager ends a process by SIGTERM, a person by Ctrl-C: both leave no folder.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    verification = verify_receipt(
        ReceiptRequest(
            file=file,
            folder=folder,
            mirror=mirror,
            cache=cache,
            data=data,
            definition=definition,
            tasks=_task_ids(tasks),
            options=ScoringLimitOverrides(limit_scoring_time, limit_scoring_memory),
            say=_progress_printer(quiet=quiet),
        )
    )
    click.echo(_VERIFICATION_WRITERS[format_](verification), nl=False)
    return Exit.CLEAN if verification.holds else Exit.ERRORS


@click.command()
@_FILE_ARGUMENT
@click.option(
    "--output",
    "folder",
    type=_FOLDER_PATH,
    required=True,
    metavar="DIR",
    help="Folder to fetch into.",
)
@old_option("--into", "--output", "folder")
@_MIRROR_OPTION
@BENCHMARK_OPTION
@_TASKS_OPTION
@_QUIET_OPTION
def pull_command(
    file: Path,
    folder: Path,
    mirror: str | None,
    definition: Path | None,
    tasks: tuple[str, ...],
    quiet: bool,
) -> int:
    """Fetch the files of FILE's receipt into DIR, each verified by its digest.

    Files that DIR has already are not fetched again, and an interrupted download is continued.
    """
    from geneb_ci.receipt.source import receipt_files  # beside its use

    subject = _subject_without_errors(file, definition)
    say = _progress_printer(quiet=quiet)
    task_ids = chosen_receipt_tasks(subject, _task_ids(tasks))
    with receipt_files(subject.receipt, mirror=mirror, cache=folder, say=say) as files:
        receipt_tasks = [subject.receipt.tasks[task] for task in task_ids]
        embeddings = sum(task.train + task.test for task in receipt_tasks)
        count = f"{plural(len(task_ids), 'file')}, {plural(embeddings, 'embedding')}"
        say(f"{count}; {network_text(files.bytes_to_fetch(list(task_ids)), 'fetch')}")
        for task in task_ids:
            files.file(task)
        remark = f", and {predicted.name}" if (predicted := files.predictions()) else ""
    files_text = f"{plural(len(task_ids), 'file')}{remark}"
    echo(f"{folder}: {files_text}, each with the sha256 that the receipt states")
    command = ["geneb-ci", "receipt", "verify", str(file), "--cache", str(folder)]
    echo(next_line(shlex.join(command)))
    return Exit.CLEAN


@click.command()
@_FILE_ARGUMENT
@click.option(
    "--receipt",
    "folder",
    type=_EXISTING_FOLDER,
    required=True,
    help="Folder of the receipt's files.",
)
@click.option(
    "--repo", required=True, metavar="OWNER/NAME", help="Data set on the Hub; it has to exist."
)
@BENCHMARK_OPTION
@_QUIET_OPTION
def push_command(file: Path, folder: Path, repo: str, definition: Path | None, quiet: bool) -> int:
    """Publish the files of FILE's receipt as a data set of the Hub, and write its address to FILE.

    Files that the data set has already are not sent again. At the end, repository and commit are
    written to `receipt.location` of FILE; nothing else of it changes.
    """
    # Imported here: only push needs them.
    from geneb_ci.publish.session import find_token, with_retries
    from geneb_ci.publish.space import HubRepository, upload_files
    from geneb_ci.receipt.source import (
        HUB_LOCATION_KIND,
        REPOSITORY_PATTERN,
        receipt_files,
        write_location,
    )
    from reference_harness.formats.submission import ReceiptLocation

    if not REPOSITORY_PATTERN.fullmatch(repo):
        raise UsageProblem(
            f"--repo {repo!r} is not OWNER/NAME", "pass for example --repo me/receipts"
        )
    subject = _subject_without_errors(file, definition)
    say = _progress_printer(quiet=quiet)
    task_ids = chosen_receipt_tasks(subject)
    with receipt_files(subject.receipt, folder, say=say) as files:
        paths = {files.file(task).name: files.file(task) for task in task_ids}
        if (predicted := files.predictions()) is not None:
            paths[predicted.name] = predicted
    remote = HubRepository("dataset", repo, token=find_token(f"datasets/{repo}"))
    missing_paths = with_retries(remote.state, say=say).differing(paths)
    size = sum(path.stat().st_size for path in missing_paths.values())
    embeddings = plural(subject.receipt.rows, "embedding")
    count = f"{plural(len(missing_paths), 'file')} of {len(paths)}, {embeddings} in all"
    say(f"{count}; {network_text(size, 'send')}")
    uploaded = upload_files(remote, paths, say=say, message=PUSH_COMMIT_MESSAGE, folders=())
    is_changed = write_location(
        file, ReceiptLocation(kind=HUB_LOCATION_KIND, address=repo, revision=uploaded.commit)
    )
    echo(f"{remote.resource}: {'pushed' if uploaded.is_new else 'nothing changed'}")
    echo(f"{file}: location {'written' if is_changed else 'unchanged'}, commit {uploaded.commit}")
    echo(next_line(shlex.join(["geneb-ci", "receipt", "verify", str(file)])))
    return Exit.CLEAN


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@click.option(
    "--write", "is_written", is_flag=True, help="Write today's date to the policy folder."
)
def seen_command(paths: tuple[Path, ...], is_written: bool) -> int:
    """Test whether published receipts can still be fetched, without fetching them.

    Without FILE, the receipts of all submissions of the repository are tested. With --write today's
    date is written to leaderboard/policy/receipts.json for each receipt; the board marks a row
    whose receipt has been missing for `receipt_days` of the policy. The exit code is 11 when a
    receipt is missing, and 3 when a submission cannot be read.
    """
    layout = find_layout(Path.cwd())
    today = dt.datetime.now(dt.UTC).date().isoformat()
    notes_file = notes_path(layout)
    if is_written and notes_file is None:
        raise UsageProblem(
            "the current folder is not in a board's repository: no policy folder was found",
            "run the command in the board's repository",
        )
    former_notes = new_notes = read_receipt_notes(layout)
    missing_count, tested_count, unreadable_count = 0, 0, 0
    for path in files_of(paths or [Path()]):
        submission, _ = check_structure(read_document(path, spans=False).value)
        receipt = published_receipt(submission) if submission is not None else None
        if submission is None:
            unreadable_count += 1
            _print_escaped(f"{path}: cannot be read; `geneb-ci check {path}` says why")
            continue
        if receipt is None:
            continue
        missing_reason = missing_file_reason(receipt)
        tested_count, missing_count = tested_count + 1, missing_count + bool(missing_reason)
        _print_escaped(f"{path}: {missing_reason or 'available'}")
        new_notes = updated_notes(
            new_notes, submission.model_id, receipt.root, today, is_available=not missing_reason
        )
    if tested_count:
        echo(f"{plural(tested_count, 'published receipt')}, {missing_count} missing")
    else:
        echo("no submission that can be read has a published receipt")
    if is_written and notes_file is not None and new_notes != former_notes:
        write_notes(notes_file, new_notes)
        echo(f"wrote {notes_file}")
    if missing_count:
        return Exit.ERRORS
    return Exit.NOT_CHECKED if unreadable_count else Exit.CLEAN


def _subject_without_errors(file: Path, definition: Path | None) -> ReceiptSubject:
    """Return the submission in `file` with its receipt. Raises NothingChecked if it has errors."""
    from geneb_ci.common.errors import NothingChecked

    subject = receipt_subject(file, definition)
    if subject.errors:
        raise NothingChecked(
            f"{file}: {subject.errors[0].message}",
            f"run `geneb-ci check {file}`, and fix what it finds",
        )
    return subject


class _ReceiptCommands(LazyGroup):
    """The commands `geneb-ci receipt`."""

    table = {  # noqa: RUF012 (click's groups are made once)
        "verify": ("receipt", "recompute every cell from the published embeddings"),
        "push": ("receipt", "publish the files as a data set of the Hub"),
        "pull": ("receipt", "fetch the files, each verified by its digest"),
        "predictions": ("receipt_pairs", "compare matrices and digests with predictions.bin"),
        "near": ("receipt_pairs", "print whether two receipts come from one model"),
        "pairs": ("receipt_pairs", "measure how similar the errors of rows with predictions are"),
        "seen": ("receipt", "test whether the receipts of all rows are still published"),
    }
    sections: ClassVar[dict[str, tuple[str, ...]]] = {
        "Commands": ("verify", "push", "pull", "near", "predictions")
    }


@click.group(cls=_ReceiptCommands)
def receipt_command() -> None:
    """Verify, publish and fetch receipts: the embeddings that a submission commits to.

    Anybody can compute every cell of the row from them, on a CPU and without the model.
    """
