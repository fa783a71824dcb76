"""One call of `geneb-harness run` for one or several models, which a file lists."""

import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import click

from reference_harness.errors import FailedRunsError, FailedTasksError, HarnessError, OptionError
from reference_harness.extractors.base import ExtractorError
from reference_harness.formats.files import NotReadable, read_text
from reference_harness.formats.old_options import print_new_name
from reference_harness.formats.package_lock import Lock
from reference_harness.loading.packages import lock_of, start_with_packages
from reference_harness.run import progress

from .run import RunContext, run_command

LIST_BYTES_MAX = 1_000_000
"""Maximum number of bytes of a list; 1,000 models have 200 kB."""
RUNS_AT_ONCE = 2
"""Number of models that share a cluster: the next begins while the last tasks of one are
running."""
CALL_OPTIONS = ("listed", "engine", "quiet")
"""Options of the whole command, which a listed run cannot set."""
OLD_KEYS: dict[str, str] = {"workers": "jobs"}
"""The present key for each earlier key of a list, which is accepted for one release."""
LIST_FIX = (
    'write each run as [[run]] with output = "M.json" and other options of `geneb-harness run`'
)
"""Advice at the end of messages about an invalid list."""


def listed_runs(path: Path, context: click.Context, common: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the options of each run in a list; options of the command line apply to all.

    Raise OptionError for an invalid list.
    """
    try:
        document = tomllib.loads(read_text(path, LIST_BYTES_MAX).decode())
    except NotReadable as error:
        raise OptionError(f"{path}: {error.reason}") from error
    except ValueError as error:
        raise OptionError(f"{path}: not a TOML file: {error}: {LIST_FIX}") from error
    tables = document.get("run")
    if not isinstance(tables, list) or not tables or document.keys() != {"run"}:
        raise OptionError(f"{path}: expected tables [[run]] and nothing else: {LIST_FIX}")
    runs = [
        common | _options_of_table(table, context, f"{path}: run {number}")
        for number, table in enumerate(tables, 1)
    ]
    outputs = [run["output"] and run["output"].absolute() for run in runs]
    for number, output in enumerate(outputs, 1):
        if output is None or outputs.count(output) > 1:
            fault = (
                "the run names no output"
                if output is None
                else f"another run names the output {output.name} too"
            )
            raise OptionError(f"{path}: run {number}: {fault}: give each run an output of its own")
    return runs


def _options_of_table(table: Any, context: click.Context, label: str) -> dict[str, Any]:
    """Return a table as options, converted as click does. Raise OptionError."""
    options_by_name = {
        name.removeprefix("--"): option
        for option in context.command.params
        if option.name not in CALL_OPTIONS
        for name in option.opts
    }
    options = {}
    given_key: str
    for given_key, value in table.items() if isinstance(table, dict) else ():
        key = OLD_KEYS.get(given_key, given_key)
        if key != given_key:
            print_new_name(f"{label}: {given_key}", key)
        option = options_by_name.get(key.replace("_", "-"))
        if not isinstance(option, click.Option):
            raise OptionError(
                f"{label}: {key!r} is not an option of a run: see `geneb-harness run -h`"
            )
        try:
            words = value if option.is_flag else _as_texts(value) if option.multiple else str(value)
            options[str(option.name)] = option.type_cast_value(context, words)
        except click.UsageError as error:
            raise OptionError(f"{label}: {key}: {error.message}") from error
    return options


def _as_texts(value: Any) -> list[str]:  # of a TOML file
    """Return a value of a list as the words of the command line."""
    return [str(item) for item in (value if isinstance(value, list) else [value])]


def run_all(runs: Sequence[dict[str, Any]]) -> None:
    """Execute each run; one that fails does not end the others.

    Raise the error of the only run, or FailedRunsError, which lists the failed ones.
    """
    start_with_packages(_locks(runs), runs[0]["engine"])
    with ExitStack() as stack:
        cluster = None
        if runs[0]["engine"] == "ray":
            from reference_harness.engine.cluster import (
                connected_cluster,  # Ray need not be installed
            )

            cluster = stack.enter_context(connected_cluster())
        context = RunContext(
            cluster, stack.enter_context(progress.listeners(quiet=runs[0]["quiet"]))
        )
        if len(runs) == 1:
            run_command(runs[0], context)
            return
        run_errors = _run_each(runs, context)
    message_by_output = {
        str(run["output"]): str(e) for run, e in zip(runs, run_errors, strict=True) if e
    }
    if message_by_output:
        has_finished_tasks = any(
            isinstance(e, FailedTasksError) and e.has_finished_work for e in run_errors
        )
        raise FailedRunsError(
            message_by_output,
            len(runs) - len(message_by_output),
            has_partial_runs=has_finished_tasks,
        )


def _locks(runs: Sequence[dict[str, Any]]) -> list[Lock | None]:
    """Return the package lock of each run's extractor, None for an extractor without one.

    Runs whose extractor cannot be found are left out; they fail later.
    """
    locks = []
    for run in runs:
        with suppress(ExtractorError):
            locks.append(lock_of(run["extractor"]))
    return locks


def _run_each(runs: Sequence[dict[str, Any]], context: RunContext) -> list[HarnessError | None]:
    """Execute each run, and return the error of each, or None."""
    if context.cluster is None:
        return [_error_of_run(run, context) for run in runs]
    with ThreadPoolExecutor(RUNS_AT_ONCE) as pool:
        futures = [pool.submit(_error_of_run, run, context) for run in runs]
        try:
            return [future.result() for future in futures]
        except BaseException:
            context.cluster.stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _error_of_run(options: dict[str, Any], context: RunContext) -> HarnessError | None:
    """Execute a run, and return its error; None if it succeeds."""
    label = options["model_id"] or options["output"].stem
    try:
        run_command(options, context._replace(label=label))
    except HarnessError as error:
        return error
    except OSError as error:
        return HarnessError(f"{error.filename}: {error.strerror}")
    return None
