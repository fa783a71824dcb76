"""The workflows of a new board keep the rules of the house."""

import subprocess
from pathlib import Path

import pytest

from geneb_ci.github.settings.check_files import TOOLKIT_WORKFLOWS
from tests.house.test_workflows import PERMISSIONS
from tests.house.test_zizmor import zizmor
from tests.house.workflow_file import Workflow, read, rights
from tests.house.workflow_rules import RULES

# The workflows that it writes.


def workflows(root: Path) -> list[Workflow]:
    places = [*(root / ".github/workflows").iterdir(), *(root / ".github/actions").glob("*/*.yml")]
    return [read(path) for path in sorted(places)]


@pytest.mark.parametrize("rule", RULES, ids=lambda function: function.__name__)
def test_its_workflows_keep_the_rules_of_the_house(rule, written):
    workflow_list = workflows(written.root)
    assert len(workflow_list) > 4
    assert [message for workflow in workflow_list for message in rule(workflow)] == []


def test_its_jobs_have_exactly_the_permissions_of_the_house(written):
    rights_by_job = {
        workflow.name: {name: rights(job) for name, job in workflow.jobs.items()}
        for workflow in workflows(written.root)
        if not workflow.is_action
    }
    assert rights_by_job == {
        name: jobs for name, jobs in PERMISSIONS.items() if name not in TOOLKIT_WORKFLOWS
    }


def test_zizmor_finds_nothing_in_it(written):
    command = [zizmor(), "--offline", "--no-progress", "--color=never", "--persona", "auditor"]
    done = subprocess.run(
        [*command, ".github"], cwd=written.root, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (
        0,
        "No findings to report. Good job! (4 ignored)\n",
    ), done.stderr


def test_each_file_that_a_workflow_names_is_there(written):
    text = "\n".join(workflow.text for workflow in workflows(written.root))
    assert len([workflow for workflow in workflows(written.root) if not workflow.is_action]) == 4
    assert "tools/" not in text.replace("tools/install-locked", "").replace("tools/audit-job", "")
    for name in ("tools/install-locked", "requirements/action.txt", "tools/audit-job"):
        assert name in text
        assert (written.root / name).is_file()
