"""Check the properties in child processes, so that a crash or a hang is a failed property.

This is not a sandbox: the extractor has the rights of the user who runs the check.
"""

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reference_harness.embedding.extractor_calls import DEFAULT_BATCHING, Batching
from reference_harness.errors import OptionError, known_name
from reference_harness.run.progress import Listener, SilentListener

from .properties import BY_SLUG, LOADS, PROPERTIES, QUICK
from .result import Outcome, PropertyResult
from .static_check import undefined_names

PROPERTY_SECONDS_MAX = 300.0
"""Wall-clock limit of one property: several loads of a model of some gigabytes on a slow disk."""
SEQUENCE_LETTERS_MAX = 8192
"""Longest sequence tried, in letters: enough for 512 tokens of sixteen letters."""

NO_LOAD_SENTENCE = "Not tried, as the extractor does not load."
"""Result of a property that needs a loaded extractor, if the extractor does not load."""
NOT_TRIED_SENTENCE = "Not tried, as another property does not hold: correct that property first."
"""Result of a property that is only tried if others hold."""
SILENT = SilentListener()
"""A listener that ignores progress."""

_ROOT = Path(__file__).resolve().parents[2]
"""Folder that contains both programs."""
_POLL_SECONDS = 0.05
"""Seconds between two looks at the output of a process."""
_OFFLINE_VARIABLES = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
}
"""Environment variables that keep libraries from downloading."""


class UnknownPropertyError(ValueError):
    """No property has this slug."""


def check(
    spec: str,
    name_model: str = "",
    device: str = "cpu",
    *,
    folder: str | None = None,
    options: Mapping[str, Any] | None = None,
    seconds: float = PROPERTY_SECONDS_MAX,
    letters: int = SEQUENCE_LETTERS_MAX,
    select: Sequence[str] = (),
    full: bool = False,
    batching: Batching = DEFAULT_BATCHING,
    measures_budget: bool = False,
    listener: Listener = SILENT,
) -> list[PropertyResult]:
    """Check the quick properties, all with `full`, or those selected; return results in order.

    The full properties repeat a run's batches according to `batching`; with `measures_budget`, the
    token budget is the one that memory allows. They are checked only if no other property failed.
    `listener` receives their cost, their progress and each result.

    `options` are passed to the constructor and must be JSON. A property fails if it takes longer
    than `seconds` or its process dies; the next property gets a new process.

    Raise UnknownPropertyError for an unknown slug, OptionError for an option that the extractor
    does not have.
    """
    try:
        select = [known_name(f"no such property: {slug}", slug, tuple(BY_SLUG)) for slug in select]
    except OptionError as error:
        raise UnknownPropertyError(str(error)) from error
    slugs = [p.slug for p in (PROPERTIES if full or select else QUICK)]
    slugs = [slug for slug in slugs if not select or slug in select]
    request = {
        "spec": spec,
        "name_model": name_model,
        "device": device,
        "folder": folder,
        "options": dict(options or {}),
        "letters": letters,
        "plan": [batching.mode, batching.token_budget, batching.rows],
        "measures_budget": measures_budget,
    }
    child = _ChildRunner(request, seconds, listener)
    results: dict[str, PropertyResult] = {}
    for slug in slugs:
        if BY_SLUG[slug].check is None:
            results[slug] = undefined_names(spec, folder)
    for is_offline, is_full in ((False, False), (True, False), (False, True)):
        checked_properties = [p for p in map(BY_SLUG.__getitem__, slugs) if p.check]
        group_slugs = [
            p.slug for p in checked_properties if (p.is_offline, p.is_full) == (is_offline, is_full)
        ]
        if is_full and any(result.is_refused() for result in results.values()):
            results |= {slug: _not_tried(slug, NOT_TRIED_SENTENCE) for slug in group_slugs}
        else:
            _run(group_slugs, child, results, is_offline=is_offline)
    return [results[slug] for slug in slugs]


def _not_tried(slug: str, sentence: str) -> PropertyResult:
    """Return the result of a property that was not tried."""
    return PropertyResult(property=slug, outcome=Outcome.NOT_VERIFIED, ran=False, sentence=sentence)


def _run(
    slugs: list[str], child: "_ChildRunner", results: dict[str, PropertyResult], *, is_offline: bool
) -> None:
    """Add a result for each slug to `results`, starting child processes until none is missing."""
    missing_slugs = list(slugs)
    while missing_slugs:
        if LOADS in results and results[LOADS].is_refused():
            for slug in [s for s in missing_slugs if BY_SLUG[s].needs_load]:
                results[slug] = _not_tried(slug, NO_LOAD_SENTENCE)
            missing_slugs = [s for s in missing_slugs if s not in results]
            if not missing_slugs:
                return
        new_results = child.run(missing_slugs, is_offline=is_offline)
        results.update(new_results)
        for slug in new_results if LOADS in results else ():
            # A failure with the same sentence as the failed load is only its consequence.
            if slug != LOADS and results[slug].sentence == results[LOADS].sentence:
                results[slug] = _not_tried(slug, NO_LOAD_SENTENCE)
        missing_slugs = [s for s in missing_slugs if s not in results]


@dataclass(frozen=True)
class _ChildRunner:
    """Runs the processes that check properties."""

    request: dict[str, Any]
    """Arguments of `Subject`, by name, for `conformance.child`."""
    seconds: float
    """Time without a line of the process after which it is killed."""
    listener: Listener
    """Receives the lines of progress."""

    def run(self, slugs: list[str], *, is_offline: bool) -> dict[str, PropertyResult]:
        """Run a process until it ends, crashes or hangs, and return at least one result by slug."""
        with tempfile.TemporaryDirectory(prefix="geneb-conformance-") as folder:
            request_file, results_file, output_file = (
                Path(folder, name) for name in ("request", "results", "output")
            )
            request = {**self.request, "properties": slugs}
            request_file.write_text(json.dumps(request), encoding="utf-8")
            results_file.touch()
            # -P: no file of the working directory may be imported in place of a library.
            command = [sys.executable, "-P", "-m", "reference_harness.conformance.child_process"]
            with output_file.open("wb") as output:
                process = subprocess.Popen(  # noqa: S603 - no shell, our own words and two paths
                    [*command, str(request_file), str(results_file)],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=_environment(is_offline=is_offline),
                    start_new_session=True,
                )
                try:
                    is_hanging = self._watch(process, results_file)
                finally:
                    _kill(process)
            results, running_slug = _read_results(results_file)
            if is_hanging or running_slug or not results:
                # A process that ends before its first line has failed for the first property.
                slug = running_slug or slugs[min(len(results), len(slugs) - 1)]
                sentence = _end_reason(process, output_file, is_hanging, self.seconds)
                results[slug] = PropertyResult(
                    property=slug, outcome=Outcome.FAILS, sentence=sentence
                )
            return results

    def _watch(self, process: subprocess.Popen[bytes], results_file: Path) -> bool:
        """Relay lines until the process ends; return True if none came for `seconds` seconds."""
        last_line_time = time.monotonic()
        with results_file.open(encoding="utf-8") as lines:
            unfinished = ""
            while True:
                has_ended = process.poll() is not None
                if new_text := lines.read():
                    last_line_time = time.monotonic()
                    *complete_lines, unfinished = (unfinished + new_text).split("\n")
                    for line in complete_lines:
                        _relay(json.loads(line), self.listener)
                if has_ended:
                    return False
                if time.monotonic() - last_line_time > self.seconds:
                    return True
                time.sleep(_POLL_SECONDS)


def _environment(*, is_offline: bool) -> dict[str, str]:
    """Return the environment variables of a process."""
    environment = {**os.environ, **(_OFFLINE_VARIABLES if is_offline else {})}
    paths = [str(_ROOT), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return environment


def _relay(line: dict[str, Any], listener: Listener) -> None:
    """Pass one line of the child process to the listener."""
    if "say" in line:
        listener.say(line["say"])
    elif "begin" in line:
        listener.begin(line["begin"], line["todo"])
    elif "step" in line:
        listener.step(*line["step"])
    elif "property" in line:
        listener.finish(line["property"], line["outcome"])


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its descendants, which are in the same session."""
    if hasattr(os, "killpg"):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        except PermissionError:
            process.kill()
    else:
        process.kill()
    process.wait()


def _read_results(results_file: Path) -> tuple[dict[str, PropertyResult], str | None]:
    """Return the results by slug, and the slug of a property whose check had begun, else None.

    A last line without newline is ignored. Raise OptionError if the extractor lacks an option.
    """
    results: dict[str, PropertyResult] = {}
    running_slug = None
    for line in results_file.read_text(encoding="utf-8").splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        message = json.loads(line)
        if "usage" in message:
            raise OptionError(message["usage"])
        if "started" in message:
            running_slug = message["started"]
        elif "property" in message:
            results[message["property"]] = PropertyResult(
                **{**message, "outcome": Outcome(message["outcome"])}
            )
            running_slug = None
    return results, running_slug


def _end_reason(
    process: subprocess.Popen[bytes], output_file: Path, is_hanging: bool, seconds: float
) -> str:
    """Return why a process ended or was killed, as a sentence."""
    if is_hanging:
        return (
            f"The check did not finish within {math.ceil(seconds)} s: make the extractor faster, "
            "or raise --seconds."
        )
    exit_code = process.returncode
    end_text = (
        f"signal {signal.Signals(-exit_code).name}" if exit_code < 0 else f"exit code {exit_code}"
    )
    output_lines = output_file.read_text("utf-8", errors="replace").strip().splitlines()
    return (
        "The extractor's process ended early, with "
        f"{end_text}{': ' + output_lines[-1][:200] if output_lines else ''}."
    )
