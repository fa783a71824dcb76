"""The commands `geneb-ci models`, which shows the model registry, and `upgrade`."""

import functools
import itertools
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from geneb_ci.api import STDIN
from geneb_ci.audit.code_digest import BUILTIN_PREFIX, built_in_extractor
from geneb_ci.audit.errors import AuditRefused
from geneb_ci.audit.rerun.fetching import entry_lock
from geneb_ci.cli.check import read_stdin
from geneb_ci.cli.main import LazyGroup, echo, run_harness
from geneb_ci.cli.shared import ALL_LINES_OPTION, STDOUT, format_option, list_width
from geneb_ci.common.config import Layout, find_layout
from geneb_ci.common.errors import (
    BadConfiguration,
    Exit,
    GenebError,
    NothingChecked,
    UsageProblem,
    unwritable,
)
from geneb_ci.common.finding import known_name, name_hint
from geneb_ci.models.entry import ModelEntry, ReadEntry, addresses
from geneb_ci.models.lint import (
    contradictions,
    contradictions_with_facts,
    contradictions_with_row,
    unknown_fact_explanations,
)
from geneb_ci.models.registry import MEANING_BY_WORD, ModelRegistry, word_with_meaning
from geneb_ci.render.plain import visible
from geneb_ci.render.table import Table, first_that_fit, left_out_line, wrapped_text
from geneb_ci.render.text import REPORT_LINES_MAX
from geneb_ci.submission.document import Document, downgraded, parse_document, upgraded
from geneb_ci.submission.reading import FileKind, located, read_bytes, require_file
from geneb_ci.submission.structure import check_structure, format_key_of, version_of
from reference_harness.formats.files import (
    file_line_ends_clause,
    file_sha256,
    table_at,
    write_whole,
)
from reference_harness.formats.submission_terms import BY_ENTRY, ENTRY_MEMBER, SUBMISSION_BYTES_MAX
from reference_harness.formats.text import next_line, plural, quoted

FORMATS = ("text", "json")
"""Formats of the commands that show entries."""


def registry_here() -> ModelRegistry:
    """Return the model registry of the current folder's repository, or else the shipped one."""
    return ModelRegistry(find_layout(Path.cwd()))


def required_entry(models: ModelRegistry, model_id: str) -> ReadEntry:
    """Return the entry of a model. Raises UsageProblem where there is none."""
    read_entry = models.entry(model_id) or models.entry(known_name(model_id, models) or model_id)
    if read_entry is None:
        raise UsageProblem(
            f"the model registry has no entry for {quoted(model_id)}"
            f"{name_hint(model_id, list(models))}",
            f"list the entries with `geneb-ci models list`, or write an entry in {models.folder}",
        )
    return read_entry


@functools.cache
def _extractor_fault(extractor: str, layout: Layout) -> str:
    """Return why an entry's extractor cannot be run here; "" if it can."""
    if extractor.startswith(BUILTIN_PREFIX):
        try:
            built_in_extractor(extractor)
        except AuditRefused as error:
            return error.message
        return ""
    module = Path(extractor.rpartition(":")[0]).name
    folder = layout.extractors
    if folder is not None and (folder / module).is_file():
        return ""
    return f"there is no extractor {module}"


def file_faults(model_entry: ModelEntry, layout: Layout, models: ModelRegistry) -> list[str]:
    """Return why the extractor and the lock file of an entry cannot be used; [] if both can."""
    run = model_entry.run
    messages = []
    if (
        run is not None
        and run.extractor is not None
        and (fault := _extractor_fault(run.extractor, layout))
    ):
        messages.append(fault)
    if run is not None and run.environment is not None:
        try:
            entry_lock(run.environment, models.folder.parent)
        except GenebError as error:
            messages.append(error.message)
    return messages


def open_points(model_entry: ModelEntry) -> list[str]:
    """Return what an entry lacks for an audit of its row: the words after "open:"."""
    points, weights = model_entry.missing_for_rerun, model_entry.weights
    if weights is not None and weights.kind != "huggingface":
        unaddressed_files = set(weights.files) - set(addresses(weights))
        points += (
            [f"{plural(len(unaddressed_files), 'file')} to fetch by hand"]
            if unaddressed_files
            else []
        )
    return points


@click.command("list")
@ALL_LINES_OPTION
@format_option(FORMATS)
def list_command(format_: str, *, prints_all: bool) -> None:
    """List the models with their weights, their extractors, and what their entries lack."""
    models = registry_here()
    entries: dict[str, ReadEntry] = {}
    for model in models:
        try:
            entries[model] = required_entry(models, model)
        except BadConfiguration as error:
            echo(f"{_visible_line(error.message)}\n  fix: {error.fix}", err=True)
    if format_ == "json":
        click.echo(json.dumps({name: _summary(entry) for name, entry in entries.items()}, indent=1))
        return
    rows = [
        (
            model,
            entry.entry.weights.kind if entry.entry.weights else "",
            (entry.entry.run.extractor if entry.entry.run else None) or "-",
            "; ".join(open_points(entry.entry)) or "nothing",
        )
        for model, entry in entries.items()
    ]
    blocks: Sequence[Sequence[str]]
    blocks = Table(("model", "weights", "run by", "open"), rows).fitted_rows(list_width("-"))
    if len([*itertools.chain(*blocks)]) >= REPORT_LINES_MAX and not prints_all:
        short_rows = [(*row[:2], f"{len(open_points(entries[row[0]].entry))}") for row in rows]
        blocks = Table(("model", "weights", "points open"), short_rows).fitted_rows(list_width("-"))
        blocks = first_that_fit(blocks, REPORT_LINES_MAX - 2)
    for line in itertools.chain(*blocks, left_out_line(len(rows) + 1 - len(blocks), "model")):
        echo(_visible_line(line))
    echo(f"{plural(len(rows), 'model')}; `geneb-ci models show MODEL` prints its entry")


def _summary(entry: ReadEntry) -> Mapping[str, Any]:
    """Return the members of an entry and the digest of its file, for JSON."""
    return {"sha256": entry.sha256, **entry.entry.model_dump(by_alias=True, exclude_none=True)}


@click.command("show")
@click.argument("model_id", metavar="MODEL")
@ALL_LINES_OPTION
@format_option(FORMATS)
def show_command(model_id: str, format_: str, *, prints_all: bool) -> None:
    """Print the registry entry of MODEL."""
    models = registry_here()
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
    for section in ("published", "weights", "code", "run", "loading", "sources"):
        table = _summary(read_entry).get(section)
        if table:
            lines += [f"{section}", *_table_lines(table, address_by_file)]
    columns, points = list_width("-"), open_points(read_entry.entry)
    wrapped_lines = wrapped_text("\n".join(map(_visible_line, lines)), columns).splitlines()
    last_lines = wrapped_text(
        f"open: {'; '.join(points) if points else 'nothing'}", columns
    ).splitlines()
    printed_lines = (
        wrapped_lines if prints_all else wrapped_lines[: REPORT_LINES_MAX - 1 - len(last_lines)]
    )
    for line in itertools.chain(
        printed_lines, left_out_line(len(wrapped_lines) - len(printed_lines), "line"), last_lines
    ):
        click.echo(line)


def _visible_line(line: str) -> str:
    """Return a line with escapes for characters that move the cursor or reorder letters."""
    return visible(line, len(line) * 10)


def _value_text(value: object, fact: str = "") -> str:
    """Return the value of a fact of an entry as text; a word of the paper with its meaning."""
    if fact in MEANING_BY_WORD:
        return word_with_meaning(fact, str(value)) or ""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _table_lines(table: Mapping[str, Any], address_by_file: Mapping[str, str]) -> list[str]:
    """Return the lines that show one table of an entry, with the address of a file below it."""
    lines = []
    for fact, fact_value in table.items():
        if isinstance(fact_value, dict):
            lines += [f"  {fact}"] if fact_value else []
            for name, member in fact_value.items():
                lines.append(f"    {name}: {member}")
                if fact == "files" and name in address_by_file:
                    lines.append(f"      {address_by_file[name]}")
        elif isinstance(fact_value, list):
            if fact_value:
                lines.append(f"  {fact}: {', '.join(map(str, fact_value))}")
        elif fact_value != "":
            lines.append(f"  {fact}: {_value_text(fact_value)}")
    return lines


@click.command("verify")
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option(
    "--weights",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder with the files of one MODEL, to compare each with its digest.",
)
@click.option(
    "--facts",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="JSON file of loading facts by model id, each compared with the registry's entry.",
)
def verify_command(models: tuple[str, ...], weights: Path | None, facts: Path | None) -> int:
    """Check that every entry, or those of MODEL, can be read, and that the named files exist.

    Facts of an entry are compared with each other, with the row of its model and with --facts. The
    exit code is 11 if an entry is invalid, if two facts contradict each other, if an extractor or a
    lock file is missing, or if a file differs. Facts that an entry omits or calls unknown are
    listed, and are no error.
    """
    layout = find_layout(Path.cwd())
    registry = ModelRegistry(layout)
    if weights is not None and len(models) != 1:
        raise click.UsageError(
            f"--weights is for one model, found {plural(len(models), 'model')}: name one MODEL"
        )
    if not registry and not models:
        raise NothingChecked(
            "the model registry is empty, so nothing was verified",
            "run this command in a repository with leaderboard/policy/models/",
        )
    facts_by_model = _loading_facts(facts) if facts is not None else {}
    invalid_count = 0
    complete_count = 0
    for model in models or tuple(registry):
        try:
            read_entry = required_entry(registry, model)
        except GenebError as error:
            if models and isinstance(error, UsageProblem):
                raise
            echo(f"{model}: {_visible_line(error.message)}")
            invalid_count += 1
            continue
        open_facts = open_points(read_entry.entry)
        faults = file_faults(read_entry.entry, layout, registry)
        faults += contradictions(read_entry.entry)
        faults += contradictions_with_row(read_entry.entry, _row_meta(layout, model))
        faults += contradictions_with_facts(read_entry.entry, facts_by_model.get(model, {}))
        unknown_facts = [
            f"{fact}: {why}" for fact, why in unknown_fact_explanations(read_entry.entry).items()
        ]
        for status, points in (("open", open_facts), ("unknown", unknown_facts), ("wrong", faults)):
            if points:
                echo(_visible_line(f"{model}: {status}: {'; '.join(points)}"))
        has_differing_files = (
            weights is not None and _print_differing_files(read_entry.entry, weights, model) > 0
        )
        invalid_count += bool(faults) or has_differing_files
        complete_count += not open_facts and not faults and not has_differing_files
    total = len(models) or len(registry)
    echo(f"{plural(total, 'model')}: {invalid_count} wrong, {complete_count} ready for an audit")
    return Exit.ERRORS if invalid_count else Exit.CLEAN


def _loading_facts(path: Path) -> dict[str, dict[str, Any]]:
    """Return the loading facts by model id. Raises UsageProblem for a file of another form."""
    try:
        table = json.loads(path.read_bytes())
    except ValueError as error:
        raise UsageProblem(f"{path}: the file is not JSON: {error}", _FACTS_FIX) from error
    if not isinstance(table, dict) or not all(
        isinstance(section, dict) for section in table.values()
    ):
        raise UsageProblem(f"{path}: expected an object for each model id", _FACTS_FIX)
    return table


_FACTS_FIX = "write a table of loading facts, in the form that docs/maintainer/models.md describes"


def _row_meta(layout: Layout, model_id: str) -> Mapping[str, Any]:
    """Return `meta` of the row of a model; empty where no row can be read."""
    path = layout.submissions / f"{model_id}.json" if layout.submissions is not None else None
    if path is None or not path.is_file():
        return {}
    return table_at(parse_document(read_bytes(path), path, str(path)).value, "meta")


def _print_differing_files(model_entry: ModelEntry, folder: Path, model: str) -> int:
    """Print which files of an entry are missing or differ in a folder, and return how many."""
    files = model_entry.weights.files if model_entry.weights else {}
    differing_count = 0
    for file, expected in files.items():
        path = folder / file
        digest = file_sha256(path) if path.is_file() else None
        if digest != expected:
            differing_count += 1
            actual = f"sha256 {digest}" if digest else "no such file"
            remark = file_line_ends_clause(path, expected) if digest else ""
            echo(f"{model}: {file}: {actual}, expected sha256 {expected}{remark}")
    files_text = f"{len(files) - differing_count} of {plural(len(files), 'file')}"
    echo(f"{model}: {files_text} with the digest that the entry states")
    return differing_count


class _Models(LazyGroup):
    """The commands `geneb-ci models`."""

    table = {  # noqa: RUF012 (click's groups are made once)
        "list": ("models", "list the models, where their weights are, and what runs them"),
        "show": ("models", "print the registry entry of a model"),
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
    help="Run record of FILE, from `geneb-harness run --output`, to write format 1.2.",
)
@click.option("--undo", is_flag=True, help="Write the format 1.0 that FILE was made from.")
@click.option(
    "--benchmark",
    "definition",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Benchmark definition of the run record; default: a shipped one.",
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

    Format 1.1 names the model's entry in the model registry, which defines how the model is rerun.
    Every number is kept as written, and --undo restores FILE byte for byte. Details of the run that
    nobody recorded are not added. Audits of FILE do not count for the new file, because an audit
    commits to the bytes of a file.
    """
    if record is not None:
        if undo or output == STDOUT or str(file) == STDIN:
            raise click.UsageError(
                "with --record, FILE and --output must be files, and --undo must be left out"
            )
        benchmark_options = ["--benchmark", str(definition)] if definition else []
        arguments = [
            "--record",
            str(record),
            *benchmark_options,
            "--output",
            output,
            *["--quiet"] * quiet,
        ]
        return run_harness("upgrade", *arguments, "--", str(file))
    if definition is not None:
        raise click.UsageError(
            "--benchmark needs --record: pass --record FILE too, or leave out --benchmark"
        )
    is_piped = str(file) == STDIN
    require_file(file, FileKind.SUBMISSION, "upgrade")
    raw = read_stdin() if is_piped else read_bytes(file)
    document = parse_document(raw, located(file), str(file))
    if has_run(document.value) and not (undo or is_piped):
        return run_harness("upgrade", "--output", output, "--", str(file))
    original = _original_of(document)
    if undo and original is document:
        raise UsageProblem(
            f"{file}: the file has format 1.0 already", "leave out --undo to upgrade it"
        )
    text = original.text if undo else _text_by_entry(original)
    if output == STDOUT:
        click.echo(text, nl=False)
        return Exit.CLEAN
    output_file = Path(output)
    try:
        write_whole(output_file, lambda opened: opened.write(text.encode()))
        output_file.chmod(0o644)
    except OSError as error:
        raise unwritable(output, error, "name another file") from error
    if not quiet:
        remark = (
            "" if undo else f", by the entry of {original.value['model_id']} in the model registry"
        )
        echo(f"wrote {output}: format {'1.0' if undo else '1.1'}{remark}", err=True)
        echo(next_line(shlex.join(["geneb-ci", "check", output])), err=True)
    return Exit.CLEAN


def has_run(document: object) -> bool:
    """Whether a submission of format 1.1 or later describes its run, not only names an entry."""
    return version_of(document) not in {None, "1.0"} and format_key_of(document) != BY_ENTRY


def _original_of(document: Document) -> Document:
    """Return a valid file of format 1.0, or the file from which an upgraded file was made.

    Raises UsageProblem where the file is invalid or was not made from format 1.0.
    """
    name, (submission, faults) = document.name, check_structure(document.value)
    faults = [*document.faults, *faults]
    if submission is None or faults:
        raise UsageProblem(
            f"{name}: not a valid submission: {faults[0].message if faults else 'an empty file'}",
            f"correct what `geneb-ci check {name}` reports, then upgrade the file",
        )
    if submission.schema_version == "1.0":
        return document
    if has_run(document.value):
        raise UsageProblem(
            f"{name}: the file describes its run, so it was not made from format 1.0",
            "to upgrade it, name the file and its run record with --record; --undo is for files "
            "that `geneb-ci upgrade` made from format 1.0",
        )
    original_text = downgraded(document)
    if original_text is None:
        raise UsageProblem(
            f"{name}: the member {ENTRY_MEMBER} was moved or reformatted, so format 1.0 cannot be "
            "restored",
            "use the file as `geneb-ci upgrade` wrote it, or the original file of format 1.0",
        )
    return parse_document(original_text.encode(), document.path, name)


def _text_by_entry(document: Document) -> str:
    """Return a file of format 1.0 as text of format 1.1, with the entry of its model.

    Raises NothingChecked if the model registry has no entry of the model, and UsageProblem if the
    entry is incomplete or makes the submission invalid.
    """
    model_id = document.value["model_id"]
    models = ModelRegistry(find_layout(document.path.parent))
    try:
        model_entry = required_entry(models, model_id).entry
    except UsageProblem as error:  # the file names the model, not the command line
        raise NothingChecked(error.message, error.fix) from error
    if lacks := model_entry.missing_for_rerun:
        raise UsageProblem(
            f"the entry of {model_id} in the model registry is incomplete: {'; '.join(lacks)}",
            f"complete {models.path(model_id)} (docs/maintainer/models.md), then upgrade the file",
        )
    upgraded_text = upgraded(document, models.entry_member(model_id, document.sha256))
    if upgraded_text is None:
        raise UsageProblem(
            f"{document.name}: the value of schema_version is written with escapes",
            'write the value without escapes, as "schema_version": "1.0"',
        )
    raw = upgraded_text.encode()
    new_document = parse_document(raw, document.path, document.name)
    faults = [*new_document.faults, *check_structure(new_document.value)[1]]
    if len(raw) > SUBMISSION_BYTES_MAX or faults:
        fault = faults[0].message if faults else f"the file would have {len(raw):,} bytes"
        raise UsageProblem(
            f"the entry of {model_id} in the model registry makes the submission invalid: {fault}",
            f"correct {models.path(model_id)} (docs/maintainer/models.md), then upgrade the file",
        )
    return upgraded_text
