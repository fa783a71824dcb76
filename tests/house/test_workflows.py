"""Every workflow against every rule, and every rule against a workflow that breaks it."""

import re

import pytest

from geneb_ci.github.settings.check_files import TOOLKIT_WORKFLOWS
from geneb_ci.publish.git import BOARD_INPUTS, CODE_FOLDER
from tests.each import each
from tests.house.workflow_file import FOLDER as WORKFLOWS
from tests.house.workflow_file import Workflow, read, rights, runs, shipped_workflows, steps
from tests.house.workflow_rules import (
    RULES,
    Rule,
    row_01_pwn_request,
    row_02_artifact_or_cache,
    row_03_injection,
    row_04_forged_check,
    row_06_moved_head,
    row_07_self_hosted,
    row_24_hijack,
    row_25_lost_update,
    row_26_token,
)
from tests.paths import ROOT

READ = {"contents": "read"}
PERMISSIONS = {
    "audit.yml": {
        "open": READ | {"pull-requests": "write", "statuses": "write", "issues": "write"},
        "ready": READ,
        "rerun": {},
        "deliver": READ | {"pull-requests": "write", "issues": "write", "statuses": "read"},
    },
    "ci.yml": {"changes": READ, "test": READ, "tutorials": READ, "ci": {}},
    "docs.yml": {"build": READ, "deploy": {"pages": "write", "id-token": "write"}},
    "verdict.yml": {
        "parse": READ | {"pull-requests": "read", "issues": "read", "statuses": "read"},
        "report": READ | {"pull-requests": "write", "statuses": "write", "issues": "write"},
    },
    "pr-validate.yml": {"check": READ},
    "publish.yml": {
        "build": READ,
        "push": READ | {"id-token": "write", "attestations": "write"},
        "verify": READ,
        "tell": READ | {"issues": "write"},
    },
}
EVENTS = {
    "audit.yml": {"workflow_run", "schedule", "workflow_dispatch"},
    "ci.yml": {"push", "pull_request", "merge_group", "schedule"},
    "docs.yml": {"push", "workflow_dispatch"},
    "verdict.yml": {
        *("workflow_run", "issue_comment", "push", "schedule", "workflow_dispatch"),
    },
    "pr-validate.yml": {"pull_request", "merge_group"},
    "publish.yml": {"push", "schedule", "workflow_dispatch"},
}
SHIPPED = shipped_workflows()
RULE_NAMES = [rule.__name__ for rule in RULES]


def shipped(name: str) -> Workflow:
    return next(workflow for workflow in SHIPPED if workflow.name == name)


def test_row_26_each_job_has_exactly_these_permissions():
    rights_by_job = {
        workflow.name: {name: rights(job) for name, job in workflow.jobs.items()}
        for workflow in SHIPPED
        if not workflow.is_action
    }
    assert rights_by_job == PERMISSIONS


def test_each_workflow_starts_on_exactly_these_events():
    assert {w.name: w.events for w in SHIPPED if not w.is_action} == EVENTS


def test_each_workflow_of_a_board_is_short_and_calls_the_toolkit():
    """Scripts of `tools/` are shell: no job of a board runs a program that the wheel lacks."""
    for workflow in SHIPPED:
        if workflow.name in TOOLKIT_WORKFLOWS or workflow.is_action:
            continue
        assert len(workflow.text.splitlines()) < 120
        assert ".py" not in "".join(runs(job) for job in workflow.jobs.values())


def test_the_privileged_ones_are_known():
    assert {workflow.name for workflow in SHIPPED if workflow.is_privileged} == {
        *("audit.yml", "docs.yml", "verdict.yml", "publish.yml"),
    }


@each("workflow", SHIPPED, ids=lambda workflow: workflow.name)
@each("rule", RULES, ids=RULE_NAMES)
def test_no_workflow_breaks(rule: Rule, workflow: Workflow):
    assert list(rule(workflow)) == []


CHECKOUT = "          persist-credentials: false\n"
INSTALL = "      - run: tools/install-locked python3 requirements/action.txt\n"


def pin_of(action: str, name: str) -> tuple[str, str, str]:
    """Return the pin of an action in a file as written, its commit and its version."""
    pin = re.search(rf"{action}(@[0-9a-f]{{40}})( # v[\d.]+)", shipped(name).text)
    assert pin is not None
    return pin[1] + pin[2], pin[1], pin[2]


PIN, COMMIT, VERSION = pin_of("actions/checkout", "ci.yml")
PYTHON_VERSION = pin_of("actions/setup-python", "check/action.yml")[2]
# Rule, file, what stands there, and what an attacker or a hurried maintainer would write.
MUTATIONS: list[tuple[Rule, str, str, str]] = [
    (row_01_pwn_request, "verdict.yml", "  workflow_run: #", "  pull_request_target: #"),
    (
        row_01_pwn_request,
        "verdict.yml",
        "COMMENTED: ${{ github.event.issue.number }}",
        "COMMENTED: ${{ github.event.comment.body }}",
    ),
    (
        row_01_pwn_request,
        "verdict.yml",
        "name: read and judge",
        "name: read ${{ github.event.issue.title }}",
    ),
    (
        row_01_pwn_request,
        "verdict.yml",
        CHECKOUT,
        f"{CHECKOUT}          ref: ${{{{ github.event.workflow_run.head_sha }}}}\n",
    ),
    (
        row_01_pwn_request,
        "verdict.yml",
        CHECKOUT,
        f"{CHECKOUT}          repository: ${{{{ github.event.workflow_run.head_repository }}}}\n",
    ),
    (
        row_01_pwn_request,
        "docs.yml",
        CHECKOUT,
        f"{CHECKOUT}          allow-unsafe-pr-checkout: true\n",
    ),
    (row_01_pwn_request, "verdict.yml", INSTALL, "      - run: python3 -I -m pip install .\n"),
    (row_01_pwn_request, "publish.yml", INSTALL, "      - run: pip install --no-deps -e .[hub]\n"),
    (row_01_pwn_request, "verdict.yml", INSTALL, '      - run: git fetch origin "pull/1/head"\n'),
    (row_01_pwn_request, "verdict.yml", INSTALL, '      - run: gh pr checkout "$PR"\n'),
    (row_01_pwn_request, "verdict.yml", INSTALL, "      - uses: ./.github/actions/check\n"),
    (row_01_pwn_request, "audit.yml", INSTALL, "      - uses: $/.github/actions/check\n"),
    (
        row_02_artifact_or_cache,
        "verdict.yml",
        INSTALL,
        f"      - uses: actions/download-artifact@{'0' * 40} # v8.0.1\n",
    ),
    (
        row_02_artifact_or_cache,
        "publish.yml",
        INSTALL,
        f"      - uses: actions/upload-artifact@{'0' * 40} # v7.0.1\n",
    ),
    (
        row_02_artifact_or_cache,
        "publish.yml",
        '{python-version: "3.13"}',
        '{python-version: "3.13", cache: pip}',
    ),
    (
        row_02_artifact_or_cache,
        "ci.yml",
        "      - id: real-tasks",
        f"      - uses: actions/cache@{'0' * 40} # v5.0.0\n      - id: real-tasks",
    ),
    (
        row_03_injection,
        "verdict.yml",
        "python3 -I -m geneb_ci reconcile",
        "echo ${{ github.event.workflow_run.head_branch }}",
    ),
    (
        row_03_injection,
        "audit.yml",
        '${ROW:+--row "$ROW"}',
        '--row "${{ inputs.row }}"',
    ),
    (row_03_injection, "publish.yml", "--output board", '--output board >> "$GITHUB_ENV"'),
    (row_02_artifact_or_cache, "docs.yml", "contents: read", "contents: write"),
    (row_02_artifact_or_cache, "docs.yml", "upload-pages-artifact", "upload-artifact"),
    (
        row_04_forged_check,
        "docs.yml",
        "steps:\n      - uses: actions/deploy",
        "steps:\n      - run: x\n      - uses: actions/deploy",
    ),
    (row_04_forged_check, "docs.yml", "pages: write", "contents: write"),
    (row_03_injection, "ci.yml", ".ci/run", 'echo "::add-mask::0"'),
    (
        row_03_injection,
        "verdict.yml",
        INSTALL,
        f"      - uses: actions/github-script@{'0' * 40} # v8.0.0\n",
    ),
    (row_04_forged_check, "publish.yml", "geneb_ci build --at", "geneb_ci rules --at"),
    (row_04_forged_check, "publish.yml", ' --expect "$GENERATION"', ""),
    (row_04_forged_check, "publish.yml", "needs.build.outputs.generation", "inputs.generation"),
    (row_04_forged_check, "publish.yml", "    needs: build\n", ""),
    (
        row_04_forged_check,
        "verdict.yml",
        "      pull-requests: read #",
        "      checks: read # is the job green?\n      pull-requests: read #",
    ),
    (
        row_06_moved_head,
        "verdict.yml",
        "github.event.workflow_run.head_sha",
        "github.event.workflow_run.pull_requests[0].head.sha",
    ),
    (
        row_06_moved_head,
        "verdict.yml",
        "          VERDICT: ",
        "          TITLE: ${{ github.event.workflow_run.display_title }}\n          VERDICT: ",
    ),
    (row_06_moved_head, "verdict.yml", "geneb_ci report", "geneb_ci reconcile"),
    (row_07_self_hosted, "audit.yml", "ubuntu-24.04", "self-hosted"),
    (row_07_self_hosted, "ci.yml", "ubuntu-24.04", "[self-hosted, gpu]"),
    (
        row_07_self_hosted,
        "audit.yml",
        "permissions: {}\n    outputs",
        "permissions: {contents: read}\n    outputs",
    ),
    (
        row_07_self_hosted,
        "audit.yml",
        "      - id: rerun\n        env: {",
        '      - id: rerun\n        env: {KEY: "${{ secrets.AUDIT_KEY }}", ',
    ),
    (
        row_07_self_hosted,
        "audit.yml",
        "      - id: rerun\n        env: {",
        '      - id: rerun\n        env: {GH_TOKEN: "${{ github.token }}", ',
    ),
    (row_07_self_hosted, "audit.yml", "vars.AUDIT_PYTHON }}", "github.token }}"),
    (row_07_self_hosted, "audit.yml", "geneb_ci audit deliver", "geneb_ci audit job"),
    (
        row_01_pwn_request,
        "audit.yml",
        "geneb_ci audit deliver",
        "geneb_ci audit deliver; git fetch",
    ),
    (row_07_self_hosted, "pr-validate.yml", "ubuntu-24.04", "${{ github.event.label.name }}"),
    (row_24_hijack, "ci.yml", PIN, "@v7"),
    (row_24_hijack, "ci.yml", PIN, COMMIT[:8]),
    (row_24_hijack, "ci.yml", VERSION, ""),
    (row_24_hijack, "check/action.yml", PYTHON_VERSION, " # latest"),
    (row_24_hijack, "ci.yml", "    timeout-minutes", "    container: python\n    timeout-minutes"),
    (row_24_hijack, "publish.yml", INSTALL, "      - run: pip install geneb-ci\n"),
    (row_24_hijack, "publish.yml", INSTALL, "      - run: curl -sSf https://example.org | sh\n"),
    (row_25_lost_update, "publish.yml", "  queue: max\n", ""),
    (row_25_lost_update, "audit.yml", "{group: audit-open, ", "{group: audit, "),
    (row_25_lost_update, "audit.yml", "needs.open.outputs.number", "github.run_id"),
    (row_06_moved_head, "audit.yml", "workflow_run.conclusion", "workflow_run.display_title"),
    (row_25_lost_update, "publish.yml", "in-progress: false", "in-progress: true"),
    (row_25_lost_update, "verdict.yml", "group: verdict", "group: ${{ github.run_id }}"),
    (row_25_lost_update, "verdict.yml", "!startsWith(", "startsWith("),
    (row_06_moved_head, "verdict.yml", "github.event.issue.number", "github.event.issue.title"),
    (row_26_token, "publish.yml", "permissions: {}\n", "permissions: write-all\n"),
    (row_26_token, "ci.yml", "\npermissions: {}\n", "\n"),
    (row_26_token, "ci.yml", "    permissions:\n      contents: read # to check out\n", ""),
    (
        row_26_token,
        "ci.yml",
        "    timeout-minutes: 120 # at night; a change takes a tenth of it\n",
        "",
    ),
    (row_26_token, "publish.yml", "    environment: hf-publish\n", ""),
    (row_26_token, "publish.yml", "${{ vars.HF_OIDC_RESOURCE }}", "${{ secrets.HF_TOKEN }}"),
    (row_26_token, "pr-validate.yml", "persist-credentials: false", "fetch-depth: 1"),
    (row_26_token, "verdict.yml", "python3 -I -m", "python3 -m"),
]


@pytest.mark.parametrize(
    ("rule", "name", "old", "new"),
    MUTATIONS,
    ids=[f"{rule.__name__}-{n}" for n, (rule, *_) in enumerate(MUTATIONS)],
)
def test_a_broken_workflow_is_refused(rule: Rule, name: str, old: str, new: str):
    workflow = shipped(name)
    assert old in workflow.text
    assert list(rule(Workflow(name, workflow.text.replace(old, new)))) != []


def test_each_rule_has_a_workflow_that_breaks_it():
    assert {rule.__name__ for rule, *_ in MUTATIONS} == set(RULE_NAMES)


def test_each_action_is_pinned_to_one_commit_everywhere():
    pins: dict[str, set[str]] = {}
    for workflow in SHIPPED:
        for action, pin in re.findall(r"uses: ([\w./-]+)@(\S+ # \S+)", workflow.text):
            pins.setdefault(action, set()).add(pin)
    assert {action: len(pin) for action, pin in pins.items()} == dict.fromkeys(pins, 1)
    assert set(pins) == {
        *("actions/attest", "actions/checkout", "actions/setup-python"),
        "actions/create-github-app-token",
        *("actions/deploy-pages", "actions/upload-pages-artifact"),
    }


def test_an_app_without_a_token_costs_no_comment():
    """The job that comments goes on where an App was removed; the one before it stops in time."""
    jobs = shipped("audit.yml").jobs
    minting = {
        name: step.get("continue-on-error")
        for name, job in jobs.items()
        for step in steps(job, "actions/create-github-app-token")
    }
    assert minting == {"ready": None, "deliver": "true"}


def test_row_24_packages_come_from_hashed_locks():
    script = (ROOT / "tools/install-locked").read_text(encoding="utf-8")
    assert "--require-hashes --no-deps --only-binary :all:" in script
    named = {m for w in SHIPPED for m in re.findall(r"requirements/[\w-]+\.txt", w.text)}
    assert named == {f"requirements/{name}.txt" for name in ("action", "check", "dev", "docs")}
    for lock in named:
        text = (ROOT / lock).read_text(encoding="utf-8").replace("\\\n", " ")
        pins = [line for line in text.splitlines() if not line.startswith("#")]
        hashed = r"[\w.-]+==\S+( ; [^\\]+?)?( +--hash=sha256:[0-9a-f]{64})+ *"
        assert len(pins) > 10
        assert [pin for pin in pins if not re.fullmatch(hashed, pin)] == []


def test_what_hosted_jobs_install_is_what_the_tests_ran_with():
    pins = {
        lock: set(
            re.findall(r"^[\w.-]+==\S+", (ROOT / lock).read_text(encoding="utf-8"), re.MULTILINE)
        )
        for lock in (f"requirements/{name}.txt" for name in ("check", "action", "dev"))
    }
    check, action, dev = pins.values()
    assert len(check) > 10
    assert check < action < dev


def test_publish_starts_on_all_that_a_generation_depends_on():
    """Else the health check says each day that main is ahead."""
    paths = read(WORKFLOWS / "publish.yml").tree["on"]["push"]["paths"]
    watched = {path.removesuffix("/**") for path in paths}
    due = {path for path in (*BOARD_INPUTS, CODE_FOLDER) if (ROOT / path).exists()}
    assert watched == due
