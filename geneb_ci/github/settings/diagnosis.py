"""Compare a repository with the list of settings."""

import enum
import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from geneb_ci.common.errors import Exit
from geneb_ci.github.errors import UnexpectedReply, UnreadableSetting
from geneb_ci.github.settings import check, check_files, hub
from geneb_ci.github.settings.client import SettingsClient
from geneb_ci.github.settings.features import Feature, FeatureState
from geneb_ci.github.settings.required import SETTINGS, Setting
from geneb_ci.render.plain import visible
from geneb_ci.render.table import wrapped_text

REPORT_FORMAT = "1.0"
"""Version of the format of the report as JSON."""
_CHECK_BY_NAME: dict[str, check.SettingCheck] = {
    function.__name__: function
    for function in (
        check.json_objects_problem,
        check.repository_problem,
        check.runners_problem,
        check.disabled_workflows_problem,
        check.labels_problem,
        check.main_rules_problem,
        check.bypass_problem,
        check.verdict_status_problem,
        check.verdict_bypass_problem,
        check.environment_problem,
        check.environment_branches_problem,
        check.secret_problem,
        check.space_variable_problem,
        check.trusted_publisher_problem,
        check_files.merge_queue_problem,
        check_files.workflow_files_problem,
        check_files.code_owners_problem,
        check_files.code_owner_errors_problem,
        check_files.issue_forms_problem,
        check_files.missing_files_problem,
        check_files.placeholders_problem,
        check_files.policy_problem,
        check_files.audit_key_problem,
        check_files.private_keys_problem,
        hub.space_problem,
    )
}
"""The function that checks a setting, by its name in required.toml."""


class SettingState(enum.StrEnum):
    """Whether a setting has its required value, as far as the token can read it."""

    FINE = "fine"
    """It has its required value."""
    WRONG = "wrong"
    """It has another value."""
    UNSEEN = "unseen"
    """This token cannot read it, or no interface shows it."""


class Diagnosis(NamedTuple):
    """A setting, whether it has its required value, and if not, the fix."""

    setting: Setting
    state: SettingState
    actual: str = ""
    """The value that is wrong, or why no value can be read; "" if the setting is fine."""
    fix: str = ""


def diagnoses_of(client: SettingsClient, settings: Iterable[Setting] = SETTINGS) -> list[Diagnosis]:
    """Return the state of each setting. Raises NotFound without a repository, or GitHubProblem."""
    _ = client.repository  # a token or a name that is wrong is one error, not forty
    return [_diagnosis(client, setting) for setting in settings]


def _diagnosis(client: SettingsClient, setting: Setting) -> Diagnosis:
    """Return the state of a setting, and how to fix it."""
    try:
        problem = _CHECK_BY_NAME[setting.check](client, setting)
    except (UnreadableSetting, UnexpectedReply) as error:  # one odd answer does not end the report
        return Diagnosis(setting, SettingState.UNSEEN, visible(error.message), error.fix)
    if problem is None:
        return Diagnosis(setting, SettingState.FINE)
    return Diagnosis(setting, SettingState.WRONG, visible(problem), setting.by_hand)


def exit_code_of(diagnoses: Iterable[Diagnosis], features: Iterable[Feature] = ()) -> Exit:
    """Return 11 if a setting is wrong or a feature broken, 3 if one could not be read, else 0."""
    states = {diagnosis.state for diagnosis in diagnoses}
    if SettingState.WRONG in states or any(
        feature.state is FeatureState.BROKEN for feature in features
    ):
        return Exit.ERRORS
    return Exit.NOT_CHECKED if SettingState.UNSEEN in states else Exit.CLEAN


def as_text(
    repository: str,
    diagnoses: Sequence[Diagnosis],
    width: int,
    features: Sequence[Feature] = (),
    lines_max: int = sys.maxsize,
) -> str:
    """Return the report for a terminal; settings that are fine are only counted.

    If the report has more than `lines_max` lines, settings that are not fine are only named.
    """
    unfulfilled = [diagnosis for diagnosis in diagnoses if diagnosis.state is not SettingState.FINE]
    blocks = [
        [
            f"{diagnosis.state}: {diagnosis.setting.id}: {diagnosis.setting.expected}",
            f"  found: {diagnosis.actual}",
            f"  without it: {diagnosis.setting.consequence}",
            f"  fix: {diagnosis.fix}",
        ]
        for diagnosis in unfulfilled
    ]
    last_lines = [*_last_lines(repository, diagnoses, features)]
    text = wrapped_text("\n".join([*itertools.chain(*blocks), *last_lines]), width)
    if text.count("\n") <= lines_max:
        return text
    ids_by_state: dict[SettingState, list[str]] = {}
    for diagnosis in unfulfilled:
        ids_by_state.setdefault(diagnosis.state, []).append(diagnosis.setting.id)
    name_lines = [f"{state}: {', '.join(ids)}" for state, ids in ids_by_state.items()]
    return wrapped_text("\n".join([*name_lines, ALL_OPTION_HINT, *last_lines]), width)


ALL_OPTION_HINT = "--all prints what was found and expected, and the fixes"


def _last_lines(
    repository: str, diagnoses: Sequence[Diagnosis], features: Sequence[Feature]
) -> Iterator[str]:
    """Yield the features with their states, then the number of settings in each state."""
    counts = {
        state: sum(diagnosis.state is state for diagnosis in diagnoses) for state in SettingState
    }
    yield from (line for feature in features for line in feature.lines)
    yield (
        f"{repository}: {len(diagnoses)} settings: {counts[SettingState.FINE]} fine, "
        f"{counts[SettingState.WRONG]} wrong, {counts[SettingState.UNSEEN]} not seen"
    )


def as_json(
    repository: str, diagnoses: Sequence[Diagnosis], features: Sequence[Feature] = ()
) -> str:
    """Return the report as JSON."""
    settings = [
        {
            "id": diagnosis.setting.id,
            "state": diagnosis.state.value,
            "expected": diagnosis.setting.expected,
            "against": diagnosis.setting.consequence,
            "found": diagnosis.actual,
            "fix": diagnosis.fix,
            "read": diagnosis.setting.read,
            "needs": diagnosis.setting.needs,
        }
        for diagnosis in diagnoses
    ]
    feature_values = [
        {
            "id": feature.name,
            "state": feature.state.value,
            "because": feature.reason,
            "fix": feature.fix,
        }
        for feature in features
    ]
    report = {
        "format": REPORT_FORMAT,
        "repository": repository,
        "features": feature_values,
        "settings": settings,
    }
    return json.dumps(report, indent=2) + "\n"
