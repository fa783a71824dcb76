"""Checks the properties in child processes, so that a crash or a hang is a failed property.

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
from pathlib import Path
from typing import Any

from .registry import BY_SLUG, LOADS, PROPERTIES
from .result import PropertyResult
from .static import undefined_names

SECONDS = 300.0
"""Wall-clock limit of one property: several loads of a model of some gigabytes on a slow disk."""
LETTERS = 8192
"""Longest sequence tried: enough for 512 tokens of sixteen letters."""

_ROOT = Path(__file__).resolve().parents[2]
_POLL_SECONDS = 0.05
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


class UnknownPropertyError(ValueError):
    """A slug names no property."""


def check(
    spec: str,
    name_model: str = "",
    device: str = "cpu",
    *,
    folder: str | None = None,
    options: Mapping[str, Any] | None = None,
    seconds: float = SECONDS,
    letters: int = LETTERS,
    select: Sequence[str] = (),
) -> list[PropertyResult]:
    """Try every property, or those selected, on one extractor; one result each, in order.

    `options` go to the constructor and have to be JSON. A property that takes longer than
    `seconds`, or in which the process dies, has failed; the next one gets a fresh process.
    Raises UnknownPropertyError for a slug that names no property.
    """
    unknown = sorted(set(select) - set(BY_SLUG))
    if unknown:
        msg = f"no such property: {', '.join(unknown)}; they are: {', '.join(BY_SLUG)}"
        raise UnknownPropertyError(msg)
    slugs = [p.slug for p in PROPERTIES if not select or p.slug in select]
    request = {
        "spec": spec,
        "name_model": name_model,
        "device": device,
        "folder": folder,
        "options": dict(options or {}),
        "letters": letters,
    }
    results: dict[str, PropertyResult] = {}
    for slug in slugs:
        if BY_SLUG[slug].check is None:
            results[slug] = undefined_names(spec, folder)
    for offline in (False, True):
        wanted = [s for s in slugs if BY_SLUG[s].check and BY_SLUG[s].offline == offline]
        _run(wanted, request, seconds, results, offline=offline)
    return [results[slug] for slug in slugs]


def _run(
    slugs: list[str],
    request: dict[str, Any],
    seconds: float,
    results: dict[str, PropertyResult],
    *,
    offline: bool,
) -> None:
    """Start processes until every property has its result."""
    todo = list(slugs)
    while todo:
        if LOADS in results and not results[LOADS].passed:
            for slug in [s for s in todo if BY_SLUG[s].needs_load]:
                sentence = "Not tried, as the extractor does not load."
                results[slug] = PropertyResult(
                    property=slug, passed=False, ran=False, sentence=sentence
                )
            todo = [s for s in todo if s not in results]
            if not todo:
                return
        found = _child(todo, request, seconds, offline=offline)
        results.update(found)
        todo = [s for s in todo if s not in results]


def _child(
    slugs: list[str], request: dict[str, Any], seconds: float, *, offline: bool
) -> dict[str, PropertyResult]:
    """Run one process until it ends, crashes or hangs; return at least one result."""
    with tempfile.TemporaryDirectory(prefix="geneb-conformance-") as folder:
        asked, told, said = (Path(folder, name) for name in ("request", "results", "output"))
        asked.write_text(json.dumps({**request, "properties": slugs}), encoding="utf-8")
        told.touch()
        environment = {**os.environ, **(_OFFLINE if offline else {})}
        paths = [str(_ROOT), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        # -P: nothing of the folder we stand in may shadow a library.
        command = [sys.executable, "-P", "-m", "reference_harness.conformance.child"]
        with said.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 - no shell, our own words and two paths
                [*command, str(asked), str(told)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
            try:
                late = _watch(process, told, seconds)
            finally:
                _kill(process)
        found, running = _read(told)
        if late or running or not found:
            # A process that ends before its first line has failed for the first property.
            slug = running or slugs[min(len(found), len(slugs) - 1)]
            found[slug] = PropertyResult(
                property=slug, passed=False, sentence=_obituary(process, said, late, seconds)
            )
        return found


def _watch(process: subprocess.Popen[bytes], told: Path, seconds: float) -> bool:
    """Wait for the end; return True when no line came for `seconds`."""
    size, since = 0, time.monotonic()
    while process.poll() is None:
        now = told.stat().st_size
        if now != size:
            size, since = now, time.monotonic()
        if time.monotonic() - since > seconds:
            return True
        time.sleep(_POLL_SECONDS)
    return False


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the process and what it started, which share its session."""
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


def _read(told: Path) -> tuple[dict[str, PropertyResult], str | None]:
    """Return the results that were written whole, and the property that was started last."""
    found: dict[str, PropertyResult] = {}
    running = None
    for line in told.read_text(encoding="utf-8").splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        value = json.loads(line)
        if "started" in value:
            running = value["started"]
        else:
            found[value["property"]] = PropertyResult(**value)
            running = None
    return found, running


def _obituary(process: subprocess.Popen[bytes], said: Path, late: bool, seconds: float) -> str:
    if late:
        return f"It did not finish within {math.ceil(seconds)} s: shorten it, or raise --seconds."
    code = process.returncode
    end = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    lines = said.read_text("utf-8", errors="replace").strip().splitlines()
    return f"The process died with {end}{': ' + lines[-1][:200] if lines else ''}."
