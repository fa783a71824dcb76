"""`geneb-ci pack`: collects upstream's log files, one per task and regime, into a submission.

`results_<model>_<task_id>_<extractor>.json` holds `mcc`, `accuracy` and `f1_score`, each with a
`mean`; few-shot logs end in `_k-1` or `_k-10` before `.json`.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from geneb_ci.board.files import write_files
from geneb_ci.common.benchmark import Benchmark
from geneb_ci.common.config import benchmark_of, find_layout
from geneb_ci.common.errors import Exit, NothingChecked
from geneb_ci.common.finding import first_and_more, quoted
from geneb_ci.submission.document import read_document

METRICS = {"mcc": "MCC", "accuracy": "Acc", "f1_score": "F1"}

Cells = dict[str, dict[str, dict[str, float]]]


@dataclass
class Packed:
    """The results in the logs of one folder, and which logs could not be used."""

    results: Cells
    missing: dict[str, list[str]] = field(default_factory=dict)
    """Regime to tasks without a log."""
    doubled: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """Regime to tasks with more than one log, with their file names."""
    foreign: list[str] = field(default_factory=list)
    """Files whose name contains no task id."""
    broken: dict[str, str] = field(default_factory=dict)
    """Files that cannot be used, with the reason."""

    @property
    def is_whole(self) -> bool:
        """Whether every cell has exactly one readable log."""
        return not (self.missing or self.doubled or self.broken)


def pack_logs(paths: Iterable[Path], benchmark: Benchmark) -> Packed:
    """Return the results in the logs; unusable logs are listed and do not affect the others.

    Raises NothingChecked when a file cannot be opened.
    """
    packed = Packed({regime: {} for regime in benchmark.regimes})
    sources: dict[tuple[str, str], list[str]] = {}
    for path in sorted(paths):
        task, regime = identify(path.stem, benchmark)
        if task is None:
            packed.foreign.append(path.name)
            continue
        scores, reason = _scores(path)
        if reason:
            packed.broken[path.name] = reason
            continue
        sources.setdefault((regime, task), []).append(path.name)
        packed.results[regime][task] = scores
    for (regime, task), names in sources.items():
        if len(names) > 1:
            packed.doubled.setdefault(regime, {})[task] = names
            del packed.results[regime][task]
    for regime in benchmark.regimes:
        ordered = [task for task in benchmark.task_ids if task in packed.results[regime]]
        packed.results[regime] = {task: packed.results[regime][task] for task in ordered}
        absent = [task for task in benchmark.task_ids if (regime, task) not in sources]
        if absent:
            packed.missing[regime] = absent
    return packed


def identify(stem: str, benchmark: Benchmark) -> tuple[str | None, str]:
    """Return task and regime from a file name without extension; the longest matching id wins.

    The task is None if the name contains no task id between underscores.
    """
    few_shot = {f"_k-{k}": regime for regime, k in benchmark.protocol.few_shot_k.items()}
    suffix = next((ending for ending in few_shot if stem.endswith(ending)), "")
    regime = few_shot.get(suffix, benchmark.regimes[0])
    name = f"_{stem.removesuffix(suffix)}_"
    fitting = [task for task in benchmark.task_ids if f"_{task}_" in name]
    return max(fitting, key=len, default=None), regime


def _scores(path: Path) -> tuple[dict[str, float], str]:
    """Return the means of one log and "", or no means and the reason."""
    document = read_document(path)
    if document.faults:
        return {}, document.faults[0].message
    value: Any = document.value
    scores: dict[str, float] = {}
    for key, metric in METRICS.items():
        entry = value.get(key) if isinstance(value, dict) else None
        mean = entry.get("mean") if isinstance(entry, dict) else None
        if isinstance(mean, bool) or not isinstance(mean, int | float):
            return {}, f"{key}.mean is missing or not a number"
        scores[metric] = float(mean)
    return scores, ""


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
