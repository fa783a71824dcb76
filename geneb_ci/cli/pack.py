"""`geneb-ci pack`: upstream's per-task logs into one submission."""

import json
from pathlib import Path

import click

from geneb_ci.build.files import write_files
from geneb_ci.config import benchmark_of, find_layout
from geneb_ci.errors import Exit, NothingChecked
from geneb_ci.finding import listed, shown
from geneb_ci.read.legacy import Packed, pack_logs


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--model-id", required=True, help="Key of the row.")
@click.option("--display", required=True, help="Name on the board.")
@click.option(
    "--params", required=True, type=click.IntRange(min=0), help="Parameters of the encoder."
)
@click.option("--url", default="", help="https address of weights or paper.")
@click.option("--submitted-by", default="", help="Who ran the evaluation.")
@click.option("--training-data", default="", help="What the model was trained on.")
@click.option("--zero-shot", is_flag=True, help="The model saw no sequence of any task.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File; <model id>.json unless said.",
)
def command(
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
    """Gather the results_*.json of FOLDER into a submission of format 1.0.

    Missing and doubled logs are listed by regime; the submission is written without them, and the
    exit code is 11.
    """
    logs = sorted(folder.glob("*.json"))
    if not logs:
        raise NothingChecked(
            f"{folder}: the folder holds no *.json", "name the folder of results_*.json"
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
        click.echo(f"{regime}: {len(missing)} missing: {listed(missing)}", err=True)
    for regime, doubled in packed.doubled.items():
        for task, names in doubled.items():
            click.echo(
                f"{regime}: {task} has {len(names)} logs: {listed([shown(n) for n in names])}",
                err=True,
            )
    for name, reason in packed.broken.items():
        click.echo(f"{shown(name)} cannot be used: {reason}", err=True)
    if packed.foreign:
        click.echo(
            f"left out, no task id in the name: {listed([shown(n) for n in packed.foreign])}",
            err=True,
        )
