"""The command `geneb-harness`: options in, files out, one sentence for whatever went wrong.

Nothing here imports NumPy at module level: worker processes import this file first, and their BLAS
has to be held to one thread before it is loaded.
"""

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import click

from .cli_data import data
from .errors import HarnessError, OptionError
from .extractors import BUILTINS, DEFAULT
from .extractors_cli import extractors
from .rescore_cli import rescore, sequences

FAULT, USAGE, NOTHING, ERRORS, INTERRUPTED = 1, 2, 3, 11, 130
"""Exit codes: our own fault; usage; nothing was done; faults found; 128 + SIGINT."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="geneb-ci", prog_name="geneb-harness")
def cli() -> None:
    """Turn an extractor and task data into a run record and a submission."""


@cli.command()
@click.option(
    "--extractor",
    default=DEFAULT,
    show_default=True,
    metavar="NAME|MODULE:CLASS",
    help=f"{', '.join(BUILTINS)}, or a class of yours.",
)
@click.option("--model", "name_model", default="", help="Hub repository or folder of the weights.")
@click.option("--device", default="cpu", show_default=True, help="Where the extractor runs.")
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="Keyword for the extractor's constructor; repeatable.",
)
@click.option(
    "--declare",
    "declared",
    multiple=True,
    metavar="KEY=VALUE",
    help="What the extractor does not say of itself: layer, pooling, max_length, "
    "truncation, dtype or source.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Folder of task data; without it, the synthetic GENEB-mini.",
)
@click.option(
    "--benchmark",
    "definition",
    type=click.Path(path_type=Path),
    help="Benchmark definition; GENEB with --data unless said.",
)
@click.option(
    "--tasks", multiple=True, metavar="ID[,ID]", help="Run these tasks alone; repeatable."
)
@click.option("--regimes", metavar="NAME[,NAME]", help="Run these regimes alone.")
@click.option("--limit", type=click.IntRange(min=2), help="Cut each split: a trial, no submission.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="Run record to write.",
)
@click.option(
    "--submission", type=click.Path(path_type=Path, dir_okay=False), help="Submission to write."
)
@click.option(
    "--format-version",
    type=click.Choice(["1.1", "1.0"]),
    default="1.1",
    show_default=True,
    help="Format of the submission.",
)
@click.option("--model-id", help="Key of the row on the board; made from the model unless said.")
@click.option("--display", help="Name on the board.")
@click.option("--params", type=click.IntRange(min=0), help="Parameters of the encoder.")
@click.option("--url", default="", help="Address of the weights or the paper.")
@click.option(
    "--zero-shot/--no-zero-shot",
    default=False,
    show_default=False,
    help="Whether the model saw no benchmark sequence in training.",
)
@click.option("--training-data", default="", help="What the model was trained on.")
@click.option("--submitted-by", default="unnamed", show_default=True, help="Who ran it.")
@click.option(
    "--batching",
    type=click.Choice(["budget", "exact", "file"]),
    default="budget",
    show_default=True,
    help="budget: sorted by length; exact: equal lengths only, the "
    "same bits whatever the batch; file: upstream's order.",
)
@click.option("--token-budget", type=click.IntRange(min=1), help="Padded tokens a batch may hold.")
@click.option("--batch-size", type=click.IntRange(min=1), help="Rows of a batch under file.")
@click.option(
    "--cache",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of embeddings kept between runs.",
)
@click.option(
    "--probe-device",
    default="cpu",
    show_default=True,
    help="Where the probe runs; anything but cpu is marked in the record.",
)
@click.option(
    "--canonical/--no-canonical",
    default=True,
    show_default=True,
    help="Also solve each probe to its optimum.",
)
@click.option("--workers", type=click.IntRange(min=1), help="Probe processes; one a processor.")
@click.option("--resume", is_flag=True, help="Go on with a run that was stopped.")
@click.option("--quiet", is_flag=True, help="Say nothing but errors.")
def run(**options: Any) -> None:  # noqa: ANN401 - click's own types
    """Embed, probe and score; write a run record and, if asked, a submission."""
    from .command import run_command  # noqa: PLC0415 - see the module's docstring

    run_command(options)


@cli.command()
@click.option(
    "--benchmark",
    "definition",
    type=click.Path(path_type=Path),
    help="Benchmark definition; GENEB unless said.",
)
@click.option("--mini", is_flag=True, help="List GENEB-mini.")
def tasks(definition: Path | None, *, mini: bool) -> None:
    """List the tasks of a benchmark: id, category, test size."""
    from . import benchmark  # noqa: PLC0415 - see the module's docstring

    found = benchmark.load(definition) if definition else (
        benchmark.mini() if mini else benchmark.geneb()
    )  # fmt: skip
    for task in found.tasks:
        click.echo(f"{task.id}\t{task.category}\t{task.n_test or '-'}")


cli.add_command(data)
cli.add_command(extractors)
cli.add_command(sequences)
cli.add_command(rescore)


def main() -> None:
    """Run the command line; every expected error becomes a sentence and an exit code."""
    # A scheduler's SIGTERM is to leave what Ctrl-C leaves.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        cli(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped; what is finished is kept: run again with --resume", err=True)
        sys.exit(INTERRUPTED)
    except HarnessError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(USAGE if isinstance(error, OptionError) else NOTHING)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        click.echo(f"error: {where}{error.strerror or error}", err=True)
        sys.exit(NOTHING)


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise KeyboardInterrupt
