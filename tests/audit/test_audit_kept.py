"""What an audit kept is used again only if this audit wrote it and it follows from the rest."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.errors import AuditRefused
from geneb_ci.audit.record.statement import record_files
from geneb_ci.audit.rerun.fresh import FreshCommitment
from geneb_ci.audit.rerun.workspace import WorkFolder
from geneb_ci.audit.samples import TaskSample
from geneb_ci.audit.sampling.plan import commitment_text, json_text_of, read_commitment
from geneb_ci.audit.workflow import begin_audit, refuse_time_of_other_commitment
from geneb_ci.cli.main import main
from tests.audit.examples import task_plan
from tests.audit.file_place import GO, MODEL, TASKS, made, work_of
from tests.audit.installed import Installed
from tests.audit.place import repository
from tests.audit.recorded import (
    FIRST,
    SECOND,
    commitment,
    committed_at,
    plan_for,
    submission_bytes,
)

if TYPE_CHECKING:
    from subprocess import CompletedProcess

FILE = f"submissions/{MODEL}.json"
FRESH = ("--fresh", "fresh.csv", "--fresh-commitment", "fresh.json")
SCORES = f"tasks/{TASKS[0]}/rescored.json"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Lay out a place with a finished audit."""
    installation = made(tmp_path_factory.mktemp("audit"), tmp_path_factory.mktemp("scratch"))
    audit(installation, check=True)
    return installation


@pytest.fixture
def work(installed: Installed, tmp_path: Path) -> Iterator[Path]:
    """Return the work folder; afterwards it is as it was."""
    folder = work_of(installed)
    shutil.copytree(folder, tmp_path / "kept")
    yield folder
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "kept", folder)


def audit(installed: Installed, *options: str, check: bool = False) -> "CompletedProcess[str]":
    return installed.run("geneb_ci", "audit", FILE, *(options or ("--unsigned",)), *GO, check=check)


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def note(work: Path, name: str) -> None:
    """Write the digest of a file, as only its author should."""
    digests = work / "digests.json"
    document = json.loads(digests.read_bytes())
    document["files"][name] = hashlib.sha256((work / name).read_bytes()).hexdigest()
    digests.write_text(json.dumps(document), encoding="utf-8")


def entries(work: Path) -> dict[str, Any]:
    return {path.parent.name: path.read_bytes() for path in work.glob("tasks/*/embedded.json")}


@pytest.mark.parametrize("name", ["outcome.json", SCORES, f"tasks/{TASKS[1]}/embedded.json"])
def test_a_result_that_was_edited_is_refused_by_name(
    installed: Installed, work: Path, name: str
) -> None:
    if name == SCORES:
        (work / "outcome.json").unlink()
    with (work / name).open("a", encoding="utf-8") as stream:
        stream.write("\n")
    done = audit(installed, "--key", "key.pem")
    assert done.returncode == 11
    assert f"{work / name}: was changed after the audit wrote it" in done.stderr
    assert f"remove {work / name} and run the command again" in done.stderr
    assert not record_files(installed.root / "leaderboard" / "audits")


def test_an_outcome_from_elsewhere_is_not_used(installed: Installed, work: Path) -> None:
    """It has no digest here: the comparison is made again, and no task is rerun."""
    edit(work / "digests.json", '"outcome.json"', '"another.json"')
    edit(work / "outcome.json", '"order_dependent": false', '"order_dependent": true')
    before = entries(work)
    done = audit(installed)
    assert (done.returncode, "agrees: 2 tasks rerun" in done.stdout) == (0, True), done.stderr
    assert ": embedding" not in done.stderr
    assert entries(work) == before
    assert '"order_dependent": true' not in (work / "outcome.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '"order_dependent": false',
            '"order_dependent": true',
            "the result of the decoys of this outcome does",
        ),
        (
            '"flips": ',
            '"flips": 1',
            "the comparison of this outcome does not follow from the plan and the scores",
        ),
        ('"reason": "drawn"', '"reason": "earlier"', "the plan of this outcome does not follow"),
    ],
)
def test_an_outcome_that_does_not_follow_is_refused(
    installed: Installed, work: Path, old: str, new: str, message: str
) -> None:
    edit(work / "outcome.json", old, new)
    note(work, "outcome.json")
    done = audit(installed)
    assert (done.returncode, f"{work / 'outcome.json'}: {message}" in done.stderr) == (11, True), (
        done.stderr
    )


def test_an_outcome_without_its_plan_is_refused(installed: Installed, work: Path) -> None:
    (work / "plan.json").unlink()
    done = audit(installed)
    assert (done.returncode, "its plan" in done.stderr) == (11, True), done.stderr


def test_scores_from_elsewhere_are_computed_again(installed: Installed, work: Path) -> None:
    (work / "outcome.json").unlink()
    edit(work / "digests.json", SCORES, "tasks/another/rescored.json")
    done = audit(installed)
    assert done.returncode == 0, done.stderr
    assert f"{TASKS[0]}: scoring" in done.stderr
    assert f"{TASKS[1]}: scoring" not in done.stderr


def test_the_file_is_compared_with_the_commitment(installed: Installed) -> None:
    committed = read_commitment(work_of(installed) / "commitment.json")
    installed.run("geneb_ci", "audit", "commit", FILE, "--output", "c.json")
    (installed.root / "other.json").write_bytes((installed.root / FILE).read_bytes() + b"\n")
    command = ("geneb_ci", "audit", "other.json", "--commitment", "c.json", "--unsigned", *GO)
    done = installed.run(*command, check=False)
    assert done.returncode == 11
    assert done.stderr.startswith("geneb-ci: other.json: its sha256 is ")
    assert f"expected {committed.submission_sha256} of the submission of {MODEL}" in done.stderr
    folder = installed.run("geneb_ci", "audit", "file", "submissions", *command[3:], check=False)
    assert (folder.returncode, "submissions: this is a folder" in folder.stderr) == (3, True)
    right = installed.run("geneb_ci", "audit", FILE, *command[3:], check=False)
    assert right.returncode == 0, right.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--copies", "32"),
            "this audit is finished; it ran with --copies 16, this call has --copies 32",
        ),
        (FRESH, "this audit is finished; its fresh set is not the one that fresh.json commits to"),
    ],
)
def test_a_finished_audit_has_the_options_that_it_is_asked_for(
    installed: Installed, work: Path, options: tuple[str, ...], message: str
) -> None:
    """Its outcome would hide that they had no effect; a plan is rerun with any of them."""
    fresh = FreshCommitment(
        schema_version="1.0",
        benchmark="0" * 64,
        tasks={TASKS[0]: 1},
        sha256="0" * 64,
    )
    (installed.root / "fresh.json").write_text(json_text_of(fresh), encoding="utf-8")
    (installed.root / "fresh.csv").touch()
    done = audit(installed, "--unsigned", *options)
    assert (done.returncode, message in done.stderr) == (11, True), done.stderr
    rerun = f"geneb-ci audit run {work}/plan.json {' '.join(options)} --unsigned"
    assert f"or rerun the same draw with {options[-2]}: {rerun}\n" in done.stderr


def test_a_draw_of_another_repository_is_left_out(installed: Installed, work: Path) -> None:
    """The cache is one for all repositories; a model of the same name may be in several."""
    other = work.parent / "0000"
    other.mkdir()
    raw = json.loads((work / "plan.json").read_bytes())
    raw["commitment"]["benchmark"] |= {"name": "practice", "sha256": "0" * 64}
    (other / "plan.json").write_text(json.dumps(raw), encoding="utf-8")
    for name in ("plan.json", "outcome.json"):
        (work / name).unlink()
    try:
        done = audit(installed)
    finally:
        shutil.rmtree(other)
    assert done.returncode == 0, done.stderr
    assert "left out, because this draw is for another benchmark, practice" in done.stderr
    assert task_plan(work / "plan.json").earlier == []


def folder_with(cache: Path, version: str, *names: str) -> tuple[Commitment, Path]:
    """Make the work folder of a version of a submission, with these files beside its commitment."""
    committed = commitment(submission_bytes(version))
    folder = cache / committed.sha256[:16]
    folder.mkdir()
    (folder / "commitment.json").write_text(commitment_text(committed), encoding="utf-8")
    for name in names:
        (folder / name).touch()
    return committed, folder


@pytest.mark.parametrize("shown", ["shown", "plan.json"])
def test_only_a_digest_that_was_shown_binds_the_next_call(tmp_path: Path, shown: str) -> None:
    dry, dry_folder = folder_with(tmp_path, "a dry run")
    other, other_folder = folder_with(tmp_path, "another dry run")
    refuse_time_of_other_commitment(dry, dry_folder)
    refuse_time_of_other_commitment(other, other_folder)
    (dry_folder / shown).touch()
    refuse_time_of_other_commitment(dry, dry_folder)
    with pytest.raises(AuditRefused) as caught:
        refuse_time_of_other_commitment(other, other_folder)
    assert caught.value.message == (
        f"--committed-at is the time of commitment {dry.sha256}, shown by an earlier call; since "
        f"then, submission changed, which gives commitment {other.sha256}"
    )


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (None, "the model registry has no entry for model"),
        ('schema_version = "1.0"\n', "does not say how to run it: the entry names no extractor"),
    ],
)
def test_a_run_that_has_to_be_declared_names_the_command_that_can(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    entry: str | None,
    message: str,
) -> None:
    file = repository(tmp_path, version="1.0")
    if entry is not None:
        models = tmp_path / "leaderboard/policy/models"
        models.mkdir(parents=True)
        (models / "model.toml").write_text(entry, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["audit", str(file), "--unsigned"]) in {2, 11}
    text = " ".join(capsys.readouterr().err.split())
    assert message in text
    assert text.endswith(
        f" --extractor is an option of `geneb-ci audit commit {file} --output C.json`; then run "
        f"`geneb-ci audit {file} --commitment C.json`"
    )


def test_a_plan_of_another_commitment_or_time_is_refused_with_its_reason(tmp_path: Path) -> None:
    raw = submission_bytes()
    plan = plan_for(raw, FIRST)
    (tmp_path / "plan.json").write_text(json_text_of(plan), encoding="utf-8")
    work = WorkFolder(tmp_path)
    assert begin_audit(work, plan.commitment, None, TaskSample()) == plan
    with pytest.raises(AuditRefused) as refused:
        begin_audit(work, plan.commitment, committed_at(SECOND), TaskSample())
    assert f"got --committed-at {committed_at(SECOND)}" in str(refused.value)
    assert refused.value.fix == "leave out --committed-at: a commitment has one draw"
    other = commitment(submission_bytes("other"))
    (tmp_path / "commitment.json").write_text(commitment_text(other), encoding="utf-8")
    with pytest.raises(AuditRefused) as refused:
        begin_audit(work, other, plan.committed_at, TaskSample())
    assert "expected the commitment of commitment.json beside it" in str(refused.value)
    assert "restore the plan of this audit" in refused.value.fix
