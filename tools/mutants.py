"""`make mutants`: makes a sample of small wrong changes, and reports which ones no test notices.

Cosmic Ray makes the changes; tools/mutants.toml names the modules, and the tests that must notice.
The committed state is tested, in two clones at once; a stopped run continues where it was.
"""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from cosmic_ray.commands import init
from cosmic_ray.work_db import WorkDB
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkResult

from tests.paths import REAL_TASKS, ROOT

AT_ONCE = 2
TIMEOUT_S = 600.0
TAIL = 20
"""Most last lines of a failing run that are shown."""
SETTINGS = {
    "CI": "true",  # property tests then use the same examples for each mutant
    "GENEB_REAL_TASKS": str(REAL_TASKS),
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
# Only changes that give another value of the same type; others fail in any test.
OPERATORS = re.compile(
    r"core/(AddNot|NumberReplacer|ZeroIterationForLoop|ExceptionReplacer"
    r"|Replace(True|False|And|Or|Break|Continue)With\w+"
    r"|ReplaceUnaryOperator_(Delete_Not|Delete_USub|USub_UAdd)"
    r"|ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_Div|Div_Mul|FloorDiv_Div|Mod_FloorDiv|Pow_Mul)"
    r"|ReplaceComparisonOperator_"
    r"(Eq_NotEq|NotEq_Eq|Lt_LtE|LtE_Lt|Gt_GtE|GtE_Gt|Lt_GtE|LtE_Gt|Gt_LtE|GtE_Lt|Is_IsNot|IsNot_Is))"
)
SEPARATORS = ("*,", "/,")
"""Parts of a signature that Cosmic Ray mistakes for a product and a quotient."""


def main() -> int:
    """Draw mutants, test those without a verdict, and print a report."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "build/mutants", help="folder of intermediate results"
    )
    options = parser.parse_args()
    parts = tomllib.loads((ROOT / "tools/mutants.toml").read_text(encoding="utf-8"))["part"]
    commit = output("git", "rev-parse", "HEAD").strip()
    work = options.folder / f"{commit[:12]}-{options.seed}-{options.number}"
    if not (work / "drawn").exists():
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        draw(work, parts, options.number, options.seed)
        (work / "drawn").touch()
    clones: SimpleQueue[Path] = SimpleQueue()
    for number in range(AT_ONCE):
        clones.put(clone(work / f"clone-{number}", commit))

    def judged(part: dict[str, Any]) -> None:
        folder = clones.get()
        judge(work, part, folder)
        clones.put(folder)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(judged, parts))
    print(report(work, parts, commit))
    return 0


def output(*command: str) -> str:
    """Return the output of a command, run at the root. Raises CalledProcessError."""
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def session(work: Path, part: dict[str, Any]) -> WorkDB:
    """Open Cosmic Ray's database of a part: its mutants, and the verdict on each."""
    return WorkDB(work / f"{part['name']}.sqlite", WorkDB.Mode.create)


def draw(work: Path, parts: list[dict[str, Any]], number: int, seed: int) -> None:
    """Find every mutant, and mark those that are not drawn as skipped."""
    mutants = []
    for part in parts:
        paths = [Path(part["folder"]) / f"{name}.py" for name in part["modules"]]
        with closing(session(work, part)) as open_session:
            init(paths, open_session, {})
            lines = {str(path): path.read_text(encoding="utf-8").splitlines() for path in paths}
            for item in open_session.work_items:
                mutation = item.mutations[0]
                row, column = mutation.start_pos
                is_separator = lines[str(mutation.module_path)][row - 1].startswith(
                    SEPARATORS, column
                )
                if OPERATORS.fullmatch(mutation.operator_name) and not is_separator:
                    position = (
                        str(mutation.module_path),
                        mutation.start_pos,
                        mutation.operator_name,
                        mutation.occurrence,
                    )
                    mutants.append((position, item.job_id))
    drawn_jobs = {job for _, job in random.Random(seed).sample(sorted(mutants), number)}  # noqa: S311
    for part in parts:
        with closing(session(work, part)) as open_session:
            undrawn = [
                item.job_id for item in open_session.work_items if item.job_id not in drawn_jobs
            ]
            open_session.set_multiple_results(undrawn, WorkResult(WorkerOutcome.SKIPPED))
    (work / "population").write_text(f"{len(mutants)}\n", encoding="utf-8")


def clone(folder: Path, commit: str) -> Path:
    """Check out a commit in a new clone whose environment imports that clone's code."""
    shutil.rmtree(folder, ignore_errors=True)
    output("git", "clone", "--quiet", "--local", "--no-checkout", str(ROOT), str(folder))
    output("git", "-C", str(folder), "checkout", "--quiet", "--detach", commit)
    output("cp", "-al", str(ROOT / ".venv"), str(folder / ".venv"))
    for path in (folder / ".venv").glob("lib/python*/site-packages/_geneb_ci.pth"):
        path.unlink()  # a hard link: writing to it would change the original
        path.write_text(f"{folder}\n", encoding="utf-8")
    return folder


def judge(work: Path, part: dict[str, Any], folder: Path) -> None:
    """Run the tests of a part on each drawn mutant that has no verdict yet.

    Exits with a message if the tests fail without any change, as every mutant would then count as
    killed.
    """
    tests = " ".join(part["tests"])
    command = f"{folder}/.venv/bin/python -m pytest -x -q -p no:cacheprovider {tests}"
    environment = os.environ | SETTINGS
    unchanged = subprocess.run(
        command.split(), cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if unchanged.returncode:
        tail = "\n".join(unchanged.stdout.splitlines()[-TAIL:])
        sys.exit(f"the tests of {part['name']} fail on unchanged code: repair them first\n{tail}")
    config = work / f"{part['name']}.toml"
    config.write_text(
        f"[cosmic-ray]\nmodule-path = []\ntimeout = {TIMEOUT_S}\nexcluded-modules = []\n"
        f'test-command = "{command}"\n'
        '[cosmic-ray.distributor]\nname = "local"\n',
        encoding="utf-8",
    )
    subprocess.run(
        [sys.executable, "-m", "cosmic_ray.cli", "exec", config, work / f"{part['name']}.sqlite"],
        cwd=folder,
        env=environment,
        check=True,
    )


def report(work: Path, parts: list[dict[str, Any]], commit: str) -> str:
    """Return a table of tested and killed mutants, and the change of each survivor."""
    lines = [
        f"Judged at commit `{commit[:12]}`, of",
        "| part | mutants | killed |",
        "|---|---:|---:|",
    ]
    lines[0] += f" {(work / 'population').read_text(encoding='utf-8').strip()} mutants."
    diffs, total = [], Counter[TestOutcome | None]()
    for part in parts:
        with closing(session(work, part)) as open_session:
            outcomes = [result for _, result in open_session.results if result.test_outcome]
        counts = Counter(result.test_outcome for result in outcomes)
        total += counts
        lines.append(f"| {part['name']} | {len(outcomes)} | {counts[TestOutcome.KILLED]} |")
        diffs += [r.diff for r in outcomes if r.test_outcome != TestOutcome.KILLED]
    lines.append(f"| all | {total.total()} | {total[TestOutcome.KILLED]} |")
    return "\n".join([*lines, *(f"```diff\n{diff}\n```" for diff in diffs)])


if __name__ == "__main__":
    sys.exit(main())
