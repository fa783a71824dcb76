"""docs/reference/glossary.md as data, and what is wrong with it: each check returns lines."""

import ast
import enum
import functools
import itertools
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, get_args

from geneb_ci.audit.compare.outcome import Verdict as AuditVerdict
from geneb_ci.audit.record.verify import StepState
from geneb_ci.audit.sampling.plan import Reason
from geneb_ci.check.report import Verdict as CheckVerdict
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.finding import Severity
from geneb_ci.common.types import Authorship
from geneb_ci.github.queue import Turn
from geneb_ci.github.verdict.model import PullOutcome
from geneb_ci.publish.difference import LiveStatus
from geneb_ci.publish.manifest import EventKind
from geneb_ci.publish.push import PublishOutcome
from tests.house.pages import without_blocks
from tests.house.tracked import python_files
from tests.paths import ROOT

GLOSSARY = Path("docs/reference/glossary.md")
BENCHMARK = shipped_benchmark()
ENUMERATIONS: Mapping[str, Iterable[str]] = {
    "authorship": Authorship,
    "regime": BENCHMARK.regimes,
    "metric": BENCHMARK.metrics,
    "severity": Severity,
    "audit verdict": get_args(AuditVerdict),
    "reason for a rerun": get_args(Reason),
    "verification step": StepState,
    "verdict of check": CheckVerdict,
    "verdict on a pull request": PullOutcome,
    "result of publish": PublishOutcome,
    "state of the Space": LiveStatus,
    "ledger event": get_args(EventKind),
    "whose turn": Turn,
}
"""What the table of values lists, and the values that the code has for it."""
PACKAGES = ("geneb_ci", "reference_harness")
WORDS = Path("tests/house/words.toml")
"""Words not to use."""
REFERENCE = re.compile(r"`((?:geneb_ci|reference_harness|schemas|leaderboard)/[^`]+)`")


class TableRow(NamedTuple):
    """A line of a table of the glossary."""

    word: str
    cells: tuple[str, ...]


def table(text: str, heading: str) -> list[TableRow]:
    """Return the lines of the table under a heading of the second level."""
    section = text.split(f"\n## {heading}\n")[1].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    return [TableRow(row[0], row[1:]) for row in rows]


@functools.cache
def members(path: Path) -> frozenset[str]:
    """Return the names at the top of a module, and those in its classes as `Class.name`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names_defined = set(_names(tree.body))
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names_defined |= {f"{node.name}.{name}" for name in _names(node.body)}
    return frozenset(names_defined)


def _names(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Assign):
            yield from (
                target_task.id for target_task in node.targets if isinstance(target_task, ast.Name)
            )


def wrong_references(text: str) -> list[str]:
    """Name the entries without exactly one place in the code, and the places that do not exist."""
    results = []
    for entry in table(text, "Terms"):
        places = REFERENCE.findall(entry.cells[1])
        if len(places) != 1:
            results.append(f"{entry.word}: {len(places)} places in the code, expected one")
    for match in REFERENCE.findall(text):
        file, _, name = match.partition(":")
        path = ROOT / file
        if not path.exists():
            results.append(f"{match}: there is no such file")
        elif name and name not in members(path):
            results.append(f"{match}: {file} has no {name}{_moved(name)}")
    return results


def _moved(name: str) -> str:
    """Say where a name is now, or nothing where it is nowhere or in several places."""
    places = [path for path in python_files(*PACKAGES) if name in members(ROOT / path)]
    return f"; it is in {places[0]}" if len(places) == 1 else ""


def wrong_order(text: str) -> list[str]:
    """Name the terms that stand twice or not in alphabetical order."""
    results = []
    words = [table_row.word.lower() for table_row in table(text, "Terms")]
    for before, after in itertools.pairwise(words):
        if after <= before:
            wrong = "stands twice" if after == before else f"belongs before {before}"
            results.append(f"{after} {wrong}")
    return results


def wrong_values(text: str) -> list[str]:
    """Name the values of the code without an entry, and the entries without a value."""
    listed = {
        (table_row.word, value)
        for table_row in table(text, "Values")
        for value in re.findall(r"`([^`]+)`", table_row.cells[0])
        if not value.startswith("-")  # an option
    }
    known = {
        (kind, str(value.value if isinstance(value, enum.Enum) else value))
        for kind, values in ENUMERATIONS.items()
        for value in values
    }
    return [f"{kind} {value}: no entry" for kind, value in sorted(known - listed)] + [
        f"{kind} {value}: not in the code" for kind, value in sorted(listed - known)
    ]


class Discouraged(NamedTuple):
    """A word or phrase that is not used."""

    word: str
    instead: str
    pattern: re.Pattern[str]


EVERYWHERE, PAGES = "everywhere", "pages"
"""Where a word is not used: messages, help, docstrings and comments too, or documentation only."""


def discouraged(text: str, *where: str) -> list[Discouraged]:
    """Return the words of the list that are not used in these places, each with its pattern."""
    listed = tomllib.loads(text)
    return [
        Discouraged(
            word,
            instead,
            re.compile(
                r"(?<![\w-])"
                + re.escape(word).replace(r"\ \.\.\.\ ", r"\b[^.|]{0,60}?\b").replace(r"\ ", r"\s+")
                + r"(?![\w-])",
                re.IGNORECASE,
            ),
        )
        for path in where
        for word, instead in listed[path].items()
    ]


def prose(text: str) -> str:
    """Return a page without code, names of JSON members, quoted output and targets of links."""
    text = re.sub(r'"[a-z_]+"', "", without_blocks(text))
    text = re.sub(r"^ {4,}\S.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"`[^`]*`", "", text)
    return re.sub(r"\]\([^)]*\)", "]", text)


def wrong_words(page: str, text: str) -> list[str]:
    """Name the discouraged words of a page, each with the words around it."""
    body = prose(text)
    results = []
    for word_found in discouraged((ROOT / WORDS).read_text(encoding="utf-8"), EVERYWHERE, PAGES):
        for match in word_found.pattern.finditer(body):
            around = " ".join(body[max(0, match.start() - 30) : match.end() + 30].split())
            results.append(f"{page}: {word_found.word!r}: {around}")
    return results
