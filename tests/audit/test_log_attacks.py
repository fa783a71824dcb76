"""What a maintainer may try with his key and the files: `audit verify` refuses it, offline."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import geneb_ci
from geneb_ci.audit.sampling.task_draw import draw
from geneb_ci.cli.main import main
from geneb_ci.common.errors import Exit
from tests.audit.log_place import aborted, audited, begun, extend, kept, signed
from tests.audit.recorded import (
    FIRST,
    MODEL,
    SECOND,
    entry,
    key,
    outcome_of,
    plan_for,
    put,
    submission_bytes,
)

RAW = submission_bytes()
AGAIN = submission_bytes(" again")
OTHER = key("another")
KEYS = [entry(), entry(OTHER, owner="another maintainer")]


def deletes(root: Path) -> None:
    """A failed record is deleted beside one that agrees."""
    failed = audited(root, RAW, shift=0.01)
    put(root, outcome_of(plan_for(RAW), RAW))
    extend(root, FIRST + 2)
    failed.unlink()


def dates_back(root: Path) -> None:
    """A plan says that its commitment was public when another draw was due."""
    audited(root, RAW, SECOND)
    put(root, outcome_of(plan_for(RAW, FIRST), RAW))


def renames(root: Path) -> None:
    """The same code and weights are drawn again under another name."""
    audited(root, RAW)
    renamed = json.dumps(json.loads(RAW) | {"model_id": "another"}).encode()
    (root / "submissions/another.json").write_bytes(renamed)
    audited(root, renamed, SECOND, model_id="another")


def aborts(root: Path) -> None:
    """A run that was aborted is forgotten by the draw for the next version."""
    plan = begun(root, plan_for(RAW))
    signed(root, aborted(plan))
    extend(root, FIRST + 1)
    (root / f"submissions/{MODEL}.json").write_bytes(AGAIN)
    audited(root, AGAIN, SECOND)


def aborts_and_deletes(root: Path) -> None:
    """The abort is deleted."""
    plan = begun(root, plan_for(RAW))
    path = signed(root, aborted(plan))
    extend(root, FIRST + 1)
    path.unlink()


def invents(root: Path) -> None:
    """One key signs a rerun of every task that never ran."""
    plan = begun(root, plan_for(RAW))
    put(root, outcome_of(draw(plan.commitment, plan.committed_at, plan.beacon, drawn=3), RAW))
    extend(root, FIRST + 1)


ATTACKS: dict[Callable[[Path], None], str] = {
    deletes: "was deleted: it is entry 2 of the log",
    dates_back: "the plan says that the commitment was public at 2023-",
    renames: "is left out",
    aborts: "is left out",
    aborts_and_deletes: "was deleted: it is entry 2 of the log",
    invents: ": audited, expected reproduced: ",
}


@pytest.mark.parametrize("attack", ATTACKS, ids=[one.__name__ for one in ATTACKS])
def test_verify_refuses_it_offline(attack, tmp_path, monkeypatch, capsys):
    root = kept(tmp_path, keys=KEYS)
    attack(root)
    monkeypatch.chdir(root)
    assert main(["audit", "verify", "--evidence", "reproduced"]) == Exit.ERRORS
    assert ATTACKS[attack] in capsys.readouterr().out


def test_a_second_person_is_what_invented_numbers_lack(tmp_path, monkeypatch, capsys):
    root = kept(tmp_path, keys=KEYS)
    invents(root)
    monkeypatch.chdir(root)
    assert main(["audit", "verify", "--evidence", "audited"]) == Exit.CLEAN
    assert "      signers: a maintainer\n" in capsys.readouterr().out
    put(root, outcome_of(plan_for(RAW), RAW), OTHER)
    extend(root, FIRST + 2)
    assert main(["audit", "verify", "--evidence", "reproduced"]) == Exit.CLEAN
    assert "      signers: a maintainer, another maintainer\n" in capsys.readouterr().out
    found = geneb_ci.verify(evidence="reproduced")
    assert (found.hold, [one.suffices for one in found.rated]) == (True, [True])
    shown = json.loads(found.to_json())["evidence"]
    assert [(one["evidence"], one["signers"]) for one in shown] == [
        ("reproduced", ["a maintainer", "another maintainer"])
    ]


def test_a_disputed_submission_has_no_evidence(tmp_path, monkeypatch, capsys):
    root = kept(tmp_path, keys=KEYS)
    audited(root, RAW, shift=0.01)
    monkeypatch.chdir(root)
    assert main(["audit", "verify"]) == Exit.CLEAN
    assert main(["audit", "verify", "--evidence", "checked"]) == Exit.ERRORS
    assert ": disputed, expected checked: " in capsys.readouterr().out
