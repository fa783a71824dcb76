"""The static check, which does not run the module: undefined names."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from reference_harness.extractors.base import ExtractorError
from reference_harness.loading.loader import locate

from .result import Outcome, PropertyResult

SLUG = "undefined-names"
"""Name of the property on the command line."""
UNDEFINED_NAME, MAYBE_UNDEFINED = "F821", "F405"
"""Rules of ruff."""
RUFF_SECONDS_MAX = 60
"""Time limit of ruff, which parses a module in milliseconds."""


def undefined_names(spec: str, folder: str | None) -> PropertyResult:
    """Return the result of ruff's rule F821 on the module, without the user's ruff configuration.

    After `from MODULE import *`, ruff cannot know all names and reports F405 instead.
    """
    try:
        file = locate(spec, folder)
    except ExtractorError as error:
        return _not_verified(f"{error}")
    ruff = find_ruff()
    if ruff is None:
        return _not_verified(
            f"ruff is neither next to {sys.executable} nor on PATH: run pip install ruff"
        )
    command = [
        ruff,
        "check",
        "--isolated",
        "--no-cache",
        "--select",
        f"{UNDEFINED_NAME},{MAYBE_UNDEFINED}",
    ]
    command += ["--ignore-noqa", "--output-format", "json", "--", str(file.resolve())]
    process = subprocess.run(  # noqa: S603 - no shell, our own words and one path
        command, capture_output=True, text=True, check=False, timeout=RUFF_SECONDS_MAX
    )
    try:
        listed_faults = json.loads(process.stdout)
    except ValueError:
        return _not_verified(f"ruff printed no JSON: {' '.join(process.stderr.split())[:200]}")
    if not listed_faults:
        sentence = "Every name the module uses is defined."
        return PropertyResult(property=SLUG, outcome=Outcome.HOLDS, sentence=sentence)
    first_fault = next(
        (fault for fault in listed_faults if fault["code"] != MAYBE_UNDEFINED), listed_faults[0]
    )
    line = int(first_fault["location"]["row"])
    if first_fault["code"] == MAYBE_UNDEFINED:
        return _not_verified(f"line {line}: {first_fault['message']}: import it by name", ran=True)
    return PropertyResult(
        property=SLUG,
        outcome=Outcome.FAILS,
        sentence=f"line {line}: {first_fault['message']}; define it or correct its spelling",
        example=file.read_text("utf-8", errors="replace").splitlines()[line - 1].strip(),
    )


def _not_verified(sentence: str, *, ran: bool = False) -> PropertyResult:
    """Return the result "not verified", with its reason."""
    return PropertyResult(property=SLUG, outcome=Outcome.NOT_VERIFIED, ran=ran, sentence=sentence)


def find_ruff() -> str | None:
    """Return the path of the ruff next to this Python, else of the one on PATH; None if absent."""
    return shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which(
        "ruff", path=os.environ.get("PATH")
    )
