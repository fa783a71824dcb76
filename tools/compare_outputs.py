"""Compares the outputs of two versions of the program for the same inputs, byte for byte.

usage: python -m tools.compare_outputs BASE

BASE is a commit. This checkout makes the inputs once: the public rows, the fixtures of every rule
except those for pull requests, 400 generated rows, and a repository with audits that agree, differ
and are withdrawn. Each version checks, rates, verifies and builds them. For the public rows each
version uses its own policy and benchmark, since an older version rejects settings that it does not
know. All differences are printed; the exit code is 1 if there are any.
"""

import contextlib
import difflib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROWS = 400
LINES_MAX = 20
"""Most lines that are printed of the difference in one output."""
BOARDS = ("public", "many", "audited")
"""Inputs from which a board is built; all other inputs are fixtures of rules."""
OWN_FILES = {
    "public": ("leaderboard/policy", "schemas/benchmark.json"),
    "many": ("schemas/benchmark.json",),
}
"""Files of an input of which each version uses its own copy, by input."""
DIGEST = re.compile(r"\bboard[-a-z]*(?:\.|\.js\?)([0-9a-f]{16})\b")
"""Names with a digest in index.html, which change with the data or the script of a board."""


def make_inputs(folder: Path) -> None:
    """Write every input into a folder of its own below `folder`."""
    from benchmarks.many_rows import write_rows
    from geneb_ci.check.change import Change
    from tests.audit import recorded
    from tests.paths import PUBLIC
    from tests.rules.fixtures import FAMILIES
    from tests.rules.place import built

    shutil.copytree(PUBLIC / "submissions", folder / "public/submissions")
    write_rows(folder / "many/submissions", ROWS)
    raw = recorded.submission_bytes()
    audited = recorded.repository(folder / "audited")
    plan = recorded.plan_for(raw)
    recorded.put(audited, recorded.outcome_of(plan, raw))
    recorded.withdraw(recorded.put(audited, recorded.outcome_of(plan, raw, shift=0.05)))
    pairs = {rule: pair for family in FAMILIES.values() for rule, pair in family.items()}
    for rule, pair in pairs.items():
        for case, fixture in zip(("failing", "passing"), pair, strict=True):
            if not isinstance(fixture, Change):
                built(fixture, folder / "rules" / f"{rule}-{case}")


def copy_own_files(source: Path, inputs: Path) -> None:
    """Copy the files of `OWN_FILES` from the checkout `source` over those of the inputs."""
    for board, files in OWN_FILES.items():
        for file in files:
            copy = inputs / board / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            if (source / file).is_dir():
                shutil.rmtree(copy, ignore_errors=True)
                shutil.copytree(source / file, copy)
            else:
                shutil.copy(source / file, copy)


def collect(inputs: Path, outputs: Path) -> None:
    """Run the version that Python imports on the inputs, and write its outputs."""
    for root in [*(inputs / board for board in BOARDS), *sorted((inputs / "rules").iterdir())]:
        board_outputs = outputs / root.relative_to(inputs)
        board_outputs.mkdir(parents=True)
        checked_folder = next((n for n in ("submissions", "alone") if (root / n).is_dir()), ".")
        board = str(board_outputs / "board")
        # Each command in today's spelling, followed by that of earlier versions.
        commands = {"check": [["check", checked_folder, "--format", "json"]]}
        if root.name in BOARDS:
            commands |= {
                "trust": [["trust", "--format", "json"], ["label", "--format", "json"]],
                "verify": [["audit", "verify"]],
                "build": [["build", "--output", board], ["build", "--out", board]],
            }
        with contextlib.chdir(root):
            for command, spellings in commands.items():
                code, raw = run_first(spellings)
                if command == "build" and code:
                    sys.exit(f"{root}: `geneb-ci build` failed: {raw!r}")
                raw = raw.replace(os.fsencode(outputs), b"OUTPUTS")
                (board_outputs / command).write_bytes(raw + f"exit {code}\n".encode())
        if root.name in BOARDS:
            drop_digests(board_outputs / "board")


def run_first(spellings: Sequence[list[str]]) -> tuple[int, bytes]:
    """Run the first spelling of a command that this version has; return exit code and output."""
    from geneb_ci.cli.main import main
    from geneb_ci.common.errors import Exit

    for words in spellings:
        output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            code = main(words)
        if code != Exit.USAGE:
            break
    output.flush()
    return code, output.buffer.getvalue()


def drop_digests(board: Path) -> None:
    """Replace every digest in names and contents of a board's files by the word DIGEST.

    Otherwise two boards that differ in content would also differ in file names, and their files
    could not be compared.
    """
    digests = "|".join(set(DIGEST.findall((board / "index.html").read_text("utf-8"))))
    for path in [p for p in board.rglob("*") if p.is_file() and digests]:
        raw = path.read_bytes()
        path.unlink()
        renamed = path.with_name(re.sub(digests, "DIGEST", path.name))
        renamed.write_bytes(re.sub(digests.encode(), b"DIGEST", raw))


def differences(before: Path, after: Path) -> Iterator[str]:
    """Yield the differences between two folders of outputs, with the first lines of each."""
    paths = {
        p.relative_to(folder)
        for folder in (before, after)
        for p in folder.rglob("*")
        if p.is_file()
    }
    for path in sorted(paths):
        old, new = (folder / path for folder in (before, after))
        if not old.exists() or not new.exists():
            yield f"{path}: only {'after' if new.exists() else 'before'}"
        elif old.read_bytes() != new.read_bytes():
            first, second = (file.read_text("utf-8", "replace").split("\n") for file in (old, new))
            lines = list(difflib.unified_diff(first, second, "before", "after", lineterm="", n=0))
            excerpt = "\n".join(f"    {line[:200]}" for line in lines[:LINES_MAX])
            yield f"{path}: {len(lines)} lines of difference\n{excerpt}"


def compare(base: str) -> int:
    """Print how the outputs of this checkout differ from those of a commit; return 1 if any."""
    with tempfile.TemporaryDirectory(prefix="compare-") as scratch:
        folder = Path(scratch).resolve()
        inputs, base_checkout = folder / "inputs", folder / "tree"
        make_inputs(inputs)
        git = ["git", "-C", str(ROOT)]
        subprocess.run([*git, "worktree", "add", "-q", "--detach", base_checkout, base], check=True)
        try:
            for version, checkout in (("before", base_checkout), ("after", ROOT)):
                copy_own_files(checkout, inputs)
                subprocess.run(
                    [sys.executable, "-P", __file__, "--collect", inputs, folder / version],
                    check=True, cwd=folder, env=os.environ | {"PYTHONPATH": str(checkout)},
                )  # fmt: skip
        finally:
            subprocess.run([*git, "worktree", "remove", "--force", base_checkout], check=True)
        count = sum(path.is_file() for path in (folder / "after").rglob("*"))
        difference_texts = list(differences(folder / "before", folder / "after"))
        print(*difference_texts, f"{count} outputs, {len(difference_texts)} differ", sep="\n")
        return bool(difference_texts)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--collect"]:
        collect(Path(sys.argv[2]), Path(sys.argv[3]))
    elif len(sys.argv) == 2 and not sys.argv[1].startswith("-"):  # noqa: PLR2004 (the commit)
        sys.exit(compare(sys.argv[1]))
    else:
        sys.exit(__doc__)
