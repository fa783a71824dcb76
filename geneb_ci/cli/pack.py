"""The command `geneb-ci pack`, which collects result files, one per cell, into a submission.

`geneb_ci.submission.result_files` reads the files, and `result_folders` their folder.
"""

import itertools
import json
import shlex
from pathlib import Path
from typing import Any

import click

from geneb_ci.check.rules.identity import refuse_bad_id
from geneb_ci.cli.main import echo
from geneb_ci.common.config import benchmark_of, find_layout
from geneb_ci.common.errors import Exit, NothingChecked, UsageProblem
from geneb_ci.common.files import write_files
from geneb_ci.common.finding import first_and_more
from geneb_ci.submission.result_files import BYTES_MAX, PackedResults, pack_results
from geneb_ci.submission.result_folders import (
    MODEL_META_FILE,
    folder_of_results,
    model_meta,
    options_from,
)
from reference_harness.formats.files import NotReadable, read_regular
from reference_harness.formats.recognition import disguise_of
from reference_harness.formats.text import next_line, plural, quoted


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
@click.option("--model-id", help="Id of the row; by default from model_meta.json.")
@click.option("--display", help="Name on the board; by default from model_meta.json.")
@click.option(
    "--params",
    type=click.IntRange(min=0),
    help="Parameters of the encoder; by default from model_meta.json.",
)
@click.option("--url", help="https link to the weights or paper.")
@click.option("--submitted-by", default="", help="Name of the person who ran the evaluation.")
@click.option("--training-data", default="", help="What the model was trained on.")
@click.option("--zero-shot", is_flag=True, help="The model saw no sequence of any task.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File; default: <model id>.json.",
)
def pack_command(
    folder: Path,
    model_id: str | None,
    display: str | None,
    params: int | None,
    url: str | None,
    submitted_by: str,
    training_data: str,
    zero_shot: bool,
    output: Path | None,
) -> int:
    """Collect the results in FOLDER into a submission of format 1.0.

    FOLDER has upstream's results_*.json, or results as MTEB writes them (results/MODEL/REVISION),
    with MCC, accuracy and macro-F1. Cells that are missing, duplicate or unusable are listed; the
    submission is written without them, and the exit code is 11.
    """
    if model_id is not None:
        refuse_bad_id(model_id)
    results_folder = folder_of_results(folder)
    result_files = sorted(
        path for path in results_folder.glob("*.json") if path.name != MODEL_META_FILE
    )
    if not result_files:
        _refuse_disguised(results_folder)
        raise NothingChecked(
            f"{folder}: the folder contains no *.json", "pass the folder of results_*.json"
        )
    options = {"model_id": model_id, "display": display, "params": params, "url": url}
    meta_members = model_meta(results_folder)
    facts = options_from(meta_members) | {k: v for k, v in options.items() if v is not None}
    benchmark = benchmark_of(find_layout(Path.cwd()))
    settings = meta_members.get("experiment_kwargs")
    packed_results = pack_results(
        result_files, benchmark, settings if isinstance(settings, dict) else {}
    )
    if not packed_results.broken or any(packed_results.results.values()):
        _require_facts(facts, results_folder)
    if not any(packed_results.results.values()):
        _print_unused(packed_results)
        raise NothingChecked(
            f"{results_folder}: no file has a result of {benchmark.name}, so nothing was written",
            "fix the files that are named above, each with its reason"
            if packed_results.broken
            else "pass the folder of results_*.json with a task id of the benchmark in each "
            "file name, or of results of MTEB with a task id as each task_name",
        )
    model_id = str(facts["model_id"])
    meta = {
        "display": facts["display"],
        "params": facts["params"],
        "url": facts.get("url", ""),
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
        "results": packed_results.results,
    }
    path = output or Path(f"{model_id.replace('/', '_')}.json")
    raw = json.dumps(submission, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    write_files(path.parent, {path.name: raw.encode()})
    _print_missing(packed_results)
    cell_count = sum(len(tasks) for tasks in packed_results.results.values())
    echo(f"wrote {path}: {cell_count} of {len(benchmark.regimes) * len(benchmark.tasks)} cells")
    echo(next_line(shlex.join(["geneb-ci", "check", str(path)])))
    return Exit.CLEAN if packed_results.is_complete else Exit.ERRORS


def _refuse_disguised(folder: Path) -> None:
    """Raise NothingChecked where a folder without *.json has a file of a recognised format."""
    for path in itertools.islice(sorted(folder.iterdir()), FILES_READ_MAX):
        try:
            disguise = disguise_of(read_regular(path, BYTES_MAX))
        except NotReadable:
            continue
        if disguise is not None:
            raise NothingChecked(
                f"{folder}: there is no *.json, and {quoted(path.name)} {disguise.predicate}",
                disguise.fix,
            )


FILES_READ_MAX = 20
"""Maximum number of files that are read to recognise their format."""


def _require_facts(options: dict[str, Any], folder: Path) -> None:
    """Raise UsageProblem for a required fact that neither an option nor a file has."""
    for fact in ("model_id", "display", "params"):
        if fact not in options:
            raise UsageProblem(
                f"--{fact.replace('_', '-')} is missing, and {folder} has no {MODEL_META_FILE} "
                "with this fact",
                f"pass the facts: geneb-ci pack {folder} --model-id ID --display NAME --params N",
            )


def _print_missing(packed_results: PackedResults) -> None:
    """Print which cells have no file, and which have several."""
    for regime, tasks in packed_results.missing.items():
        cells = plural(len(tasks), "missing cell")
        echo(f"{regime}: {cells}: {first_and_more(tasks)}", err=True)
    for regime, names_by_task in packed_results.duplicates.items():
        for task, names in names_by_task.items():
            echo(
                f"{regime}: {task} has {len(names)} result files, expected one: "
                f"{first_and_more([quoted(name) for name in names])}",
                err=True,
            )
    _print_unused(packed_results)


def _print_unused(packed_results: PackedResults) -> None:
    """Print which files were not used, and why."""
    names_by_reason: dict[str, list[str]] = {}
    for name, reason in packed_results.broken.items():
        names_by_reason.setdefault(reason, []).append(quoted(name))
    for reason, names in names_by_reason.items():
        echo(f"{first_and_more(names)} cannot be used: {reason}", err=True)
    if packed_results.unrecognised:
        echo(
            "ignored, since the file name has no task id: "
            f"{first_and_more([quoted(n) for n in packed_results.unrecognised])}",
            err=True,
        )
