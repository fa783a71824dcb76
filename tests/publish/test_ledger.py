"""The ledger: a function of the git history, whole and in order; and the story of one row."""

import hashlib
import json
import subprocess

import pytest
from click.testing import CliRunner

from geneb_ci.cli.main import cli
from geneb_ci.publish.generation import generate, source_commit_of
from geneb_ci.publish.git import BadRepository, GitRepository
from geneb_ci.publish.ledger import (
    LevelFunction,
    RowAtCommit,
    audited_model,
    ledger,
    submitted_model,
    trust_level_at,
)
from geneb_ci.publish.manifest import Event
from tests.paths import SUBMISSIONS
from tests.publish.clone import FIRST, Clone
from tests.publish.command import environment, within


def sha256(clone: Clone, name: str) -> str:
    return hashlib.sha256((clone.root / name).read_bytes()).hexdigest()


def events_of(
    clone: Clone, commit: str = "HEAD", levels: LevelFunction = trust_level_at
) -> list[Event]:
    repository = GitRepository(clone.root)
    return ledger(repository, repository.resolve(commit), levels).events


def brief(events: list[Event]) -> list[tuple[str | None, ...]]:
    return [(e.kind, e.model, e.former_level, e.level, e.who, e.why) for e in events]


ME, GROUND = "M. Aintainer", "Lay the ground"
SELF, OFFICIAL = "self-reported", "official"


@pytest.fixture
def lively(clone: Clone) -> Clone:
    """Everything that can happen to a row, one commit each."""
    clone.git("checkout", "--quiet", "-b", "theirs")
    clone.add("model-b")
    clone.git("add", "--all")
    clone.git("commit", "--quiet", "--message", "wip\n\nSubmitted-by: nobody")
    clone.git("checkout", "--quiet", "main")
    clone.merge("theirs", "Merge pull request #7\n\nReason: a new row\nSubmitted-by: @b-author")
    clone.add("model-b", params=1)
    clone.commit("Size of model-b\n\nCorrection: params was wrong\nReviewed-by: R. Eviewer")
    clone.add("model-a", params=2)
    clone.commit("Change model-a")
    listed = {"files": {"model-a": sha256(clone, "submissions/model-a.json")}}
    clone.write("leaderboard/policy/official.json", listed)
    clone.commit("List model-a\n\nReason: the authors' own file")
    clone.write("docs/note.md", b"nothing of the board")
    clone.commit("A note")
    clone.write("leaderboard/audits/model-b/one.json", {"payload": "agrees"})
    clone.commit("Audit model-b\n\nAudited-by: A. Uditor")
    clone.git("rm", "--quiet", "submissions/model-b.json", "submissions/cards/model-b.md")
    clone.commit("Remove model-b\n\nReason: withdrawn by its author")
    return clone


def test_every_event_with_who_and_why(lively):
    assert brief(events_of(lively)) == [
        ("include", "model-a", None, SELF, ME, GROUND),
        ("include", "model-b", None, SELF, "@b-author", "a new row"),
        ("correction", "model-b", SELF, SELF, "R. Eviewer", "params was wrong"),
        ("change", "model-a", SELF, SELF, ME, "Change model-a"),
        ("relabel", "model-a", SELF, OFFICIAL, ME, "the authors' own file"),
        ("audit", "model-b", SELF, SELF, "A. Uditor", "Audit model-b"),
        ("removal", "model-b", SELF, None, ME, "withdrawn by its author"),
    ]


def test_when_which_commit_and_what_evidence(lively):
    events = events_of(lively)
    assert [event.commit for event in events] == [lively.commits[n] for n in (0, 1, 2, 3, 4, 6, 7)]
    assert [event.when for event in events[:2]] == ["2026-11-18T11:06:40Z", "2026-11-18T12:06:40Z"]
    evidence = {event.kind: event.evidence for event in events}
    assert evidence["change"].sha256 == sha256(lively, "submissions/model-a.json")
    assert evidence["relabel"].path == "leaderboard/policy/official.json"
    assert evidence["relabel"].sha256 == sha256(lively, "leaderboard/policy/official.json")
    assert evidence["audit"].sha256 == sha256(lively, "leaderboard/audits/model-b/one.json")
    assert (evidence["removal"].path, evidence["removal"].sha256) == (
        "submissions/model-b.json",
        None,
    )


def test_an_earlier_ledger_is_the_beginning_of_a_later_one(lively):
    whole = events_of(lively)
    for number, commit in enumerate(lively.commits):
        part = events_of(lively, commit)
        assert part == whole[: len(part)]
        assert [e.commit for e in whole[len(part) :]] == [
            e.commit for e in whole if lively.commits.index(e.commit) > number
        ]


def disputed_by_audit(standing: RowAtCommit) -> str | None:
    verdicts = [json.loads(raw)["payload"] for raw in standing.audits.values()]
    return (
        "disputed"
        if "differs" in verdicts
        else "verified"
        if verdicts
        else trust_level_at(standing)
    )


def test_levels_come_from_a_function_and_disputes_from_levels(clone):
    path = "leaderboard/audits/model-a"
    clone.write(f"{path}/one.json", {"payload": "agrees"})
    clone.commit("Audit one")
    clone.write(f"{path}/two.json", {"payload": "differs"})
    clone.commit("Audit two")
    clone.git("rm", "--quiet", f"{path}/two.json")
    clone.commit("Withdraw audit two\n\nReason: wrong weights")
    events = events_of(clone, levels=disputed_by_audit)
    assert [(e.kind, e.former_level, e.level, e.evidence.path) for e in events[1:]] == [
        ("audit", SELF, "verified", f"{path}/one.json"),
        ("relabel", SELF, "verified", f"{path}/one.json"),
        ("audit", "verified", "disputed", f"{path}/two.json"),
        ("dispute", "verified", "disputed", f"{path}/two.json"),
        ("audit", "disputed", "verified", f"{path}/two.json"),
        ("relabel", "disputed", "verified", f"{path}/two.json"),
    ]
    assert events[-1].evidence.sha256 is None
    assert events[-1].why == "wrong weights"


def test_a_change_that_costs_the_level_is_told_twice(clone):
    listed = {"files": {"model-a": sha256(clone, "submissions/model-a.json")}}
    clone.write("leaderboard/policy/official.json", listed)
    clone.commit("List model-a")
    clone.add("model-a", params=3)
    clone.commit("Change model-a")
    assert [(e.kind, e.former_level, e.level) for e in events_of(clone)[1:]] == [
        ("relabel", SELF, OFFICIAL),
        ("change", OFFICIAL, SELF),
        ("relabel", OFFICIAL, SELF),
    ]
    clone.write("leaderboard/policy/official.json", b"not JSON")
    clone.commit("Break the policy")
    assert [e.kind for e in events_of(clone)[4:]] == []


def test_texts_that_try_to_be_something_else(clone, monkeypatch):
    clone.add("model-b")
    text = ":100644 100644 " + "0" * 40 + " " + "1" * 40 + " M"
    clone.commit(f"{text} ::error::x ##[error] \x1b[2J" + "y" * 400)
    event = events_of(clone)[-1]
    assert event.why.startswith(text)
    assert len(event.why) == 300
    monkeypatch.chdir(clone.root)
    shown = CliRunner().invoke(cli, ["explain", "model-b"], catch_exceptions=False).output
    assert "\x1b" not in shown
    assert "::" not in shown
    assert "##[" not in shown


def test_names_that_are_no_rows(clone):
    clone.write("submissions/notes.txt", b"x")
    clone.write("submissions/cards/model-x.json", b"{}")
    clone.write("leaderboard/audits/readme.json", b"{}")
    (clone.root / "submissions/link.json").symlink_to("model-a.json")
    clone.commit("Things that are no rows")
    assert len(events_of(clone)) == 1
    assert submitted_model("submissions/.hidden.json") is None
    assert audited_model("leaderboard/audits/m/deeper/x.json") is None


def test_a_shallow_clone_is_refused(clone, tmp_path):
    clone.add("model-b")
    clone.commit("Add model-b")
    shallow = tmp_path / "shallow"
    source = clone.root.as_uri()
    subprocess.run(["git", "clone", "-q", "--depth", "1", source, str(shallow)], check=True)
    for ask in (ledger, source_commit_of, generate):
        with pytest.raises(BadRepository, match="the clone is shallow") as refusal:
            ask(GitRepository(shallow), "HEAD")
        assert refusal.value.fix.startswith("run `git fetch --unshallow`")


def test_settings_of_the_machine_change_no_byte(lively, tmp_path, monkeypatch):
    before = events_of(lively)
    config = tmp_path / "gitconfig"
    config.write_text(
        "[log]\n\tdate = relative\n\tshowSignature = true\n\tmailmap = true\n\tfollow = true\n"
        "[diff]\n\trenames = copies\n\tnoprefix = true\n\torderFile = /dev/null\n"
        "[color]\n\tui = always\n[core]\n\tquotePath = true\n\tabbrev = 5\n"
        '[i18n]\n\tlogOutputEncoding = ISO-8859-1\n[trailer]\n\tseparators = "="\n'
    )
    (lively.root / ".mailmap").write_text("Somebody Else <m@example.org>\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text(config.read_text())
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert events_of(lively) == before


COMMITS = 500


def test_hundreds_of_commits_take_few_processes(clone, monkeypatch):
    stream = b"".join(
        b"commit refs/heads/main\ncommitter M <m@example.org> %d +0000\ndata 1\nx\n%s"
        b"M 100644 inline submissions/model-a.json\ndata %d\n%s\n"
        % (FIRST + n, b"" if n else b"from refs/heads/main^0\n", len(str(n)), str(n).encode())
        for n in range(COMMITS)
    )
    command = ["git", "-C", str(clone.root), "fast-import", "--quiet"]
    subprocess.run(command, input=stream, check=True)
    processes = []
    run = subprocess.run

    def counted(*arguments, **options):
        processes.append(arguments)
        return run(*arguments, **options)

    monkeypatch.setattr(subprocess, "run", counted)
    assert len(events_of(clone)) == COMMITS + 1
    assert len(processes) <= 4


@pytest.fixture
def geneb_ci(hub, public, tmp_path):
    env = environment(hub, tmp_path)
    return lambda *arguments: within(*arguments, cwd=public.root, env=env)


def test_the_story_of_a_row(lively, monkeypatch):
    monkeypatch.chdir(lively.root)
    result = CliRunner().invoke(cli, ["explain", "model-b"], catch_exceptions=False)
    first, change = (
        [line for line in block.splitlines() if "sha256" not in line]
        for block in result.output.split("\n\n")[1:3]
    )
    assert result.output.splitlines()[0] == "model-b  not on the board"
    assert first == [
        "2026-11-18T12:06:40Z  added to the board, checked",
        "  why: a new row",
        "  who: @b-author",
        f"  commit: {lively.commits[1]}",
        "  evidence: submissions/model-b.json",
    ]
    assert change[0] == "2026-11-18T13:06:40Z  corrected"
    assert result.output.split("\n\n")[-2].endswith("submissions/model-b.json\n    deleted")


def test_explain_still_explains_rules_and_names_what_is_near(geneb_ci):
    code, output, _ = geneb_ci("explain", "missing-task")
    assert (code, output.split()[0]) == (0, "missing-task")
    code, output, errors = geneb_ci("explain", "splicebert-1024")
    assert (code, output) == (2, "")
    assert errors.splitlines()[0] == (
        "geneb-ci: 'splicebert-1024' is neither a rule nor a model of this repository; "
        'did you mean "splicebert-1024nt"?'
    )
    code, output, _ = geneb_ci("explain", "splicebert-1024nt")
    assert (code, output.splitlines()[0]) == (
        0,
        "splicebert-1024nt  checked: no audit counts",
    )


def test_the_ledger_of_the_public_rows_has_every_row(geneb_ci):
    code, output, _ = geneb_ci("ledger", "--format", "json")
    assert code == 0
    events = json.loads(output)["events"]
    models = {path.stem for path in SUBMISSIONS.glob("*.json")}
    assert {event["model"] for event in events} >= models
    code, output, _ = geneb_ci("ledger", "--all")
    assert (code, len(output.splitlines())) == (0, len(events))
