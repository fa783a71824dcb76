"""`geneb-ci check --base` and `--pr` reach the server's verdict on each kind of fault."""

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from geneb_ci.cli.board import diff_command
from geneb_ci.cli.check import check_command
from geneb_ci.cli.main import main
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.finding import Finding, Severity
from geneb_ci.github import open_pull
from geneb_ci.github.api import repository_address
from geneb_ci.github.comment import verdict_comment
from geneb_ci.github.main_branch import Clone as CloneReader
from geneb_ci.github.open_pull import judge_pull
from geneb_ci.github.reconcile import sweep
from geneb_ci.github.verdict.branch import judge_branch
from geneb_ci.github.verdict.model import PullVerdict, listed_findings
from geneb_ci.github.verdict.words import TITLES
from geneb_ci.publish.git import GitRepository
from tests.git import git
from tests.github.branch_faults import KINDS, PUBLIC_ROW, faulty_branch, faulty_public_row
from tests.github.branches import (
    MOVED_SETTINGS,
    Case,
    import_cases,
    moved_case,
    moved_files,
    remote,
)
from tests.github.conftest import MODULE, PEERS, REGULAR, ROW, encoded, of_module, sound
from tests.github.history import Files
from tests.github.test_commands import MAINTAINER
from tests.github.test_handover import many, pull_of
from tests.github.test_motion import NOTE, OFFICIAL, copied, corrected
from tests.github.world import World
from tests.hostile.cases_bytes import POINTER
from tests.paths import ROOT, SUBMISSIONS
from tests.rules.fixtures import FAMILIES
from tests.small import CARD, small, small_v11, small_v12

OWN = ("submissions/model.json", "submissions/cards/model.md", "submissions/extractors/model.py")
CARD_PATH = OWN[1]
CONFLICT = "<<<<<<< HEAD\n=======\n>>>>>>> main\n"
OF_THE_PULL = {"number", "head_sha", "base_sha"}


def of_rules() -> dict[str, Case]:
    """Return the failing fixture of every rule about files as the addition of one row."""
    case_by_name = {}
    for family, pairs in FAMILIES.items():
        for name, (fixture, _) in pairs.items():
            if isinstance(fixture, dict) and OWN[0] in fixture:
                files: Files = {path: (REGULAR, raw) for path, raw in fixture.items()}
                own = sound() | {path: files[path] for path in OWN if path in files}
                rest = {path: entry for path, entry in files.items() if path not in OWN}
                case_by_name[f"{family}-{name}"] = Case(own, rest)
    return case_by_name


def of_changes() -> dict[str, Case]:
    """Return pull requests that are malformed, or sound, in what they change."""
    whole = sound()

    def row(document: object) -> Files:
        return whole | {ROW: (REGULAR, encoded(document))}

    alpha = {"submissions/cards/alpha.md": (REGULAR, NOTE.encode())}
    return {
        "sound": Case(whole),
        "sound-1.1": Case(row(small_v11("model") | of_module(small_v11("model")))),
        "sound-1.2": Case(row(small_v12("model") | of_module(small_v12("model")))),
        "extractor-of-another": Case(row(small_v11("model"))),
        "empty": Case({}),
        "no-card": Case({k: v for k, v in whole.items() if k != CARD_PATH}),
        "no-extractor": Case({k: v for k, v in whole.items() if k != MODULE}),
        "row-only": Case({ROW: whole[ROW]}),
        "card-only": Case(alpha),
        "card-of-no-row": Case({CARD_PATH: whole[CARD_PATH]}),
        "extractor-only": Case({MODULE: whole[MODULE]}),
        "two-rows": Case(whole | sound("other")),
        "wrong-folder": Case({"results/model.json": whole[ROW]}),
        "pointer-as-card": Case(whole | {CARD_PATH: (REGULAR, POINTER)}),
        "pointer-as-extractor": Case(whole | {MODULE: (REGULAR, POINTER)}),
        "conflict-in-card": Case(whole | {CARD_PATH: (REGULAR, f"{CONFLICT}{CARD}".encode())}),
        "workflow": Case(whole | {".github/workflows/x.yml": (REGULAR, b"on: push\n")}),
        "policy": Case({"leaderboard/policy/official.json": (REGULAR, OFFICIAL)}),
        "code": Case({"geneb_ci/check/runner.py": (REGULAR, b"x = 1\n")}),
        "generated": Case(whole | {"RULES.md": (REGULAR, b"rules\n")}),
        "deleted": Case({}, gone=("submissions/beta.json",)),
        "renamed": Case(whole, gone=("submissions/beta.json", "submissions/cards/beta.md")),
        "link": Case(whole | {ROW: ("120000", b"alpha.json")}),
        "executable": Case(whole | {MODULE: ("100755", b"x = 1\n")}),
        "submodule": Case(whole | {"submissions/extractors/lib": ("160000", b"1" * 40)}),
        "case": Case(whole | {"submissions/cards/Model.md": (REGULAR, CARD.encode())}),
        "many": Case({f"submissions/x/{n}.txt": (REGULAR, b"x") for n in range(60)}),
        "huge": Case(whole | {ROW: (REGULAR, b" " * 1_000_001)}),
        "huge-extractor": Case(whole | {MODULE: (REGULAR, b"#" * 1_000_001)}),
        "utf-16": Case(whole | {ROW: (REGULAR, json.dumps(small("model")).encode("utf-16"))}),
        "not-utf-8": Case(whole | {CARD_PATH: (REGULAR, b"# \xff\xfe\n")}),
        "no-json": Case(whole | {ROW: (REGULAR, b"{")}),
        "nothing": Case(whole | {ROW: (REGULAR, b"")}),
        "crlf": Case(whole | {CARD_PATH: (REGULAR, CARD.replace("\n", "\r\n").encode())}),
        "copy": Case(copied("model", "alpha")),
        "collision": Case(sound("Alpha")),
        "correction": Case(corrected("alpha", 0.6)),
        "edit": Case({"submissions/alpha.json": corrected("alpha", 0.6)["submissions/alpha.json"]}),
        "binary": Case(whole | {CARD_PATH: (REGULAR, bytes(range(256)))}),
        "binary-extractor": Case(whole | {MODULE: (REGULAR, b"\x7fELF\0\0")}),
        "binary-beside": Case(whole | {"submissions/extractors/model.so": (REGULAR, b"\0")}),
        "record": Case(whole | {"leaderboard/audits/model/2026-11-20.json": (REGULAR, b"{}\n")}),
        "record-alone": Case({"leaderboard/audits/alpha/2026-11-20.json": (REGULAR, b"{}\n")}),
        "record-link": Case({"leaderboard/audits/alpha/2026-11-20.json": ("120000", b"../x.json")}),
        "all-deleted": Case({}, gone=tuple(path.replace("model", "beta") for path in OWN)),
        "behind": Case(whole, later=sound("other")),
        "overtaken": Case(whole, later=sound("Model")),
        "overtaken-copy": Case(copied("model", "other"), later=sound("other")),
        "outdated": Case(corrected("alpha", 0.6), later=corrected("alpha", 0.61)),
        "merged-already": Case(whole, later=whole),
        "stacked": Case(sound("parent") | whole, later=sound("parent")),
        "stacked-on-an-open-one": Case(sound("parent") | whole),
        "stacked-on-another": Case(sound("parent") | whole, later=copied("parent", "other")),
        "policy-moved": Case(
            whole, later={"leaderboard/policy/official.json": (REGULAR, OFFICIAL)}
        ),
        "odd-path": Case(whole | {"submissions/extractors/a\nb.py": (REGULAR, b"x = 1\n")}),
    }


# The other changes need a maintainer.
PASS = {"sound", "sound-1.1", "sound-1.2", "card-only", "crlf", "correction", "binary-extractor"}
PASS |= {"behind", "stacked", "policy-moved"}
WARN = {"copy", "overtaken-copy"}
FAIL = {
    "extractor-of-another",
    "no-card",
    "no-extractor",
    "row-only",
    "link",
    "executable",
    "huge",
    "huge-extractor",
}
FAIL |= {"utf-16", "not-utf-8", "no-json", "nothing", "collision", "edit", "binary", "record"}
FAIL |= {"record-alone", "overtaken", "outdated", "wrong-folder"}
FAIL |= {"pointer-as-card", "pointer-as-extractor", "conflict-in-card"}


def outcome_of(name: str) -> str:
    kinds = {"passed": PASS, "warnings": WARN, "changes-needed": FAIL}
    return next((kind for kind, names in kinds.items() if name in names), "needs-maintainer")


CHANGES = of_changes()
CASES = of_rules() | CHANGES


@pytest.fixture(scope="module")
def board(tmp_path_factory) -> World:
    world = World(tmp_path_factory.mktemp("same") / "board")
    git(world.folder, "init", "--quiet")
    import_cases(world, world.folder, CASES)
    return world


def enter(board: World, name: str) -> None:
    """Make the head of a case's pull request the commit HEAD, without checking it out."""
    head = f"ref: refs/heads/pull-{name}\n"
    Path(board.folder, ".git/HEAD").write_text(head, encoding="utf-8")


def test_the_command_of_the_comment_works_in_a_fork_that_is_behind(board, tmp_path, monkeypatch):
    """There `origin` is the fork, whose main lacks the row that was merged meanwhile."""
    (tmp_path / "org").mkdir()
    (tmp_path / "org/board").symlink_to(board.folder)
    monkeypatch.setenv("GITHUB_SERVER_URL", tmp_path.as_uri())
    git(board.folder, "update-ref", "refs/heads/main", "refs/heads/pull-sound")
    fork = tmp_path / "fork"
    git(tmp_path, "clone", "--quiet", "--branch", "start", str(board.folder), str(fork))
    monkeypatch.chdir(fork)
    for path, (_, raw) in sound("Model").items():
        Path(path).write_bytes(raw)
    git(fork, "add", "--all")
    git(fork, "commit", "--quiet", "--message", "Add Model")
    assert judge_branch(Path.cwd(), "origin/start").verdict.outcome == "passed"
    text = verdict_comment(pull_of(many(1)), repository_address("org/board"))
    fetch, base = re.findall(r"`git (fetch \S+ main) && geneb-ci check --base (\S+)`", text)[0]
    git(fork, *fetch.split())
    verdict = judge_branch(Path.cwd(), base).verdict
    assert (verdict.outcome, "confusable-name" in verdict.places) == ("changes-needed", True), (
        verdict
    )


def test_there_are_enough_of_them():
    assert len(CASES) >= 60
    assert {name.split("-")[0] for name in CASES} >= set(FAMILIES) - {"pullrequest", "internal"}


@pytest.mark.parametrize("name", CASES)
def test_the_verdict_on_this_machine_is_that_of_the_server(board, name, monkeypatch):
    monkeypatch.chdir(board.folder)
    enter(board, name)
    clone = CloneReader(GitRepository(board.folder))
    verdict = judge_branch(board.folder, f"main-{name}", ranks=True, clone=clone).verdict
    here = verdict.model_dump(exclude=OF_THE_PULL)
    there = remote(board, CASES[name]).model_dump(exclude=OF_THE_PULL)
    assert here == there
    if name in CHANGES:  # what is asked for by number is read as here; rules add nothing to that
        assert there["outcome"] == outcome_of(name), there["places"]
        monkeypatch.setattr(open_pull, "connect", lambda _repo: board.github())
        over = judge_pull(max(board.server.pulls), None).verdict
        assert over.model_dump(exclude=OF_THE_PULL) == there
    assert os.listdir(board.folder)  # noqa: PTH208 (nothing was checked out or removed)


def test_an_open_pull_request_is_compared_with_the_others(board, monkeypatch):
    """As in a sweep: the second of two that take one name does not pass."""
    monkeypatch.chdir(board.folder)
    monkeypatch.setattr(open_pull, "connect", lambda _repo: board.github())
    for pull in board.server.pulls.values():
        pull["state"] = "closed"
    board.server.default_head = next(iter(board.server.commits))
    first = board.open(sound("zebra"))
    board.sweep()
    second = board.open(sound("ZEBRA"))
    assert judge_pull(first, None).verdict.outcome == "passed"
    result = judge_pull(second, None).verdict
    assert (result.outcome, result.rivals) == ("changes-needed", [first])
    for number in (first, second):
        only = board.github().pull(number)
        (verdict,) = sweep(board.github(), board.layout, only).verdicts.pulls
        assert verdict == judge_pull(number, None).verdict


def test_what_a_maintainer_disputes_does_not_pass_here_either(board, monkeypatch, capsys):
    monkeypatch.chdir(board.folder)
    monkeypatch.setattr(open_pull, "connect", lambda _repo: board.github())
    for pull in board.server.pulls.values():
        pull["state"] = "closed"
    board.server.default_head = next(iter(board.server.commits))
    monkeypatch.setitem(board.server.rights, "maintainer", "write")
    number = board.open(sound("zebra"))
    for body, code, status in (
        ("/dispute the weights are another model's", 3, "pending: disputed by maintainer: the"),
        ("/recheck", 0, "success: 1 note"),
    ):
        board.server.add_comment(number, MAINTAINER, body)
        (verdict,) = sweep(board.github(), board.layout, board.github().pull(number)).verdicts.pulls
        assert verdict == judge_pull(number, None).verdict
        assert main(["check", "--pr", str(number)]) == code
        assert f"status {status}" in " ".join(capsys.readouterr().out.split())


def test_the_command_prints_it_and_ends_with_its_exit_code(board, monkeypatch):
    monkeypatch.chdir(board.folder)
    for name, code, message in (
        ("sound", 0, "passed"),
        ("copy", 0, "passed, with warnings"),
        ("no-card", 11, "changes needed"),
        ("two-rows", 11, "a maintainer decides"),
    ):
        enter(board, name)
        arguments = ["--base", f"main-{name}", "--format", "json"]
        done = CliRunner().invoke(check_command, arguments, standalone_mode=False)
        assert done.return_value == code
        assert f"verdict on the pull request: {message}\n" in done.stderr
        report = json.loads(done.stdout)
        rules = {finding["rule"] for finding in report["findings"]}
        assert ("row-without-card" in rules) == (name == "no-card")
        assert "missing-card" not in rules, "one card is missed once"
        # Advice that can be followed: this is a repository, and --against is refused.
        fixes = {skipped_rule["need"]: skipped_rule["fix"] for skipped_rule in report["skipped"]}
        many = "main has fewer rows: these rules run as soon as main has enough"
        assert fixes.get("many-rows", many) == many
        assert "many-rows" in fixes or name == "two-rows"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (check_command, ()),
        (check_command, ("--base", "main")),
        (diff_command, ()),
        (diff_command, ("--base", "main")),
    ],
)
def test_a_repository_that_nothing_would_be_asked_of_is_refused(command, words):
    with pytest.raises(UsageProblem, match="--repo has no effect without --pr"):
        CliRunner().invoke(
            command, [*words, "--repo", "a/b"], standalone_mode=False, catch_exceptions=False
        )


@pytest.mark.parametrize("words", [("--jobs", "2"), ("--no-cache",), ("--against", "none")])
def test_an_option_that_a_whole_pull_request_does_not_take_is_refused(words):
    for outcome in (("--base", "main"), ("--pr", "1")):
        with pytest.raises(UsageProblem, match="--base and --pr check a whole pull request"):
            CliRunner().invoke(
                check_command, [*outcome, *words], standalone_mode=False, catch_exceptions=False
            )


GATE, NIGHT, PUBLIC_NIGHT = 25, 200, 20
SEEDS = [
    seed if seed < GATE else pytest.param(seed, marks=pytest.mark.nightly) for seed in range(NIGHT)
]


class Clone:
    """A board, whose server has a checkout of main, and a clone of it with branches."""

    def __init__(self, folder: Path, rows: Files | None = None) -> None:
        self.world = World(folder / "board", rows)
        self.folder = folder / "clone"
        git(folder, "init", "--quiet", str(self.folder))

    def check_out(self, name: str, case: Case) -> None:
        """Check out the branch of a case; main of `origin` is that of the case."""
        import_cases(self.world, self.folder, {name: case})
        git(self.folder, "update-ref", "refs/remotes/origin/main", f"refs/heads/main-{name}")
        git(self.folder, "checkout", "--quiet", "--force", f"pull-{name}")
        find_layout.cache_clear()  # a command is a process of its own, in which nothing is known


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Clone:
    return Clone(tmp_path_factory.mktemp("faulty"))


@pytest.fixture(scope="module")
def moved_clone(tmp_path_factory) -> Clone:
    """A board whose settings have cards and extractors elsewhere."""
    files: Files = {"pyproject.toml": (REGULAR, MOVED_SETTINGS)}
    for peer in PEERS:
        files |= moved_files(sound(peer))
    return Clone(tmp_path_factory.mktemp("moved"), files)


@pytest.fixture(scope="module")
def public_clone(tmp_path_factory) -> Clone:
    """40 of the public rows."""
    rows = [path for path in SUBMISSIONS.glob("*.json") if path.stem != PUBLIC_ROW]
    files: Files = {f"submissions/{path.name}": (REGULAR, path.read_bytes()) for path in rows}
    files["schemas/benchmark.json"] = (REGULAR, (ROOT / "schemas/benchmark.json").read_bytes())
    return Clone(tmp_path_factory.mktemp("public"), files)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_branch_with_faults_has_the_verdict_of_the_server(
    seed, clone, moved_clone, monkeypatch, tmp_path
):
    kinds, case = faulty_branch(seed)
    if seed % 5 == 3:
        compare(moved_clone, seed, kinds, moved_case(case), monkeypatch, tmp_path)
    else:
        compare(clone, seed, kinds, case, monkeypatch, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(PUBLIC_NIGHT))
def test_a_faulty_row_among_the_public_ones_has_it_too(seed, public_clone, monkeypatch, tmp_path):
    """As many rows as the rules need that compare a row with the others."""
    compare(public_clone, seed, *faulty_public_row(seed), monkeypatch, tmp_path)


def compare(
    clone: Clone, seed: int, kinds: list[str], case: Case, monkeypatch: Any, tmp_path: Path
) -> None:
    """Hold findings, state, exit code and words of `geneb-ci check`, in JSON and in the text."""
    clone.check_out(f"{seed}", case)
    folder = clone.folder / "submissions"
    monkeypatch.chdir(folder if seed % 4 == 0 and folder.is_dir() else clone.folder)
    text = tmp_path / "report.txt"
    words = ["--format", "json", "--format", "text", "--output", str(text)]
    done = CliRunner().invoke(check_command, words, standalone_mode=False)
    assert done.exception is None, (kinds, done.exception)
    here, there = json.loads(done.stdout), remote(clone.world, case)
    findings = [
        Finding(**entry | {"severity": Severity(entry["severity"])}) for entry in here["findings"]
    ]
    assert listed_findings(findings) == there.findings, kinds
    assert Counter(finding.rule for finding in findings) == there.places, kinds
    facts = here["pull_request"]
    assert facts["outcome"] == there.outcome, kinds
    assert (facts["status"], facts["description"]) == (there.state, there.description), kinds
    assert (facts["title"], facts["model"]) == (TITLES[there.outcome], there.model), kinds
    assert done.return_value == exit_of(there), kinds
    verdicts = {0: {"clean", "warnings"}, 3: {"not-checked"}, 11: {"errors"}}
    assert here["verdict"] in verdicts[done.return_value]
    assert (here["verdict"] == "warnings") == (there.outcome == "warnings")
    for words_of in (done.stderr, text.read_text(encoding="utf-8")):
        assert f"verdict on the pull request: {facts['title']}\n" in words_of
        assert f"  status {there.state}: {there.description}\n" in words_of


def exit_of(verdict: PullVerdict) -> int:
    """Return the exit code as docs/contributor/check.md has it."""
    if verdict.outcome in {"passed", "warnings"}:
        return 0
    return 11 if verdict.counts.error else 3


def test_the_faults_are_of_many_kinds():
    assert len(KINDS) <= NIGHT
    drawn = [faulty_branch(seed)[0] for seed in range(len(KINDS))]
    assert {kind for kinds in drawn for kind in kinds} == set(KINDS)
    assert {len(kinds) for kinds in drawn} == {1, 2}
    assert len(KINDS) >= 20
