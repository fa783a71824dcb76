"""Situations of maintainers, each in a repository, with the line that `geneb-ci next` ends with.

Where the line can be carried out here, it is, and leads to another situation.
"""

import dataclasses
import datetime as dt
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from geneb_ci.audit.record.statement import COMMITTED_SUFFIX, STARTED_SUFFIX
from geneb_ci.audit.rerun.workspace import WorkFolder
from geneb_ci.audit.samples import OUTCOME_FILE
from geneb_ci.audit.sampling.plan import commitment_text, json_text_of
from geneb_ci.audit.workflow import COMMITMENT_FILE, PLAN_FILE, SHOWN_FILE, default_work_folder
from geneb_ci.cli.main import main
from geneb_ci.github.api import COMMITMENT_STATUS, GitHub
from geneb_ci.publish.manifest import MANIFEST_FILE, encode_manifest, manifest_of
from geneb_ci.publish.space import Space
from geneb_ci.situation import servers
from geneb_ci.situation.maintainer import (
    MAINTAINER_SITUATIONS,
    AuditCandidate,
    BoardState,
    KeyFacts,
    OpenAudit,
    WaitingPull,
    pull_command,
)
from geneb_ci.situation.table import Role, step_of
from tests.audit import unboxed
from tests.audit.file_place import MODEL as PRACTISED
from tests.audit.file_place import made
from tests.audit.linked_place import (
    AUDITS,
    KEYS,
    RAW,
    committed,
    files_of,
    name_of,
    recorded,
    started,
    withdrawn,
)
from tests.audit.place import repository as committable
from tests.audit.recorded import (
    FIRST,
    MODEL,
    committed_at,
    entry,
    outcome_of,
    pem_of,
    plan_for,
    repository,
    write_keys,
)
from tests.git import git, head_of
from tests.github.conftest import IMPATIENT
from tests.github.server import GitHubServer
from tests.github.world import DirectConnection, World
from tests.publish.hub import Hub
from tests.situation.steps import carry_out, step
from tests.small import CARD

PEM = "keys/audit.pem"
NAMES = "leaderboard/policy/keys.json"
ROW = f"submissions/{MODEL}.json"
DRAWN_AT = committed_at(FIRST)
SOON = dt.datetime.fromisoformat(DRAWN_AT) + dt.timedelta(hours=1)
LOOK = "geneb-ci next --as maintainer --repo OWNER/NAME --space OWNER/NAME"


def save(root: Path, message: str = "a change") -> str:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--allow-empty", "--message", message)
    return head_of(root)


def put_key(root: Path, seed: str = "maintainer") -> None:
    (root / "keys").mkdir(exist_ok=True)
    (root / PEM).write_bytes(pem_of(seed))
    (root / PEM).chmod(0o600)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = repository(tmp_path_factory.mktemp("board"))
    (root / "submissions/cards").mkdir()
    (root / f"submissions/cards/{MODEL}.md").write_text(CARD, encoding="utf-8")
    (root / ".gitignore").write_text("keys/\n", encoding="utf-8")
    put_key(root)
    git(root, "init", "--quiet", "--initial-branch", "main")
    save(root)
    return root


@pytest.fixture
def board(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a board of one row and one key, as the current folder."""
    root = tmp_path / "board"
    shutil.copytree(template, root, symlinks=True)
    monkeypatch.chdir(root)
    alone(monkeypatch, tmp_path / "cache")
    return root


def alone(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    for name in ("GENEB_AUDIT_KEY_FILE", "GH_TOKEN", "GITHUB_TOKEN", "GITHUB_REPOSITORY"):
        monkeypatch.delenv(name, raising=False)


def untouched(_: Path) -> None:
    """Leave the board as it is."""


def outside(root: Path) -> None:
    shutil.rmtree(root / "schemas")
    shutil.rmtree(root / "submissions")


def no_git(root: Path) -> None:
    shutil.rmtree(root / ".git")


def no_policy(root: Path) -> None:
    (root / NAMES).unlink()
    (root / PEM).unlink()
    save(root)


def no_keys(root: Path) -> None:
    write_keys(root, [])
    (root / ".github").mkdir()
    (root / ".github/geneb-ci.toml").write_text('repository = "org/board"\n', encoding="utf-8")
    (root / PEM).unlink()
    save(root)


def revoked(root: Path) -> None:
    write_keys(root, [entry(revoked_at="2026-11-01T00:00:00Z")])
    save(root)


def expired(root: Path) -> None:
    write_keys(root, [entry(valid_until="2026-11-01T00:00:00Z")])
    save(root)


def of_somebody_else(root: Path) -> None:
    put_key(root, "another")


def commitment(root: Path) -> None:
    committed(root, plan_for(RAW).commitment)


def merged_commitment(root: Path) -> str:
    commitment(root)
    return save(root, "Commit to an audit")


def start(root: Path) -> None:
    commitment(root)
    started(root, plan_for(RAW))
    save(root, "Draw")


def audited(root: Path, shift: float = 0.0) -> Path:
    start(root)
    return recorded(root, outcome_of(plan_for(RAW), RAW, shift))


def differing(root: Path) -> None:
    audited(root, 0.1)


def disputed(root: Path) -> None:
    audited(root, 0.1)
    save(root)


def confirmed(root: Path) -> None:
    audited(root)
    save(root)


def taken_back(root: Path) -> None:
    path = audited(root)
    save(root)
    withdrawn(path)
    save(root)


def erased(root: Path) -> None:
    """Delete a start in a commit: the record names it."""
    confirmed(root)
    (path,) = files_of(root, STARTED_SUFFIX)
    path.unlink()
    save(root, "Forget a draw")


def erased_here(root: Path) -> None:
    confirmed(root)
    (path,) = files_of(root, COMMITTED_SUFFIX)
    path.unlink()


def altered(root: Path) -> None:
    """Change a start in a commit: the record names it as it was."""
    confirmed(root)
    (path,) = files_of(root, STARTED_SUFFIX)
    path.write_bytes(path.read_bytes().replace(b"payload", b"Payload"))
    save(root, "Draw another")


def record_erased_here(root: Path) -> None:
    path = audited(root)
    save(root)
    path.unlink()


def forged(root: Path) -> None:
    """Change a record after it was signed."""
    path = audited(root)
    value = json.loads(path.read_bytes())
    value["signatures"][0]["sig"] = "A" * 86 + "=="
    path.write_text(json.dumps(value), encoding="utf-8")
    save(root)


def with_remote(root: Path) -> None:
    git(root.parent, "clone", "--quiet", "--bare", str(root), "board.git")
    git(root, "remote", "add", "origin", str(root.parent / "board.git"))
    git(root, "fetch", "--quiet", "origin")
    git(root, "branch", "--quiet", "--set-upstream-to", "origin/main")


def unmerged(root: Path) -> None:
    with_remote(root)
    confirmed(root)


def work(root: Path, *, is_drawn: bool = False, is_rerun: bool = False) -> None:
    """Leave the work folder of `audit FILE`, as it is after so many steps."""
    del root
    plan = plan_for(RAW)
    folder = WorkFolder(default_work_folder(plan.commitment, "audits"))
    folder.folder.mkdir(parents=True)
    folder.write_text(COMMITMENT_FILE, commitment_text(plan.commitment))
    folder.write_text(SHOWN_FILE, plan.commitment_sha256)
    if is_drawn:
        folder.write_text(PLAN_FILE, json_text_of(plan))
    if is_rerun:
        folder.write_result(OUTCOME_FILE, json_text_of(outcome_of(plan, RAW)))


def plan_here(root: Path) -> None:
    """Leave the files of an audit by single steps, without a signature."""
    plan = plan_for(RAW)
    (root / "C.json").write_text(commitment_text(plan.commitment), encoding="utf-8")
    (root / "PLAN.json").write_text(json_text_of(plan), encoding="utf-8")


def commitment_here(root: Path) -> None:
    (root / "C.json").write_text(commitment_text(plan_for(RAW).commitment), encoding="utf-8")


def no_row(root: Path) -> None:
    (root / ROW).unlink()
    save(root)


def wrong_row(root: Path) -> None:
    value = json.loads((root / ROW).read_bytes())
    value["meta"]["provenance"] = "verified"
    (root / ROW).write_text(json.dumps(value), encoding="utf-8")
    save(root)


def made_by_init(root: Path) -> None:
    (root / ".github").mkdir()
    (root / ".github/geneb-ci.toml").write_text('repository = "org/board"\n', encoding="utf-8")
    save(root)


class Case(NamedTuple):
    """A situation: how it comes about, the line that is expected, and what carrying it out does."""

    make: Callable[[Path], object]
    situation: str
    line: str
    leads_to: str = ""
    """The situation after the command was run; "" where it cannot be run here."""
    says: str = ""
    now: dt.datetime | None = None
    edit: str = ""


COMMIT = "git add --all -- {paths} && git commit -m 'Audit model'"
CASES = {
    "outside of a board": Case(outside, "no-board", "geneb-ci init . --repo OWNER/NAME"),
    "an archive of a board": Case(no_git, "git-refuses", "git status", says="not in a git"),
    "a folder with rows alone": Case(
        no_policy, "setup-incomplete", "geneb-ci init . --repo OWNER/NAME"
    ),
    "a policy without keys": Case(
        no_keys,
        "no-key",
        f"geneb-ci audit keygen --output {PEM} --owner NAME",
        "key-not-listed",
    ),
    "a revoked key": Case(
        revoked,
        "key-revoked",
        "geneb-ci audit keygen --output keys/audit-2.pem --owner 'a maintainer'",
        "key-not-listed",
        says=f"your key {PEM} is revoked",
    ),
    "a key of last year": Case(
        expired,
        "key-expired",
        "geneb-ci audit keygen --output keys/audit-2.pem --owner 'a maintainer'",
        "key-not-listed",
    ),
    "a key that is not listed": Case(
        of_somebody_else,
        "key-not-listed",
        f"${{EDITOR:-vi}} {NAMES}",
        "nothing-to-do",
        says=f'"keyid": "{KEYS[1]["keyid"]}"',
        edit=json.dumps({"keys": KEYS}),
    ),
    "a signed commitment": Case(
        commitment,
        "statement-not-committed",
        "git add --all -- {committed} && git commit -m 'Audit model'",
        "commitment-not-public",
    ),
    "a merged commitment": Case(
        merged_commitment,
        "commitment-not-public",
        f"geneb-ci audit publish submissions/{MODEL}.json",
        says="statuses on GitHub were not checked: pass --repo OWNER/NAME",
    ),
    "a commitment in a file": Case(
        commitment_here,
        "commitment-not-public",
        f"geneb-ci audit publish submissions/{MODEL}.json",
    ),
    "a commitment in a work folder": Case(
        work,
        "commitment-not-public",
        f"geneb-ci audit publish submissions/{MODEL}.json",
    ),
    "a draw": Case(
        start,
        "audit-not-run",
        f"geneb-ci audit {ROW} --committed-at {DRAWN_AT} --data DIR --key {PEM}",
        says="the sample of model is drawn, but not rerun yet",
        now=SOON,
    ),
    "a draw in a work folder": Case(
        lambda root: work(root, is_drawn=True),
        "audit-not-run",
        f"geneb-ci audit {ROW} --data DIR --key {PEM}",
        now=SOON,
    ),
    "a plan in a file": Case(
        plan_here,
        "audit-not-run",
        f"geneb-ci audit run PLAN.json --data DIR --key {PEM}",
        now=SOON,
    ),
    "a draw of three years ago": Case(
        start,
        "audit-overdue",
        f"geneb-ci audit {ROW} --committed-at {DRAWN_AT} --data DIR --key {PEM}",
        says="the audit of model is overdue: its sample was drawn 1187 d ago",
    ),
    "an outcome in a work folder": Case(
        lambda root: work(root, is_drawn=True, is_rerun=True),
        "record-not-signed",
        f"geneb-ci audit {ROW} --key {PEM}",
    ),
    "a record": Case(
        audited,
        "statement-not-committed",
        "git add --all -- {record} && git commit -m 'Audit model'",
        "nothing-to-do",
    ),
    "a record that differs": Case(
        differing,
        "record-differs",
        "git add --all -- {record} && git commit -m 'Audit model'",
        "row-disputed",
        says="an audit of model found other scores than the row claims",
    ),
    "a disputed row": Case(
        disputed, "row-disputed", f"geneb-ci explain {MODEL}", says="model is disputed"
    ),
    "a withdrawn audit": Case(taken_back, "nothing-to-do", LOOK, says="1 row, 1 to audit"),
    "a record on this machine": Case(
        unmerged,
        "statement-not-merged",
        "git switch --create audits && git push --set-upstream origin audits",
        "statement-in-review",
    ),
    "a start that was deleted in a commit": Case(
        erased,
        "history-broken",
        "git restore --source={before} -- {started}",
        "statement-not-committed",
        says="was deleted",
    ),
    "a commitment that was deleted here": Case(
        erased_here,
        "history-broken",
        "git restore --source={before} -- {committed}",
        "nothing-to-do",
        says=f"was deleted: {MODEL}/",
    ),
    "a start that was changed in a commit": Case(
        altered,
        "history-broken",
        "git restore --source={before} -- {started}",
        "statement-not-committed",
        says="was changed",
    ),
    "a record that was deleted here": Case(
        record_erased_here,
        "history-broken",
        "git restore --source={head} -- {erased}",
        "nothing-to-do",
        says="was deleted since the last commit",
    ),
    "a forged record": Case(
        forged,
        "record-broken",
        "geneb-ci audit verify {record}",
        says="does not verify: envelope",
    ),
    "a row with errors": Case(
        wrong_row, "row-refused", "geneb-ci check submissions", says="rows with errors: model"
    ),
    "no row": Case(no_row, "no-row", "geneb-ci new OWNER/MODEL"),
    "a board on this machine": Case(
        made_by_init,
        "not-on-github",
        "GH_TOKEN=... HF_TOKEN=... geneb-ci init --apply",
        says="create org/board as an empty repository on GitHub",
    ),
    "a confirmed row": Case(confirmed, "nothing-to-do", LOOK, says="1 row, 0 to audit"),
}


def filled(root: Path, line: str) -> str:
    """Return a line with the names that digests decide."""
    audits = root / AUDITS / MODEL
    others = (COMMITTED_SUFFIX, STARTED_SUFFIX, ".withdrawn.json")
    files = sorted(audits.glob("*.json")) if audits.is_dir() else []
    records = [path for path in files if not path.name.endswith(others)]
    plan = plan_for(RAW)
    own = f"{AUDITS}/{MODEL}"
    names = {
        "committed": f"{own}/{plan.commitment_sha256[:16]}{COMMITTED_SUFFIX}",
        "record": f"{AUDITS}/{name_of(records[0])}" if records else "",
        "started": "",
    }
    if "{before}" in line:
        deleted = git(root, "show", "--name-only", "--format=", "HEAD")
        names |= {"before": git(root, "rev-parse", "HEAD^")[:12], "started": deleted}
    if "{head}" in line:
        names["head"] = git(root, "rev-parse", "HEAD")[:12]
        names["erased"] = git(root, "ls-files", "--deleted")
    return line.format_map(names) if "{" in line.replace("${", "") else line


@pytest.mark.parametrize("name", CASES)
def test_next(name: str, board: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = CASES[name]
    case.make(board)
    options: dict[str, Any] = {"now": case.now} if case.now is not None else {}
    next_step = step(role="maintainer", **options)
    line = filled(board, case.line)
    assert (next_step.situation, next_step.command) == (case.situation, line), next_step.text()
    assert case.says in " ".join(next_step.lines), next_step.text()
    if not case.leads_to:
        return
    assert not any(carry_out(line, case.edit)), capsys.readouterr().err
    capsys.readouterr()
    again = step(role="maintainer", **options)
    assert again.situation == case.leads_to, again.text()


# With servers.


@pytest.fixture
def forge(monkeypatch: pytest.MonkeyPatch) -> GitHubServer:
    server = GitHubServer()
    server.default_head = server.commit({})
    connection = DirectConnection(server, IMPATIENT)
    monkeypatch.setattr(servers, "connect", lambda _: GitHub(connection))
    return server


@pytest.mark.parametrize(
    ("after", "situation", "says"),
    [
        (dt.timedelta(seconds=20), "round-not-due", "is due at "),
        (dt.timedelta(minutes=5), "round-due", "round that decides its sample has been published"),
    ],
)
def test_a_commitment_that_github_shows(board, forge, after, situation, says):
    commit = merged_commitment(board)
    moment = "2026-11-23T12:00:00Z"
    digest = plan_for(RAW).commitment_sha256
    forge.statuses[commit] = [
        {
            "context": COMMITMENT_STATUS,
            "description": digest,
            "state": "success",
            "created_at": moment,
        }
    ]
    now = dt.datetime.fromisoformat(moment) + after
    next_step = step(role="maintainer", repository="org/board", now=now)
    path = f"{AUDITS}/{MODEL}/{digest[:16]}{COMMITTED_SUFFIX}"
    assert next_step.situation == situation, next_step.text()
    assert next_step.command == (
        f"geneb-ci audit plan {path} --committed-at {moment} --shown-on {commit} "
        f"--output PLAN.json --key {PEM}"
    )
    assert says in " ".join(next_step.lines)


def test_a_commitment_that_github_does_not_show(board, forge):
    merged_commitment(board)
    assert forge.statuses == {}
    next_step = step(role="maintainer", repository="org/board")
    assert next_step.situation == "commitment-not-public"
    assert next_step.command.endswith("submissions/model.json --repo org/board")
    assert "not checked" not in next_step.text()


def test_a_pull_request_that_waits(board, tmp_path, monkeypatch):
    confirmed(board)
    world = World(tmp_path / "world")
    number = world.open({"README.md": ("100644", b"mine\n")}, title="Change the README")
    world.sweep()
    monkeypatch.setattr(servers, "connect", lambda _: world.github())
    monkeypatch.setattr(servers, "is_gh_usable", lambda: True)
    next_step = step(role="maintainer", repository="org/board")
    assert next_step.situation == "pull-request-waits", next_step.text()
    assert next_step.command == f"gh pr view {number} --repo org/board"
    assert f"wait for a maintainer: 1; the oldest is {number}" in next_step.lines[1]


def test_a_pull_request_whose_action_is_a_command_or_a_label():
    pull = WaitingPull(7, "b", "2 d", "review, then set the label audit", 1, is_to_be_audited=True)
    assert pull_command(pull, "org/board") == "gh pr edit 7 --repo org/board --add-label audit"
    verdict_pull = pull._replace(action="gh workflow run verdict.yml -f pr=7")
    without_gh = verdict_pull._replace(address="https://github.com/org/board")
    assert pull_command(without_gh, "org/board") == (
        "git fetch https://github.com/org/board pull/7/head && git diff HEAD...FETCH_HEAD"
    )
    assert pull_command(verdict_pull, "org/board") == f"{verdict_pull.action} --repo org/board"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    served = Hub()
    monkeypatch.setattr(
        servers, "Space", lambda name, token: Space(name, token=token, endpoint=served.endpoint)
    )
    monkeypatch.setattr(servers, "token_to_read", lambda _: None)
    yield served
    served.close()


@pytest.mark.parametrize(
    ("is_there", "is_behind", "situation", "line"),
    [
        (False, False, "board-not-published", "geneb-ci publish --space org/board"),
        (True, True, "board-behind", "geneb-ci publish --space org/board"),
        (True, False, "nothing-to-do", "geneb-ci next --as maintainer --repo OWNER/NAME"),
    ],
)
def test_the_published_board(board, hub, is_there, is_behind, situation, line):
    before = git(board, "rev-parse", "HEAD")
    confirmed(board)
    head = git(board, "rev-parse", "HEAD")
    manifest = manifest_of({}, before if is_behind else head)
    hub.create(
        "spaces/org/board", {MANIFEST_FILE: encode_manifest(manifest)} if is_there else {"a": b""}
    )
    next_step = step(role="maintainer", space="org/board")
    assert (next_step.situation, next_step.command) == (situation, line), next_step.text()


def test_nothing_is_left_where_all_was_looked_at(board, forge, hub):
    assert forge.pulls == {}
    confirmed(board)
    manifest = manifest_of({}, git(board, "rev-parse", "HEAD"))
    hub.create("spaces/org/board", {MANIFEST_FILE: encode_manifest(manifest)})
    next_step = step(role="maintainer", repository="org/board", space="org/board")
    assert next_step.command == ""
    assert next_step.text() == "maintainer: 1 row, 0 to audit\nnext: nothing\n"


# On a practice board, whose audits need no server.


@pytest.fixture(scope="module")
def practised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a board of GENEB-mini with one row."""
    installation = made(tmp_path_factory.mktemp("practice"), tmp_path_factory.mktemp("scratch"))
    root = installation.root
    put_key(root)
    write_keys(root, [entry()])
    (root / ".gitignore").write_text("keys/\n*.record.json\n", encoding="utf-8")
    git(root, "init", "--quiet", "--initial-branch", "main")
    save(root)
    return root


@pytest.fixture
def practice(practised, tmp_path, monkeypatch) -> Path:
    root: Path = tmp_path / "practice"
    shutil.copytree(practised, root, symlinks=True)
    monkeypatch.chdir(root)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    alone(monkeypatch, tmp_path / "cache")
    unboxed.install(monkeypatch.setattr)
    return root


@pytest.mark.nightly
@pytest.mark.usefixtures("practice")
def test_from_a_row_to_its_record(capsys):
    next_step = step(role="maintainer")
    file = f"submissions/{PRACTISED}.json"
    assert next_step.situation == "row-to-audit", next_step.text()
    assert next_step.command == f"geneb-ci audit {file} --practice --key {PEM}"
    assert next_step.lines[1].startswith(f"audit {PRACTISED} first: no audit confirms this row")
    assert carry_out(next_step.command) == [0], capsys.readouterr().err
    next_step = step(role="maintainer")
    assert next_step.situation == "statement-not-committed"
    carry_out(next_step.command)
    assert step(role="maintainer").situation == "nothing-to-do", step(role="maintainer").text()


@pytest.mark.nightly
@pytest.mark.usefixtures("practice")
def test_an_audit_that_was_not_signed_is_signed(capsys):
    assert main(["audit", f"submissions/{PRACTISED}.json", "--practice", "--unsigned"]) == 0
    capsys.readouterr()
    next_step = step(role="maintainer")
    assert next_step.situation == "record-not-signed"
    assert (
        next_step.command == f"geneb-ci audit submissions/{PRACTISED}.json --practice --key {PEM}"
    )
    assert carry_out(next_step.command) == [0], capsys.readouterr().err
    assert step(role="maintainer").situation == "statement-not-committed"


@pytest.mark.nightly
def test_a_practice_commitment_is_drawn_and_run(practice, capsys):
    words = ["--output", "C.json", "--key", PEM]
    assert main(["audit", "commit", f"submissions/{PRACTISED}.json", *words]) == 0
    capsys.readouterr()
    (practice / "C.json").unlink()
    carry_out(step(role="maintainer").command)
    next_step = step(role="maintainer")
    assert next_step.situation == "practice-not-drawn", next_step.text()
    assert next_step.command.endswith(f" --practice --output PLAN.json --key {PEM}")
    assert carry_out(next_step.command) == [0], capsys.readouterr().err
    carry_out(step(role="maintainer").command)
    now = dt.datetime.now(dt.UTC)
    late, in_time = (step(role="maintainer", now=now + dt.timedelta(days=days)) for days in (8, 0))
    assert (late.situation, in_time.situation) == ("audit-overdue", "audit-not-run")
    assert late.command == in_time.command == f"geneb-ci audit run PLAN.json --key {PEM}"
    assert carry_out(in_time.command) == [0], capsys.readouterr().err
    assert step(role="maintainer").situation == "statement-not-committed"


def test_a_row_that_can_be_audited(tmp_path, monkeypatch):
    root = tmp_path / "board"
    committable(root)
    write_keys(root, [entry()])
    git(root, "init", "--quiet", "--initial-branch", "main")
    save(root)
    monkeypatch.chdir(root)
    alone(monkeypatch, tmp_path / "cache")
    next_step = step(role="maintainer")
    assert next_step.situation == "row-to-audit", next_step.text()
    assert next_step.command == "geneb-ci audit submissions/model.json --data DIR --key KEY.pem"


def test_rows_with_warnings_are_audited_first_and_practice_is_drawn_at_once():
    """Decisions on states that take an audit of minutes to bring about; a night test does."""
    rows = [AuditCandidate("b", "submissions/b.json", 12.5), AuditCandidate("c", "c.json", 0)]
    refused = AuditCandidate("a", "submissions/a.json", 30.0, refusal="weights are not pinned")
    state = BoardState(
        row_count=4,
        has_answers=False,
        audit_candidates=(refused, *rows),
        key=KeyFacts("key.pem"),
        needs_data=False,
    )
    decision = step_of(Role.MAINTAINER, state, MAINTAINER_SITUATIONS)
    assert decision.command == "geneb-ci audit submissions/b.json --practice --key key.pem"
    assert decision.lines[1:4] == (
        "audit b first: no audit confirms this row; its warnings have the weight 12.5",
        "then c",
        "number of rows that cannot be audited: 1; the first is a: weights are not pinned",
    )
    begun = OpenAudit("b", "submissions/b.json", "0" * 64, statement="s.json", is_practice=True)
    decision = step_of(
        Role.MAINTAINER, dataclasses.replace(state, audits=(begun,)), MAINTAINER_SITUATIONS
    )
    assert decision.situation == "practice-not-drawn"
    assert decision.command == (
        "geneb-ci audit plan s.json --practice --output PLAN.json --key key.pem"
    )


OTHERWISE = {
    *("round-due", "round-not-due", "pull-request-waits", "board-not-published", "board-behind"),
    *("row-to-audit", "practice-not-drawn"),
}
LEFT_OTHERWISE = {
    *("row-to-audit", "practice-not-drawn", "record-not-signed", "audit-not-run", "audit-overdue"),
    *("board-not-published", "board-behind"),
}
"""Left by their command in the nightly tests above, and in tests/publish/test_commands.py."""


def test_every_situation_of_the_table_has_a_case_and_half_of_them_are_left():
    cases = {case.situation for case in CASES.values()} | OTHERWISE | {"statement-in-review"}
    names = [result.name for result in MAINTAINER_SITUATIONS]
    assert [name for name in names if name not in cases] == []
    left = {case.situation for case in CASES.values() if case.leads_to not in {"", case.situation}}
    assert len(names) >= 12
    assert 2 * len(left | LEFT_OTHERWISE) >= len(names), sorted(set(names) - left)
