"""`--format F --output FILE` as a repeatable pair, in the order written."""

import sys
from pathlib import Path
from typing import Any, NamedTuple

import click

from geneb_ci.errors import UsageProblem, unwritable
from geneb_ci.report.formats import FORMATS

STDOUT = "-"


class Output(NamedTuple):
    """One report: its format and where it goes, "-" for standard output."""

    format: str
    path: str


class PairedCommand(click.Command):
    """A command that knows in which order `--format` and `--output` stood."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note the order of the options, then parse as click does."""
        _, _, order = self.make_parser(ctx).parse_args(list(args))
        ctx.meta["geneb_ci.order"] = [param.name for param in order]
        return super().parse_args(ctx, args)


def format_options(function: Any) -> Any:  # noqa: ANN401 (a decorator of click)
    """Add `--format` and `--output` to a command."""
    output = click.option(
        "--output",
        "outputs",
        multiple=True,
        metavar="FILE",
        help="Write the format before it here.",
    )
    choice = click.Choice(list(FORMATS))
    return click.option(
        "--format", "formats", multiple=True, type=choice, help="Format; text unless said."
    )(output(function))


def paired(formats: tuple[str, ...], outputs: tuple[str, ...]) -> list[Output]:
    """Pair each output with the format before it; a format without one goes to standard output.

    Raises UsageProblem when two reports would go to one place.
    """
    order = click.get_current_context().meta["geneb_ci.order"]
    rest_formats, rest_outputs = iter(formats), iter(outputs)
    pairs: list[Output] = []
    for name in order:
        if name == "formats":
            pairs.append(Output(next(rest_formats), STDOUT))
        elif name == "outputs":
            path = next(rest_outputs)
            if not pairs or pairs[-1].path != STDOUT:
                pairs.append(Output("text", path))
            else:
                pairs[-1] = Output(pairs[-1].format, path)
    pairs = pairs or [Output("text", STDOUT)]
    places = [pair.path for pair in pairs]
    if len(set(places)) < len(places):
        raise UsageProblem(
            "two reports would go to the same place",
            "name a file for all but one: --format sarif --output x.sarif",
        )
    return pairs


def write(output: Output, text: str) -> None:
    """Write one report. Raises UsageProblem or MachineFault when its file cannot be written."""
    if output.path == STDOUT:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        Path(output.path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise unwritable(output.path, error, "name another file") from error
