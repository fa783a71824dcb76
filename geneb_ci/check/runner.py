"""Runs rules on files, in one process or several: reads each once, collects every finding."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from geneb_ci.check.kept import (
    KeptEntry,
    Miss,
    TracedAnswers,
    TracedPeers,
    has_crashed,
    outcome_from,
    part_of,
)
from geneb_ci.check.place import Against, Place, place_of, practice_benchmark
from geneb_ci.check.registry import rule_of
from geneb_ci.check.report import FileResult, Outcome, Report, files_of, named_files, outcome_of
from geneb_ci.check.row_facts import (
    CHUNK,
    NOTHING,
    Proposed,
    RowSource,
    card_of,
    extractor_digest,
    names_module,
)
from geneb_ci.check.rule import AnyRule, Context, Rule
from geneb_ci.common.benchmark import Benchmark
from geneb_ci.common.config import Finder, LayoutKind, find_layout
from geneb_ci.common.errors import BadConfiguration, NothingChecked
from geneb_ci.common.files import in_processes
from geneb_ci.common.finding import Fault, Finding, Need, Position, Severity, pointer, quoted
from geneb_ci.models.registry import ModelRegistry
from geneb_ci.submission.document import Document, parse_document, read_document
from geneb_ci.submission.names import ENTRY_MEMBER
from geneb_ci.submission.peers import peers_of
from geneb_ci.submission.reading import located
from geneb_ci.submission.structure import Engine, check_quickly, check_structure

if TYPE_CHECKING:
    from geneb_ci.submission.models import Submission
    from geneb_ci.submission.peers import Peers


__all__ = ["Checker", "FileResult", "Report", "crash_message", "files_of", "named_files"]

# Findings of one rule in one file. Enough for two regimes of 100 tasks; the rest is counted.
FINDINGS_MAX = 200


class Checker:
    """Checks files with one set of rules; files of one folder share settings and other rows."""

    def __init__(
        self,
        rules: tuple[Rule, ...],
        engine: Engine = check_structure,
        find: Finder = find_layout,
        against: Against | None = None,
    ) -> None:
        self.rules = rules
        self.engine = engine
        self.find = find
        self.against = against
        self._given: tuple[Path, ...] = ()
        self._places: dict[Path, Place] = {}
        self.benchmarks: dict[str, str] = {}
        """Name to sha256 of each benchmark definition that was used."""

    def run(self, files: list[Path]) -> Iterator[FileResult | NothingChecked]:
        """Yield the result of each file, or the NothingChecked error of one that cannot be read.

        Raises BadConfiguration at the end if settings, benchmark or policy of any file are invalid.
        """
        self._given, self._places = tuple(map(located, files)), {}
        broken: dict[str, str] = {}
        for path in files:
            try:
                yield self.check(path)
            except NothingChecked as error:
                yield error
            except BadConfiguration as error:
                broken.setdefault(error.message, error.fix)
        if broken:
            raise BadConfiguration("; ".join(broken), next(iter(broken.values())))

    def check(self, path: Path) -> FileResult:
        """Check one file.

        Raises NothingChecked if it cannot be opened, and BadConfiguration if its settings,
        benchmark or policy are invalid.
        """
        return self.result(self.context(path))

    def proposed(self, path: Path, name: str, proposed: Proposed) -> Context:
        """Return the context of a row as if it were at `path`; findings use the file name `name`.

        Raises BadConfiguration if settings, benchmark or policy are invalid.
        """
        return self.context_of(parse_document(proposed.raw, located(path), name), proposed)

    def check_bytes(self, raw: bytes | Fault, path: Path, name: str) -> FileResult:
        """Check a submission that is no file, as if it were at `path`; findings name it `name`.

        Raises BadConfiguration if settings, benchmark or policy are invalid.
        """
        place = place_of(path.parent, self.find, (path,), self.against)
        contents = {path: raw if isinstance(raw, bytes) else b""}
        place = dataclasses.replace(
            place, peers=dataclasses.replace(place.peers, contents=contents)
        )
        return self.result(self.context_in(parse_document(raw, path, name), place))

    def context_of(self, document: Document, proposed: Proposed = NOTHING) -> Context:
        """Return the context of a document that was read already. Raises BadConfiguration."""
        return self.context_in(document, self._place(document.path.parent), proposed)

    def result(self, context: Context) -> FileResult:
        """Run every rule whose needs are met on one context."""
        runnable, skipped = [], []
        for rule in self.rules:
            need = _lacking(rule, context)
            if need is None:
                runnable.append(rule)
            else:
                skipped.append((rule.id, need))
        findings = sorted(_findings(runnable, context), key=Finding.sort_key)
        return FileResult(
            context.document,
            context.model_id,
            context.submission,
            context.is_official,
            context.card,
            tuple(findings),
            tuple(skipped),
        )

    def context(self, path: Path) -> Context:
        """Return the context of one file. Raises the same errors as `check`."""
        return self.context_of(read_document(path))

    def _place(self, folder: Path) -> Place:
        if folder not in self._places:
            self._places[folder] = place_of(folder, self.find, self._given, self.against)
        return self._places[folder]

    def context_in(self, document: Document, place: Place, proposed: Proposed = NOTHING) -> Context:
        """Return the context of a document among the files of a folder."""
        submission, faults = self.engine(document.value)
        benchmark, practice = place.benchmark, False
        layout = place.layout
        if layout.kind is LayoutKind.ALONE:
            practice = _benchmark_name(document) == practice_benchmark().name
            benchmark = practice_benchmark() if practice else benchmark
        self.benchmarks[benchmark.name] = benchmark.sha256
        in_repository = layout.holds(document.path)
        card = card_of(document, layout, proposed) if in_repository else None
        if card is not None and card.fault is not None:
            faults.append(card.fault)
        reported: dict[str, list[Fault]] = {}
        for fault in (*document.faults, *faults):
            reported.setdefault(fault.rule, []).append(fault)
        return Context(
            document=document,
            submission=submission,
            reported={rule: tuple(found) for rule, found in reported.items()},
            benchmark=benchmark,
            policy=place.policy,
            # Rows of the real benchmark are not comparable with a practice run.
            peers=peers_of(place.peers.paths) if practice else place.peers,
            card=card,
            in_repository=in_repository,
            practice=practice,
            extractor_sha256=extractor_digest(document, layout, proposed)
            if in_repository
            else None,
            extractor_needed=names_module(document),
            facts=_facts(document, place.registry),
            described=_described(document, place.registry),
        )


def _facts(document: Document, registry: ModelRegistry) -> Mapping[str, Any]:
    """Return what the model registry says of a document's model."""
    model_id = document.value.get("model_id") if isinstance(document.value, dict) else None
    return registry.get(model_id, {}) if isinstance(model_id, str) else {}


def _described(document: Document, registry: ModelRegistry) -> Mapping[str, Any]:
    """Return what upgrading would write of the model's entry, for a file that was upgraded."""
    value = document.value
    if not isinstance(value, dict) or ENTRY_MEMBER not in value:
        return {}
    model_id = value.get("model_id")
    return registry.described(model_id, document.origin) if isinstance(model_id, str) else {}


def _lacking(rule: Rule, context: Context) -> Need | None:
    try:
        return context.lacks(rule.needs)
    except Exception:  # noqa: BLE001 (the rule then runs into the same error and reports it)
        return None


def _findings(rules: Iterable[Rule], context: Context) -> Iterator[Finding]:
    for rule in rules:
        try:
            faults = list(rule.check(context))
        except Exception as error:  # noqa: BLE001 (any exception is a bug, reported as a finding)
            message = crash_message(rule, error)
            crash = Fault("check-crashed", (), message, rule.id, "a verdict", at=0)
            yield _finding(rule_of("check-crashed"), crash, context)
            continue
        for fault in _first(rule, faults):
            yield _finding(rule, fault, context)


def crash_message(rule: AnyRule, error: Exception) -> str:
    """Return the message of a crashed rule: its id, the exception type and text."""
    return f"the rule {rule.id} crashed: {type(error).__name__}: {quoted(str(error))}"


def _first(rule: Rule, faults: list[Fault]) -> list[Fault]:
    """Return the first `FINDINGS_MAX` faults; if there are more, the last one states how many."""
    if len(faults) <= FINDINGS_MAX:
        return faults
    *kept, cut = faults[:FINDINGS_MAX]
    more = len(faults) - len(kept)
    message = f"{more:,} more findings of {rule.id} are not listed; this is the first of them"
    found, expected = f"{len(faults)} findings", "none"
    return [*kept, dataclasses.replace(cut, message=message, found=found, expected=expected)]


def _benchmark_name(document: Document) -> object:
    value = document.value
    for key in ("run", "benchmark", "name"):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _finding(rule: AnyRule, fault: Fault, context: Context) -> Finding:
    document = context.document
    if fault.card and context.card is not None:
        file, place = context.card.name, Position(max(fault.at or 1, 1), 1)
    else:
        file, place = document.name, document.position(document.offset(fault))
    return Finding(
        rule=rule.id,
        severity=rule.severity,
        message=fault.message,
        file=file,
        pointer=pointer(fault.path),
        line=place.line,
        column=place.column,
        found=fault.found,
        expected=fault.expected,
        fix=fault.fix or rule.fix,
        score=fault.score,
    )


_AMONG = {Need.OTHER_ROWS, Need.MANY_ROWS, Need.COMPLETE_ROWS}
"""Needs of the rules that compare a row with others."""
Part = tuple[str, bytes]
"""What a caller makes of a file without errors while that is available, with a key of its own."""
PartMaker = Callable[[Document, "Submission | None", Benchmark], Part | None]
Found = (
    tuple[Outcome, KeptEntry | None, tuple[str, str], Part | None]
    | NothingChecked
    | BadConfiguration
)


class Computer:
    """Runs rules on one file at a time; `place_of` says what the files of a folder are among."""

    def __init__(
        self,
        names: tuple[str, ...],
        find: Finder,
        against: Against | None,
        place_of: Callable[[Path], tuple[Place, TracedAnswers, str]],
        source: RowSource,
        make: PartMaker | None = None,
    ) -> None:
        self._source, self._make = source, make
        self._place_of = place_of
        self._order = {name: number for number, name in enumerate(names)}
        rules = tuple(cast("Rule", rule_of(name)) for name in names)
        among = tuple(rule for rule in rules if _AMONG & set(rule.needs))
        alone = tuple(rule for rule in rules if rule not in among)
        self._alone, self._among = (
            Checker(some, check_quickly, find, against) for some in (alone, among)
        )

    def compute(self, miss: Miss) -> Found:
        """Return the outcome of a file, what is kept of it, and the benchmark that was used."""
        try:
            return self._found(miss)
        except (NothingChecked, BadConfiguration) as error:
            return error

    def _found(self, miss: Miss) -> Found:
        document = read_document(miss.seen.name, values=self._source.recent)
        place, answers, _ = self._place_of(document.path.parent)
        context = self._alone.context_in(document, place)
        if context.peers is not place.peers:  # a practice run, which is not compared
            answers = TracedAnswers(context.peers)
        traced = TracedPeers(answers, document.path)
        facts = self._source.known(document.sha256)
        context = dataclasses.replace(
            context,
            peers=cast("Peers", traced),
            known_digest=facts.digest if facts is not None and facts.is_plain else None,
        )
        card = context.card.name if context.card is not None else None
        alone = None if miss.entry is None else miss.entry.alone
        if alone is None:
            alone = self._part(self._alone, context)
        asked = traced.taken()
        among = self._part(self._among, context)
        trace = asked + traced.taken()
        outcome = outcome_from((alone, among), self._order, document.name, card)
        used = (context.benchmark.name, context.benchmark.sha256)
        is_kept = document.sha256 == miss.seen.sha256 and not (
            has_crashed(alone) or has_crashed(among)
        )
        # What needs the file alone asks nothing of other rows; where it did, nothing is kept.
        entry = KeptEntry(alone, among, trace) if is_kept and miss.key and not asked else None
        return outcome, entry, used, self._made(context, outcome) if is_kept else None

    def _made(self, context: Context, outcome: Outcome) -> Part | None:
        """Return what the caller makes of a file; nothing where it has an error."""
        has_error = any(one.severity is Severity.ERROR for one in outcome.findings)
        if self._make is None or has_error:
            return None
        return self._make(context.document, context.submission, context.benchmark)

    @staticmethod
    def _part(checker: Checker, context: "Context") -> list[Any]:
        result: FileResult = checker.result(context)
        return part_of(outcome_of(result))


def computed(computer: Computer, misses: list[Miss], jobs: int) -> Iterator[Found]:
    """Yield what is found of each file, in their order, by `jobs` processes."""
    return map(
        _revived, in_processes(lambda miss: _sent(computer.compute(miss)), misses, jobs, CHUNK)
    )


def _sent(found: Found) -> Any:
    """Return what can be pickled: an error as its texts."""
    if isinstance(found, NothingChecked | BadConfiguration):
        return type(found), found.message, found.fix
    outcome, entry, *more = found
    return outcome, None if entry is None else tuple(entry), *more


def _revived(found: Any) -> Found:
    if isinstance(found[0], type):
        error: Found = found[0](found[1], found[2])
        return error
    outcome, entry, used, part = found
    return outcome, None if entry is None else KeptEntry(*entry), used, part
