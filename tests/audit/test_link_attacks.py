"""What a maintainer may try with his key and the files: `audit verify` refuses it, offline.

Each attack passes where the check that finds it is off.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import geneb_ci
from geneb_ci.audit.record import history, verify
from geneb_ci.audit.record.history import History
from geneb_ci.audit.record.published import STATEMENTS_PATH, statements_file
from geneb_ci.audit.sampling.task_draw import draw_tasks
from geneb_ci.cli.main import main
from geneb_ci.common.errors import Exit
from tests.audit.linked_place import (
    AGAIN,
    KEYS,
    OTHER,
    RAW,
    aborted,
    audited,
    begun,
    committed,
    layout_of,
    read,
    recorded,
    started,
)
from tests.audit.recorded import (
    FIRST,
    MODEL,
    SECOND,
    commitment,
    outcome_of,
    plan_for,
    repository,
)


def publishes(root: Path) -> None:
    """Keep what a board would be published with now."""
    (root / "published.json").write_bytes(statements_file(read(root).history)[STATEMENTS_PATH])


def deletes(root: Path) -> None:
    """A failed record is deleted beside one that agrees."""
    failed = audited(root, RAW, shift=0.01)
    recorded(root, outcome_of(plan_for(RAW), RAW))
    failed.unlink()


def deletes_the_newest(root: Path) -> None:
    """A failed record that nothing names yet is replaced by one that agrees."""
    failed = audited(root, RAW, shift=0.01)
    publishes(root)
    failed.unlink()
    recorded(root, outcome_of(plan_for(RAW), RAW))


def branches(root: Path) -> None:
    """A second history grows from the beginning, as if the first audit had never been."""
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    audited(root, RAW, shift=0.01)
    publishes(root)
    for path in (root / "leaderboard/audits").rglob("*.json"):
        if path not in before:
            path.unlink()
    audited(root, RAW, SECOND)


def dates_back(root: Path) -> None:
    """A commitment of today says that it was public when the round was due whose value it suits."""
    for model_id, digit, number in ((MODEL, "e", SECOND), ("another", "f", FIRST)):
        document = json.loads(RAW) | {"model_id": model_id}
        document["run"]["model"]["weights"] = {"model.safetensors": digit * 64}  # two methods
        raw = json.dumps(document).encode()
        (root / f"submissions/{model_id}.json").write_bytes(raw)
        audited(root, raw, number, model_id=model_id)


def draws_again(root: Path) -> None:
    """A commitment is drawn for once more, as of another time."""
    audited(root, RAW, SECOND)
    recorded(root, outcome_of(begun(root, plan_for(RAW, FIRST)), RAW))


def renames(root: Path) -> None:
    """The same code and weights are drawn again under another name."""
    audited(root, RAW)
    renamed = json.dumps(json.loads(RAW) | {"model_id": "another"}).encode()
    (root / "submissions/another.json").write_bytes(renamed)
    audited(root, renamed, SECOND, model_id="another")


def aborts(root: Path) -> None:
    """A run that was aborted is forgotten by the draw for the next version."""
    aborted(root, begun(root, plan_for(RAW)))
    (root / f"submissions/{MODEL}.json").write_bytes(AGAIN)
    audited(root, AGAIN, SECOND)


def aborts_and_deletes(root: Path) -> None:
    """The abort is deleted, and the run was never shown."""
    plan = begun(root, plan_for(RAW))
    path = aborted(root, plan)
    recorded(root, outcome_of(plan, RAW))
    path.unlink()


def passes_over(root: Path) -> None:
    """A commitment whose draw is known is left aside for another one."""
    committed(root, commitment(AGAIN))
    audited(root, RAW, SECOND)


class Defence(NamedTuple):
    """What finds an attack: what it says, and how it is switched off."""

    message: str
    off: tuple[object, str, object]
    words: tuple[str, ...] = ()


_HELD = ("--published", "published.json")
_NO_LINKS: tuple[object, str, object] = (History, "loss_reasons_of_heads", lambda *_: {})
_NO_PUBLISHED = ("geneb_ci.cli.audit", "require_published", lambda *_: None)
_NO_EARLIER = (verify, "_check_earlier", lambda *_: None)
DEFENCES: dict[Callable[[Path], None], Defence] = {
    deletes: Defence("was deleted: ", _NO_LINKS),
    deletes_the_newest: Defence("was deleted", _NO_PUBLISHED, _HELD),
    branches: Defence("was deleted", _NO_PUBLISHED, _HELD),
    dates_back: Defence(
        "which was drawn after 2026-",
        (history, "_check_not_backdated", lambda *_: None),
    ),
    draws_again: Defence("this commitment already has a draw", _NO_EARLIER),
    renames: Defence("leaves out the earlier draw", _NO_EARLIER),
    aborts: Defence("leaves out the earlier draw", _NO_EARLIER),
    aborts_and_deletes: Defence("was deleted: ", _NO_LINKS),
    passes_over: Defence(
        "it was never drawn", (History, "undrawn_commitments", lambda *_: iter(()))
    ),
}


@pytest.mark.parametrize("attack", DEFENCES, ids=[defence.__name__ for defence in DEFENCES])
def test_it_is_found_and_passes_where_its_check_is_off(attack, tmp_path, monkeypatch, capsys):
    root, defence = repository(tmp_path, keys=KEYS), DEFENCES[attack]
    attack(root)
    monkeypatch.chdir(root)
    layout_of(root)
    command = ["audit", "verify", *defence.words]
    assert main(command) == Exit.ERRORS
    shown = capsys.readouterr()
    assert defence.message in " ".join((shown.out + shown.err).split())
    target, name, value = defence.off
    if name == "_check_earlier":
        monkeypatch.setitem(verify._CONSISTENCY_CHECKS, verify.EARLIER_STEP, value)
    elif isinstance(target, str):
        monkeypatch.setattr(f"{target}.{name}", value)
    else:
        monkeypatch.setattr(target, name, value)
    assert main(command) == Exit.CLEAN, capsys.readouterr().out


def test_a_second_person_is_what_invented_numbers_lack(tmp_path, monkeypatch, capsys):
    root = repository(tmp_path, keys=KEYS)
    # One key signs a rerun of every task that never ran.
    plan = plan_for(RAW)
    whole = draw_tasks(plan.commitment, plan.committed_at, plan.beacon, drawn=3)
    begun(root, whole)
    recorded(root, outcome_of(whole, RAW))
    monkeypatch.chdir(root)
    layout_of(root)
    assert main(["audit", "verify", "--evidence", "reproduced"]) == Exit.ERRORS
    assert ": audited, expected reproduced: " in capsys.readouterr().out
    assert main(["audit", "verify", "--evidence", "audited"]) == Exit.CLEAN
    assert "      signers: a maintainer\n" in capsys.readouterr().out
    started(root, plan, OTHER)
    recorded(root, outcome_of(plan, RAW), OTHER)
    assert main(["audit", "verify", "--evidence", "reproduced"]) == Exit.CLEAN
    assert "      signers: a maintainer, another maintainer\n" in capsys.readouterr().out
    verification = geneb_ci.verify(evidence="reproduced")
    assert (verification.hold, [rating.suffices for rating in verification.rated]) == (True, [True])
    shown = json.loads(verification.to_json())["evidence"]
    assert [(evidence["evidence"], evidence["signers"]) for evidence in shown] == [
        ("reproduced", ["a maintainer", "another maintainer"])
    ]


def test_a_disputed_submission_has_no_evidence(tmp_path, monkeypatch, capsys):
    root = repository(tmp_path, keys=KEYS)
    audited(root, RAW, shift=0.01)
    monkeypatch.chdir(root)
    layout_of(root)
    assert main(["audit", "verify"]) == Exit.CLEAN
    assert main(["audit", "verify", "--evidence", "checked"]) == Exit.ERRORS
    assert ": disputed, expected checked: " in capsys.readouterr().out
