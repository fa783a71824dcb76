"""`geneb-ci pack` and `import`: collects files of one task and regime each into a submission.

Upstream's log `results_<model>_<task_id>_<extractor>.json` holds `mcc`, `accuracy` and `f1_score`,
each with a `mean`; few-shot logs end in `_k-1` or `_k-10` before `.json`. A result of MTEB
names its `task_name`, which ends likewise, its `dataset_revision` and the `scores` of each split;
`model_meta.json` beside it describes the model. Before version 1.11 it was `mteb_dataset_name`,
and each split stood beside it, with the scores themselves or those of its subsets.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

import click

from geneb_ci.check.rules.identity import refuse_bad_id
from geneb_ci.cli.main import echo
from geneb_ci.common.config import benchmark_of, find_layout
from geneb_ci.common.errors import Exit, NothingChecked, UsageProblem
from geneb_ci.common.files import write_files
from geneb_ci.common.finding import first_and_more
from geneb_ci.submission.document import read_document
from geneb_ci.submission.structure import LOG_METRICS
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission_terms import MODEL_ID_PATTERN
from reference_harness.formats.text import quoted

MTEB_METRICS = {"mcc": "MCC", "accuracy": "Acc", "f1": "F1"}
"""Scores of a classification task of MTEB; its f1 is the mean over the classes, as ours is."""
MODEL_META = "model_meta.json"
TEST, DEFAULT_SUBSET = "test", "default"
LM_EVAL = frozenset({"results", "configs", "versions"})
"""Members that every result of the LM Evaluation Harness has, and no log of upstream."""
LM_EVAL_REASON = (
    "it is of the LM Evaluation Harness, which prompts a model and fits no probe on embeddings: "
    "run the benchmark with geneb-harness"
)

Cells = dict[str, dict[str, dict[str, float]]]


@dataclass
class PackedLogs:
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


def pack_logs(paths: Iterable[Path], benchmark: Benchmark) -> PackedLogs:
    """Return the results in the logs; unusable logs are listed and do not affect the others.

    Raises NothingChecked when a file cannot be opened.
    """
    packed = PackedLogs({regime: {} for regime in benchmark.regimes})
    sources: dict[tuple[str, str], list[str]] = {}
    for path in sorted(paths):
        document = read_document(path)
        value: Any = {} if document.faults else document.value
        if isinstance(value, dict) and value.keys() >= LM_EVAL:
            packed.broken[path.name] = LM_EVAL_REASON
            continue
        value = _since_1_11(value)
        is_mteb = isinstance(value, dict) and {"task_name", "scores"} <= value.keys()
        name = value["task_name"] if is_mteb else path.stem
        task, regime = identify(str(name), benchmark)
        if task is None:
            packed.foreign.append(path.name)
            continue
        if document.faults:
            packed.broken[path.name] = document.faults[0].message
            continue
        scores, reason = _mteb_scores(value, benchmark) if is_mteb else _scores(value)
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


def _scores(value: Any) -> tuple[dict[str, float], str]:
    """Return the means of one log and "", or no means and the reason."""
    scores: dict[str, float] = {}
    for key, metric in LOG_METRICS.items():
        entry = value.get(key) if isinstance(value, dict) else None
        mean = entry.get("mean") if isinstance(entry, dict) else None
        if not _is_number(mean):
            return {}, f"{key}.mean is missing or not a number"
        scores[metric] = float(mean)
    return scores, ""


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _since_1_11(value: Any) -> Any:
    """Return a result that MTEB wrote before version 1.11 in the form of today; others as they are.

    Its splits are the members that are objects; one whose members are objects has subsets.
    """
    if not isinstance(value, dict) or "mteb_dataset_name" not in value or "scores" in value:
        return value
    scores = {}
    for split, content in value.items():
        if isinstance(content, dict):
            subsets = {name: subset for name, subset in content.items() if isinstance(subset, dict)}
            whole = subsets or {DEFAULT_SUBSET: content}
            scores[split] = [subset | {"hf_subset": name} for name, subset in whole.items()]
    return {
        "task_name": value["mteb_dataset_name"],
        "dataset_revision": value.get("dataset_revision"),
        "scores": scores,
    }


def _mteb_scores(value: dict[str, Any], benchmark: Benchmark) -> tuple[dict[str, float], str]:
    """Return the scores of one result of MTEB and "", or no scores and the reason."""
    revision, expected = value.get("dataset_revision"), benchmark.dataset.revision
    if revision != expected:
        return {}, f"its data is of revision {quoted(revision)}, expected {expected}"
    splits = value["scores"]
    subsets = splits.get(TEST) if isinstance(splits, dict) else None
    whole = [subset for subset in subsets or [] if isinstance(subset, dict)]
    if len(whole) > 1:
        whole = [subset for subset in whole if subset.get("hf_subset") == DEFAULT_SUBSET]
    if len(whole) != 1:
        return {}, f"scores.{TEST} does not have one subset, or one that is {DEFAULT_SUBSET!r}"
    lacking = [key for key in MTEB_METRICS if not _is_number(whole[0].get(key))]
    if lacking:
        return {}, f"scores.{TEST} has no {' and no '.join(lacking)}: score the task again with it"
    return {metric: float(whole[0][key]) for key, metric in MTEB_METRICS.items()}, ""


def results_in(folder: Path) -> Path:
    """Return the folder of the results: itself, or the one below it that has a model_meta.json.

    Where none has one, as MTEB before version 1.11 wrote, it is the one with a file of JSON.
    Raises UsageProblem where several models or revisions have one.
    """
    if any(folder.glob("*.json")):
        return folder
    folders = sorted(path.parent for path in folder.glob(f"*/**/{MODEL_META}"))
    folders = folders or sorted({path.parent for path in folder.glob("*/**/*.json")})
    if len(folders) > 1:
        names = [quoted(path.relative_to(folder).as_posix()) for path in folders]
        raise UsageProblem(
            f"{folder}: results of {len(folders)} models or revisions: {first_and_more(names)}",
            "pass the folder of one",
        )
    return folders[0] if folders else folder


def described_by(folder: Path) -> dict[str, Any]:
    """Return what the model_meta.json of MTEB says of a model, by the names of the options."""
    path = folder / MODEL_META
    document = read_document(path) if path.is_file() else None
    value: Any = document.value if document is not None and not document.faults else None
    if not isinstance(value, dict):
        return {}
    name, params, url = (value.get(key) for key in ("name", "n_parameters", "reference"))
    options: dict[str, Any] = {}
    if isinstance(name, str) and name:
        model = name.rpartition("/")[2]
        options |= {"display": model}
        options |= {"model_id": model} if re.fullmatch(MODEL_ID_PATTERN, model) else {}
    if _is_number(params) and params >= 0:
        options["params"] = int(params)
    if isinstance(url, str) and url.startswith("https://"):
        options["url"] = url
    return options


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--model-id", help="Id of the row; by default from model_meta.json.")
@click.option("--display", help="Name on the board; by default from model_meta.json.")
@click.option(
    "--params",
    type=click.IntRange(min=0),
    help="Parameters of the encoder; by default from model_meta.json.",
)
@click.option("--url", help="https link to the weights or paper.")
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
    with MCC, accuracy and macro-F1. What is missing, duplicate or unusable is listed; the
    submission is written without it, and the exit code is 11.
    """
    if model_id is not None:
        refuse_bad_id(model_id)
    results = results_in(folder)
    logs = sorted(path for path in results.glob("*.json") if path.name != MODEL_META)
    if not logs:
        raise NothingChecked(
            f"{folder}: the folder contains no *.json", "pass the folder of results_*.json"
        )
    given = {"model_id": model_id, "display": display, "params": params, "url": url}
    known = described_by(results) | {k: v for k, v in given.items() if v is not None}
    _require(known, results)
    benchmark = benchmark_of(find_layout(Path.cwd()))
    packed = pack_logs(logs, benchmark)
    if not any(packed.results.values()):
        _print_gaps(packed)
        raise NothingChecked(
            f"{results}: no file has a result of {benchmark.name}, so nothing was written",
            "name the folder of results_*.json, or of results that MTEB wrote, with task ids of "
            "the benchmark as file names",
        )
    model_id = str(known["model_id"])
    meta = {
        "display": known["display"],
        "params": known["params"],
        "url": known.get("url", ""),
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
    _print_gaps(packed)
    cells = sum(len(tasks) for tasks in packed.results.values())
    echo(f"wrote {path}: {cells} of {len(benchmark.regimes) * len(benchmark.tasks)} cells")
    return Exit.CLEAN if packed.is_whole else Exit.ERRORS


import_command = pack_command
"""The same command: what a folder has is recognised by its files."""


def _require(known: dict[str, Any], folder: Path) -> None:
    """Raise UsageProblem for an option that is needed and that no file gives."""
    for name in ("model_id", "display", "params"):
        if name not in known:
            raise UsageProblem(
                f"--{name.replace('_', '-')} is missing, and {folder} has no {MODEL_META} that "
                "gives it",
                f"geneb-ci pack {folder} --model-id ID --display NAME --params N",
            )


def _print_gaps(packed: PackedLogs) -> None:
    for regime, missing in packed.missing.items():
        echo(f"{regime}: {len(missing)} missing: {first_and_more(missing)}", err=True)
    for regime, doubled in packed.doubled.items():
        for task, names in doubled.items():
            echo(
                f"{regime}: {task} has {len(names)} logs: "
                f"{first_and_more([quoted(n) for n in names])}",
                err=True,
            )
    reasons: dict[str, list[str]] = {}
    for name, reason in packed.broken.items():
        reasons.setdefault(reason, []).append(quoted(name))
    for reason, names in reasons.items():
        echo(f"{first_and_more(names)} cannot be used: {reason}", err=True)
    if packed.foreign:
        echo(
            "ignored, no task id in the file name: "
            f"{first_and_more([quoted(n) for n in packed.foreign])}",
            err=True,
        )
