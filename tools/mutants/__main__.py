"""Draw mutants, run the tests on them, write the report."""

import argparse
import fnmatch
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from tools.mutants.clone import ROOT, WORK
from tools.mutants.draw import drawn, every
from tools.mutants.judge import Memory, changed, false_alarms, judge
from tools.mutants.targets import FILES
from tools.mutants.text import Set, key_of, markdown, reasons
from tools.mutants.worker import Worker

SEED, NUMBER = 1, 300
SECOND_SEED, SECOND_NUMBER = 2, 100
"""A draw that no test was written for: it shows whether the tests were fitted to the first."""
REQUIRED = 0.95
REPORT = ROOT / "docs" / "mutants.md"


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--number", type=int, help="how many; without it both draws of the report")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--files", default="*", help="pattern of target files, as geneb_ci/audit/*")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--exact", action="store_true", help="leave out the first pass, which ran before"
    )
    return parser.parse_args()


def main() -> int:
    """Run the command; 1 when too few mutants were killed or a survivor has no reason."""
    asked = options()
    files = [file for file in FILES if fnmatch.fnmatch(file, asked.files)]
    population = every(files)
    is_report = asked.number is None and asked.files == "*"
    plan = [(asked.seed, asked.number or NUMBER)]
    if is_report:
        plan.append((SECOND_SEED, SECOND_NUMBER))
    draws = [(seed, drawn(population, number, seed)) for seed, number in plan]
    tried = list(dict.fromkeys(mutant for _, mutants in draws for mutant in mutants))

    workers = [Worker(str(number)) for number in range(asked.workers)]
    memory = Memory(WORK / "verdicts.jsonl")
    todo = [mutant for mutant in tried if memory.get(mutant) is None]
    say(f"{len(tried)} mutants of {len(population)}, {len(todo)} of them not judged yet")
    why = reasons()
    explained = {mutant for mutant in tried if key_of(mutant) in why}
    verdicts = judge(workers, tried, memory, say, exact_only=asked.exact, explained=explained)
    alarms = false_alarms(workers[0], [verdict.killer for verdict in verdicts])
    for worker in workers:
        worker.close()
    if alarms:
        say("these tests fail without a mutant as well, so no verdict rests on them:")
        say("\n".join(alarms))
        return 1

    by_mutant = {verdict.mutant: verdict for verdict in verdicts}
    sets = [Set(seed, [by_mutant[mutant] for mutant in mutants]) for seed, mutants in draws]
    _write(sets, WORK / "mutants.json")
    if is_report:
        REPORT.write_text(markdown(sets, len(population), _commit(), why), encoding="utf-8")
    unexplained = [one for one in verdicts if not one.is_killed and key_of(one.mutant) not in why]
    for one in sets:
        hung = sum(verdict.is_hung for verdict in one.verdicts)
        say(f"seed {one.seed}: {one.rate} of {len(one.verdicts)} killed, {hung} by a hang")
    say(f"{len(unexplained)} survivors without a reason")
    killed = sum(verdict.is_killed for verdict in sets[0].verdicts)
    return int(bool(unexplained) or killed < REQUIRED * len(sets[0].verdicts))


def _commit() -> str:
    command = ["git", "describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _write(sets: list[Set], path: Path) -> None:
    entries = [
        {"seed": one.seed, "killer": verdict.killer, "ran": verdict.ran}
        | {"change": changed(verdict.mutant), "mutant": asdict(verdict.mutant)}
        for one in sets
        for verdict in one.verdicts
    ]
    path.write_text(json.dumps(entries, indent=1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
