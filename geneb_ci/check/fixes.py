"""`check --fix`: makes the repairs of a submission that have only one possible result.

It sorts members, adds a missing `$schema` and the newline at the end, and replaces a mean that was
rounded although the scores of its seeds are not. The text is cut into pieces and joined again, so
that all other bytes stay as they are.
"""

import difflib
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from geneb_ci.check.claims import METRIC_BY_FIELD
from geneb_ci.check.registry import FILE_RULES, select
from geneb_ci.check.rule import Context
from geneb_ci.check.runner import Checker
from geneb_ci.common.config import Layout
from geneb_ci.common.errors import MachineFault
from geneb_ci.common.files import write_files
from geneb_ci.common.finding import Finding, KeyPath
from geneb_ci.statistics.metrics import UNROUNDED_DECIMALS, UNROUNDED_HALF_WIDTH
from geneb_ci.submission.document import Document, parse_document, read_document
from geneb_ci.submission.scanner import Span
from geneb_ci.submission.structure import format_key_of, known_members, version_of
from reference_harness.formats.files import NotReadable, read_regular
from reference_harness.formats.submission_terms import (
    ENTRY_MEMBER,
    MODEL_ID_PATTERN,
    SUBMISSION_BYTES_MAX,
)
from reference_harness.formats.text import plural, quoted

SCHEMA_MEMBER = "$schema"
"""Member of a submission by which editors find its JSON schema."""
REPAIRED_DECIMALS_MIN = 3
"""Minimum decimals of a mean that is repaired: with fewer decimals, a mean that was changed by hand
would too often equal the rounded mean by chance."""
MEMBERS_BY_TASK = ("results", "evidence", "gaps")
"""Members of a submission that are objects by regime, then by task."""


@dataclass(frozen=True)
class Fixed:
    """The repairs of one file, which `write` writes to the file."""

    file: str
    before: str
    """Text of the file."""
    after: str
    """Text with the repairs."""
    changes: tuple[str, ...] = ()
    """A description of each change, in one line."""
    left: str = ""
    """Why the file is not changed although it could be repaired; else ""."""

    def diff(self) -> str:
        """Return the change as a unified diff; "" if there is none."""
        old_lines, new_lines = (
            version.splitlines(keepends=True) for version in (self.before, self.after)
        )
        lines = difflib.unified_diff(old_lines, new_lines, self.file, self.file)
        marked = (
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in lines
        )
        return "".join(marked)

    def write(self) -> None:
        """Write the file atomically; its mode is kept.

        Raises UsageProblem if it cannot be written, MachineFault if it changed since it was read.
        """
        if not self.changes:
            return
        path = Path(self.file)
        try:
            current_bytes, mode = (
                read_regular(path, SUBMISSION_BYTES_MAX, links=False),
                path.stat().st_mode,
            )
        except (NotReadable, OSError) as error:
            raise MachineFault(
                f"{path} cannot be read again: {error}", "run the command again"
            ) from error
        if current_bytes != self.before.encode():
            raise MachineFault(f"{path} changed since it was read", "run the command again")
        write_files(path.parent, {path.name: self.after.encode()})
        path.chmod(mode)


def fixed_file(path: Path, checker: Checker) -> Fixed:
    """Return the repairs of a file: none if it is not a valid JSON object.

    Raises NothingChecked if it cannot be opened, BadConfiguration if its settings are invalid.
    """
    document = read_document(path)
    before = after = document.text
    if document.faults or not isinstance(document.value, dict) or not document.value:
        return Fixed(document.name, before, after)  # `check` says what is wrong
    context, layout = checker.context_of(document), checker.find(document.path.parent)
    changes = []
    exact_means = dict(_rounded_means(context))
    member_order_by_path = dict(
        _member_orders(document.value, (), context, format_key_of(document.value) or "1.0")
    )
    if exact_means:
        changes.append(f"{plural(len(exact_means), 'score')} set to the exact mean of the seeds")
    if member_order_by_path:
        changes.append(
            f"members {_objects_text(list(member_order_by_path))} put in the order of the format"
        )
    if exact_means or member_order_by_path:
        raw = document.text.encode()
        located = parse_document(raw, document.path, document.name, spans=True)
        after = _Editor(located, exact_means, member_order_by_path).text()
    schema = _missing_schema_path(context, layout)
    if schema is not None:
        after = _with_schema(after, schema)
        changes.append(f"{quoted(SCHEMA_MEMBER)} added: {quoted(schema)}")
    if not after.endswith("\n"):
        after += "\n"
        changes.append("newline added at the end")
    refusal = _unchanged_reason(context, layout)
    if refusal:
        return Fixed(document.name, before, before, left=refusal if changes else "")
    return Fixed(document.name, before, after, tuple(changes))


def is_fixable(path: Path, errors: Iterable[Finding]) -> bool:
    """Whether `--fix` would remove findings of the family `arithmetic`; nothing is written."""
    if not any(finding.rule in FILE_RULES["arithmetic"] for finding in errors):
        return False  # of what --fix repairs, only rounded means can be errors
    repaired = fixed_file(path, Checker(()))
    if not repaired.changes:
        return False
    checker = Checker(select(["arithmetic"], []))
    findings_before, findings_after = (
        checker.check_bytes(text.encode(), path, str(path)).findings
        for text in (repaired.before, repaired.after)
    )
    return len(findings_after) < len(findings_before)


def _objects_text(paths: list[KeyPath]) -> str:
    """Return words for the objects at these paths: the first, and how many others there are."""
    first_place = f"in {quoted('/'.join(map(str, paths[0])))}" if paths[0] else "at the top level"
    return (
        f"{first_place} and in {plural(len(paths) - 1, 'other object')}"
        if paths[1:]
        else first_place
    )


def _unchanged_reason(context: Context, layout: Layout) -> str:
    """Return why the bytes of a file must not change; "" if they may."""
    if context.is_official:
        return "since official files must keep their bytes"
    if ENTRY_MEMBER in context.root:
        return (
            "since an upgraded file contains the file of format 1.0: correct that file, and "
            "upgrade the corrected file"
        )
    model = context.model_id
    if (
        layout.audits is not None
        and model.strip(".")
        and re.fullmatch(MODEL_ID_PATTERN, model)
        and any((layout.audits / model).glob("*.json"))
    ):
        return "since changed bytes would need another audit"
    return ""


def _rounded_means(context: Context) -> Iterator[tuple[KeyPath, str]]:
    """Yield the path and the exact JSON value of each mean that was rounded unlike its seeds."""
    seed_claims = context.seed_claims
    reported_by_path = (
        {claim.path: claim.reported for claim in context.claims} if seed_claims else {}
    )
    for claim in seed_claims:
        path: KeyPath = ("results", claim.regime, claim.task.id)
        reported = reported_by_path.get(path)
        if reported is None:
            continue
        for metric_field, metric in METRIC_BY_FIELD.items():
            if (
                max(getattr(seed.width, metric_field) for seed in claim.seed_triples)
                > UNROUNDED_HALF_WIDTH
            ):
                continue
            seeds = [getattr(seed.value, metric_field) for seed in claim.seed_triples]
            mean = math.fsum(seeds) / len(seeds)
            if _is_rounded(getattr(reported.value, metric_field), mean):
                yield (*path, metric), repr(mean)


def _is_rounded(reported: float, mean: float) -> bool:
    """Whether a reported number is the mean, rounded to as many decimals as the number has."""
    decimals = -int(Decimal(repr(reported)).as_tuple().exponent)
    half_width = 0.5 * 10.0**-decimals + UNROUNDED_HALF_WIDTH
    return (
        REPAIRED_DECIMALS_MIN <= decimals < UNROUNDED_DECIMALS
        and UNROUNDED_HALF_WIDTH < abs(mean - reported) <= half_width
    )


def _member_orders(
    members: Any,
    path: KeyPath,
    context: Context,
    version: str,
) -> Iterator[tuple[KeyPath, list[str]]]:
    """Yield the path of each object whose members are out of order, with their right order."""
    if not isinstance(members, dict):
        return
    known_order = _format_order(path, context, version)
    ordered_keys = [name for name in known_order if name in members]
    ordered_keys += [name for name in members if name not in set(known_order)]
    if ordered_keys != list(members):
        yield path, ordered_keys
    for name, member in members.items():
        yield from _member_orders(member, (*path, name), context, version)


def _format_order(path: KeyPath, context: Context, version: str) -> tuple[str, ...]:
    """Return the order that the format prescribes for the members of the object at a path."""
    if path[:1] and path[0] in MEMBERS_BY_TASK:
        if len(path) <= 2:  # noqa: PLR2004 (member, regime)
            order = context.benchmark.regimes if len(path) == 1 else context.benchmark.task_ids
            return tuple(order)
        path = (path[0], "", "", *path[3:])  # so that all cells share one entry of the cache
    return known_members(path, version)


class _Editor:
    """Builds a text again with some numbers replaced and some members in another order."""

    def __init__(
        self,
        document: Document,
        new_numbers: Mapping[KeyPath, str],
        member_order_by_path: Mapping[KeyPath, list[str]],
    ) -> None:
        self.source, self.spans = document.text, document.known_spans or {}
        self.value = document.value
        self.new_numbers, self.member_order_by_path = new_numbers, member_order_by_path
        changed_paths = {*new_numbers, *member_order_by_path}
        self.rebuilt_paths = {path[:end] for path in changed_paths for end in range(len(path) + 1)}
        """The paths of changed values and of the objects that contain them; others are copied."""

    def text(self) -> str:
        """Return the new text."""
        root = self.spans[()]
        body = self._value((), self.value, root)
        return self.source[: root.start] + body + self.source[root.end :]

    def _value(self, path: KeyPath, value: Any, span: Span) -> str:
        """Return the new text of the value at a path."""
        if path in self.new_numbers:
            return self.new_numbers[path]
        if path not in self.rebuilt_paths or not isinstance(value, dict) or not value:
            return self.source[span.start : span.end]
        names = list(value)
        spans = {key: self.spans[(*path, key)] for key in names}
        members = {
            key: self.source[member_span.key : member_span.start]
            + self._value((*path, key), value[key], member_span)
            for key, member_span in spans.items()
        }
        # The text between members (commas, indents, line ends) stays in its place.
        ends = [span.start, *(spans[key].end for key in names)]
        begins = [*(spans[key].key for key in names), span.end]
        between = [self.source[a:b] for a, b in zip(ends, begins, strict=True)]
        ordered_members = [members[key] for key in self.member_order_by_path.get(path, names)]
        return between[0] + "".join(
            member + after for member, after in zip(ordered_members, between[1:], strict=True)
        )


def _missing_schema_path(context: Context, layout: Layout) -> str | None:
    """Return the relative path of the repository's schema for a file without `$schema`.

    Return None for a file with `$schema`, and where the repository has no such schema.
    """
    version = version_of(context.document.value)
    if SCHEMA_MEMBER in context.root or version is None:
        return None
    schema = layout.root / "schemas" / f"submission-{version}.schema.json"
    if not schema.is_file():
        return None
    return Path(os.path.relpath(schema, context.document.path.parent)).as_posix()


def _with_schema(text: str, schema: str) -> str:
    """Return a text with `$schema` as its first member, formatted like the member after it."""
    brace = text.index("{")
    first_key = text.index('"', brace)
    blank, colon = text[brace + 1 : first_key], text.find(":", first_key)
    after = text[colon + 1 : colon + 2]
    space = after if after == " " else ""
    member = f'"{SCHEMA_MEMBER}":{space}"{schema}",'
    return f"{text[: brace + 1]}{blank}{member}{blank or space}{text[first_key:]}"
