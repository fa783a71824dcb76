"""What a board can do: works, not set up, or broken, with the cure; the list is the workflows'."""

import json
from collections.abc import Callable

import pytest

from geneb_ci.common.answers import ANSWERS_FILE
from geneb_ci.common.errors import UsageProblem
from geneb_ci.github.settings.apply import GUARD_RULESET
from geneb_ci.github.settings.diagnosis import SettingState, diagnoses_of
from geneb_ci.github.settings.features import FeatureState, features_of, settings_of_jobs
from geneb_ci.init.new_repository import BoardAnswers, refuse_organisation
from tests.github.broken_settings import KEYS, changed, key_file, put
from tests.github.history import Files
from tests.github.server import REPOSITORY
from tests.github.settings_server import PERMISSIONS, SettingsServer
from tests.github.test_settings import (
    SPACE,
    apply_all,
    doctor,
    files,
    hub,
    observed,
    sound,
    whole,
)
from tests.house.workflow_file import FOLDER

__all__ = ["files", "hub", "sound", "whole"]
WORKS, BROKEN = FeatureState.WORKS, FeatureState.BROKEN
CHOICE = FeatureState.NOT_SET_UP
RESOURCE = {"HF_OIDC_RESOURCE": "spaces/geneb/board"}
HUB = {"AUDIT_FLAVOR": "l4x1", "AUDIT_PROBED": "level 2"}
Break = Callable[[SettingsServer, Files], None]
FLOW = ".github/workflows/{}.yml".format


def ready(server: SettingsServer, **variables: str) -> None:
    """Let audits run as Jobs of the Hub, with every secret."""
    server.variables[""] = RESOURCE | HUB | variables
    server.secrets["geneb-audit"] = {"AUDIT_KEY", "HF_JOBS_TOKEN", "AUDIT_TOKEN"}


def without(name: str) -> Break:
    return lambda server, _: server.secrets["geneb-audit"].discard(name)


def app_without_account(server: SettingsServer, _files: Files) -> None:
    server.variables[""]["VERDICT_APP"] = "7"
    server.secrets["geneb-verdict"].add("VERDICT_APP_KEY")


def alone(server: SettingsServer, _files: Files) -> None:
    server.writers = ["maintainer"]


def off(server: SettingsServer, _files: Files) -> None:
    server.objects[PERMISSIONS]["enabled"] = False


CASES: dict[str, tuple[Break, str, FeatureState, str, str]] = {
    "no key": (
        without("AUDIT_KEY"),
        "audits",
        BROKEN,
        "AUDIT_KEY of the environment geneb-audit",
        "gh secret set AUDIT_KEY --env geneb-audit",
    ),
    "no key of the App": (
        lambda server, _: server.variables.update({"geneb-audit": {"AUDIT_APP": "Iv23x"}}),
        "audits",
        BROKEN,
        "the variable AUDIT_APP names an App, but its key AUDIT_APP_KEY is not stored",
        "gh variable delete AUDIT_APP --env geneb-audit; geneb-ci init --app",
    ),
    "no key of the App of verdicts": (
        lambda server, _: server.variables[""].update(VERDICT_APP="7", VERDICT_BOT="9"),
        "verdicts",
        BROKEN,
        "the variable VERDICT_APP names an App, but its key VERDICT_APP_KEY is not stored",
        "gh variable delete VERDICT_APP; geneb-ci init --apply",
    ),
    "no account of the App of verdicts": (
        app_without_account,
        "verdicts",
        BROKEN,
        "the variable VERDICT_BOT is not set, expected the account id of the App 7",
        "gh variable set VERDICT_BOT",
    ),
    "no token of the Hub": (
        without("HF_JOBS_TOKEN"),
        "audits",
        BROKEN,
        "HF_JOBS_TOKEN",
        "gh secret set HF_JOBS_TOKEN --env geneb-audit",
    ),
    "no probe of a Job": (
        put("variables", "", RESOURCE | {"AUDIT_FLAVOR": "l4x1"}),
        "audits",
        FeatureState.NOT_TRIED,
        "it is unknown whether the sandbox works in such a Job",
        "geneb-ci doctor --github org/board --hub-job",
    ),
    "no machine": (
        put("variables", "", RESOURCE),
        "audits",
        CHOICE,
        "neither AUDIT_FLAVOR nor AUDIT_RUNNER is set",
        "gh variable set AUDIT_FLAVOR",
    ),
    "no environment of audits": (
        put("environments", "geneb-audit", None),
        "audits",
        BROKEN,
        "no environment geneb-audit",
        "run geneb-ci init --apply, which makes the environment",
    ),
    "no key that counts": (
        changed(KEYS, json.dumps(key_file() | {"keys": []}).encode()),
        "audits",
        BROKEN,
        "keys.json has no key that may sign",
        "geneb-ci audit keygen",
    ),
    "no label": (
        lambda server, _: server.label_names.remove("audit"),
        "audits",
        BROKEN,
        "the label audit does not exist",
        "gh label create audit",
    ),
    "no workflow": (
        changed(FLOW("audit"), None),
        "audits",
        CHOICE,
        "main has no .github/workflows/audit.yml",
        "run geneb-ci init, which writes this file",
    ),
    "stopped by GitHub": (
        put("workflow_states", FLOW("verdict"), "disabled_inactivity"),
        "verdicts",
        BROKEN,
        "verdict.yml (state: disabled_inactivity)",
        "gh workflow enable verdict.yml",
    ),
    "disabled by a maintainer": (
        put("workflow_states", FLOW("verdict"), "disabled_manually"),
        "verdicts",
        CHOICE,
        "a maintainer disabled .github/workflows/verdict.yml",
        "to enable the workflow again",
    ),
    "Actions off": (off, "verdicts", BROKEN, "Actions are off", "allow Actions"),
    "no Space named": (
        put("variables", "hf-publish", {}),
        "publishing",
        BROKEN,
        "the variable HF_OIDC_RESOURCE",
        "geneb-ci init --apply --space",
    ),
    "no trust": (
        lambda server, _: setattr(server, "published_runs", 0),
        "publishing",
        CHOICE,
        "every run fails until the Space trusts this workflow",
        "branch main, workflow publish.yml",
    ),
    "one maintainer": (alone, "merging", BROKEN, "only maintainer may write", "--alone --force"),
}
"""Broken state: what breaks it, the feature, its state, and words of the reason and of the cure."""


@pytest.mark.parametrize("name", CASES)
def test_each_broken_state_is_named_with_its_cure(name, sound, files):
    broken, feature, state, because, fix = CASES[name]
    ready(sound)
    broken(sound, files)
    if name == "no Space named":
        sound.variables[""] = HUB
    features_by_name = {feature.name: feature for feature in features_of(observed(sound))}
    assert (features_by_name[feature].state, because in features_by_name[feature].reason) == (
        state,
        True,
    ), features_by_name
    assert fix in features_by_name[feature].fix
    others = {
        feature_found.state
        for feature_found in features_by_name.values()
        if feature_found.name != feature
    }
    assert name == "Actions off" or others == {WORKS}
    assert sound.writes() == []


def test_a_board_with_everything_works(sound, capsys):
    ready(sound)
    code, out, err = doctor(capsys)
    weaker = "all who can write can set the status; to allow only an App: geneb-ci init --app"
    lines = [f"verdicts: works: {weaker}", "merging: works", "publishing: works", "audits: works"]
    assert (code, out.splitlines()[:4], err) == (0, lines, "")
    # Broken is an exit code of its own kind; what nobody set up is not.
    sound.secrets["geneb-audit"].discard("AUDIT_KEY")
    code, out, _ = doctor(capsys, "--format", "json")
    (audits,) = (feature for feature in json.loads(out)["features"] if feature["id"] == "audits")
    assert (code, audits["state"]) == (11, "broken, because")
    sound.variables[""] = RESOURCE
    assert doctor(capsys)[0] == 0


def test_what_is_left_to_do_by_hand_is_said_of_what_works(sound):
    ready(sound, AUDIT_FLAVOR="", AUDIT_RUNNER="gpu-box")
    sound.secrets["geneb-audit"] = {"AUDIT_KEY"}
    (audits,) = (feature for feature in features_of(observed(sound)) if feature.name == "audits")
    assert (audits.state, audits.reason) == (
        WORKS,
        "records are attached to comments; `geneb-ci audit propose` proposes them",
    )


def test_a_workflow_that_a_maintainer_disabled_stays_so(sound, capsys):
    """`init --apply` started it again, and doctor called it wrong."""
    sound.workflow_states[FLOW("audit")] = "disabled_manually"
    code, out, _ = doctor(capsys)
    assert (code, "wrong:" in out) == (0, False)


def test_a_maintainer_alone_bypasses_on_pull_requests_alone(sound, files):
    """One approval, and nobody approves his own: such a board locked itself."""
    board_answers = BoardAnswers(REPOSITORY, SPACE, "@me", is_alone=True)
    sound.push(files | {ANSWERS_FILE: ("100644", board_answers.text.encode())})
    sound.rulesets.clear()
    sound.writers = ["me"]
    apply_all(sound)
    (guard,) = (ruleset for ruleset in sound.rulesets.values() if ruleset["name"] == GUARD_RULESET)
    actor = {"actor_id": 5, "actor_type": "RepositoryRole", "bypass_mode": "pull_request"}
    assert guard["bypass_actors"] == [actor]
    settings = {
        diagnosis.setting.id: diagnosis.state for diagnosis in diagnoses_of(observed(sound))
    }
    assert set(settings.values()) == {SettingState.FINE}
    (merging,) = (feature for feature in features_of(observed(sound)) if feature.name == "merging")
    assert (merging.state, "weaker" in merging.reason) == (WORKS, True)
    guard["bypass_actors"] = [actor | {"bypass_mode": "always"}]
    (wrong,) = (
        diagnosis
        for diagnosis in diagnoses_of(observed(sound))
        if diagnosis.state != SettingState.FINE
    )
    assert wrong.setting.id == "main-no-bypass"


@pytest.mark.parametrize(
    ("owner", "is_refused"),
    [
        ({"type": "Organization", "login": "Lab"}, True),
        ({"type": "User", "login": "Lab"}, False),
        ({"type": "Organization", "login": "other"}, False),
    ],
)
def test_an_organisation_is_no_code_owner(owner, is_refused):
    board_answers = BoardAnswers("lab/board", SPACE, "@lab", is_alone=True)
    if not is_refused:
        refuse_organisation(board_answers, owner)
        return
    with pytest.raises(UsageProblem, match="@lab is an organisation") as refused:
        refuse_organisation(board_answers, owner)
    assert "--maintainers @lab/TEAM" in refused.value.fix


def test_what_jobs_read_is_derived_from_their_files():
    """A secret or a variable that a workflow begins to read is asked for without a change here."""
    secrets_read = {
        (job.workflow, name, job.environment)
        for path in FOLDER.glob("*.yml")
        for job in settings_of_jobs(path.stem, path.read_text("utf-8"))
        for name in job.secrets
    }
    assert secrets_read == {
        ("audit", "AUDIT_APP_KEY", "geneb-audit"),
        ("audit", "AUDIT_KEY", "geneb-audit"),
        ("audit", "AUDIT_TOKEN", "geneb-audit"),
        ("audit", "HF_JOBS_TOKEN", "geneb-audit"),
        ("verdict", "VERDICT_APP_KEY", "geneb-verdict"),
    }
    jobs = settings_of_jobs("audit", (FOLDER / "audit.yml").read_text("utf-8"))
    assert [job.job for job in jobs] == ["open", "ready", "rerun", "deliver"]
    assert {"AUDIT_FLAVOR", "AUDIT_RUNNER"} <= jobs[0].variables
    assert {job.runs_on for job in jobs} == {"ubuntu-24.04", "[self-hosted, geneb-audit]"}
    steps = "    steps:\n      - run: x ${{ secrets.NEW }}\n"
    (more,) = settings_of_jobs("x", f"on: push\njobs:\n  a:\n{steps}")
    assert more.secrets == {"NEW"}
