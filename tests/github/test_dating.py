"""Who waits for the beacon and tries commitments is found by the time that a server shows."""

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from geneb_ci.audit.record.keys import private_key
from geneb_ci.audit.sampling.plan import PracticeBeacon, TaskPlan
from geneb_ci.cli.main import main
from geneb_ci.github.verdict import checker, dating
from tests.audit.examples import ROUNDS, task_plan
from tests.audit.linked_place import committed, layout_of, recorded, started
from tests.audit.recorded import (
    FIRST,
    MODEL,
    committed_at,
    entry,
    key,
    outcome_of,
    plan_for,
    put,
    repository,
    submission_bytes,
    write_keys,
)
from tests.github.conftest import REGULAR, BoardCheckout
from tests.github.history import Files
from tests.small import BENCHMARK

RAISED = BENCHMARK.task_ids[0]
"""The task whose score is invented: it may not be drawn."""
NOW = "2026-11-20T08:30:00Z"


class Board:
    """A board on loopback, and the checkout of its maintainer."""

    def __init__(self, board_checkout: BoardCheckout, root: Path) -> None:
        self.place, self.root, self.commit = board_checkout, root, ""

    def push(self, suffix: str = ".committed.json", further: Files | None = None) -> str:
        """Have main be what the checkout is; of its audits, what ends so. Returns the commit."""
        self.place.files = {
            str(path.relative_to(self.root)): (REGULAR, path.read_bytes())
            for folder in ("schemas", "submissions", "leaderboard")
            for path in sorted((self.root / folder).rglob("*"))
            if path.is_file() and ("/audits/" not in str(path) or path.name.endswith(suffix))
        } | (further or {})
        self.place.base = self.place.server.commit(self.place.files, self.place.base)
        self.place.server.default_head = self.place.base
        return self.place.base

    def shows(self, commitment: str, at: str) -> None:
        """Have GitHub show a commitment since a time, on the commit that is named."""
        self.place.server.statuses[self.commit] = [
            {
                "context": "geneb/audit-commit",
                "state": "success",
                "description": commitment,
                "created_at": at,
            }
        ]

    def verdict(self) -> list[str]:
        """Propose the audits of the checkout; return the findings of the verdict."""
        folder = self.root / "leaderboard/audits"
        changes = {
            f"leaderboard/audits/{path.relative_to(folder)}": (REGULAR, path.read_bytes())
            for path in sorted(folder.rglob("*.json"))
            if f"leaderboard/audits/{path.relative_to(folder)}" not in self.place.files
        }
        verdict = self.place.verdict(self.place.pull(changes))
        return [finding["message"] for finding in verdict["findings"]]


@pytest.fixture
def board(
    board_checkout: BoardCheckout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> Iterator[Board]:
    root = repository(tmp_path / "maintainer")
    module = root / "submissions/extractors/model.py"
    module.parent.mkdir()
    module.write_bytes(b"an example")
    (root / "round.json").write_text(json.dumps({"round": FIRST, "signature": ROUNDS[FIRST]}))
    here = Path.cwd()
    monkeypatch.chdir(root)
    assert main(["audit", "keygen", "--output", "key.pem", "--owner", "a maintainer"]) == 0
    entry = json.loads(capsys.readouterr().out)
    write_keys(root, [entry | {"valid_from": "2023-01-01T00:00:00Z"}])
    yield Board(board_checkout, root)
    monkeypatch.chdir(here)


def unmerged(board: Board) -> str:
    """Have main be what the checkout is without its audits."""
    return board.push("nothing of the audits")


def tried(
    board: Board, *, named: bool = True, merge: Callable[[Board], str] = Board.push
) -> tuple[TaskPlan, bytes]:
    """Try commitments until the raised task is not drawn, with a round that is long public.

    The one that suits is signed, and `named` with the commit that `merge` returns, where a status
    may show it.
    """
    words = ["--committed-at", committed_at(FIRST), "--beacon-file", "round.json"]
    for number in count():
        raw = submission_bytes(f" {number}")
        (board.root / f"submissions/{MODEL}.json").write_bytes(raw)
        layout_of(board.root)
        assert main(["audit", "commit", f"submissions/{MODEL}.json", "--output", "c.json"]) == 0
        assert main(["audit", "plan", "c.json", "--output", "p.json", *words]) == 0
        if RAISED not in task_plan(board.root / "p.json").drawn:
            break
    committed(board.root, task_plan(board.root / "p.json").commitment, private(board))
    board.commit = merge(board)
    layout_of(board.root)
    words += ["--shown-on", board.commit] if named else []
    words += ["--key", "key.pem", "--output", "p.json", "--targeted", "0"]
    assert main(["audit", "plan", "c.json", *words]) == 0
    plan = task_plan(board.root / "p.json")
    assert RAISED not in plan.drawn
    return plan, raw


def private(board: Board):
    return private_key(board.root / "key.pem")


@pytest.mark.parametrize("shown", ["today", "never", "nowhere"])
def test_a_commitment_that_was_tried_after_the_beacon_is_refused(board, monkeypatch, shown):
    plan, raw = tried(board, named=shown != "nowhere")
    recorded(board.root, outcome_of(plan, raw), private(board))
    if shown == "today":
        board.shows(plan.commitment_sha256, NOW)
    monkeypatch.chdir(board.place.root)
    findings = board.verdict()
    assert findings
    expected = (
        "the record names no commit whose status shows the commitment of the record"
        if shown == "nowhere"
        else f"GitHub has no status of commit {board.place.base} with commitment"
    )
    assert all(f"dating: {expected}" in finding for finding in findings), findings
    # Where nobody asks the server, the lie passes: signed, linked, each step recomputed.
    monkeypatch.setattr(dating, "dating_errors", lambda *_: iter(()))
    assert board.verdict() == []


def test_a_commitment_that_github_showed_in_time_passes(board, monkeypatch):
    plan, raw = tried(board)
    recorded(board.root, outcome_of(plan, raw), private(board))
    board.shows(plan.commitment_sha256, plan.committed_at)
    monkeypatch.chdir(board.place.root)
    assert board.verdict() == []


def test_a_commitment_that_main_did_not_have_then_may_be_one_of_many(board, monkeypatch):
    """Many are published as statuses, and the one whose draw suits is merged afterwards."""
    plan, raw = tried(board, merge=unmerged)
    board.shows(plan.commitment_sha256, plan.committed_at)
    recorded(board.root, outcome_of(plan, raw), private(board))
    board.push()
    monkeypatch.chdir(board.place.root)
    findings = board.verdict()
    assert findings
    expected = f"dating: commit {board.commit[:12]} did not add the signed commitment"
    assert all(expected in finding for finding in findings), findings
    monkeypatch.setattr(dating, "_has_added", lambda *_: True)
    assert board.verdict() == []


def commitment_of(board: Board) -> Path:
    """Return the signed commitment."""
    (path,) = (board.root / "leaderboard/audits").glob("*/*.committed.json")
    return path


def placed_elsewhere(board: Board) -> str:
    """Merge what has the name of the commitment, in another folder."""
    path = f"schemas/{MODEL}/{commitment_of(board).name}"
    return board.push("nothing of the audits", {path: (REGULAR, b"x")})


def placed_empty(board: Board) -> str:
    """Merge what has the path of the commitment, with other content."""
    path = str(commitment_of(board).relative_to(board.root))
    return board.push("nothing of the audits", {path: (REGULAR, b"x")})


def later(board: Board) -> str:
    """Merge the commitment, and then something else."""
    board.push()
    return board.push(further={"notes.md": (REGULAR, b"later")})


def added_again(board: Board) -> str:
    """Merge the commitment, delete it, and merge it again."""
    board.push()
    unmerged(board)
    return board.push()


def merged_branch(board: Board) -> tuple[str, str]:
    """Merge a branch that adds the commitment; return its commit and that of the merge."""
    server, before = board.place.server, unmerged(board)
    side = board.push()
    merge = server.commit(board.place.files, before)
    server.merges[merge] = side
    board.place.base = server.default_head = merge
    return side, merge


@pytest.mark.parametrize(
    "merge",
    [placed_elsewhere, placed_empty, later, added_again, lambda board: merged_branch(board)[0]],
    ids=["another-folder", "other-content", "later", "added-again", "branch"],
)
def test_a_commit_that_did_not_add_the_commitment_to_main_dates_nothing(board, monkeypatch, merge):
    """One commitment with a status on each of several commits would have several draws."""
    plan, raw = tried(board, merge=merge)
    board.shows(plan.commitment_sha256, plan.committed_at)
    recorded(board.root, outcome_of(plan, raw), private(board))
    if merge in {placed_elsewhere, placed_empty}:
        board.push()
    monkeypatch.chdir(board.place.root)
    findings = board.verdict()
    assert findings
    expected = f"dating: commit {board.commit[:12]} did not add the signed commitment"
    assert all(expected in finding for finding in findings), findings
    assert all(finding.endswith("draw with --shown-on that commit") for finding in findings)


def test_a_merge_commit_that_added_the_commitment_dates_it(board, monkeypatch):
    plan, raw = tried(board, merge=lambda board: merged_branch(board)[1])
    board.shows(plan.commitment_sha256, plan.committed_at)
    recorded(board.root, outcome_of(plan, raw), private(board))
    board.push(further={"notes.md": (REGULAR, b"later")})
    monkeypatch.chdir(board.place.root)
    assert board.verdict() == []


def test_a_placeholder_on_main_is_no_commitment(board, monkeypatch):
    plan, raw = tried(board, merge=placed_elsewhere)
    board.shows(plan.commitment_sha256, plan.committed_at)
    recorded(board.root, outcome_of(plan, raw), private(board))
    monkeypatch.chdir(board.place.root)
    assert any("main lacks the signed commitment of the record" in text for text in board.verdict())


def test_a_practice_draw_is_refused_on_another_board(board, monkeypatch):
    plan, _ = tried(board)
    layout_of(board.root)
    for start in (board.root / "leaderboard/audits").glob("*/*.started.json"):
        start.unlink()
    beacon = PracticeBeacon(kind="practice", round=FIRST, value="0" * 64)
    foreseen = plan.model_copy(update={"beacon": beacon})
    started(board.root, foreseen, private(board), shown_on=board.commit)
    monkeypatch.chdir(board.place.root)
    (finding,) = board.verdict()
    assert (
        "dating: the sample was drawn by the practice beacon, which anybody can predict" in finding
    )
    monkeypatch.setattr(checker, "is_practice", lambda _sha256: True)
    assert board.verdict() == []


def test_what_names_nothing_is_not_merged(board, monkeypatch):
    raw = submission_bytes()
    write_keys(board.root, [entry()])
    put(board.root, outcome_of(plan_for(raw), raw), key())
    monkeypatch.chdir(board.place.root)
    board.push()
    (finding,) = board.verdict()
    assert "links: the statement does not list the earlier statements" in finding


def test_a_statement_that_names_what_is_not_there_is_not_merged(board, monkeypatch):
    plan, raw = tried(board)
    board.shows(plan.commitment_sha256, plan.committed_at)
    path = recorded(board.root, outcome_of(plan, raw), private(board))
    (start,) = path.parent.glob("*.started.json")
    start.unlink()
    monkeypatch.chdir(board.place.root)
    assert any(f"{MODEL}/{start.name} was deleted" in finding for finding in board.verdict())
