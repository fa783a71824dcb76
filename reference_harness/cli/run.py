"""The steps of `geneb-harness run` for one model: options, engine, run, record, submission."""

import importlib.util
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from reference_harness.data import benchmark, task_folder
from reference_harness.data.quick_tasks import expand_quick, quick_prediction_line, quick_tasks
from reference_harness.embedding.cache import default_cache
from reference_harness.embedding.embedder import EmbedderSpec
from reference_harness.embedding.extractor_calls import FILE_BATCH_SEQUENCES, Batching
from reference_harness.engine import Engine
from reference_harness.engine.devices import DeviceEmbedders, InProcessEmbedder, TaskEmbedder
from reference_harness.engine.local_engine import LocalEngine
from reference_harness.errors import OptionError, known_name, unknown_name
from reference_harness.extractors.base import ExtractorError
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import dumps_tables, write_bytes, write_json
from reference_harness.formats.processes import processors
from reference_harness.formats.run_record import RunRecord
from reference_harness.formats.submission import Meta
from reference_harness.formats.submission_terms import (
    DTYPES,
    MODEL_ID_MAX,
    MODEL_ID_PATTERN,
    SOURCE_KINDS,
    TRUNCATIONS,
)
from reference_harness.formats.text import next_line, plural
from reference_harness.loading.constructor_arguments import is_compiled, keywords, parsed_options
from reference_harness.loading.extractor_facts import ExtractorFacts
from reference_harness.loading.loader import locate
from reference_harness.loading.properties import CONTRADICTED
from reference_harness.probe import logistic
from reference_harness.run import progress, submission
from reference_harness.run.benchmark_run import run
from reference_harness.run.replace import refuse_loss
from reference_harness.run.settings import Settings, missing_tasks, task_names
from reference_harness.run.stopped_run import StoppedRun
from reference_harness.text import first_and_more

from .extractors import budget_of

if TYPE_CHECKING:  # Ray need not be installed
    from reference_harness.engine.cluster import Cluster

_META_FIELDS = ("url", "zero_shot", "training_data", "submitted_by")
"""Fields of the submission's metadata that are also keys of the command's options."""
_EMBEDDING_FIELDS = ("layer", "pooling", "max_length", "truncation", "dtype")
"""Fields of `embedding` that --declare can set."""
_ALLOWED_VALUES = {"truncation": TRUNCATIONS, "dtype": DTYPES, "source": SOURCE_KINDS}
"""Values that --declare accepts, by field."""


class RunContext(NamedTuple):
    """The cluster and the listeners of a run, shared by several runs of one call."""

    cluster: "Cluster | None"
    """The cluster to run on; None for this machine."""
    listeners: progress.Listeners
    label: str = ""
    """Prefix of this run's lines, if there are several runs."""


def run_command(options: dict[str, Any], context: RunContext) -> None:
    """Run with the options of the command line; write the record and the submission.

    Raise HarnessError for every error that a user can cause.
    """
    # 1. Check the options before anything is loaded.
    _complete_options(options)
    # 2. Benchmark and data.
    bench = _benchmark_of_options(options)
    source = (
        task_folder.Folder(options["data"], bench) if options["data"] else task_folder.MiniSource()
    )
    regimes = [
        known_name(f"--regimes {name!r}", name, tuple(bench.regimes))
        for name in _listed_names(options["regimes"])
    ]
    requested_names = [name for text in options["tasks"] for name in _listed_names(text)]
    tasks = task_names(expand_quick(requested_names, bench), bench)
    # 3. The extractor, which may take minutes to load.
    option_texts = parsed_options(options["options"], "--option")
    try:
        locate(options["extractor"])
    except ExtractorError as error:
        raise OptionError(str(error)) from error
    spec = _embedder_spec(options, option_texts)
    probe_device = _probe_device(options)
    requested_ids = set(tasks) or source.available()
    planned_count = sum(task.id in requested_ids & source.available() for task in bench.tasks)
    listener = context.listeners(planned_count, context.label)
    with _engine(options, spec, context.cluster, listener, probe_device) as engine:
        facts = engine.facts
        if facts.note:
            listener.say(facts.note)
        for property_name, measured_property in facts.properties.items():
            if measured_property.outcome == CONTRADICTED:
                listener.say(f"{property_name}: {measured_property.sentence}")
        _add_declarations(facts, parsed_options(options["declared"], "--declare"))
        # 4. Check that the submission can be written, before the work.
        _check_declared(facts, options)
        run_model_id = model_id(options["model_id"], options, option_texts)
        meta = _meta(options, run_model_id, facts) if options["submission"] else None
        settings = Settings(
            benchmark=bench,
            source=source,
            facts=facts,
            model_id=run_model_id,
            output=options["output"],
            cache=options["cache"] or default_cache(),
            tasks=tasks,
            regimes=tuple(r for r in bench.regimes if r in regimes),
            limit=options["limit"],
            name_model=options["name_model"],
            device=options["device"],
            options=option_texts,
            batching=spec.batching,
            probe_device=probe_device,
            workers=engine.workers,
            receipt=options["receipt"],
            resume=options["resume"],
            fail_fast=options["fail_fast"],
        )
        # 5. Check that no score of an earlier run would be lost.
        refuse_loss("--output", settings.output, settings)
        if options["submission"]:
            refuse_loss("--submission", options["submission"], settings)
        # 6. Run, and write.
        _print_omitted_tasks(settings, listener)
        record = run(settings, engine, listener)
    listener.say(_write_files(record, settings, meta, options))


def _engine(
    options: dict[str, Any],
    spec: EmbedderSpec,
    cluster: "Cluster | None",
    listener: progress.Listener,
    probe_device: logistic.Device,
) -> Engine:
    """Return the engine of the run, which loads the extractor."""
    fail_fast, array_api = options["fail_fast"], probe_device.torch
    if cluster is None:
        # One process per accelerator, as each would need its own context and memory on it.
        workers = options["jobs"] or (1 if probe_device.is_accelerator else processors())
        return LocalEngine(
            _task_embedder(options, spec, listener),
            workers,
            array_api=array_api,
            fail_fast=fail_fast,
        )
    from reference_harness.engine.ray_engine import RayEngine  # Ray need not be installed

    return RayEngine(
        spec,
        cluster,
        embedders=options["embedders"],
        workers=options["jobs"],
        array_api=array_api,
        fail_fast=fail_fast,
        say=listener.say,
    )


def _task_embedder(
    options: dict[str, Any], spec: EmbedderSpec, listener: progress.Listener
) -> TaskEmbedder:
    """Load the extractor in this process, or in several others with `--embedders`."""
    count = options["embedders"] or 1
    if count == 1:
        return InProcessEmbedder(spec)
    return DeviceEmbedders(spec, count, fail_fast=options["fail_fast"], say=listener.say)


def _complete_options(options: dict[str, Any]) -> None:
    """Set the default submission format. Raise OptionError for options that exclude each other."""
    if options["submission"] and options["limit"]:
        msg = (
            "--limit and --submission exclude each other, as a submission needs all data: leave "
            "one out"
        )
        raise OptionError(msg)
    builtin = options["extractor"].removeprefix("builtin:")
    if builtin in {"kmer", "random_init"}:
        _refuse_options_without_effect(options, builtin)
    if builtin == "huggingface" and not options["name_model"]:
        msg = (
            "--extractor huggingface needs a model: add --model FOLDER, or --model OWNER/NAME "
            "--option revision=COMMIT"
        )
        raise OptionError(msg)
    options["format_version"] = options["format_version"] or (
        "1.2" if options["receipt"] else "1.1"
    )
    if options["receipt"] and options["submission"] and options["format_version"] != "1.2":
        msg = (
            f"--receipt needs submission format 1.2, not {options['format_version']}: pass "
            "--format-version 1.2"
        )
        raise OptionError(msg)
    if options["definition"] and not options["data"]:
        msg = "--benchmark needs task data: add --data DIR"
        raise OptionError(msg)


def _refuse_options_without_effect(options: dict[str, Any], builtin: str) -> None:
    """Raise OptionError for options that have no effect, but would be in the record."""
    value_by_option = {
        "--model": options["name_model"],
        "--device": options["device"].removeprefix("cpu"),
    }
    for option, value in value_by_option.items():
        if value:
            msg = (
                f"{option} has no effect on the built-in {builtin}, which loads no weights and "
                f"runs on the CPU: leave {option} out, or pass another --extractor"
            )
            raise OptionError(msg)


def _embedder_spec(options: dict[str, Any], option_texts: dict[str, str]) -> EmbedderSpec:
    """Return the settings by which the extractor is loaded."""
    if options["receipt"] and is_compiled(options["extractor"], option_texts):
        msg = "--receipt and --option compile=true exclude each other, as an audit compares "
        msg += "embeddings with those of the uncompiled model: leave one out"
        raise OptionError(msg)
    token_budget, measures_budget = budget_of(options["token_budget"], options["device"])
    batching = Batching(
        options["batching"], token_budget, options["batch_size"] or FILE_BATCH_SEQUENCES
    )
    return EmbedderSpec(
        extractor=options["extractor"],
        name_model=options["name_model"],
        device=options["device"],
        keywords=keywords(options["extractor"], option_texts, batching),
        batching=batching,
        measures_budget=measures_budget,
        # An audit compares a receipt with a rerun to 1e-5; TF32 differs by 1e-3.
        tf32=options["receipt"] is None,
    )


def _check_declared(facts: ExtractorFacts, options: dict[str, Any]) -> None:
    """Raise OptionError if the extractor does not declare what the submission requires."""
    missing_fields = submission.undeclared_fields(facts.description)
    if options["submission"] and options["format_version"] != "1.0" and missing_fields:
        msg = (
            f"the extractor does not declare {', '.join(missing_fields)}: add a class attribute, "
            f"or pass --declare {missing_fields[0]}=VALUE, for each; or pass --format-version 1.0"
        )
        raise OptionError(msg)


def _meta(options: dict[str, Any], run_model_id: str, facts: ExtractorFacts) -> Meta:
    """Return the metadata of the submission. Raise OptionError for invalid values."""
    return submission.meta_of(
        {
            "display": options["display"] or run_model_id,
            "params": facts.parameters if options["params"] is None else options["params"],
            **{key: options[key] for key in _META_FIELDS},
        }
    )


def _write_files(
    record: RunRecord, settings: Settings, meta: Meta | None, options: dict[str, Any]
) -> str:
    """Write the requested files, and return lines for the user that name the files."""
    write_json(settings.output, record.model_dump())
    task_count = plural(len(record.tasks), "task")
    lines = f"wrote {settings.output}: {task_count}, model_id {record.model_id}"
    if meta is not None:
        document = submission.build_submission(
            record, settings.benchmark, meta, options["format_version"]
        )
        write_bytes(options["submission"], dumps_tables(document))
        lines += f"\nwrote {options['submission']}: format {options['format_version']}"
        lines += "\n" + next_line(shlex.join(["geneb-ci", "check", str(options["submission"])]))
    StoppedRun(settings.output).finish()
    return lines + quick_prediction_line(record)


def _benchmark_of_options(options: dict[str, Any]) -> Benchmark:
    """Return the benchmark to which the options refer."""
    if options["definition"]:
        return benchmark.load(options["definition"])
    if options["data"]:
        return benchmark.default()
    board_benchmark, practice = benchmark.of_board(), benchmark.mini()
    if board_benchmark is not None and board_benchmark.sha256 not in {
        practice.sha256,
        quick_tasks().benchmark,
    }:
        msg = (
            f"this folder is a board of {board_benchmark.name}, but without --data the practice "
            "benchmark "
            f"{practice.name} would be run: add --data DIR, the folder with the task data of "
            f"{board_benchmark.name}"
        )
        raise OptionError(msg)
    return practice


def _listed_names(text: str | None) -> list[str]:
    """Return the names in a comma-separated text."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _add_declarations(facts: ExtractorFacts, declared: dict[str, str]) -> None:
    """Add the user's declarations to the description.

    Raise OptionError for an unknown key, an invalid value, and what the extractor declares itself.
    """
    for member, value in declared.items():
        section, field = ("model", "kind") if member == "source" else ("embedding", member)
        if member not in (members := (*_EMBEDDING_FIELDS, "source")):
            raise unknown_name(f"--declare {member}", member, members)
        if (declared_value := facts.description[section][field]) != submission.UNDECLARED:
            msg = (
                f"--declare {member}={value}: the extractor already declares {declared_value!r}: "
                f"leave --declare {member} out"
            )
            raise OptionError(msg)
        allowed_values = _ALLOWED_VALUES.get(member)
        if allowed_values and value not in allowed_values:
            raise unknown_name(f"--declare {member}={value}", value, tuple(allowed_values))
        if member == "max_length" and not re.fullmatch(r"none|[1-9]\d{0,8}", value):
            msg = f"--declare max_length={value}: expected a number of tokens, or none"
            raise OptionError(msg)
        if member == "max_length":
            facts.description[section][field] = None if value == "none" else int(value)
        else:
            facts.description[section][field] = value


def model_id(requested: str | None, options: dict[str, Any], option_texts: dict[str, str]) -> str:
    """Return the requested id, or one derived from the model or the extractor.

    Raise OptionError if the requested id is too long or has invalid characters.
    """
    if requested is not None:
        if not re.fullmatch(MODEL_ID_PATTERN, requested) or len(requested) > MODEL_ID_MAX:
            msg = (
                f"--model-id {requested!r}: expected at most {MODEL_ID_MAX} letters, digits, '.', "
                "'_' and '-'"
            )
            raise OptionError(msg)
        return requested
    if options["extractor"].removeprefix("builtin:") == "kmer":
        return f"{option_texts.get('k', 4)}-mer-frequency"
    model_name = Path(options["name_model"]).name or options["extractor"].rpartition(":")[2]
    derived = re.sub(r"[^A-Za-z0-9._-]+", "-", model_name).lstrip("._-")[:MODEL_ID_MAX]
    return derived or "model"


def _probe_device(options: dict[str, Any]) -> logistic.Device:
    """Return the probe's device; "torch-cpu" is torch without an accelerator.

    Raise OptionError if the device does not exist or has no float64, and for an accelerator with
    several processes or on a cluster.
    """
    name = options["probe_device"]
    if name == "cpu":
        return logistic.CPU
    device, fault = _torch_device(name.removeprefix("torch-"))
    if fault:
        msg = f"--probe-device {name}: {fault}: pass a device of torch, or leave --probe-device out"
        raise OptionError(msg)
    probe_device = logistic.Device(device, torch=True)
    if probe_device.is_accelerator and (options["jobs"] or 1) > 1:
        msg = (
            f"--jobs {options['jobs']}: on {name}, only one process can fit probes: leave --jobs "
            "out"
        )
        raise OptionError(msg)
    if probe_device.is_accelerator and options["engine"] == "ray":
        msg = f"--probe-device {name}: on a cluster, probes run on CPUs: leave --probe-device out"
        raise OptionError(msg)
    return probe_device


def _torch_device(device_name: str) -> tuple[str, str]:
    """Return torch's name of a device, and the reason why it cannot compute in float64, or "".

    Torch is imported in another process: this one would keep memory on the device, and the modules
    that torch imports would count as used by the extractor.
    """
    if importlib.util.find_spec("torch") is None:
        msg = "No module named 'torch'"
        raise ModuleNotFoundError(msg, name="torch")
    process = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-P", "-c", _TORCH_SCRIPT, device_name],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if process.returncode:
        return "", process.stderr.strip().rpartition("\n")[
            2
        ] or f"torch ended with {process.returncode}"
    device, fault = json.loads(process.stdout)
    return device, fault


_TORCH_SCRIPT = """
import json, sys, torch
device, fault = None, ""
try:
    device = torch.device(sys.argv[1])
    torch.ones(1, dtype=torch.float64, device=device).sum().item()
except (RuntimeError, AssertionError, TypeError) as error:
    fault = str(error).partition("\\n")[0]
print(json.dumps([str(device), fault]))
"""
"""Program that asks torch, in another process, for the device and whether it has float64."""


def _print_omitted_tasks(settings: Settings, listener: progress.Listener) -> None:
    """Print which tasks the data folder lacks, and which of its files are ignored."""
    missing_ids = [
        cell.task for cell in missing_tasks(settings) if cell.reason == "not in the data"
    ]
    if missing_ids:
        listener.say(
            f"the data folder lacks {plural(len(missing_ids), 'task')}: "
            f"{first_and_more(missing_ids)}"
        )
    if isinstance(settings.source, task_folder.Folder):
        for task in settings.source.ignored:
            listener.say(f"ignored {task}: not a task of {settings.benchmark.name}")
        if not settings.source.verified:
            listener.say(
                "the data folder has no manifest of the benchmark's dataset: the run record names "
                "the benchmark's revision as unverified"
            )
