"""The command `geneb-harness`; every expected error becomes a message and an exit code.

Nothing here imports NumPy at module level: worker processes import this file first, and must limit
BLAS to one thread before it is loaded.
"""

import io
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import click

from reference_harness.errors import FailedRunsError, FailedTasksError, HarnessError, OptionError
from reference_harness.extractors import BUILTINS, DEFAULT
from reference_harness.formats.bytecode import damaged_bytecode, interrupting_error
from reference_harness.formats.layered_help import LayeredHelp
from reference_harness.formats.processes import PASSIVE_WAITING
from reference_harness.formats.submission_terms import UNNAMED, VERSIONS
from reference_harness.text import echo

from .batch import batch
from .data import data
from .elsewhere import elsewhere
from .extractors import TokenBudget, extractors
from .probe import probe
from .receipt import receipt_cells, receipt_equal, receipt_refit, receipt_rescore
from .rescore import fresh, jobs_option, rescore, sequences, variants
from .scorer import scorer
from .upgrade import upgrade

FAULT, USAGE, NOTHING, ERRORS, INTERRUPTED = 1, 2, 3, 11, 130
"""Exit codes: internal error; usage; nothing was done; errors found; 128 + SIGINT."""


EXTRAS = {
    **dict.fromkeys(
        ("huggingface_hub", "numpy", "safetensors", "sklearn", "threadpoolctl", "torch"), "harness"
    ),
    **dict.fromkeys(("fsspec", "ray"), "ray"),
}
"""The extra that installs an optional module, by the module's name."""
ALIASES = {"extractor": "extractors"}
"""The name of a command by its other name: `geneb-ci` uses the singular."""


class CacheLocation(click.ParamType[Path | str]):
    """A folder, or the address of an object store."""

    name = "FOLDER|ADDRESS"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path | str:
        """Return a folder or an address. Raise click's error for a file."""
        folder = click.Path(path_type=Path, file_okay=False)
        return value if "://" in value else folder.convert(value, param, ctx)


class _Commands(click.Group):
    """The group of all commands, in which `ALIASES` are accepted, too."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name or its other name."""
        return super().get_command(ctx, ALIASES.get(cmd_name, cmd_name))


class _RunCommand(LayeredHelp, click.Command):
    """The command `run`, whose help shows the common options first."""

    OPTION_CLASS = click.Option


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="geneb-ci", prog_name="geneb-harness")
@click.option("--program", hidden=True, help="Name of the program that the user typed.")
@click.pass_context
def cli(ctx: click.Context, program: str | None) -> None:
    """Evaluate an extractor on task data; write a run record and a submission."""
    ctx.info_name = program or ctx.info_name


@cli.command(
    cls=_RunCommand,
    common=(
        *("--extractor", "--model", "--option", "--device", "--data", "--tasks", "--output"),
        *("--submission", "--model-id", "--display", "--receipt", "--resume"),
    ),
)
@click.option(
    "--extractor",
    default=DEFAULT,
    show_default=True,
    metavar="NAME|MODULE:CLASS",
    help=f"{', '.join(BUILTINS)}, or your own class.",
)
@click.option("--model", "name_model", default="", help="Hub repository or folder of the weights.")
@click.option("--device", default="cpu", show_default=True, help="Torch device of the extractor.")
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="Keyword argument of the extractor's constructor; repeatable.",
)
@click.option(
    "--declare",
    "declared",
    multiple=True,
    metavar="KEY=VALUE",
    help="Declare what the extractor does not declare: layer, pooling, max_length, "
    "truncation, dtype or source.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Folder of task data; default: the synthetic GENEB-mini.",
)
@click.option(
    "--benchmark",
    "definition",
    type=click.Path(path_type=Path),
    help="Benchmark definition; default with --data: that of the board you are in, or GENEB.",
)
@click.option(
    "--tasks",
    multiple=True,
    metavar="ID[,ID]",
    help=(
        "Run only these tasks; repeatable. `quick`: ten tasks of GENEB whose mean predicts that of "
        "all categories, for training curves."
    ),
)
@click.option("--regimes", metavar="NAME[,NAME]", help="Run only these regimes.")
@click.option(
    "--limit",
    type=click.IntRange(min=2),
    help="Sequences per split, for a trial run without submission.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Run record to write; required.",
)
@click.option(
    "--from",
    "listed",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.toml",
    help="List of runs: [[run]] with output and other options; options given here apply to all.",
)
@click.option(
    "--submission", type=click.Path(path_type=Path, dir_okay=False), help="Submission to write."
)
@click.option(
    "--format-version",
    type=click.Choice(VERSIONS[::-1], case_sensitive=False),
    help="Format of the submission; default: 1.2 with --receipt, else 1.1.",
)
@click.option("--model-id", help="Id of the row; default: derived from the model.")
@click.option("--display", help="Name on the board.")
@click.option("--params", type=click.IntRange(min=0), help="Number of parameters of the encoder.")
@click.option("--url", default="", help="https link to the weights or the paper.")
@click.option(
    "--zero-shot/--no-zero-shot",
    default=False,
    show_default=False,
    help="The model saw no benchmark sequence in training.",
)
@click.option("--training-data", default="", help="What the model was trained on.")
@click.option("--submitted-by", default=UNNAMED, show_default=True, help="Who ran the evaluation.")
@click.option(
    "--batching",
    type=click.Choice(["budget", "exact", "file"], case_sensitive=False),
    default="budget",
    show_default=True,
    help="budget: sorted by length; exact: equal lengths only, bitwise "
    "reproducible; file: in file order, as upstream does.",
)
@click.option(
    "--token-budget",
    type=TokenBudget(),
    help="Maximum of padded tokens per batch, or auto: as many as fit into memory; halved if "
    "memory runs out. A run may be resumed with another one. [default: 2048; on CUDA auto]",
)
@click.option(
    "--batch-size", type=click.IntRange(min=1), help="Sequences per batch, with --batching file."
)
@click.option(
    "--cache",
    type=CacheLocation(),
    help="Folder for embeddings, or an address of fsspec for a cluster, such as s3://BUCKET/X.",
)
@click.option(
    "--probe-device",
    default="cpu",
    show_default=True,
    help="Device of the probe; the record names any other than cpu.",
)
@jobs_option
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"], case_sensitive=False),
    default="local",
    show_default=True,
    help="Where to run: on this machine, or on a Ray cluster.",
)
@click.option(
    "--embedders",
    type=click.IntRange(min=1),
    help="Processes that load the model: with --device cuda, each on its own GPU. "
    "Default: 1; on a cluster one per GPU, or per CPU with --device cpu.",
)
@click.option(
    "--receipt",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for a receipt: the embeddings as scored, rounded to float16.",
)
@click.option("--resume", is_flag=True, help="Continue a run that was stopped.")
@click.option("--fail-fast", is_flag=True, help="End the run when a task fails.")
@click.option("--quiet", is_flag=True, help="Print only errors.")
@click.pass_context
def run(ctx: click.Context, /, **options: Any) -> None:
    """Run an extractor; write a run record and a submission.

    Embeds the sequences, fits the probes and scores them. The submission is optional.
    """
    from .run_list import listed_runs, run_all  # see the module's docstring

    list_file = options.pop("listed")
    if list_file is None and options["output"] is None:
        output_option = next(param for param in ctx.command.params if param.name == "output")
        raise click.MissingParameter(ctx=ctx, param=output_option)
    try:
        run_all([options] if list_file is None else listed_runs(list_file, ctx, options))
    except KeyboardInterrupt as interrupt:
        message = "stopped; finished work is kept: continue with --resume"
        raise KeyboardInterrupt(message) from interrupt


@cli.command()
@click.option(
    "--benchmark",
    "definition",
    type=click.Path(path_type=Path),
    help="Benchmark definition; default: that of the board you are in, or GENEB.",
)
@click.option("--mini", is_flag=True, help="List GENEB-mini.")
def tasks(definition: Path | None, *, mini: bool) -> None:
    """List the tasks of a benchmark.

    Each line has the id, the category and the number of test sequences.
    """
    from reference_harness.data import benchmark  # see the module's docstring

    bench = benchmark.load(definition) if definition else (
        benchmark.mini() if mini else benchmark.default()
    )  # fmt: skip
    for task in bench.tasks:
        echo(f"{task.id}\t{task.category}\t{task.n_test or '-'}")


cli.add_command(data)
cli.add_command(extractors)
cli.add_command(sequences)
cli.add_command(rescore)
cli.add_command(receipt_cells)
cli.add_command(probe)
cli.add_command(scorer)
cli.add_command(upgrade)
cli.add_command(receipt_equal)
cli.add_command(receipt_refit)
cli.add_command(receipt_rescore)
cli.add_command(batch)
cli.add_command(variants)
cli.add_command(fresh)
cli.add_command(elsewhere)


def main() -> None:
    """Run the command line; every expected error becomes a message and an exit code."""
    # Handle a scheduler's SIGTERM like Ctrl-C.
    signal.signal(signal.SIGTERM, _raise_interrupt)
    for variable, value in PASSIVE_WAITING.items():  # before an extractor imports torch
        os.environ.setdefault(variable, value)
    try:
        cli(standalone_mode=False)
    except click.ClickException as error:
        message = io.StringIO()
        error.show(message)
        echo(message.getvalue().removesuffix("\n"), err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt) as error:
        unexpected = interrupting_error(error)
        if unexpected is not None:
            damaged_file = damaged_bytecode(unexpected)
            if not damaged_file:
                raise unexpected from None
            echo(f"error: {damaged_file} is damaged: remove it and run the command again", err=True)
            sys.exit(FAULT)
        echo(str(error.__cause__ or error) or "stopped", err=True)
        sys.exit(INTERRUPTED)
    except HarnessError as error:
        echo(f"error: {error}", err=True)
        has_finished_work = (
            isinstance(error, FailedTasksError | FailedRunsError) and error.has_finished_work
        )
        sys.exit(
            ERRORS if has_finished_work else USAGE if isinstance(error, OptionError) else NOTHING
        )
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        missing_text = f"this command needs {error.name}, which is not installed"
        echo(f"error: {missing_text}: pip install 'geneb-ci[{extra}]'", err=True)
        sys.exit(USAGE)
    except OSError as error:
        file_prefix = f"{error.filename}: " if error.filename else ""
        echo(f"error: {file_prefix}{error.strerror or error}", err=True)
        sys.exit(NOTHING)


def _raise_interrupt(number: int, frame: FrameType | None) -> None:
    """Handle a signal to end like Ctrl-C, so that what was computed is saved."""
    del number, frame
    raise KeyboardInterrupt
