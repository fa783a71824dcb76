"""Implements `geneb-harness run`, step by step."""

import re
from pathlib import Path
from typing import Any

import click

from . import benchmark, data, probe, progress, submission
from .batching import TOKEN_BUDGET
from .benchmark import Benchmark
from .cache import default_cache
from .description import DTYPES, KINDS, TRUNCATIONS
from .embed import FILE_ROWS, Batching
from .engine.local import default_workers
from .errors import EmbeddingError, OptionError
from .extractors.base import ExtractorError
from .files import write_json
from .keywords import keywords, texts
from .loading import LoadedExtractor, load
from .record import RunRecord
from .replace import refuse_loss
from .run import run
from .settings import Settings, missing
from .state import State
from .text import first_and_more, plural

MODEL_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
MODEL_ID_MAX = 128  # the file is <model_id>.json, and file names are limited to 255 bytes
_EMBEDDING = ("layer", "pooling", "max_length", "truncation", "dtype")
_WORDS = {"truncation": TRUNCATIONS, "dtype": DTYPES, "source": KINDS}


def run_command(options: dict[str, Any]) -> None:
    """Run with the options of the command line; write the record and the submission.

    Raises HarnessError for every error that a user can cause.
    """
    # 1. Check the options before anything is loaded.
    if options["submission"] and options["limit"]:
        msg = "--limit and --submission exclude each other: a submission needs all data"
        raise OptionError(msg)
    if options["receipt"] and not options["canonical"]:
        msg = "--receipt and --no-canonical exclude each other: a receipt proves canonical scores"
        raise OptionError(msg)
    options["format_version"] = options["format_version"] or (
        "1.2" if options["receipt"] else "1.1"
    )
    if options["receipt"] and options["submission"] and options["format_version"] != "1.2":
        msg = f"--format-version {options['format_version']} has no receipt: take 1.2"
        raise OptionError(msg)
    if options["definition"] and not options["data"]:
        msg = "--benchmark needs task data: add --data DIR"
        raise OptionError(msg)
    # 2. Benchmark and data.
    bench = _benchmark(options)
    source = data.Folder(options["data"], bench) if options["data"] else data.MiniSource()
    regimes = _names(options["regimes"])
    if unknown := [name for name in regimes if name not in bench.regimes]:
        msg = f"--regimes {unknown[0]!r}: {bench.name} has {', '.join(bench.regimes)}"
        raise OptionError(msg)
    # 3. The extractor, which may take minutes to load.
    batching = Batching(
        options["batching"],
        options["token_budget"] or TOKEN_BUDGET,
        options["batch_size"] or FILE_ROWS,
    )
    given = texts(options["options"], "--option")
    loaded = _load(options, given, batching)
    _declare(loaded, texts(options["declared"], "--declare"))
    # 4. Check that the submission can be written, before the work.
    lacking = submission.undeclared(loaded.description)
    if options["submission"] and options["format_version"] != "1.0" and lacking:
        msg = (
            f"the extractor does not declare {', '.join(lacking)}: add it as a class attribute, "
            f"or say --declare {lacking[0]}=..., or --format-version 1.0"
        )
        raise OptionError(msg)
    settings = Settings(
        benchmark=bench,
        source=source,
        loaded=loaded,
        model_id=model_id(options["model_id"], options, given),
        output=options["output"],
        cache=options["cache"] or default_cache(),
        tasks=tuple(name for one in options["tasks"] for name in _names(one)),
        regimes=tuple(r for r in bench.regimes if r in regimes),
        limit=options["limit"],
        name_model=options["name_model"],
        device=options["device"],
        options=given,
        batching=batching,
        probe_device=_probe_device(options["probe_device"]),
        canonical=options["canonical"],
        workers=options["workers"] or default_workers(),
        receipt=options["receipt"],
        resume=options["resume"],
        fail_fast=options["fail_fast"],
    )
    # 5. Check that no score of an earlier run would be lost.
    refuse_loss("--output", settings.output, settings)
    if options["submission"]:
        refuse_loss("--submission", options["submission"], settings)
    # 6. Run, and write.
    with progress.listener(len(bench.tasks), quiet=options["quiet"]) as listener:
        _say_what_is_left_out(settings, listener)
        record = run(settings, listener)
    _write(record, settings, options)


def _write(record: RunRecord, settings: Settings, options: dict[str, Any]) -> None:
    write_json(settings.output, record.model_dump())
    tasks = plural(len(record.tasks), "task")
    said = f"wrote {settings.output}: {tasks}, model_id {record.model_id}"
    if options["submission"]:
        meta = submission.Meta(
            display=options["display"] or record.model_id,
            params=_params(options["params"], settings.loaded),
            url=options["url"],
            zero_shot=options["zero_shot"],
            training_data=options["training_data"],
            submitted_by=options["submitted_by"],
        )
        document = submission.build(record, settings.benchmark, meta, options["format_version"])
        write_json(options["submission"], document)
        said += f"; wrote {options['submission']}: format {options['format_version']}"
    State(settings.output).finish()
    if not options["quiet"]:
        click.echo(said, err=True)


def _benchmark(options: dict[str, Any]) -> Benchmark:
    if options["definition"]:
        return benchmark.load(options["definition"])
    return benchmark.geneb() if options["data"] else benchmark.mini()


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _load(options: dict[str, Any], given: dict[str, str], batching: Batching) -> LoadedExtractor:
    name = options["extractor"]
    keyed = keywords(name, given, batching)
    try:
        return load(name, options["name_model"], options["device"], **keyed)
    except ExtractorError as error:
        raise EmbeddingError(str(error)) from error


def _declare(loaded: LoadedExtractor, said: dict[str, str]) -> None:
    """Add what the user declares to the description; it cannot override the extractor."""
    for key, value in said.items():
        part, name = ("model", "kind") if key == "source" else ("embedding", key)
        if key not in (*_EMBEDDING, "source"):
            msg = f"--declare {key}: expected one of {', '.join(_EMBEDDING)}, source"
            raise OptionError(msg)
        if (own := loaded.description[part][name]) != submission.UNDECLARED:
            msg = f"--declare {key}={value}: the extractor declares {own!r}"
            raise OptionError(msg)
        allowed = _WORDS.get(key)
        if allowed and value not in allowed:
            msg = f"--declare {key}={value}: expected one of {', '.join(allowed)}"
            raise OptionError(msg)
        if key == "max_length" and not re.fullmatch(r"none|[1-9]\d{0,8}", value):
            msg = f"--declare max_length={value}: expected a number of tokens, or none"
            raise OptionError(msg)
        length = None if value == "none" else int(value) if key == "max_length" else 0
        loaded.description[part][name] = length if key == "max_length" else value


def model_id(asked: str | None, options: dict[str, Any], given: dict[str, str]) -> str:
    """Return the requested id, or one derived from the model or the extractor.

    Raises OptionError for an id that is not a valid file name.
    """
    if asked is not None:
        if not MODEL_ID.fullmatch(asked) or len(asked) > MODEL_ID_MAX:
            msg = f"--model-id {asked!r}: expected letters, digits, '.', '_' and '-', at most 128"
            raise OptionError(msg)
        return asked
    if options["extractor"].removeprefix("builtin:") == "kmer":
        return f"{given.get('k', 4)}-mer-frequency"
    name = Path(options["name_model"]).name or options["extractor"].rpartition(":")[2]
    made = re.sub(r"[^A-Za-z0-9._-]+", "-", name).lstrip("._-")[:MODEL_ID_MAX]
    return made or "model"


def _params(asked: int | None, loaded: LoadedExtractor) -> int:
    """Return the requested number, else that of the extractor's torch modules, else 0."""
    if asked is not None:
        return asked
    values = vars(loaded.extractor).values() if hasattr(loaded.extractor, "__dict__") else ()
    modules = [v for v in values if callable(getattr(v, "parameters", None))]
    return max((sum(p.numel() for p in module.parameters()) for module in modules), default=0)


def _probe_device(name: str) -> probe.Device:
    """Return the probe's device; "torch-cpu" is the array API without an accelerator."""
    if name == "cpu":
        return probe.CPU
    import torch  # noqa: PLC0415 - a second to import, needed here alone

    try:
        device = torch.device(name.removeprefix("torch-"))
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        said = str(error).partition("\n")[0]
        msg = f"--probe-device {name}: {said}"
        raise OptionError(msg) from error
    return probe.Device(str(device), torch=True)


def _say_what_is_left_out(settings: Settings, listener: progress.Listener) -> None:
    lacking = [one.task for one in missing(settings) if one.reason == "not in the data"]
    if lacking:
        listener.say(
            f"the data folder lacks {plural(len(lacking), 'task')}: {first_and_more(lacking)}"
        )
    if isinstance(settings.source, data.Folder):
        for name in settings.source.ignored:
            listener.say(f"ignored {name}: not a task of {settings.benchmark.name}")
        if not settings.source.verified:
            listener.say(
                "the data folder has no manifest: the record has the benchmark's revision, marked "
                "as unverified"
            )
