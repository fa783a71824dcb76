"""The first pass: near tests in a session that has collected them, a fork for each mutant.

It takes a second or two a mutant. What it kills is killed; what it does not is for the exact pass.
"""

import json
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from tools.mutants import clone
from tools.mutants.choose import in_function
from tools.mutants.clone import ROOT
from tools.mutants.near import near
from tools.mutants.session import CPU_S
from tools.mutants.sites import Mutant, applied
from tools.mutants.survey import in_parallel
from tools.mutants.worker import Worker

BUDGET_S = 30
"""Processor seconds for one mutant: a kill that takes longer is the exact pass's."""
FRESH_S = 20.0
"""What a test file takes at most that confirms a kill."""


def first_pass(
    workers: Sequence[Worker], mutants: Sequence[Mutant], found: Callable[[Mutant, str], None]
) -> None:
    """Tell of each mutant which near test kills it, "" for none; a target stays with a worker."""
    shares: list[list[Mutant]] = [[] for _ in workers]
    for file in sorted({mutant.file for mutant in mutants}):
        min(shares, key=len).extend(mutant for mutant in mutants if mutant.file == file)

    def one(worker: Worker, share: list[Mutant]) -> None:
        if not share:
            return
        quick = Quick(worker, sorted({mutant.file for mutant in share}))
        try:
            for mutant in share:
                found(mutant, quick.killer(mutant))
        finally:
            quick.close()

    in_parallel(workers, shares, one)


class Quick:
    """A session in a worker's clone, for the mutants of some targets."""

    def __init__(self, worker: Worker, targets: Sequence[str]) -> None:
        self.worker = worker
        self.tests = {target: near(target) for target in targets}
        files = sorted({file for tests in self.tests.values() for file in tests})
        self.process = subprocess.Popen(
            [clone.python(worker.root), "-m", "tools.mutants.session", *files],
            cwd=worker.root,
            env=clone.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.called: set[str] | None = None

    def killer(self, mutant: Mutant) -> str:
        """Return a test that fails, or "" where none was found."""
        source = (ROOT / mutant.file).read_bytes()
        changed = applied(source, mutant)
        self.worker.write(mutant.file, changed)
        try:
            if not in_function(source, mutant.lines[0]):
                return self._fresh(self.tests[mutant.file])
            found = self._ask(mutant.file, mutant.scope, changed.decode(), self.tests[mutant.file])
            if found.get("status") == "cannot":
                return self._fresh(self.tests[mutant.file])
            if "hung" in found:
                return self._hang(found["hung"])
            failed = found.get("failed") or [""]
            if failed[0] and mutant.file in (self.called or ()):
                # The module was imported with what the true code had made: ask without that.
                return self._fresh([failed[0].partition("::")[0]], [failed[0]])
            return str(failed[0])
        finally:
            self.worker.write(mutant.file, source)

    def _hang(self, test: str) -> str:
        """Say that a test hangs, unless it takes long without a mutant: the exact pass knows."""
        found = self._ask("", "", "", [test]) if test else {}
        is_short = found.get("status") == "done" and found["cpu"] < CPU_S / 4
        return f"none: {test} does not end" if is_short else ""

    def _ask(self, file: str, scope: str, source: str, tests: Sequence[str]) -> dict[str, Any]:
        if self.called is None:
            self.called = set(self._answer()["called"])
        result = self.worker.root.parent / "quick.json"
        result.unlink(missing_ok=True)
        job = {
            "tests": list(tests),
            "file": file,
            "scope": scope.split("."),
            "source": source,
            "result": str(result),
            "budget": BUDGET_S,
        }
        assert self.process.stdin is not None  # noqa: S101 (it was asked for)
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        answer = self._answer()
        if answer["end"] != "exit":
            return {"hung": answer["test"]}
        found: dict[str, Any] = json.loads(result.read_text()) if result.is_file() else {}
        return found

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None  # noqa: S101
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the test session ended: run `make mutants` again")
        found: dict[str, Any] = json.loads(line)
        return found

    def _fresh(self, files: Sequence[str], tests: Sequence[str] = ()) -> str:
        """Run tests that import the mutated file anew, a few files at a time."""
        for start in range(0, len(files), 2):
            done = self.worker.run(files[start : start + 2], tests, seconds=FRESH_S)
            if not done:
                return ""
            if done["status"]:
                return str(next(iter(done["failed"]), ""))
        return ""

    def close(self) -> None:
        """End the session."""
        with self.process:  # which closes the pipes, and waits
            self.process.terminate()
