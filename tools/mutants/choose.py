"""Which tests can notice a mutant, those first that most likely do."""

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from tools.mutants.clone import ROOT
from tools.mutants.hits import mark_of, marks
from tools.mutants.sites import Mutant
from tools.mutants.survey import SURVEY
from tools.mutants.targets import FILES

STAGES = (2, 6, 20)
"""Test files in each of the first stages; the rest come together."""


@dataclass
class Surveyed:
    """One test file: seconds of each test that passed, and what each executed."""

    seconds: dict[str, float]
    hits: dict[str, set[tuple[str, int]]]
    all_hits: set[tuple[str, int]] = field(default_factory=set)


@dataclass(frozen=True)
class Stage:
    """Tests to run at one go."""

    files: tuple[str, ...]
    tests: tuple[str, ...]
    seconds: float


def surveyed() -> dict[str, Surveyed]:
    """Return what the survey found, by test file."""
    found = {}
    for path in sorted(SURVEY.glob("*.json")):
        raw = json.loads(path.read_text(encoding="utf-8"))
        failed = set(raw.get("failed", ()))
        seconds = {
            name: took for name, took in raw.get("seconds", {}).items() if name not in failed
        }
        if not seconds:
            continue
        hits = {name: {(file, line) for file, line in marks} for name, marks in raw["hits"].items()}
        file = next(iter(seconds)).partition("::")[0]
        found[file] = Surveyed(seconds, hits, set().union(*hits.values()))
    return found


def stages(mutant: Mutant, known: Mapping[str, Surveyed]) -> Iterator[Stage]:
    """Yield what to run, in order; nothing when no test executes the mutant.

    First the tests that execute its statement, then all others of their files: what one test left
    in a cache or in a shared fixture, another may look at.
    """
    wanted = _places(mutant)
    files = sorted(
        (file for file, one in known.items() if not wanted.isdisjoint(one.all_hits)),
        key=lambda file: (-_nearness(mutant.file, file), _seconds(known[file], wanted), file),
    )
    later: list[tuple[str, list[str]]] = []
    direct: list[tuple[str, list[str]]] = []
    for file in files:
        one = known[file]
        tests = sorted(one.seconds, key=lambda name: (one.seconds[name], name))
        near = [name for name in tests if not wanted.isdisjoint(one.hits.get(name, ()))]
        direct.append((file, near or tests))
        later.append((file, [name for name in tests if near and name not in set(near)]))
    for batch in (*_batches(direct), *_batches(later)):
        chosen = [(file, tests) for file, tests in batch if tests]
        names = [name for _, tests in chosen for name in tests]
        if names:
            seconds = sum(known[name.partition("::")[0]].seconds[name] for name in names)
            yield Stage(tuple(file for file, _ in chosen), tuple(names), seconds)


def _batches(items: list[tuple[str, list[str]]]) -> Iterator[list[tuple[str, list[str]]]]:
    start = 0
    for size in (*STAGES, len(items)):
        yield items[start : start + size]
        start += size


def _seconds(one: Surveyed, wanted: set[tuple[str, int]]) -> float:
    """Return how long the tests of a file take that execute any of the places."""
    return sum(
        took for name, took in one.seconds.items() if not wanted.isdisjoint(one.hits.get(name, ()))
    )


def _nearness(target: str, test: str) -> int:
    """Say how much a test file looks like a target's own: 2 by name, 1 by folder, else 0."""
    path, own = PurePosixPath(target), PurePosixPath(test)
    if own.stem in {f"test_{path.stem}", f"test_harness_{path.stem}"}:
        return 2
    return int(own.parent.name in {path.parent.name, path.parent.parent.name})


def _places(mutant: Mutant) -> set[tuple[str, int]]:
    """Return the marks that stand for a mutant.

    What runs when a module is imported runs before every test: its value is used by functions of
    the module and of the modules that import it, so all marks of those stand for it.
    """
    source = (ROOT / mutant.file).read_bytes()
    if in_function(source, mutant.lines[0]):
        return {(mutant.file, mark_of(marks(source), mutant.lines))}
    module = mutant.file.removesuffix(".py").replace("/", ".")
    files = {mutant.file} | {file for file in FILES if _imports((ROOT / file).read_text(), module)}
    return {(file, line) for file in files for line in marks((ROOT / file).read_bytes())}


def in_function(source: bytes, line: int) -> bool:
    """Say whether a line lies in the body of a function."""
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body[0].lineno <= line <= (node.end_lineno or line)
        for node in ast.walk(ast.parse(source))
    )


def _imports(source: str, module: str) -> bool:
    parent, _, name = module.rpartition(".")
    return any(
        f"{module} import" in line
        or (line.startswith(f"from {parent} import") and name in line)
        or line.startswith(f"from .{name} import")
        for line in source.splitlines()
    )
