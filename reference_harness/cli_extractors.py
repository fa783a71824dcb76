"""The commands `geneb-harness extractors`: list the built-in ones, check any."""

import sys
from pathlib import Path

import click

from .files import dumps

FAILED = 11
"""Exit code when a property does not hold: faults found, as `geneb-ci check` counts them."""


@click.group()
def extractors() -> None:
    """List extractors, or check that one keeps the rules."""


@extractors.command(name="list")
def names() -> None:
    """List the built-in extractors."""
    from .loading import BUILTINS  # noqa: PLC0415 - NumPy: see cli.py

    for name in BUILTINS:
        click.echo(name)


@extractors.command()
@click.argument("spec", metavar="MODULE:CLASS")
@click.option("--model", "name_model", default="", help="Hub repository or folder of the weights.")
@click.option("--device", default="cpu", show_default=True)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="Keyword for the constructor; repeatable.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Where MODULE lies.",
)
@click.option("--select", multiple=True, metavar="PROPERTY", help="Try these alone; repeatable.")
@click.option("--seconds", type=click.FloatRange(min=1), help="Time limit of one property.")
@click.option("--format", "shape", type=click.Choice(["text", "json"]), default="text")
def check(
    spec: str,
    name_model: str,
    device: str,
    options: tuple[str, ...],
    folder: Path | None,
    select: tuple[str, ...],
    seconds: float | None,
    shape: str,
) -> None:
    """Try an extractor's properties: shape, independence of its batch, length, letters, device."""
    from . import conformance  # noqa: PLC0415 - NumPy: see cli.py
    from .command import pairs  # noqa: PLC0415
    from .errors import OptionError  # noqa: PLC0415

    try:
        results = conformance.check(
            spec,
            name_model,
            device,
            folder=str(folder) if folder else None,
            options=pairs(options, "--option"),
            seconds=seconds or conformance.SECONDS,
            select=select,
        )
    except ValueError as error:
        raise OptionError(str(error)) from error
    if shape == "json":
        click.echo(dumps([one.as_dict() for one in results]).decode(), nl=False)
    else:
        for one in results:
            mark = "ok  " if one.passed else "FAIL"
            click.echo(f"{mark} {one.property}: {one.sentence}")
            if one.example and not one.passed:
                click.echo(f"     {one.example}")
    failed = sum(not one.passed for one in results)
    click.echo(f"{len(results) - failed} of {len(results)} properties hold", err=shape == "json")
    if failed:
        sys.exit(FAILED)
