"""Whether the tests kill a mutant: at least one fails, or does not end."""

import hashlib
import json
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.mutants.choose import Surveyed, stages, surveyed
from tools.mutants.clone import ROOT
from tools.mutants.quick import first_pass
from tools.mutants.sites import Mutant, applied
from tools.mutants.survey import in_parallel, survey
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

    @property
    def is_hung(self) -> bool:
        """Whether it was no test's word, but that none came."""
        return self.killer.startswith("none:")


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
    workers: Sequence[Worker],
    mutants: Sequence[Mutant],
    memory: Memory,
    say: Callable[[str], None],
    *,
    exact_only: bool = False,
    explained: Collection[Mutant] = (),
) -> list[Verdict]:
    """Return the verdict on each mutant, in their order.

    First the tests that are near, unless `exact_only`. For what they let live, the survey finds
    every test that executes it, and all of those run. The `explained`, for which somebody wrote
    down why no test can kill them, then count as alive.
    """
    found = {mutant: verdict for mutant in mutants if (verdict := memory.get(mutant))}
    progress = Progress(say)

    def keep(verdict: Verdict) -> None:
        found[verdict.mutant] = verdict
        memory.add(verdict)

    def near(mutant: Mutant, killer: str) -> None:
        progress(mutant, "killed" if killer else "lives so far")
        if killer:
            keep(Verdict(mutant, killer, 0))

    def exact(worker: Worker, mutant: Mutant) -> None:
        verdict = judged(worker, mutant, known)
        progress(mutant, "killed" if verdict.is_killed else "SURVIVED")
        keep(verdict)

    todo = [mutant for mutant in mutants if mutant not in found]
    if not exact_only:
        progress.start(len(todo))
        first_pass(workers, todo, near)
        todo = [mutant for mutant in mutants if mutant not in found]
    found |= {mutant: Verdict(mutant, "", 0) for mutant in todo if mutant in explained}
    todo = [mutant for mutant in todo if mutant not in found]
    if todo:
        say(f"{len(todo)} are left for the exact pass; which tests execute them?")
        survey(workers, say)
        known = surveyed()
        progress.start(len(todo))
        in_parallel(workers, todo, exact)
    return [found[mutant] for mutant in mutants]


class Progress:
    """Prints what became of each mutant, and how long the rest of a pass takes."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say

    def start(self, total: int) -> None:
        """Begin a pass."""
        self.total, self.done, self.begun = total, 0, time.monotonic()

    def __call__(self, mutant: Mutant, became: str) -> None:
        """Print one."""
        self.done += 1
        left = (time.monotonic() - self.begun) / self.done * (self.total - self.done)
        before, after = changed(mutant)
        self.say(
            f"[{self.done}/{self.total}, {left / 60:.0f} min left] {became}: "
            f"{mutant.file}:{mutant.line}  {before}  ->  {after}"
        )


def changed(mutant: Mutant) -> tuple[str, str]:
    """Return the first line that a mutant changes, before and after, without its indentation."""
    source = (ROOT / mutant.file).read_bytes()
    before = source.decode().splitlines()[mutant.line - 1]
    after = applied(source, mutant).decode().splitlines()[mutant.line - 1]
    return before.strip(), after.strip()


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
    names = sorted({name for name in killers if "::" in name and not name.startswith("none:")})
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
    name = killer.removeprefix("none: ").partition("::")[0]
    path = ROOT / name
    if name and path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()[:32]
    digest = hashlib.sha256()
    for one in sorted(ROOT.glob("tests/**/*.py")):
        digest.update(f"{one.relative_to(ROOT)}\n".encode() + one.read_bytes())
    return digest.hexdigest()[:32]
