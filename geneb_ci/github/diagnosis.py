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
from geneb_ci.render.text import fitted

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
    found: str = ""
    fix: str = ""


def diagnosed(seen: Observed, settings: Iterable[Setting] = SETTINGS) -> list[Diagnosis]:
    """Read every setting. Raises NotFound if there is no repository, or ForgeProblem."""
    _ = seen.repository  # a token or a name that is wrong is one error, not forty
    return [_diagnosis(seen, one) for one in settings]


def _diagnosis(seen: Observed, setting: Setting) -> Diagnosis:
    try:
        found = setting.probe(seen)
    except (Unseen, UnexpectedReply) as error:  # one odd answer does not end the report
        return Diagnosis(setting, SettingState.UNSEEN, visible(error.message), error.fix)
    if found is None:
        return Diagnosis(setting, SettingState.FINE)
    return Diagnosis(setting, SettingState.WRONG, visible(found), setting.hand)


def exit_of(found: Iterable[Diagnosis]) -> Exit:
    """Return 11 if a setting is wrong, 3 if one could not be read, else 0."""
    states = {one.state for one in found}
    if SettingState.WRONG in states:
        return Exit.ERRORS
    return Exit.NOT_CHECKED if SettingState.UNSEEN in states else Exit.CLEAN


def as_text(repository: str, found: Sequence[Diagnosis], width: int) -> str:
    """Return the report for a terminal; settings that are fine are only counted."""
    lines: list[str] = []
    for one in found:
        if one.state is not SettingState.FINE:
            lines += [
                f"{one.state}: {one.setting.id}: {one.setting.expected}",
                f"  found: {one.found}",
                f"  without it: {one.setting.against}",
                f"  fix: {one.fix}",
            ]
    counts = {state: sum(one.state is state for one in found) for state in SettingState}
    lines.append(
        f"{repository}: {len(found)} settings: {counts[SettingState.FINE]} fine, "
        f"{counts[SettingState.WRONG]} wrong, {counts[SettingState.UNSEEN]} not seen"
    )
    return fitted("\n".join(lines), width)


def as_json(repository: str, found: Sequence[Diagnosis]) -> str:
    """Return the report as JSON."""
    settings = [
        {
            "id": one.setting.id,
            "state": one.state.value,
            "expected": one.setting.expected,
            "against": one.setting.against,
            "found": one.found,
            "fix": one.fix,
            "read": one.setting.read,
            "needs": one.setting.needs,
        }
        for one in found
    ]
    report = {"format": FORMAT, "repository": repository, "settings": settings}
    return json.dumps(report, indent=2) + "\n"


class Applied(NamedTuple):
    """What was done about one writer's settings."""

    ids: tuple[str, ...]
    sent: tuple[str, ...]
    """The requests that were sent, or would be."""
    error: str = ""


def apply(seen: Observed, found: Iterable[Diagnosis]) -> list[Applied]:
    """Set what is wrong and can be set by the token, each writer once; return what was done.

    A write without the right is noted, and the others go on.
    """
    by_writer: dict[Writer, list[str]] = {}
    for one in found:
        if one.state is SettingState.WRONG and one.setting.writer is not None:
            by_writer.setdefault(one.setting.writer, []).append(one.setting.id)
    return [_applied(seen, writer, ids) for writer, ids in by_writer.items()]


def _applied(seen: Observed, writer: Writer, ids: list[str]) -> Applied:
    before, error = len(seen.sent), ""
    try:
        writer(seen)
    except (UsageProblem, Unseen, UnexpectedReply) as refused:
        error = f"{refused.message}; {refused.fix}"
    return Applied(tuple(ids), tuple(seen.sent[before:]), error)


def table() -> str:
    """Return the list of settings as a Markdown table, for docs/setup.md."""
    rows = [
        "| setting | expected | without it | read by | token | set by |",
        "|---|---|---|---|---|---|",
    ]
    for one in SETTINGS:
        how = f"`{one.written}`" if one.written else f"hand: {one.hand}"
        rows.append(
            f"| `{one.id}` | {one.expected} | {one.against} | `{one.read}` | {one.needs} | {how} |"
        )
    return "\n".join(rows)
