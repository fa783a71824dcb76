"""The static check, without running the module: undefined names."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from reference_harness.extractors.base import ExtractorError
from reference_harness.loading import locate

from .result import PropertyResult

SLUG = "undefined-names"
# Parsing one module takes milliseconds; a minute means that the machine has stopped.
SECONDS = 60


def undefined_names(spec: str, folder: str | None) -> PropertyResult:
    """Run ruff's F821 on the module, ignoring its configuration files."""
    try:
        file = locate(spec, folder)
    except ExtractorError as error:
        return PropertyResult(property=SLUG, passed=False, ran=False, sentence=f"{error}")
    ruff = find_ruff()
    if ruff is None:
        sentence = f"ruff is not beside {sys.executable} nor on PATH: run pip install ruff"
        return PropertyResult(property=SLUG, passed=False, ran=False, sentence=sentence)
    command = [ruff, "check", "--isolated", "--no-cache", "--select", "F821"]
    command += ["--ignore-noqa", "--output-format", "json", "--", str(file.resolve())]
    done = subprocess.run(  # noqa: S603 - no shell, our own words and one path
        command, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    try:
        faults = json.loads(done.stdout)
    except ValueError:
        sentence = f"ruff gave no result: {' '.join(done.stderr.split())[:200]}"
        return PropertyResult(property=SLUG, passed=False, ran=False, sentence=sentence)
    if not faults:
        sentence = "Every name the module uses is defined."
        return PropertyResult(property=SLUG, passed=True, sentence=sentence)
    first = faults[0]
    line = int(first["location"]["row"])
    return PropertyResult(
        property=SLUG,
        passed=False,
        sentence=f"line {line}: {first['message']}; define it or correct its spelling",
        example=file.read_text("utf-8", errors="replace").splitlines()[line - 1].strip(),
    )


def find_ruff() -> str | None:
    """Return the ruff next to this Python, or the one on PATH; None if there is none."""
    return shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which(
        "ruff", path=os.environ.get("PATH")
    )
