"""`geneb-ci models`: the model registry, for people."""

import difflib
import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from geneb_ci.audit.canonical import AuditRefused
from geneb_ci.audit.extractors import BUILTIN, built_in
from geneb_ci.audit.fetching import lock_bytes
from geneb_ci.audit.weights import file_sha256
from geneb_ci.cli.main import LazyGroup
from geneb_ci.cli.shared import format_option, row_width
from geneb_ci.common.config import Layout, find_layout
from geneb_ci.common.errors import BadConfiguration, Exit, GenebError, NothingChecked
from geneb_ci.common.finding import plural
from geneb_ci.models.entry import ModelEntry, ReadEntry, addresses
from geneb_ci.models.registry import ModelRegistry
from geneb_ci.render.text import Table, fitted

FORMATS = ("text", "json")


def registry() -> ModelRegistry:
    """Return the registry of the repository that the command is run in, or the shipped one."""
    return ModelRegistry(find_layout(Path.cwd()))


def required(found: ModelRegistry, model_id: str) -> ReadEntry:
    """Return the entry of a model. Raises NothingChecked where there is none."""
    entry = found.entry(model_id)
    if entry is None:
        near = difflib.get_close_matches(model_id, list(found), n=1)
        raise NothingChecked(
            f"the model registry has no entry for {model_id!r}"
            + (f"; did you mean {near[0]!r}?" if near else ""),
            f"list the entries by `geneb-ci models list`; a new one is a file in {found.folder}",
        )
    return entry


@functools.cache
def _no_extractor(named: str, layout: Layout) -> str:
    """Return why an entry's extractor cannot be run here; empty where it can."""
    if named.startswith(BUILTIN):
        try:
            built_in(named)
        except AuditRefused as error:
            return error.message
        return ""
    module = Path(named.rpartition(":")[0]).name
    folder = layout.extractors
    return "" if folder is not None and (folder / module).is_file() else f"there is no {module}"


def not_usable_here(entry: ModelEntry, layout: Layout, found: ModelRegistry) -> list[str]:
    """Return what an entry names and is not there: extractor or lock; empty where all is."""
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
            lock_bytes(found.folder.parent, run.environment)
        except GenebError as error:
            points.append(error.message)
    return points


def open_points(entry: ModelEntry) -> list[str]:
    """Return what an entry lacks for an audit of its row; empty where nothing does."""
    found = []
    weights = entry.weights
    if weights is None:
        found.append("no weights")
    elif weights.kind != "none":
        if not weights.files:
            found.append("no file is pinned")
        if weights.kind != "huggingface" and (
            by_hand := set(weights.files) - set(addresses(weights))
        ):
            found.append(f"{plural(len(by_hand), 'file')} to fetch by hand")
    if entry.run is None:
        found.append("no extractor")
    elif entry.run.missing is not None:
        found.append(entry.run.missing)
    return found


@click.command("list")
@format_option(FORMATS)
def list_command(format_: str) -> None:
    """List the models, where their weights are, and what runs them."""
    found = registry()
    entries: dict[str, ReadEntry] = {}
    for name in found:
        try:
            entries[name] = required(found, name)
        except BadConfiguration as error:
            click.echo(f"{error.message}\n  fix: {error.fix}", err=True)
    if format_ == "json":
        click.echo(json.dumps({name: _summary(one) for name, one in entries.items()}, indent=1))
        return
    rows = [
        (
            name,
            one.entry.weights.kind if one.entry.weights else "",
            (one.entry.run.extractor if one.entry.run else None) or "-",
            "; ".join(open_points(one.entry)) or "nothing",
        )
        for name, one in entries.items()
    ]
    for lines in Table(("model", "weights", "run by", "open"), rows).fitted_rows(row_width("-")):
        for line in lines:
            click.echo(line)
    click.echo(f"{plural(len(rows), 'model')}; `geneb-ci models show MODEL` prints one")


def _summary(one: ReadEntry) -> Mapping[str, Any]:
    return {"sha256": one.sha256, **one.entry.model_dump(by_alias=True, exclude_none=True)}


@click.command("show")
@click.argument("model_id", metavar="MODEL")
@format_option(FORMATS)
def show_command(model_id: str, format_: str) -> None:
    """Print what the registry knows of MODEL."""
    found = registry()
    one = required(found, model_id)
    if format_ == "json":
        click.echo(json.dumps(_summary(one), indent=1))
        return
    lines = [f"{model_id}: {one.entry.name or 'no name'}", f"  entry: {found.path(model_id)}"]
    lines += [
        f"  {key.replace('_', ' ')}: {_said(value)}" for key, value in one.entry.attributes.items()
    ]
    where = addresses(one.entry.weights) if one.entry.weights else {}
    for part in ("published", "weights", "code", "run", "loading", "sources"):
        table = _summary(one).get(part)
        if table:
            lines += [f"{part}", *_lines(table, where)]
    left = open_points(one.entry)
    lines.append(f"open: {'; '.join(left) if left else 'nothing'}")
    click.echo(fitted("\n".join(lines), row_width("-")), nl=False)


def _said(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _lines(table: Mapping[str, Any], where: Mapping[str, str]) -> list[str]:
    """Return the lines of a part of an entry; files with their address."""
    found = []
    for key, value in table.items():
        if isinstance(value, dict):
            found.append(f"  {key}")
            for name, one in value.items():
                found.append(f"    {name}: {one}")
                if key == "files" and name in where:
                    found.append(f"      {where[name]}")
        elif isinstance(value, list):
            if value:
                found.append(f"  {key}: {', '.join(map(str, value))}")
        elif value not in ("", {}):
            found.append(f"  {key}: {_said(value)}")
    return found


@click.command("verify")
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option(
    "--weights",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder with the files of one MODEL: compare each with its digest.",
)
def verify_command(models: tuple[str, ...], weights: Path | None) -> int:
    """Check that every entry, or those of MODEL, can be read, and that what it names is here.

    The exit code is 11 where an entry is invalid, names an extractor or a lock that is not here, or
    a file differs. What an entry leaves open is
    listed and is no error.
    """
    layout = find_layout(Path.cwd())
    found = ModelRegistry(layout)
    if weights is not None and len(models) != 1:
        raise click.UsageError("--weights takes the files of one model: name it")
    wrong = 0
    complete = 0
    for name in models or tuple(found):
        try:
            one = required(found, name)
        except GenebError as error:
            if models and isinstance(error, NothingChecked):
                raise
            click.echo(f"{name}: {error.message}")
            wrong += 1
            continue
        left = open_points(one.entry)
        absent = not_usable_here(one.entry, layout, found)
        for what, points in (("open", left), ("wrong", absent)):
            if points:
                click.echo(f"{name}: {what}: {'; '.join(points)}")
        differ = weights is not None and _compared(one.entry, weights, name) > 0
        wrong += bool(absent) or differ
        complete += not left and not absent and not differ
    total = len(models) or len(found)
    click.echo(f"{plural(total, 'model')}: {wrong} wrong, {complete} ready for an audit")
    return Exit.ERRORS if wrong else Exit.CLEAN


def _compared(entry: ModelEntry, folder: Path, name: str) -> int:
    """Print how the files of a folder differ from an entry; return how many do."""
    files = entry.weights.files if entry.weights else {}
    wrong = 0
    for file, expected in files.items():
        path = folder / file
        digest = file_sha256(path) if path.is_file() else None
        if digest != expected:
            wrong += 1
            what = f"sha256 {digest}" if digest else "no such file"
            click.echo(f"{name}: {file}: {what}, expected sha256 {expected}")
    click.echo(f"{name}: {len(files) - wrong} of {plural(len(files), 'file')} as pinned")
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
