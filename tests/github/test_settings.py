"""Every setting that a board needs: each is named when it is wrong, with its fix, and is set."""

import copy
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from geneb_ci.cli.main import main
from geneb_ci.github import errors
from geneb_ci.github.api import connect
from geneb_ci.github.settings import apply, diagnosis
from geneb_ci.github.settings.check import GUARD_RULE_TYPES
from geneb_ci.github.settings.client import SettingsClient
from geneb_ci.github.settings.diagnosis import SettingState
from geneb_ci.github.settings.required import SETTINGS, settings_table
from geneb_ci.init.new_repository import BoardAnswers, benchmark_bytes, repository_files
from geneb_ci.render.text import REPORT_LINES_MAX
from tests.gate import gated
from tests.github.broken_settings import BREAKS, KEYS, key_file, rule
from tests.github.conftest import IMPATIENT
from tests.github.history import Files
from tests.github.server import REPOSITORY, TOKEN
from tests.github.serving import serving
from tests.github.settings_server import PUBLIC, SettingsServer
from tests.paths import IMPORTABLE, ROOT
from tests.publish.hub import Hub

SPACE = "geneb/board"
GIVEN = BoardAnswers(REPOSITORY, SPACE, "@org/maintainers")
BY_HAND = {setting.id for setting in SETTINGS if not setting.apply}


def board_files() -> Files:
    result = repository_files(GIVEN, benchmark_bytes(None)) | {
        KEYS: json.dumps(key_file()).encode()
    }
    code = ("geneb_ci/", "reference_harness/", "leaderboard/src/")  # which no setting reads
    return {path: ("100644", raw) for path, raw in result.items() if not path.startswith(code)}


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    served = Hub()
    served.create(f"spaces/{SPACE}")
    yield served
    served.close()


@pytest.fixture(scope="module")
def files() -> Files:
    return board_files()


def observed(server: SettingsServer, space: str = SPACE) -> SettingsClient:
    env = {"GH_TOKEN": TOKEN, "GITHUB_API_URL": server.address}
    return SettingsClient(connect(REPOSITORY, env).connection, space)


def apply_all(server: SettingsServer) -> list[str]:
    """Set everything, and return the requests that were sent."""
    seen = observed(server)
    apply.set_wrong_settings(seen, diagnosis.diagnoses_of(seen))
    return seen.sent


@pytest.fixture(scope="module")
def whole(files: Files, hub: Hub) -> Iterator[SettingsServer]:
    """Serve a repository with every setting, by what `init --apply` writes."""
    with pytest.MonkeyPatch.context() as patch, serving(SettingsServer()) as server:
        patch.setattr(errors, "WAITING_LIMITS", IMPATIENT)
        patch.setenv("HF_ENDPOINT", hub.endpoint)
        assert isinstance(server, SettingsServer)
        server.push(files)
        apply_all(server)
        server.published_runs = 1
        yield server


STATE = (
    *("repository", "objects", "reports", "label_names", "rulesets", "environments", "policies"),
    *("variables", "secrets", "workflow_states", "runners", "owner_errors", "published_runs"),
    "writers",
    *("pushed", "permissions", "requests"),
)


@pytest.fixture
def sound(
    whole: SettingsServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[SettingsServer]:
    """Lend the repository, and restore it afterwards."""
    copied_state = {name: copy.deepcopy(getattr(whole, name)) for name in STATE}
    monkeypatch.setattr(errors, "WAITING_LIMITS", IMPATIENT)
    monkeypatch.setenv("GH_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_API_URL", whole.address)
    whole.requests = []
    capsys.readouterr()
    yield whole
    for name, value in copied_state.items():
        setattr(whole, name, value)


IMPLIED = {
    "environment": {"environment", "environment-main"},
    "verdict-environment": {"verdict-environment", "verdict-environment-main"},
    "audit-environment": {"audit-environment", "audit-environment-main"},
    "merge-queue": {"merge-queue", "workflows"},
}
"""What else is wrong where one setting is."""


def doctor(capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(["doctor", "--github", REPOSITORY, *more])
    out, err = capsys.readouterr()
    return int(code), out, err


def test_every_setting_can_be_broken():
    assert list(BREAKS) == [setting.id for setting in SETTINGS]
    assert len(SETTINGS) > 30


def test_a_repository_with_every_setting(sound, capsys):
    code, out, err = doctor(capsys)
    count = len(SETTINGS)
    expected = f"{REPOSITORY}: {count} settings: {count} fine, 0 wrong, 0 not seen"
    *_, last, after = out.splitlines()
    assert (code, last, err) == (0, expected, "")
    assert after == f"next: geneb-ci triage --repo {REPOSITORY}"
    assert "neither AUDIT_FLAVOR nor AUDIT_RUNNER is set" in out
    assert sound.writes() == []
    assert apply_all(sound) == []


POLICY, BENCHMARK = "leaderboard/policy/policy.toml", "schemas/benchmark.json"


@pytest.mark.parametrize(
    ("path", "old", "new", "message"),
    [
        (
            POLICY,
            b"\ndrawn = 13 ",
            b"\ndrawn = 14 ",
            "drawn = 14 is more than the 13 tasks of GENEB-mini",
        ),
        (POLICY, b'"1shot"', b'"5shot"', "regimes names 5shot, and GENEB-mini has full, 10shot"),
        (POLICY, b"aborts = 3", b"aborts = 0", "aborts: Input should be greater than or equal"),
        (
            BENCHMARK,
            b'"MCC"',
            b'"Acc"',
            'metrics: found [\\"Acc\\", \\"Acc\\", \\"F1\\"]; expected',
        ),
    ],
)
def test_a_policy_that_does_not_go_with_the_benchmark(
    sound, files, capsys, path, old, new, message
):
    raw = files[path][1]
    assert old in raw
    sound.push(files | {path: ("100644", raw.replace(old, new, 1))})
    code, out, _ = doctor(capsys, "--format", "json")
    wrong = [setting for setting in json.loads(out)["settings"] if setting["state"] == "wrong"]
    assert (code, [wrong_setting["id"] for wrong_setting in wrong]) == (11, ["policy"])
    assert message in json.dumps(wrong)


@pytest.mark.parametrize(
    "setting", gated(SETTINGS, *SETTINGS[::3]), ids=lambda left_out: left_out.id
)
def test_a_broken_setting_is_named_and_set_and_nothing_else(setting, sound, files):
    before = settled(sound)
    BREAKS[setting.id](sound, files)
    seen = observed(sound, space="")
    diagnoses = diagnosis.diagnoses_of(seen)
    code, text = diagnosis.exit_code_of(diagnoses), diagnosis.as_text(REPOSITORY, diagnoses, 1000)
    named = {
        diagnosed.setting.id: diagnosed.state
        for diagnosed in diagnoses
        if diagnosed.state is not SettingState.FINE
    }
    assert sound.writes() == []
    if setting.id == "trusted-publisher":
        assert (code, named) == (3, {setting.id: "unseen"})
        assert f"fix: {setting.by_hand}; then: gh workflow run publish.yml" in text
    else:
        assert (code, named) == (11, dict.fromkeys(IMPLIED.get(setting.id, {setting.id}), "wrong"))
        assert f"wrong: {setting.id}: {setting.expected}" in text
        assert f"fix: {setting.by_hand}" in text
    seen.space = SPACE
    apply.set_wrong_settings(seen, diagnoses)
    assert bool(sound.writes()) == bool(setting.apply)
    if setting.apply:
        left = diagnosis.diagnoses_of(observed(sound))
        assert {diagnosed.state for diagnosed in left} == {SettingState.FINE}
        assert settled(sound) == before


def settled(server: SettingsServer) -> Any:
    """Return all settings; of labels and policies, order and ids do not count."""
    snapshot = server.snapshot()
    snapshot["label_names"].sort()
    snapshot["policies"] = {
        k: [member["name"] for member in v] for k, v in snapshot["policies"].items()
    }
    return snapshot


def test_a_new_repository_gets_what_a_token_may_set(files, hub, monkeypatch):
    monkeypatch.setattr(errors, "WAITING_LIMITS", IMPATIENT)
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    server = SettingsServer()
    with serving(server):
        server.push(files)
        wrong = [
            diagnosed.setting.id
            for diagnosed in diagnosis.diagnoses_of(observed(server))
            if diagnosed.state is SettingState.WRONG
        ]
        assert len(wrong) == 25
        assert not BY_HAND & set(wrong)
        apply_all(server)
        left = {
            diagnosed.setting.id: diagnosed.state
            for diagnosed in diagnosis.diagnoses_of(observed(server))
            if diagnosed.state is not SettingState.FINE
        }
    assert left == {"trusted-publisher": SettingState.UNSEEN}


def test_a_merge_queue_is_fine_where_workflows_run_in_it(sound):
    """The workflows of this version do."""
    next(iter(sound.rulesets.values()))["rules"].append({"type": "merge_queue"})
    diagnoses = diagnosis.diagnoses_of(observed(sound))
    assert {diagnosed.state for diagnosed in diagnoses} == {SettingState.FINE}


@pytest.mark.parametrize(
    ("pin", "state"),
    [(f"@{'a' * 40} # v9.0.0", SettingState.FINE), ("@v9", SettingState.WRONG)],
)
def test_dependabot_may_move_the_pins_of_workflows(pin, state, sound, files):
    path = ".github/workflows/publish.yml"
    raw = re.sub(rb"@[0-9a-f]{40} # v[0-9.]+", pin.encode(), files[path][1])
    assert raw != files[path][1]
    sound.push(files | {path: ("100644", raw)})
    (setting,) = (setting for setting in SETTINGS if setting.id == "workflows")
    assert [
        diagnosed.state for diagnosed in diagnosis.diagnoses_of(observed(sound), [setting])
    ] == [state]


def test_main_takes_verdicts_from_the_app_of_the_board_alone(sound, hub, monkeypatch):
    """Whoever may write can set any status; only the App has the token that counts."""
    monkeypatch.setattr(errors, "WAITING_LIMITS", IMPATIENT)
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    (setting,) = (setting for setting in SETTINGS if setting.id == "main-verdict")

    def look() -> str | None:
        (diagnosed,) = diagnosis.diagnoses_of(observed(sound), [setting])
        return diagnosed.actual

    assert not look()
    sound.variables[""]["VERDICT_APP"] = "7"
    assert look() == "the status geneb/verdict counts from any account, not only from the App 7"
    apply_all(sound)
    assert not look()
    (check,) = rule(sound, "required_status_checks")["parameters"]["required_status_checks"]
    assert check == {"context": "geneb/verdict", "integration_id": 7}
    # An App that is gone: nothing would ever be merged.
    del sound.variables[""]["VERDICT_APP"]
    assert (
        look()
        == "the status geneb/verdict counts only from the App 7, which does not set this status"
    )
    apply_all(sound)
    assert not look()


def test_rules_that_do_not_apply_are_not_said_to_have_no_bypass(sound):
    """Without a rule nobody bypasses one: it was shown as fine."""
    sound.rulesets.clear()
    (setting,) = (setting for setting in SETTINGS if setting.id == "main-no-bypass")
    (diagnosed,) = diagnosis.diagnoses_of(observed(sound), [setting])
    assert (diagnosed.state, diagnosed.actual) == (
        SettingState.WRONG,
        f"none of the rules {', '.join(GUARD_RULE_TYPES)} applies to main",
    )


def test_reviewers_of_the_environment_are_kept(sound):
    reviewers = [{"type": "User", "reviewer": {"id": 3}}]
    sound.environments["hf-publish"] = {
        "name": "hf-publish",
        "protection_rules": [
            {"type": "required_reviewers", "reviewers": reviewers},
            {"type": "wait_timer", "wait_timer": 10},
        ],
        "deployment_branch_policy": None,
    }
    apply_all(sound)
    assert sound.environments["hf-publish"]["protection_rules"] == [
        {"type": "wait_timer", "wait_timer": 10},
        {"type": "required_reviewers", "reviewers": reviewers},
        {"type": "branch_policy"},
    ]


def test_what_a_token_may_not_read_is_named_with_what_it_takes(sound, capsys):
    sound.permissions = PUBLIC
    code, out, _ = doctor(capsys, "--format", "json")
    settings_by_id = {
        setting["id"]: setting
        for setting in json.loads(out)["settings"]
        if setting["state"] != "fine"
    }
    assert code == 3
    assert {setting["state"] for setting in settings_by_id.values()} == {"unseen"}
    assert set(settings_by_id) == {
        *("private-reports", "actions-enabled", "actions-allowed", "actions-pinned"),
        *("fork-approval", "token-reads", "token-approves-nothing", "hosted-runners"),
        *("no-stored-token", "main-no-bypass", "main-verdict-bypass", "environment-variable"),
        *("environment-no-token", "repository-variable", "space"),
    }
    assert [
        name for name, setting in settings_by_id.items() if setting["needs"] not in setting["fix"]
    ] == ["space"]


def test_a_hub_that_does_not_answer_is_not_a_missing_space(sound, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # the port of discard: nobody listens
    (setting,) = (setting for setting in SETTINGS if setting.id == "space")
    (diagnosed,) = diagnosis.diagnoses_of(observed(sound), [setting])
    assert (diagnosed.state, diagnosed.fix) == (SettingState.UNSEEN, "run the command again later")
    assert diagnosed.actual.startswith(f"the Hub did not show {SPACE}: ")


def test_a_token_that_may_only_read_is_told_what_it_cannot_set(sound, files):
    BREAKS["private-reports"](sound, files)
    BREAKS["labels-of-forms"](sound, files)
    sound.permissions = frozenset(
        permission for permission in sound.permissions if permission.endswith(":read")
    )
    sound.permissions |= {"administration:write"}
    seen = observed(sound)
    done = {
        applied.ids: bool(applied.error)
        for applied in apply.set_wrong_settings(seen, diagnosis.diagnoses_of(seen))
    }
    assert done == {("private-reports",): False, ("labels-of-forms",): True}


@pytest.mark.parametrize(
    ("token", "message"),
    [("wrong", "GitHub rejected the token (401)"), ("", "GH_TOKEN is not set")],
)
def test_a_token_that_is_wrong_is_one_error(token, message, sound, capsys, monkeypatch):
    monkeypatch.setenv("GH_TOKEN", token)
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    code, out, err = doctor(capsys)
    assert (code, out) == (2, "")
    assert message in err
    assert "fix:" in err
    assert sound.writes() == []


def test_a_repository_that_does_not_exist(sound, capsys):
    code = main(["doctor", "--github", "org/nowhere"])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert "org/nowhere: GitHub finds no such repository" in err
    assert sound.writes() == []


def test_the_report_fits_a_terminal_of_80_columns(hub, capsys, monkeypatch):
    monkeypatch.setattr(errors, "WAITING_LIMITS", IMPATIENT)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    server = SettingsServer()
    with serving(server):
        monkeypatch.setenv("GH_TOKEN", TOKEN)
        monkeypatch.setenv("GITHUB_API_URL", server.address)
        _, short, _ = doctor(capsys)
        code, out, err = doctor(capsys, "--all")
    assert (code, err) == (11, "")
    assert len(out.splitlines()) > 100
    assert len(short.splitlines()) < REPORT_LINES_MAX
    assert "main-linear" in short
    assert short.splitlines()[-2:] == out.splitlines()[-2:]
    assert [line for line in out.splitlines() if len(line) > 80 and " " in line.strip()] == []


def test_options_of_the_check_without_it(capsys):
    code = main(["doctor", "--format", "json"])
    assert code == 2
    assert "add --github OWNER/NAME" in capsys.readouterr().err


def test_the_labels_of_the_forms_are_those_that_are_created():
    forms = [
        yaml.safe_load(path.read_text("utf-8"))
        for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")
        if path.name != "config.yml"
    ]
    (setting,) = (setting for setting in SETTINGS if setting.id == "labels-of-forms")
    labels = sorted(label for form in forms for label in form["labels"])
    assert sorted(setting.required["labels"]) == labels


def test_the_page_has_the_table():
    page = Path(ROOT / "docs/maintainer/setup.md").read_text(encoding="utf-8")
    assert f"<!-- settings -->\n{settings_table()}\n<!-- /settings -->" in page


def test_a_missing_extra_is_named(tmp_path):
    """The same of `doctor`: tests/cli/test_plain_install.py."""
    code = (
        "import sys; sys.modules['github'] = None; sys.path.insert(0, sys.argv[1]);"
        "from geneb_ci.cli.main import main; sys.exit(main(sys.argv[2:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, IMPORTABLE, "init", "--repo", "a/b"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    message = (
        "geneb-ci: github is not installed, and this command needs it\n"
        "  fix: pip install 'geneb-ci[github]'\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)
