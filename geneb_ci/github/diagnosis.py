"""Compares a repository with the list of settings, and sets what is wrong."""

import enum
import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from geneb_ci.common.errors import Exit, UsageProblem
from geneb_ci.github.errors import UnexpectedReply, Unseen
from geneb_ci.github.observed import Observed
from geneb_ci.github.setting import Setting, Writer
from geneb_ci.github.settings import SETTINGS
from geneb_ci.render.plain import visible
from geneb_ci.render.table import Table, fitted

FORMAT = "1.0"


class SettingState(enum.StrEnum):
    """What is known of a setting."""

    FINE = "fine"
    WRONG = "wrong"
    UNSEEN = "unseen"
    """It cannot be read with this token, or no interface shows it."""


class Diagnosis(NamedTuple):
    """A setting as it was found."""

    setting: Setting
    state: SettingState
    actual: str = ""
    fix: str = ""


def diagnosed(seen: Observed, settings: Iterable[Setting] = SETTINGS) -> list[Diagnosis]:
    """Read every setting. Raises NotFound if there is no repository, or ForgeProblem."""
    _ = seen.repository  # a token or a name that is wrong is one error, not forty
    return [_diagnosis(seen, setting) for setting in settings]


def _diagnosis(seen: Observed, setting: Setting) -> Diagnosis:
    try:
        problem = setting.probe(seen)
    except (Unseen, UnexpectedReply) as error:  # one odd answer does not end the report
        return Diagnosis(setting, SettingState.UNSEEN, visible(error.message), error.fix)
    if problem is None:
        return Diagnosis(setting, SettingState.FINE)
    return Diagnosis(setting, SettingState.WRONG, visible(problem), setting.hand)


def exit_of(diagnoses: Iterable[Diagnosis]) -> Exit:
    """Return 11 if a setting is wrong, 3 if one could not be read, else 0."""
    states = {diagnosis.state for diagnosis in diagnoses}
    if SettingState.WRONG in states:
        return Exit.ERRORS
    return Exit.NOT_CHECKED if SettingState.UNSEEN in states else Exit.CLEAN


def as_text(repository: str, diagnoses: Sequence[Diagnosis], width: int) -> str:
    """Return the report for a terminal; settings that are fine are only counted."""
    lines: list[str] = []
    for diagnosis in diagnoses:
        if diagnosis.state is not SettingState.FINE:
            lines += [
                f"{diagnosis.state}: {diagnosis.setting.id}: {diagnosis.setting.expected}",
                f"  found: {diagnosis.actual}",
                f"  without it: {diagnosis.setting.against}",
                f"  fix: {diagnosis.fix}",
            ]
    counts = {
        state: sum(diagnosis.state is state for diagnosis in diagnoses) for state in SettingState
    }
    lines.append(
        f"{repository}: {len(diagnoses)} settings: {counts[SettingState.FINE]} fine, "
        f"{counts[SettingState.WRONG]} wrong, {counts[SettingState.UNSEEN]} not seen"
    )
    return fitted("\n".join(lines), width)


def as_json(repository: str, diagnoses: Sequence[Diagnosis]) -> str:
    """Return the report as JSON."""
    settings = [
        {
            "id": diagnosis.setting.id,
            "state": diagnosis.state.value,
            "expected": diagnosis.setting.expected,
            "against": diagnosis.setting.against,
            "found": diagnosis.actual,
            "fix": diagnosis.fix,
            "read": diagnosis.setting.read,
            "needs": diagnosis.setting.needs,
        }
        for diagnosis in diagnoses
    ]
    report = {"format": FORMAT, "repository": repository, "settings": settings}
    return json.dumps(report, indent=2) + "\n"


class AppliedSettings(NamedTuple):
    """What was done about one writer's settings."""

    ids: tuple[str, ...]
    sent: tuple[str, ...]
    """The requests that were sent, or would be."""
    error: str = ""


def apply(seen: Observed, diagnoses: Iterable[Diagnosis]) -> list[AppliedSettings]:
    """Set what is wrong and can be set by the token, each writer once; return what was done.

    A write without the right is noted, and the others go on.
    """
    by_writer: dict[Writer, list[str]] = {}
    for diagnosis in diagnoses:
        if diagnosis.state is SettingState.WRONG and diagnosis.setting.writer is not None:
            by_writer.setdefault(diagnosis.setting.writer, []).append(diagnosis.setting.id)
    return [_applied(seen, writer, ids) for writer, ids in by_writer.items()]


def _applied(seen: Observed, writer: Writer, ids: list[str]) -> AppliedSettings:
    before, error = len(seen.sent), ""
    try:
        writer(seen)
    except (UsageProblem, Unseen, UnexpectedReply) as refused:
        error = f"{refused.message}; {refused.fix}"
    return AppliedSettings(tuple(ids), tuple(seen.sent[before:]), error)


def table() -> str:
    """Return the list of settings as a Markdown table, for docs/setup.md."""
    columns = ("setting", "expected", "without it", "read by", "token", "set by")
    rows = [
        (
            f"`{setting.id}`", setting.expected, setting.against, f"`{setting.read}`",
            setting.needs, f"`{setting.written}`" if setting.written else f"hand: {setting.hand}",
        )
        for setting in SETTINGS
    ]  # fmt: skip
    return "\n".join(Table(columns, rows).markdown_lines())
