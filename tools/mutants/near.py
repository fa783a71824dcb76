"""Which test files most likely notice a mutant, without running any: by name, import and folder."""

import functools
import re
from pathlib import Path, PurePosixPath

from tools.mutants.clone import ROOT
from tools.mutants.survey import ELSEWHERE

LONG = re.compile(
    r"test_(compare|coverage|rerun|rerun_faults|journey|action|action_trusted|two_publishers|killed"
    r"|published|recommend|replay|storage_faults|data_push|data_pull|live_rows"
    r"|harness_(memory|run|rescore|probe))\.py$"
)
"""Simulations and races: they take minutes, and are left to the exact pass."""
MOST = 12
"""Test files tried for one target in the first pass."""
FIRST = {"geneb_ci/statistics": ("tests/statistics/arithmetic/test_vectors.py",)}
"""Tests that hold the answers of a folder in two seconds: before all others."""
WHOLE = {
    "geneb_ci/board": ("tests/board/test_whole.py", "tests/github/test_comment.py"),
    "geneb_ci/audit": (
        "tests/render/test_generated.py",
        "tests/audit/test_verify.py",
        "tests/audit/test_verify_mutants.py",
        "tests/audit/test_trust_evidence.py",
    ),
    "geneb_ci/publish": (
        "tests/publish/test_parts.py",
        "tests/cli/test_diff.py",
        "tests/publish/test_publish.py",
    ),
    "geneb_ci/github": (
        "tests/render/test_generated.py",
        "tests/github/test_inputs.py",
        "tests/github/test_scope.py",
        "tests/github/test_sweep.py",
    ),
}
"""Tests that hold the whole output of a folder, and so notice changes in files they do not name."""


def near(target: str) -> list[str]:
    """Return test files for a target, the likeliest first."""
    path = PurePosixPath(target)
    mirrored = re.compile(rf"test_(harness_)?{path.stem}(_\w+)?$")
    module = target.removesuffix(".py").replace("/", ".")
    parent, _, leaf = module.rpartition(".")
    imports = re.compile(rf"{re.escape(module)}\b|from {re.escape(parent)} import [^\n]*\b{leaf}\b")
    own = [file for file, text in _texts().items() if imports.search(text)]
    named = [file for file in _texts() if mirrored.match(Path(file).stem)]
    named.sort(key=lambda file: (file not in own, file))
    first, whole = (
        [
            file
            for folder, files in kept.items()
            if target.startswith(f"{folder}/")
            for file in files
        ]
        for kept in (FIRST, WHOLE)
    )
    folder = "/".join(["tests", *path.parts[1:-1]])
    close = [file for file in own if file.startswith(f"{folder}/")]
    return list(dict.fromkeys([*first, *named, *close, *own[:2], *whole, *own]))[:MOST]


@functools.cache
def _texts() -> dict[str, str]:
    found = {}
    for path in sorted(ROOT.glob("tests/**/test_*.py")):
        file = str(path.relative_to(ROOT))
        if not ELSEWHERE.match(file) and not LONG.search(file):
            found[file] = path.read_text(encoding="utf-8")
    return found
