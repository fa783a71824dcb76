"""The commands `publish`, `rollback`, `ledger`, `replay` and `export`."""

import importlib.util
import itertools
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import click

from geneb_ci.board.board import layout_of_folder
from geneb_ci.board.page import write_page
from geneb_ci.board.rows import board_file_bytes, extra_required
from geneb_ci.board.site.inputs import Site, SourceCommit, site_of
from geneb_ci.check.runner import files_of
from geneb_ci.cli.main import echo, say
from geneb_ci.cli.repository import (
    HEAD,
    CheckedRows,
    build_generation,
    layout_here,
    load_rows,
    print_expected_time_of_rows,
    repository_here,
    space_name,
    watch_history,
)
from geneb_ci.cli.shared import (
    ALL_LINES_OPTION,
    FOLDER_ARGUMENT,
    STDOUT,
    Output,
    format_option,
    list_width,
    old_option,
    write,
)
from geneb_ci.common.config import Layout, benchmark_of
from geneb_ci.common.errors import Exit, UsageProblem
from geneb_ci.common.finding import exact_name
from geneb_ci.publish.comparison import replay
from geneb_ci.publish.difference import (
    BOARD_FILE,
    file_changes,
    model_count_of,
    row_changes,
    space_health,
)
from geneb_ci.publish.faults import HubRefused
from geneb_ci.publish.generation import LEDGER_FILE, Generation, source_commit_of
from geneb_ci.publish.git import GitRepository, WrongRepository, repository_at
from geneb_ci.publish.ledger import ledger
from geneb_ci.publish.push import (
    AS_PUBLISHED_FIX,
    MainIntent,
    RollbackIntent,
    check_generation_name,
    find_generation,
    generation_as_published,
    push,
    require_generation_of_main,
    require_same_generation,
)
from geneb_ci.publish.session import find_token, token_to_read, with_retries
from geneb_ci.publish.space import Space
from geneb_ci.render.comparison import REPLAY_WRITERS
from geneb_ci.render.export_entries import eval_results, every_eval_ever, require_hub_data
from geneb_ci.render.export_tables import croissant_files, csv_files, parquet_files, read_manifest
from geneb_ci.render.published import (
    PublishPreview,
    change_lines,
    event_lines,
    generation_name,
    health_lines,
    preview_line,
    published_line,
)
from geneb_ci.render.table import first_that_fit, wrapped_text
from geneb_ci.render.text import REPORT_LINES_MAX
from reference_harness.formats.text import next_line, plural, quoted


def show_health(space: Space, generation: Generation, repository: GitRepository) -> Exit:
    """Print which generation is live on the Space, and return the exit code.

    The code is 11 unless visitors get every file of the live generation, and it is `generation`.
    """
    health = with_retries(lambda: space_health(space, generation, repository), say=say)
    for line in health_lines(space.resource, health, generation.manifest):
        echo(line)
    return Exit.CLEAN if health.is_served else Exit.ERRORS


def show_changes(space: Space, intent: MainIntent) -> Exit:
    """Print what `publish` would change. Raises NotFastForward if `publish` would refuse that."""
    generation = intent.built
    state = with_retries(space.state, say=say)
    if intent.is_live(state):
        echo(
            f"{space.resource}: nothing would change; "
            f"{generation_name(generation.manifest)} is live"
        )
        return Exit.CLEAN
    intent.generation(state)
    live_board = (
        with_retries(lambda: space.read(BOARD_FILE, state.head), say=say)
        if BOARD_FILE in state.files
        else None
    )
    files = file_changes(state, generation)
    unchanged = len(state.files.keys() - {change.name for change in files})
    board = generation.files[BOARD_FILE]
    echo(preview_line(space.resource, generation.manifest, state.manifest))
    for line in change_lines(
        PublishPreview(files, row_changes(live_board, board), unchanged, model_count_of(board))
    ):
        echo(line)
    echo(next_line(shlex.join(["geneb-ci", "publish", "--space", _space_name(space)])))
    return Exit.CLEAN


def _space_name(space: Space) -> str:
    """Return the Space as OWNER/NAME."""
    return space.resource.removeprefix("spaces/")


SPACE_OPTION = click.option(
    "--space", metavar="OWNER/NAME", help="Space; default: HF_OIDC_RESOURCE."
)


@click.command()
@SPACE_OPTION
@click.option("--dry-run", is_flag=True, help="Show what would change, without uploading.")
@click.option("--verify", is_flag=True, help="Compare the Space with main.")
@click.option("--expect", metavar="GENERATION", help="Fail unless HEAD gives this generation.")
@click.option(
    "--new-space",
    is_flag=True,
    help="Allow a Space without a board although audits were signed already.",
)
def publish_command(
    space: str | None, dry_run: bool, verify: bool, expect: str | None, *, new_space: bool
) -> int:
    """Check all rows, build the board of HEAD, and publish it in one commit.

    Nothing is uploaded if nothing changed, if the Space has a newer generation, or if a board in
    the Space's history has a signed statement that this board lacks.
    """
    space_id = space_name(space)
    repository = repository_here()
    code, generation = build_generation(repository, HEAD)
    if generation is None:
        return code
    if expect is not None and expect != generation.manifest.generation:
        raise HubRefused(
            f"this commit gives generation {generation.manifest.generation}, expected {expect}",
            "use the geneb-ci version and the commit of the expected generation",
        )
    resource = f"spaces/{space_id}"
    is_read_only = dry_run or verify
    target = Space(
        space_id, token=token_to_read(resource) if is_read_only else find_token(resource, say=say)
    )
    if verify:
        return show_health(target, generation, repository)
    if dry_run:
        return show_changes(target, MainIntent(generation, repository))
    intent = MainIntent(generation, repository)
    published = push(target, intent, is_new=new_space, say=say)
    echo(published_line(target.resource, published))
    return Exit.CLEAN


@click.command()
@click.argument("generation")
@SPACE_OPTION
@click.option(
    "--as-published",
    "uses_published_bytes",
    is_flag=True,
    help="Publish the bytes that the Space had then, instead of rebuilding the generation.",
)
def rollback_command(generation: str, space: str | None, *, uses_published_bytes: bool) -> int:
    """Publish an earlier GENERATION again, instead of the one of HEAD.

    The generation is rebuilt from its commit and must equal what was published. It stays live until
    main changes: publishing HEAD or an earlier commit is rejected.
    """
    check_generation_name(generation)
    space_id = space_name(space)
    repository = repository_here()
    head_source = source_commit_of(repository, repository.resolve(HEAD))
    target = Space(space_id, token=find_token(f"spaces/{space_id}", say=say))
    past_generation = with_retries(lambda: find_generation(target, generation), say=say)
    require_generation_of_main(past_generation.manifest, head_source, repository)
    if uses_published_bytes:
        former_generation = with_retries(
            lambda: generation_as_published(target, past_generation), say=say
        )
    else:
        code, rebuilt_generation = build_generation(
            repository, past_generation.manifest.source_commit
        )
        if rebuilt_generation is None:
            echo(f"  fix: {AS_PUBLISHED_FIX}", err=True)
            return code
        require_same_generation(past_generation.manifest, rebuilt_generation)
        former_generation = rebuilt_generation
    published = push(target, RollbackIntent(former_generation, head_source, repository), say=say)
    echo(published_line(target.resource, published))
    return Exit.CLEAN


@click.command()
@click.option(
    "--at",
    "commit",
    default=HEAD,
    show_default=True,
    metavar="COMMIT",
    help="Commit, branch or tag up to which events are listed.",
)
@ALL_LINES_OPTION
@format_option(["text", "json"])
def ledger_command(commit: str, format_: str, *, prints_all: bool) -> int:
    """List the newest events of the rows up to a commit, oldest first, or with --all every one."""
    repository = repository_here()
    events = ledger(repository, repository.resolve(commit), watch=watch_history)
    if format_ == "json":
        click.echo(board_file_bytes(LEDGER_FILE, events.model_dump(mode="json")).decode())
        return Exit.CLEAN
    blocks = [wrapped_text(line, list_width()).splitlines() for line in event_lines(events)]
    newest = blocks if prints_all else first_that_fit(blocks[::-1], REPORT_LINES_MAX - 1)[::-1]
    if earlier_count := len(blocks) - len(newest):
        echo(f"not shown: {plural(earlier_count, 'earlier event')}; --all prints every event")
    for line in itertools.chain(*newest):
        click.echo(line)
    return Exit.CLEAN


@click.command()
@click.option("--rules", required=True, metavar="REF", help="Commit, branch or tag with the rules.")
@format_option(REPLAY_WRITERS)
@click.option("--output", default=STDOUT, metavar="FILE", help="File to write.")
def replay_command(rules: str, format_: str, output: str) -> int:
    """List the rows of the working tree that the rules of REF would newly reject.

    Rules, benchmark and policy come from REF, the rows from the working tree. Errors that the
    installed rules find too are not listed. The rules of REF are executed: never pass a commit of
    an untrusted pull request. The exit code is 11 if a row would newly be rejected.
    """
    layout = layout_here()
    print_expected_time_of_rows("checking with both sets of rules", REPLAY_SECONDS_PER_ROW, layout)
    replayed = replay(layout, rules)
    write(Output(format_, output), REPLAY_WRITERS[format_](replayed))
    return Exit.ERRORS if replayed.fails else Exit.CLEAN


REPLAY_SECONDS_PER_ROW = 0.03
"""Seconds per row that both checks of a replay take, measured with the 41 public rows."""
FORMATS = ("eval-results", "every-eval-ever", "croissant", "csv", "parquet")
"""Formats of `geneb-ci export`."""
FORMATS_WITH_ERRORS = ("croissant", "csv", "parquet")
"""Formats that contain standard errors, whose computation needs numpy."""
EVAL_RESULTS_MODULES = ("yaml", "huggingface_hub")
"""Modules of the extra `hub` that the format `eval-results` needs."""


@click.command()
@FOLDER_ARGUMENT
@click.option(
    "--format",
    "format_",
    required=True,
    type=click.Choice(FORMATS, case_sensitive=False),
    help="Format to write.",
)
@click.option(
    "--output",
    "out",
    metavar="DIR",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="New or empty folder to write to.",
)
@old_option("--to", "--format", "format_")
@old_option("--out", "--output", "out")
@click.option("--model", "models", multiple=True, metavar="ID", help="Only this model; repeatable.")
@click.option(
    "--time",
    "when",
    metavar="TIME",
    help="Time written into the files; default: the time of the commit HEAD.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="For croissant: folder of `data pull`, to describe the task data too.",
)
@click.option(
    "--verify-token",
    "tokens",
    multiple=True,
    metavar="ID=TOKEN",
    help="For eval-results: token that the Hub issued for this model; repeatable.",
)
def export_command(
    folder: Path | None,
    format_: str,
    out: Path,
    models: tuple[str, ...],
    when: str | None,
    data: Path | None,
    tokens: tuple[str, ...],
) -> int:
    """Write the rows of FOLDER in a format that other programs read.

    docs/reader/exports.md shows each format. Every submission is checked first; if any has an
    error, nothing is written. Where the format has links, they lead to the signed records of the
    row's audits. The same commit gives the same bytes.
    """
    layout = layout_of_folder(folder, "geneb-ci export FOLDER --format FORMAT --output DIR")
    token_by_model = _tokens_by_model(tokens, format_)
    _refuse_early(format_, out, data, layout, when)
    models = _models_of(models, folder or layout.root)
    ids = _models_of(token_by_model, folder or layout.root)
    _refuse_two_tokens(ids)
    token_by_model = dict(zip(ids, token_by_model.values(), strict=True))
    loaded = load_rows(
        folder,
        "nothing was exported",
        "geneb-ci export FOLDER --format FORMAT --output DIR",
    )
    if not isinstance(loaded, CheckedRows):
        return loaded
    site = _site_of_models(_published_site(loaded, _built_commit(layout, when)), models)
    files = {
        "eval-results": eval_results(site, token_by_model),
        "every-eval-ever": every_eval_ever(site),
        "croissant": croissant_files(site, data),
        "csv": csv_files(site),
        "parquet": parquet_files(site),
    }
    file_contents = dict(files[format_])
    write_page(out, file_contents)
    echo(f"wrote {plural(len(file_contents), 'file')} to {out}: {plural(len(site.rows), 'model')}")
    return Exit.CLEAN


def _refuse_early(
    format_: str, out: Path, data: Path | None, layout: Layout, when: str | None
) -> None:
    """Raise UsageProblem for options or settings that prevent the export."""
    if out.exists() and any(out.iterdir()):
        raise UsageProblem(
            f"{out} is not empty", "name a new folder with --output, or empty this folder"
        )
    if data is not None and format_ != "croissant":
        raise UsageProblem(f"--data is for croissant, not for {format_}", "leave --data out")
    for module in EVAL_RESULTS_MODULES if format_ == "eval-results" else ():
        if importlib.util.find_spec(module) is None:
            raise UsageProblem(
                f"{module} is not installed, and {format_} needs it",
                "pip install 'geneb-ci[hub]'",
            )
    if format_ in FORMATS_WITH_ERRORS:
        with extra_required():
            importlib.import_module("numpy")
    site = site_of((), {}, benchmark_of(layout), layout, _built_commit(layout, when))
    if format_ == "eval-results":
        require_hub_data(site)
    if format_ == "every-eval-ever":
        next(every_eval_ever(site), None)
    if data is not None:
        read_manifest(data, site)


def _tokens_by_model(options: tuple[str, ...], format_: str) -> dict[str, str]:
    """Return the tokens of --verify-token by model id. Raises UsageProblem for wrong options."""
    token_by_model: dict[str, str] = {}
    for option in options:
        model, equals, token = option.partition("=")
        if not (model and equals and re.fullmatch(r"[\x21-\x7e]+", token)):
            raise UsageProblem(
                f"--verify-token {quoted(option)} is not ID=TOKEN",
                "write the id of the model, the sign =, and the token",
            )
        if format_ != "eval-results":
            raise UsageProblem(
                f"--verify-token is for eval-results, not for {format_}",
                "leave --verify-token out",
            )
        _refuse_two_tokens([*token_by_model, model])
        token_by_model[model] = token
    return token_by_model


def _refuse_two_tokens(models: Sequence[str]) -> None:
    """Raise UsageProblem for a model that has two tokens."""
    for model, count in Counter(models).items():
        if count > 1:
            raise UsageProblem(
                f"--verify-token names {quoted(model)} twice", "give each model one token"
            )


def _built_commit(layout: Layout, when: str | None) -> SourceCommit:
    """Return the commit HEAD of a folder's repository, and its time or `when` if given."""
    try:
        repository = repository_at(layout)
        commit: str | None = repository.resolve(HEAD)
        commit_time: str | None = repository.time_of(str(commit))
    except WrongRepository:  # a folder that is in no repository, or has no commit
        commit = commit_time = None
    return SourceCommit(commit, _checked_time(when) if when is not None else commit_time)


def _checked_time(time: str) -> str:
    """Return the value of --time unchanged. Raises UsageProblem if it is not a time."""
    try:
        datetime.strptime(time, "%Y-%m-%dT%H:%M:%S%z")
    except ValueError as error:
        raise UsageProblem(
            f"--time {quoted(time)} is not a time", "write it as 2026-11-20T08:30:00Z (UTC)"
        ) from error
    return time


def _published_site(loaded: CheckedRows, built: SourceCommit) -> Site:
    """Return the pages of the board with all rows, as published at `built`."""
    return site_of(loaded.rows, {}, benchmark_of(loaded.layout), loaded.layout, built)


def _site_of_models(site: Site, models: tuple[str, ...]) -> Site:
    """Return the site with the rows of `models` only; with all rows if `models` is empty."""
    rows = (row for row in site.rows if not models or row.submission.model_id in models)
    return replace(site, rows=tuple(rows))


def _models_of(names: Iterable[str], folder: Path) -> tuple[str, ...]:
    """Return names of models in the letter case of their files.

    Raises UsageProblem for a model without a file; a file has the name of its model.
    """
    models = sorted({path.stem for path in files_of([folder])})
    fix = "name a model that `geneb-ci trust` lists"
    return tuple(exact_name(name, models, "model of FOLDER", fix) for name in names)
