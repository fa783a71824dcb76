"""Who waits for the beacon and tries commitments is found by the time that a server shows."""

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from geneb_ci.audit.record.keys import private_key
from geneb_ci.audit.sampling.plan import Plan
from geneb_ci.cli.main import main
from geneb_ci.github.verdict import collect
from tests.audit.examples import ROUNDS, task_plan
from tests.audit.linked_place import committed, layout_of, recorded
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
from tests.github.conftest import REGULAR, Place
from tests.small import BENCHMARK

RAISED = BENCHMARK.task_ids[0]
"""The task whose score is invented: it may not be drawn."""
NOW = "2026-11-20T08:30:00Z"


class Board:
    """A board on loopback, and the checkout of its maintainer."""

    def __init__(self, place: Place, root: Path) -> None:
        self.place, self.root = place, root

    def push(self, suffix: str = ".committed.json") -> None:
        """Have main be what the checkout is; of its audits, what ends so."""
        self.place.files = {
            str(path.relative_to(self.root)): (REGULAR, path.read_bytes())
            for folder in ("schemas", "submissions", "leaderboard")
            for path in sorted((self.root / folder).rglob("*"))
            if path.is_file() and ("/audits/" not in str(path) or path.name.endswith(suffix))
        }
        self.place.base = self.place.server.commit(self.place.files, self.place.base)
        self.place.server.default_head = self.place.base

    def shows(self, commitment: str, at: str) -> None:
        """Have GitHub show a commitment since a time, on the head of main."""
        self.place.server.statuses[self.place.base] = [
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
def board(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> Iterator[Board]:
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
    yield Board(place, root)
    monkeypatch.chdir(here)


def tried(board: Board, *, named: bool = True, merged: bool = True) -> tuple[Plan, bytes]:
    """Try commitments until the raised task is not drawn, with a round that is long public.

    The one that suits is signed, `merged` to main, and `named` with the head of main, where a
    status may show it.
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
    board.push(".committed.json" if merged else "nothing of the audits")
    layout_of(board.root)
    words += ["--shown-on", board.place.base] if named else []
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
        "no commit is named whose status shows its commitment"
        if shown == "nowhere"
        else f"GitHub has no status of {board.place.base} with commitment"
    )
    assert all(f"dating: {expected}" in finding for finding in findings), findings
    # Where nobody asks the server, the lie passes: signed, linked, each step recomputed.
    monkeypatch.setattr(collect, "_undated", lambda *_: iter(()))
    assert board.verdict() == []


def test_a_commitment_that_github_showed_in_time_passes(board, monkeypatch):
    plan, raw = tried(board)
    recorded(board.root, outcome_of(plan, raw), private(board))
    board.shows(plan.commitment_sha256, plan.committed_at)
    monkeypatch.chdir(board.place.root)
    assert board.verdict() == []


def test_a_commitment_that_main_did_not_have_then_may_be_one_of_many(board, monkeypatch):
    """Many are published as statuses, and the one whose draw suits is merged afterwards."""
    plan, raw = tried(board, merged=False)
    board.shows(plan.commitment_sha256, plan.committed_at)
    recorded(board.root, outcome_of(plan, raw), private(board))
    board.push()
    monkeypatch.chdir(board.place.root)
    findings = board.verdict()
    assert findings
    expected = "dating: the commit that shows its commitment is not one of main that has it signed"
    assert all(expected in finding for finding in findings), findings
    monkeypatch.setattr(collect, "_has_commitment", lambda *_: True)
    assert board.verdict() == []


def test_what_names_nothing_is_not_merged(board, monkeypatch):
    raw = submission_bytes()
    write_keys(board.root, [entry()])
    put(board.root, outcome_of(plan_for(raw), raw), key())
    monkeypatch.chdir(board.place.root)
    board.push()
    (finding,) = board.verdict()
    assert "links: it names nothing that came before" in finding


def test_a_statement_that_names_what_is_not_there_is_not_merged(board, monkeypatch):
    plan, raw = tried(board)
    board.shows(plan.commitment_sha256, plan.committed_at)
    path = recorded(board.root, outcome_of(plan, raw), private(board))
    (start,) = path.parent.glob("*.started.json")
    start.unlink()
    monkeypatch.chdir(board.place.root)
    assert any(f"{MODEL}/{start.name} was deleted" in finding for finding in board.verdict())
