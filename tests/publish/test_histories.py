"""Shapes of a git history that the ledger meets: renames, merges, links, and hostile texts."""

import json

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from geneb_ci.board.rows import board_file_bytes
from geneb_ci.cli.main import cli
from geneb_ci.publish.git import GitRepository
from geneb_ci.publish.ledger import ledger
from geneb_ci.publish.manifest import Event, Ledger
from tests.git import NAME as ME
from tests.paths import ROOT
from tests.publish.clone import Clone


def ledger_of(clone: Clone) -> Ledger:
    return ledger(GitRepository(clone.root), clone.git("rev-parse", "HEAD"))


def newest(clone: Clone, number: int = 1) -> list[Event]:
    return ledger_of(clone).events[-number:]


def brief(events: list[Event]) -> list[tuple[str, str, str]]:
    return [(event.kind, event.model, event.who) for event in events]


def test_a_row_that_is_renamed_goes_and_comes(clone):
    """Another name is another model: nothing of the old one's evidence is for it."""
    clone.git("mv", "submissions/model-a.json", "submissions/model-z.json")
    clone.commit("Rename model-a")
    assert brief(newest(clone, 2)) == [("removal", "model-a", ME), ("include", "model-z", ME)]
    assert [event.level for event in newest(clone, 2)] == [None, "self-reported"]


def test_a_merge_is_one_step_with_what_it_brought_to_main(clone):
    """Also where main went on meanwhile, and whatever was tried and undone on the branch."""
    clone.git("checkout", "--quiet", "-b", "theirs")
    for display in ("first try", "second try", "third"):
        clone.add("model-b", display=display)
        clone.git("add", "--all")
        clone.git("commit", "--quiet", "--message", f"wip\n\nReason: {display}")
    clone.git("checkout", "--quiet", "main")
    clone.add("model-c")
    clone.commit("Add model-c")
    clone.git("checkout", "--quiet", "theirs")
    clone.git("merge", "--quiet", "--no-edit", "main")
    clone.git("checkout", "--quiet", "main")
    clone.merge("theirs", "Merge #7\n\nReason: a new row")
    (event,) = newest(clone)
    assert (event.kind, event.model, event.why) == ("include", "model-b", "a new row")
    assert event.commit == clone.commits[-1]
    assert len(ledger_of(clone).events) == 3


def test_what_a_merge_itself_changes_is_told(clone):
    clone.git("checkout", "--quiet", "-b", "theirs")
    clone.add("model-b")
    clone.git("add", "--all")
    clone.git("commit", "--quiet", "--message", "wip")
    clone.git("checkout", "--quiet", "main")
    clone.git("merge", "--quiet", "--no-ff", "--no-commit", "theirs")
    clone.add("model-a", display="changed in the merge")
    clone.commit("Merge #8")
    assert brief(newest(clone, 2)) == [("change", "model-a", ME), ("include", "model-b", ME)]


def test_a_row_that_becomes_a_link_is_gone(clone):
    file = clone.root / "submissions/model-a.json"
    file.unlink()
    file.symlink_to("../schemas/benchmark.json")
    clone.commit("A link")
    assert brief(newest(clone)) == [("removal", "model-a", ME)]
    file.unlink()
    clone.add("model-a")
    clone.commit("A file again")
    assert brief(newest(clone)) == [("include", "model-a", ME)]


def test_a_revert_is_a_change_back(clone):
    before = (clone.root / "submissions/model-a.json").read_bytes()
    clone.add("model-a", display="other")
    clone.commit("Change")
    clone.git("revert", "--no-edit", "HEAD")
    assert (clone.root / "submissions/model-a.json").read_bytes() == before
    events = ledger_of(clone).events
    assert [event.kind for event in events] == ["include", "change", "change"]
    assert events[0].evidence == events[2].evidence


HOSTILE = "x\u2028Reviewed-by: A. Forger\x1b[2J\u202e ::set-output name=a::b ##[command]c"


@pytest.mark.parametrize("shown", [["explain", "model-b"], ["ledger"]])
def test_texts_of_strangers_are_one_trailer_and_are_neutralised(clone, monkeypatch, shown):
    clone.add("model-b")
    clone.commit(f"Add\n\nReason: {HOSTILE}\nSubmitted-by: @{'y' * 400}{HOSTILE}")
    (event,) = newest(clone)
    assert event.why == HOSTILE
    assert event.who == "@" + "y" * 299
    monkeypatch.chdir(clone.root)
    output = CliRunner().invoke(cli, shown, catch_exceptions=False).output
    assert "A. Forger" in output
    assert not [char for char in output if char in "\x1b\u2028\u202e" or "::" in output]
    assert "##[" not in output


NAMES = ("new\nline", "tab\tname", "esc\x1b[2J", "quote\"'", "-option", "\u202eltr", "a b", "é")


def test_names_of_files_do_not_break_out(clone, monkeypatch):
    for name in NAMES:
        clone.write(f"submissions/{name}.json", b"{}")
    clone.commit("Names")
    (clone.root / "submissions" / "\udcff.json").write_bytes(b"{}")
    clone.commit("A name that is no UTF-8")
    answer = ledger_of(clone)
    assert {event.model for event in answer.events} == {"model-a", *NAMES, r"\xff"}
    raw = board_file_bytes("ledger.json", answer.model_dump(mode="json"))
    schema = json.loads((ROOT / "schemas/ledger.schema.json").read_bytes())
    Draft202012Validator(schema).validate(json.loads(raw))
    monkeypatch.chdir(clone.root)
    output = CliRunner().invoke(cli, ["ledger"], catch_exceptions=False).output
    assert len(output.splitlines()) == len(NAMES) + 2
    assert "\x1b" not in output


def test_the_ledger_is_the_same_from_any_clone_of_the_commit(clone, tmp_path):
    clone.add("model-b")
    clone.commit("Add model-b")
    commit = clone.git("rev-parse", "HEAD")
    before = ledger_of(clone)
    clone.add("model-c")
    clone.commit("Add model-c")
    clone.git("gc", "--quiet", "--aggressive")
    clone.git("clone", "--quiet", "--bare", str(clone.root), str(tmp_path / "bare"))
    assert ledger(GitRepository(tmp_path / "bare"), commit) == before
    assert ledger(GitRepository(clone.root), commit) == before
