"""Commands that run the harness (`data`, `extractor`), and `pack`."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from geneb_ci.board.files import write_files
from geneb_ci.common.benchmark import load_benchmark, shipped_benchmark
from geneb_ci.common.config import benchmark_of, find_layout
from geneb_ci.common.errors import Exit, NothingChecked
from geneb_ci.common.finding import first_and_more, quoted
from geneb_ci.submission.logs import Packed, pack_logs

# Name of each command in the harness.
GROUPS = {"data": "data", "extractor": "extractors"}
HELP = ((), ("-h",), ("--help",))


def handed_over(name: str, help_text: str) -> click.Command:
    """Return a command that runs `geneb-harness` with its arguments.

    The process is replaced (exec), so that stopping the command stops the work. Only --help runs in
    a child process, because text may follow it.
    """

    @click.command(
        name,
        help=help_text,
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def run(arguments: tuple[str, ...]) -> int:
        command = [sys.executable, "-m", "reference_harness", GROUPS[name], *arguments]
        if os.name == "posix" and arguments not in HELP:
            sys.stdout.flush()
            os.execv(sys.executable, command)  # noqa: S606 (our own module)
        return subprocess.run(command, check=False).returncode  # noqa: S603 (our own module)

    return run


DATA_HELP = "Pull, verify, audit and stage the pinned task data, or push a new revision of them."
_harness = handed_over("data", DATA_HELP)


class _Data(click.Group):
    """Implements `push`; all other subcommands are those of the harness."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["geneb_ci.arguments"] = list(args)
        return super().parse_args(ctx, args if args[:1] == ["push"] else [])

    def invoke(self, ctx: click.Context) -> object:
        arguments = ctx.meta["geneb_ci.arguments"]
        if arguments[:1] == ["push"]:
            return super().invoke(ctx)
        result = ctx.invoke(_harness, arguments=tuple(arguments))
        if tuple(arguments) in HELP:
            click.echo("  push      Upload a new revision: geneb-ci data push --help")
        return result


@click.group("data", cls=_Data, invoke_without_command=True, help=DATA_HELP, add_help_option=False)
def data_command() -> None:
    """Group of the subcommand `push`."""


@data_command.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--repo", metavar="OWNER/NAME", help="Data set; default: that of the benchmark.")
@click.option("--benchmark", "definition", type=click.Path(path_type=Path, dir_okay=False))
def push(folder: Path, repo: str | None, definition: Path | None) -> int:
    """Upload the tasks in FOLDER, in both layouts with a card, and print the revision to pin.

    Every task is checked against the benchmark first; none may be missing.
    """
    # Imported here: only push needs them.
    from geneb_ci.publish.session import find_token  # noqa: PLC0415
    from geneb_ci.publish.space import Remote, staged, upload  # noqa: PLC0415

    benchmark = load_benchmark(definition) if definition else shipped_benchmark()
    name = repo or benchmark.dataset.repo_id
    token = find_token(f"datasets/{name}")
    with tempfile.TemporaryDirectory(prefix="geneb-ci-") as place:
        options = ["--benchmark", str(definition)] if definition else []
        words = [sys.executable, "-m", "reference_harness", "data", "stage"]
        done = subprocess.run([*words, *options, "--", str(folder), place], check=False)  # noqa: S603 (our own module)
        if done.returncode:
            return done.returncode
        remote = Remote("dataset", name, token=token)
        made = upload(remote, staged(Path(place)), say=lambda line: click.echo(line, err=True))
    click.echo(f"{remote.resource}: {'pushed' if made.new else 'nothing changed'}")
    click.echo(f"revision to pin in schemas/benchmark.json: {made.revision}")
    return Exit.CLEAN


extractor_command = handed_over("extractor", "Check an extractor, or list the built-in ones.")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--model-id", required=True, help="Id of the row.")
@click.option("--display", required=True, help="Name on the board.")
@click.option(
    "--params", required=True, type=click.IntRange(min=0), help="Parameters of the encoder."
)
@click.option("--url", default="", help="https link to the weights or paper.")
@click.option("--submitted-by", default="", help="Who ran the evaluation.")
@click.option("--training-data", default="", help="What the model was trained on.")
@click.option("--zero-shot", is_flag=True, help="The model saw no sequence of any task.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File; default: <model id>.json.",
)
def pack_command(
    folder: Path,
    model_id: str,
    display: str,
    params: int,
    url: str,
    submitted_by: str,
    training_data: str,
    zero_shot: bool,
    output: Path | None,
) -> int:
    """Collect the results_*.json of FOLDER into a submission of format 1.0.

    Missing and duplicate logs are listed by regime; the submission is written without them, and
    the exit code is 11.
    """
    logs = sorted(folder.glob("*.json"))
    if not logs:
        raise NothingChecked(
            f"{folder}: the folder contains no *.json", "pass the folder of results_*.json"
        )
    benchmark = benchmark_of(find_layout(Path.cwd()))
    packed = pack_logs(logs, benchmark)
    meta = {
        "display": display,
        "params": params,
        "url": url,
        "zero_shot": zero_shot,
        "training_data": training_data,
        "provenance": "self-reported",
        "submitted_by": submitted_by,
    }
    submission = {
        "schema_version": "1.0",
        "model_id": model_id,
        "harness_version": benchmark.harness_version,
        "meta": meta,
        "results": packed.results,
    }
    path = output or Path(f"{model_id.replace('/', '_')}.json")
    text = json.dumps(submission, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    write_files(path.parent, {path.name: text.encode()})
    _say(packed)
    cells = sum(len(tasks) for tasks in packed.results.values())
    click.echo(f"wrote {path}: {cells} of {len(benchmark.regimes) * len(benchmark.tasks)} cells")
    return Exit.CLEAN if packed.is_whole else Exit.ERRORS


def _say(packed: Packed) -> None:
    for regime, missing in packed.missing.items():
        click.echo(f"{regime}: {len(missing)} missing: {first_and_more(missing)}", err=True)
    for regime, doubled in packed.doubled.items():
        for task, names in doubled.items():
            click.echo(
                f"{regime}: {task} has {len(names)} logs: "
                f"{first_and_more([quoted(n) for n in names])}",
                err=True,
            )
    for name, reason in packed.broken.items():
        click.echo(f"{quoted(name)} cannot be used: {reason}", err=True)
    if packed.foreign:
        click.echo(
            "ignored, no task id in the file name: "
            f"{first_and_more([quoted(n) for n in packed.foreign])}",
            err=True,
        )
