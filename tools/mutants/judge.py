"""Whether the tests kill a mutant: at least one fails, or does not end."""

import hashlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.mutants.choose import Surveyed, stages
from tools.mutants.clone import ROOT, WORK
from tools.mutants.sites import Mutant, applied
from tools.mutants.survey import in_parallel
from tools.mutants.worker import Server, Worker

NO_END = "none: the process did not end, or ended without a result"
STARTING = 5.0
"""Seconds that a run takes before its first test, on an idle machine."""


@dataclass(frozen=True)
class Verdict:
    """What became of one mutant."""

    mutant: Mutant
    killer: str
    """The test that failed; "" when all passed."""
    ran: int
    """How many tests were given the chance."""

    @property
    def is_killed(self) -> bool:
        """Whether a test failed."""
        return bool(self.killer)


class Memory:
    """Verdicts on disk, so that a run that was stopped goes on.

    A kill holds while the mutated file and the killing test's file stay as they are, a survival
    while all tests do.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.Lock()
        self.known: dict[str, tuple[str, int]] = {}
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                one = json.loads(line)
                if one["tests"] == _tests_digest(one["killer"]):
                    self.known[one["key"]] = one["killer"], one["ran"]

    def get(self, mutant: Mutant) -> Verdict | None:
        """Return what is known of a mutant."""
        known = self.known.get(_key(mutant))
        return Verdict(mutant, *known) if known else None

    def add(self, verdict: Verdict) -> None:
        """Write a verdict down."""
        entry = {
            "key": _key(verdict.mutant),
            "killer": verdict.killer,
            "ran": verdict.ran,
            "tests": _tests_digest(verdict.killer),
        }
        self.path.parent.mkdir(exist_ok=True)
        with self.lock, self.path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(entry) + "\n")


def judge(
    workers: list[Worker],
    mutants: Sequence[Mutant],
    known: Mapping[str, Surveyed],
    memory: Memory,
    say: Callable[[Verdict], None],
) -> list[Verdict]:
    """Return the verdict on each mutant, in their order."""
    found = {mutant: verdict for mutant in mutants if (verdict := memory.get(mutant))}

    def one(worker: Worker, mutant: Mutant) -> None:
        found[mutant] = verdict = judged(worker, mutant, known)
        memory.add(verdict)
        say(verdict)

    in_parallel(workers, [mutant for mutant in mutants if mutant not in found], one)
    return [found[mutant] for mutant in mutants]


def judged(worker: Server, mutant: Mutant, known: Mapping[str, Surveyed]) -> Verdict:
    """Run the tests that can notice a mutant until one fails."""
    ran = 0
    source = (ROOT / mutant.file).read_bytes()
    worker.write(mutant.file, applied(source, mutant))
    try:
        for stage in stages(mutant, known):
            ran += len(stage.tests)
            done = worker.run(stage.files, stage.tests, seconds=STARTING + stage.seconds)
            if not done:
                return Verdict(mutant, NO_END, ran)
            if done["status"]:
                return Verdict(mutant, next(iter(done["failed"]), NO_END), ran)
    finally:
        worker.write(mutant.file, source)
    return Verdict(mutant, "", ran)


def false_alarms(worker: Server, killers: Sequence[str]) -> list[str]:
    """Return the killing tests that fail without any mutant, too."""
    names = sorted({name for name in killers if "::" in name})
    failed: list[str] = []
    while names:
        files = sorted({name.partition("::")[0] for name in names})
        done = worker.run(files, names, seconds=1000)
        new = done.get("failed", names)
        if not new:
            break
        failed += new
        names = [name for name in names if name not in set(new)]
    return failed


def _key(mutant: Mutant) -> str:
    source = (ROOT / mutant.file).read_bytes()
    place = f"{mutant.file}:{mutant.start}:{mutant.end}:{mutant.new}".encode()
    return hashlib.sha256(source + place).hexdigest()[:32]


def _tests_digest(killer: str) -> str:
    """Return a digest of the file of a test, or of all tests."""
    name = killer.partition("::")[0]
    path = ROOT / name
    paths = [path] if name and path.is_file() else sorted(ROOT.glob("tests/**/*.py"))
    digest = hashlib.sha256()
    for one in paths:
        digest.update(one.read_bytes())
    return digest.hexdigest()[:32]
