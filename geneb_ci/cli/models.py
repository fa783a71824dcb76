"""`geneb-ci models` and `upgrade`: the model registry, for people and in submissions."""

import functools
import itertools
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from geneb_ci.audit.code_digest import BUILTIN, built_in
from geneb_ci.audit.errors import AuditRefused
from geneb_ci.audit.rerun.fetching import entry_lock
from geneb_ci.cli.check import STDIN, read_stdin
from geneb_ci.cli.main import LazyGroup, echo, run_harness
from geneb_ci.cli.shared import ALL_LINES, STDOUT, format_option, row_width
from geneb_ci.common.config import Layout, find_layout
from geneb_ci.common.errors import (
    BadConfiguration,
    Exit,
    GenebError,
    NothingChecked,
    UsageProblem,
    unwritable,
)
from geneb_ci.common.finding import known_name, near
from geneb_ci.models.entry import ModelEntry, ReadEntry, addresses
from geneb_ci.models.lint import (
    contradictions,
    contradictions_with_facts,
    contradictions_with_row,
    unknowns,
)
from geneb_ci.models.registry import TERMS, ModelRegistry, in_words
from geneb_ci.render.plain import visible
from geneb_ci.render.table import Table, first_that_fit, left_out, wrapped_text
from geneb_ci.render.text import LINES_MAX
from geneb_ci.submission.document import Document, downgraded, parse_document, upgraded
from geneb_ci.submission.reading import BYTES_MAX, FileKind, located, read_bytes, require_file
from geneb_ci.submission.structure import check_structure, model_key_of, version_of
from reference_harness.formats.files import file_sha256, table_at, text_line_ends, write_whole
from reference_harness.formats.submission_terms import BY_ENTRY, ENTRY_MEMBER
from reference_harness.formats.text import next_line, plural, quoted

FORMATS = ("text", "json")


def registry() -> ModelRegistry:
    """Return the registry of the repository that the command is run in, or the shipped one."""
    return ModelRegistry(find_layout(Path.cwd()))


def required_entry(models: ModelRegistry, model_id: str) -> ReadEntry:
    """Return the entry of a model. Raises UsageProblem where there is none."""
    entry = models.entry(model_id) or models.entry(known_name(model_id, models) or model_id)
    if entry is None:
        raise UsageProblem(
            f"the model registry has no entry for {quoted(model_id)}{near(model_id, list(models))}",
            f"list the entries by `geneb-ci models list`; a new one is a file in {models.folder}",
        )
    return entry


@functools.cache
def _no_extractor(name: str, layout: Layout) -> str:
    """Return why an entry's extractor cannot be run here; empty where it can."""
    if name.startswith(BUILTIN):
        try:
            built_in(name)
        except AuditRefused as error:
            return error.message
        return ""
    module = Path(name.rpartition(":")[0]).name
    folder = layout.extractors
    return "" if folder is not None and (folder / module).is_file() else f"there is no {module}"


def not_usable_here(entry: ModelEntry, layout: Layout, models: ModelRegistry) -> list[str]:
    """Return the extractor or lock that an entry names and that is missing; empty where none is."""
    run = entry.run
    points = []
    if (
        run is not None
        and run.extractor is not None
        and (why := _no_extractor(run.extractor, layout))
    ):
        points.append(why)
    if run is not None and run.environment is not None:
        try:
            entry_lock(run.environment, models.folder.parent)
        except GenebError as error:
            points.append(error.message)
    return points


def open_points(entry: ModelEntry) -> list[str]:
    """Return the points that an entry lacks for an audit of its row; empty where none does."""
    points, weights = entry.lacks, entry.weights
    if weights is not None and weights.kind != "huggingface":
        by_hand = set(weights.files) - set(addresses(weights))
        points += [f"{plural(len(by_hand), 'file')} to fetch by hand"] if by_hand else []
    return points


@click.command("list")
@ALL_LINES
@format_option(FORMATS)
def list_command(format_: str, *, is_whole: bool) -> None:
    """List the models, where their weights are, what runs them, and what is left open."""
    models = registry()
    entries: dict[str, ReadEntry] = {}
    for name in models:
        try:
            entries[name] = required_entry(models, name)
        except BadConfiguration as error:
            echo(f"{_visible_line(error.message)}\n  fix: {error.fix}", err=True)
    if format_ == "json":
        click.echo(json.dumps({name: _summary(entry) for name, entry in entries.items()}, indent=1))
        return
    rows = [
        (
            name,
            entry.entry.weights.kind if entry.entry.weights else "",
            (entry.entry.run.extractor if entry.entry.run else None) or "-",
            "; ".join(open_points(entry.entry)) or "nothing",
        )
        for name, entry in entries.items()
    ]
    blocks: Sequence[Sequence[str]]
    blocks = Table(("model", "weights", "run by", "open"), rows).fitted_rows(row_width("-"))
    if len([*itertools.chain(*blocks)]) >= LINES_MAX and not is_whole:
        short = [(*row[:2], f"{len(open_points(entries[row[0]].entry))}") for row in rows]
        blocks = Table(("model", "weights", "points open"), short).fitted_rows(row_width("-"))
        blocks = first_that_fit(blocks, LINES_MAX - 2)
    for line in itertools.chain(*blocks, left_out(len(rows) + 1 - len(blocks), "model")):
        echo(_visible_line(line))
    echo(f"{plural(len(rows), 'model')}; `geneb-ci models show MODEL` prints one")


def _summary(entry: ReadEntry) -> Mapping[str, Any]:
    return {"sha256": entry.sha256, **entry.entry.model_dump(by_alias=True, exclude_none=True)}


@click.command("show")
@click.argument("model_id", metavar="MODEL")
@ALL_LINES
@format_option(FORMATS)
def show_command(model_id: str, format_: str, *, is_whole: bool) -> None:
    """Print what the registry knows of MODEL."""
    models = registry()
    read_entry = required_entry(models, model_id)
    if format_ == "json":
        click.echo(json.dumps(_summary(read_entry), indent=1))
        return
    lines = [
        f"{model_id}: {read_entry.entry.name or 'no name'}",
        f"  entry: {models.path(model_id)}",
    ]
    lines += [
        f"  {key.replace('_', ' ')}: {_value_text(value, key)}"
        for key, value in read_entry.entry.attributes.items()
    ]
    address_by_file = addresses(read_entry.entry.weights) if read_entry.entry.weights else {}
    for part in ("published", "weights", "code", "run", "loading", "sources"):
        table = _summary(read_entry).get(part)
        if table:
            lines += [f"{part}", *_lines(table, address_by_file)]
    columns, points = row_width("-"), open_points(read_entry.entry)
    fact_lines = wrapped_text("\n".join(map(_visible_line, lines)), columns).splitlines()
    last = wrapped_text(f"open: {'; '.join(points) if points else 'nothing'}", columns).splitlines()
    listed_lines = fact_lines if is_whole else fact_lines[: LINES_MAX - 1 - len(last)]
    for line in itertools.chain(
        listed_lines, left_out(len(fact_lines) - len(listed_lines), "line"), last
    ):
        click.echo(line)


def _visible_line(line: str) -> str:
    """Return a line with what would move a cursor or reorder letters made visible."""
    return visible(line, len(line) * 10)


def _value_text(value: object, fact: str = "") -> str:
    if fact in TERMS:
        return in_words(fact, str(value)) or ""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _lines(table: Mapping[str, Any], address_by_file: Mapping[str, str]) -> list[str]:
    """Return the lines of a part of an entry; files with their address."""
    lines = []
    for key, value in table.items():
        if isinstance(value, dict):
            lines += [f"  {key}"] if value else []
            for name, member in value.items():
                lines.append(f"    {name}: {member}")
                if key == "files" and name in address_by_file:
                    lines.append(f"      {address_by_file[name]}")
        elif isinstance(value, list):
            if value:
                lines.append(f"  {key}: {', '.join(map(str, value))}")
        elif value != "":
            lines.append(f"  {key}: {_value_text(value)}")
    return lines


@click.command("verify")
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option(
    "--weights",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder with the files of one MODEL: compare each with its digest.",
)
@click.option(
    "--facts",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Table of loading facts, a JSON object by model id: compare each entry with it.",
)
def verify_command(models: tuple[str, ...], weights: Path | None, facts: Path | None) -> int:
    """Check that every entry, or those of MODEL, can be read, and that what it names is here.

    Facts of an entry are compared with each other, with the row of its model and with --facts.
    The exit code is 11 where an entry is invalid or contradicts itself or these, names an extractor
    or a lock that is not here, or a file differs. What an entry leaves open or says is unknown is
    listed and is no error.
    """
    layout = find_layout(Path.cwd())
    registered = ModelRegistry(layout)
    if weights is not None and len(models) != 1:
        raise click.UsageError("--weights takes the files of one model: name it")
    if not registered and not models:
        raise NothingChecked(
            "the registry has no model, so nothing was verified",
            "run this in a repository with leaderboard/policy/models/",
        )
    table = _loading_facts(facts) if facts is not None else {}
    wrong = 0
    complete = 0
    for name in models or tuple(registered):
        try:
            read_entry = required_entry(registered, name)
        except GenebError as error:
            if models and isinstance(error, UsageProblem):
                raise
            echo(f"{name}: {_visible_line(error.message)}")
            wrong += 1
            continue
        open_ = open_points(read_entry.entry)
        absent = not_usable_here(read_entry.entry, layout, registered)
        absent += contradictions(read_entry.entry)
        absent += contradictions_with_row(read_entry.entry, _row_meta(layout, name))
        absent += contradictions_with_facts(read_entry.entry, table.get(name, {}))
        unknown = [f"{fact}: {why}" for fact, why in unknowns(read_entry.entry).items()]
        for kind, points in (("open", open_), ("unknown", unknown), ("wrong", absent)):
            if points:
                echo(_visible_line(f"{name}: {kind}: {'; '.join(points)}"))
        differ = weights is not None and _compared(read_entry.entry, weights, name) > 0
        wrong += bool(absent) or differ
        complete += not open_ and not absent and not differ
    total = len(models) or len(registered)
    echo(f"{plural(total, 'model')}: {wrong} wrong, {complete} ready for an audit")
    return Exit.ERRORS if wrong else Exit.CLEAN


def _loading_facts(path: Path) -> dict[str, dict[str, Any]]:
    """Return model id to loading facts. Raises UsageProblem for what is no such table."""
    try:
        table = json.loads(path.read_bytes())
    except ValueError as error:
        raise UsageProblem(f"{path}: not JSON: {error}", _FACTS_FORM) from error
    if not isinstance(table, dict) or not all(
        isinstance(section, dict) for section in table.values()
    ):
        raise UsageProblem(f"{path}: expected an object for each model id", _FACTS_FORM)
    return table


_FACTS_FORM = "docs/maintainer/models.md says what a table of loading facts has"


def _row_meta(layout: Layout, model_id: str) -> Mapping[str, Any]:
    """Return `meta` of the row of a model; empty where there is none that can be read."""
    path = layout.submissions / f"{model_id}.json" if layout.submissions is not None else None
    if path is None or not path.is_file():
        return {}
    return table_at(parse_document(read_bytes(path), path, str(path)).value, "meta")


def _compared(entry: ModelEntry, folder: Path, name: str) -> int:
    """Print how the files of a folder differ from an entry; return how many do."""
    files = entry.weights.files if entry.weights else {}
    wrong = 0
    for file, expected in files.items():
        path = folder / file
        digest = file_sha256(path) if path.is_file() else None
        if digest != expected:
            wrong += 1
            finding = f"sha256 {digest}" if digest else "no such file"
            ends = text_line_ends(path, expected) if digest else ""
            echo(f"{name}: {file}: {finding}, expected sha256 {expected}{ends}")
    echo(f"{name}: {len(files) - wrong} of {plural(len(files), 'file')} as pinned")
    return wrong


class _Models(LazyGroup):
    table = {  # noqa: RUF012 (click's groups are made once)
        "list": ("models", "list the models, where their weights are, and what runs them"),
        "show": ("models", "print what the registry knows of a model"),
        "verify": ("models", "check the entries, or the files of a model"),
    }


@click.group(cls=_Models)
def models_command() -> None:
    """Show the model registry: how each model is loaded, and where its weights are."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--record",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Run record of FILE, from `geneb-harness run --output`: write format 1.2.",
)
@click.option("--undo", is_flag=True, help="Write the format 1.0 that FILE was made from.")
@click.option(
    "--benchmark",
    "definition",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Benchmark definition of the run record; default: one that is shipped.",
)
@click.option("--output", metavar="FILE", required=True, help="File to write; - prints it.")
@click.option("--quiet", is_flag=True, help="Print only errors.")
def upgrade_command(
    file: Path,
    record: Path | None,
    definition: Path | None,
    output: str,
    *,
    undo: bool,
    quiet: bool,
) -> int:
    """Upgrade FILE, a submission or -, from format 1.0 to 1.1, or with its run record to 1.2.

    Format 1.1 names the model's entry in the model registry, which says how the model is rerun.
    Every number stays as it is written, and --undo gives FILE back byte for byte. Details of the
    run that nobody recorded are not made up. An audit is of the bytes of a file: those of FILE do
    not count for the new one.
    """
    if record is not None:
        if undo or output == STDOUT or str(file) == STDIN:
            raise click.UsageError("with --record, name FILE and --output, and leave out --undo")
        benchmark_options = ["--benchmark", str(definition)] if definition else []
        words = [
            "--record",
            str(record),
            *benchmark_options,
            "--output",
            output,
            *["--quiet"] * quiet,
        ]
        return run_harness("upgrade", *words, "--", str(file))
    if definition is not None:
        raise click.UsageError("--benchmark is that of a run record: pass --record too")
    is_piped = str(file) == STDIN
    require_file(file, FileKind.SUBMISSION, "upgrade")
    raw = read_stdin() if is_piped else read_bytes(file)
    document = parse_document(raw, located(file), str(file))
    if has_run(document.value) and not (undo or is_piped):
        return run_harness("upgrade", "--output", output, "--", str(file))
    older = _older(document)
    if undo and older is document:
        raise UsageProblem(f"{file}: it has format 1.0 already", "leave out --undo to upgrade it")
    text = older.text if undo else _by_entry(older)
    if output == STDOUT:
        click.echo(text, nl=False)
        return Exit.CLEAN
    target = Path(output)
    try:
        write_whole(target, lambda opened: opened.write(text.encode()))
        target.chmod(0o644)
    except OSError as error:
        raise unwritable(output, error, "name another file") from error
    if not quiet:
        entry = "" if undo else f", by the entry of {older.value['model_id']} in the model registry"
        echo(f"wrote {output}: format {'1.0' if undo else '1.1'}{entry}", err=True)
        echo(next_line(shlex.join(["geneb-ci", "check", output])), err=True)
    return Exit.CLEAN


def has_run(value: object) -> bool:
    """Whether a document says itself how it was run, so that only its run record adds anything."""
    return version_of(value) not in {None, "1.0"} and model_key_of(value) != BY_ENTRY


def _older(document: Document) -> Document:
    """Return a sound file of format 1.0, or the one that an upgraded file was made from."""
    name, (submission, faults) = document.name, check_structure(document.value)
    faults = [*document.faults, *faults]
    if submission is None or faults:
        raise UsageProblem(
            f"{name}: no sound submission: {faults[0].message if faults else 'it has no value'}",
            f"correct what `geneb-ci check {name}` reports, then upgrade the file",
        )
    if submission.schema_version == "1.0":
        return document
    if has_run(document.value):
        raise UsageProblem(
            f"{name}: format {submission.schema_version} has details of its run",
            "name the file, with its --record, to upgrade it; it was made from no older one",
        )
    text = downgraded(document)
    if text is None:
        raise UsageProblem(
            f"{name}: {ENTRY_MEMBER} was moved or reformatted, so that format 1.0 is lost",
            "take the file as `geneb-ci upgrade` wrote it, or that of format 1.0",
        )
    return parse_document(text.encode(), document.path, name)


def _by_entry(document: Document) -> str:
    """Return the text of format 1.1.

    Raises NothingChecked without an entry of the model, UsageProblem where it does not suffice.
    """
    model_id = document.value["model_id"]
    models = ModelRegistry(find_layout(document.path.parent))
    try:
        entry = required_entry(models, model_id).entry
    except UsageProblem as error:  # the file names the model, not the command line
        raise NothingChecked(error.message, error.fix) from error
    if lacks := entry.lacks:
        raise UsageProblem(
            f"the entry of {model_id} in the model registry is not complete: {'; '.join(lacks)}",
            f"complete {models.path(model_id)} (docs/maintainer/models.md), then upgrade the file",
        )
    text = upgraded(document, models.entry_member(model_id, document.sha256))
    if text is None:
        raise UsageProblem(
            f'{document.name}: its schema_version is not written as "1.0"',
            'write it without escapes, as "schema_version": "1.0"',
        )
    raw = text.encode()
    new = parse_document(raw, document.path, document.name)
    faults = [*new.faults, *check_structure(new.value)[1]]
    if len(raw) > BYTES_MAX or faults:
        reason = faults[0].message if faults else f"the file would have {len(raw):,} bytes"
        raise UsageProblem(
            f"the entry of {model_id} in the model registry fits in no submission: {reason}",
            f"correct {models.path(model_id)} (docs/maintainer/models.md), then upgrade the file",
        )
    return text
