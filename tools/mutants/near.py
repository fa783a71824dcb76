"""Which test files most likely notice a mutant, without running any: by name, import and folder."""

import functools
import re
from pathlib import Path, PurePosixPath

from tools.mutants.clone import ROOT
from tools.mutants.survey import ELSEWHERE

LONG = re.compile(
    r"test_(coverage|run_faults|harness_(memory|run|rescore|probe)|two_publishers|killed|published"
    r"|recommend)\.py$"
)
"""Simulations and races: they take minutes, and are left to the exact pass."""
MOST = 12
"""Test files tried for one target in the first pass."""
WHOLE = {
    "geneb_ci/arithmetic": ("tests/arithmetic/test_vectors.py",),
    "geneb_ci/build": ("tests/build/test_whole.py", "tests/forge/test_comment.py"),
    "geneb_ci/audit": (
        "tests/report/test_generated.py",
        "tests/audit/test_input_60.py",
        "tests/audit/test_mutants.py",
    ),
    "geneb_ci/publish": (
        "tests/publish/test_parts.py",
        "tests/cli/test_diff.py",
        "tests/publish/test_publish.py",
    ),
    "geneb_ci/forge": (
        "tests/report/test_generated.py",
        "tests/forge/test_inputs.py",
        "tests/forge/test_scope.py",
        "tests/forge/test_sweep.py",
    ),
    "geneb_ci/label": ("tests/label/test_commands.py",),
}
"""Tests that hold the whole output of a folder, and so notice changes in files they do not name."""


def near(target: str) -> list[str]:
    """Return test files for a target, the likeliest first."""
    path = PurePosixPath(target)
    mirrored = {f"test_{path.stem}", f"test_harness_{path.stem}"}
    module = target.removesuffix(".py").replace("/", ".")
    parent, _, leaf = module.rpartition(".")
    imports = re.compile(rf"{re.escape(module)}\b|from {re.escape(parent)} import [^\n]*\b{leaf}\b")
    own = [file for file, text in _texts().items() if imports.search(text)]
    own.sort(key=lambda file: (Path(file).stem not in mirrored, file))
    by_name = [file for file in _texts() if Path(file).stem in mirrored]
    whole = [
        file for folder, files in WHOLE.items() if target.startswith(f"{folder}/") for file in files
    ]
    return list(dict.fromkeys([*by_name, *own[:2], *whole, *own]))[:MOST]


@functools.cache
def _texts() -> dict[str, str]:
    found = {}
    for path in sorted(ROOT.glob("tests/**/test_*.py")):
        file = str(path.relative_to(ROOT))
        if not ELSEWHERE.match(file) and not LONG.search(file):
            found[file] = path.read_text(encoding="utf-8")
    return found
