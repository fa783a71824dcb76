"""A pull request from its trees to its comment, and the queue that it stands in: whole outputs."""

import hashlib
import json
import re

import pytest

from geneb_ci.audit.sampling.design import audit_policy
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import Layout, LayoutKind
from geneb_ci.github.comment import verdict_comment
from geneb_ci.github.verdict.checker import PullChecker
from geneb_ci.github.verdict.decide import audit_estimate, row_standings
from geneb_ci.github.verdict.model import DecidedStanding
from reference_harness.formats.submission import SubmissionV10
from tests.cli.repository import real_repository
from tests.github.conftest import ADDRESS, REGULAR, ROW, encoded, golden, sound
from tests.github.history import Files
from tests.github.test_handover import pull_of
from tests.github.text import calm
from tests.paths import ROOT, SUBMISSIONS
from tests.small import BENCHMARK, CARD, small, small_v11


def broken() -> Files:
    document = small("model")
    document["results"]["full"]["promoter_tata"]["MCC"] = 1.5
    document["meta"]["provenance"] = "verified"
    del document["results"]["1shot"]["splice_sites"]
    return sound() | {ROW: (REGULAR, encoded(document))}


def copied() -> Files:
    """Return alpha's scores under another name."""
    return sound() | {
        ROW: (
            REGULAR,
            encoded(small("alpha") | {"model_id": "model", "meta": small("model")["meta"]}),
        )
    }


@pytest.mark.parametrize(
    ("name", "changes", "state", "label"),
    [
        ("clean", sound(), ("success", "1 note"), "geneb: passed"),
        ("suspicious", copied(), ("success", "1 warning, 1 note"), "geneb: warnings"),
        ("broken", broken(), ("failure", "3 errors, 1 note"), "geneb: changes needed"),
        (
            "foreign",
            sound() | {".github/workflows/x.yml": (REGULAR, b"on: push\n")},
            ("pending", "a maintainer has to review this change"),
            "needs-maintainer",
        ),
    ],
)
def test_a_pull_request_gets_its_comment_its_status_and_its_label(
    board_checkout, update_golden, name, changes, state, label
):
    number = board_checkout.pull(changes)
    golden(f"{name}.md", board_checkout.both(number), update=update_golden)
    assert board_checkout.status(number) == state
    assert board_checkout.server.labels(number) == [label]
    # Again: nothing is new, so nothing is written.
    assert len(board_checkout.server.writes()) == 3
    board_checkout.both(number)
    assert len(board_checkout.server.writes()) == 3


PUBLIC = (
    *("GENERator-eukaryote-1.2b-base", "GENERator-eukaryote-3b-base", "GenomeOcean-4B"),
    *("MutBERT", "Omni-DNA-1B"),
)


def test_a_public_row_beside_others_with_their_ranks(
    board_checkout, update_golden, monkeypatch, tmp_path
):
    """What a contributor reads: 13 categories, intervals, and an audit of 13 tasks of 100."""
    (root := tmp_path / "public").mkdir()
    real_repository(root, *PUBLIC)
    monkeypatch.chdir(root)
    # The server has rows and what they are checked by; its commits are left out of the golden file.
    board_checkout.files = {
        f"submissions/{name}.json": (REGULAR, (SUBMISSIONS / f"{name}.json").read_bytes())
        for name in PUBLIC
    }
    for path in ("schemas/benchmark.json", "leaderboard/policy/official.json"):
        board_checkout.files[path] = (REGULAR, (ROOT / path).read_bytes())
    board_checkout.base = board_checkout.server.default_head = board_checkout.server.commit(
        board_checkout.files
    )
    name = "splicebert-1024nt"
    row, card = (SUBMISSIONS / f"{name}.json", SUBMISSIONS / f"cards/{name}.md")
    changes = {
        f"submissions/{name}.json": (REGULAR, row.read_bytes()),
        f"submissions/cards/{name}.md": (REGULAR, card.read_bytes()),
        "submissions/extractors/splicebert.py": (REGULAR, b"class SpliceBERT: ...\n"),
    }
    comment = board_checkout.both(board_checkout.pull(changes))
    seen = comment.partition("\n")[2].replace(board_checkout.base[:12], "BASE")
    seen = re.sub(r"at commit `[0-9a-f]{12}`", "at commit `HEAD`", seen)
    golden("public.md", seen, update=update_golden)
    assert calm(comment)


def test_a_correction_of_a_published_row(board_checkout, update_golden):
    """The row moves on the board, and a maintainer asks its author."""
    document = small("alpha")
    for task, scores in document["results"]["full"].items():
        scores["MCC"] = 0.9 if task == "promoter_tata" else scores["MCC"]
    card = CARD + "\n- **Correction:** 2026-11-20, full regime rerun\n"
    changes = {
        "submissions/alpha.json": (REGULAR, encoded(document)),
        "submissions/cards/alpha.md": (REGULAR, card.encode()),
    }
    golden("correction.md", board_checkout.both(board_checkout.pull(changes)), update=update_golden)


def test_a_card_alone_is_held_against_its_row(board_checkout):
    card = CARD.replace("86M", "12M")
    number = board_checkout.pull({"submissions/cards/alpha.md": (REGULAR, card.encode())})
    verdict = board_checkout.verdict(number)
    assert (verdict["model"], verdict["outcome"]) == ("alpha", "changes-needed")
    assert [file["path"] for file in verdict["files"]] == [
        "submissions/alpha.json",
        "submissions/cards/alpha.md",
    ]
    assert "card-disagrees" in {finding["rule"] for finding in verdict["findings"]}


def test_the_extractor_that_the_row_names(board_checkout):
    """Its digest is that of the pull request's own file, and a file beside it is foreign."""
    document = small_v11("model")
    document["run"]["extractor"]["path"] = "submissions/extractors/mine.py"
    code = b"class Model: ...\n"
    document["run"]["extractor"]["sha256"] = hashlib.sha256(code).hexdigest()
    changes = sound() | {ROW: (REGULAR, encoded(document))}
    del changes["submissions/extractors/model.py"]
    right = {"submissions/extractors/mine.py": (REGULAR, code)}
    verdict = board_checkout.verdict(board_checkout.pull(changes | right))
    assert "extractor-mismatch" not in {f["rule"] for f in verdict["findings"]}
    assert "submissions/extractors/mine.py" in {file["path"] for file in verdict["files"]}
    wrong = {"submissions/extractors/mine.py": (REGULAR, b"class Other: ...\n")}
    verdict = board_checkout.verdict(board_checkout.pull(changes | wrong))
    assert "extractor-mismatch" in {f["rule"] for f in verdict["findings"]}
    other = {"submissions/extractors/other.py": (REGULAR, code)}
    verdict = board_checkout.verdict(board_checkout.pull(changes | right | other))
    assert verdict["outcome"] == "needs-maintainer"
    assert verdict["findings"][0]["file"] == "submissions/extractors/other.py"


def test_a_row_and_an_extractor_that_are_too_large(board_checkout):
    changes = sound() | {
        ROW: (REGULAR, b" " * 1_000_001),
        "submissions/extractors/model.py": (REGULAR, b"#" * 1_000_001),
    }
    verdict = board_checkout.verdict(board_checkout.pull(changes))
    files = {f["file"] for f in verdict["findings"] if f["rule"] == "file-too-large"}
    assert files == {ROW, "submissions/extractors/model.py"}
    # What the tree calls too large is not fetched: only the card was.
    assert sum("/git/blobs/" in path for _, path in board_checkout.server.requests) == 1


def test_one_pull_request_that_cannot_be_read_hides_no_other(board_checkout, monkeypatch):
    flooded, lied, crashed, sound_one = (board_checkout.pull(sound(f"model{n}")) for n in range(4))
    board_checkout.server.comments[flooded] = [
        {"id": n, "user": {"id": 9, "login": "x"}, "body": "x"} for n in range(3001)
    ]
    tree = board_checkout.server.trees[
        board_checkout.server.commits[board_checkout.server.pulls[lied]["head"]["sha"]][0]
    ]
    board_checkout.server.lies[tree["submissions/model1.json"][1]] = b"{}"
    judge = PullChecker.judge

    def failing(self, head, others=None):
        if head == board_checkout.server.pulls[crashed]["head"]["sha"]:
            raise ZeroDivisionError("##[error]\n::x")
        return judge(self, head, others)

    monkeypatch.setattr(PullChecker, "judge", failing)
    code, line, err = board_checkout.run("reconcile")
    assert code == 0
    outcomes = {pull["number"]: pull["outcome"] for pull in json.loads(line)["pulls"]}
    assert outcomes == {crashed: "not-checked", sound_one: "passed"}
    assert "GitHub lists more than the 3,000 entries" in err
    assert "GitHub sent bytes with the id" in err
    assert calm(line + err)
    assert board_checkout.report(line)[0] == 0
    assert board_checkout.status(crashed) == ("error", "1 failed rule")
    assert board_checkout.server.labels(crashed) == ["geneb: not checked"]
    assert calm(board_checkout.comment(crashed))


def test_outside_a_repository_there_is_nothing_to_hold_rows_against(
    board_checkout, tmp_path, monkeypatch
):
    number = board_checkout.pull(sound())
    monkeypatch.chdir(tmp_path)
    code, out, err = board_checkout.run("reconcile", "--pr", str(number))
    assert (code, out) == (2, "")
    assert err.startswith("geneb-ci: this is not a repository of submissions\n")


def test_a_closed_pull_request_is_left_alone(board_checkout):
    number = board_checkout.pull(sound())
    _, line, _ = board_checkout.run("reconcile", "--pr", str(number))
    board_checkout.server.pulls[number]["state"] = "closed"
    assert board_checkout.run("reconcile", "--pr", str(number))[0] == 2
    code, _, err = board_checkout.report(line)
    assert (code, board_checkout.server.writes()) == (4, [])
    assert err.startswith(f"geneb-ci: {number}: pull request {number} is closed\n")


def test_nothing_to_do(board_checkout):
    code, line, err = board_checkout.run("reconcile")
    assert (code, json.loads(line)["pulls"]) == (0, [])
    assert err == "no pull request is open to main\n"
    code, _, err = board_checkout.report(line)
    assert (code, err) == (0, "the verdict names no pull request: nothing to write\n")


def test_what_is_significant_comes_through_its_parameter():
    board = [SubmissionV10.model_validate(small(name)) for name in ("alpha", "beta", "gamma")]
    decided = DecidedStanding(
        rank_low=1, rank_high=2, better_than=1, worse_than=0, best_in=3, categories=3
    )
    standing_list = row_standings(board[0], board, BENCHMARK, lambda _regime: decided)
    assert [standing.decided for standing in standing_list] == [decided] * 3
    assert [standing.before == standing.rank for standing in standing_list] == [True] * 3
    shown = verdict_comment(pull_of([]).model_copy(update={"standings": standing_list}), ADDRESS)
    assert "(range 1 to 2) of 3 |" in shown
    assert shown.count("| 1 row | 0 rows | 3 of 3 categories |") == 3


def test_what_an_audit_finds_is_the_hypergeometric_formula():
    estimate = audit_estimate(shipped_benchmark(), audit_policy(Layout(LayoutKind.ALONE, ROOT)))
    assert (estimate.drawn, estimate.tasks, estimate.fabricated) == (13, 100, 20)
    assert round(estimate.detection, 3) == 0.956


def test_a_change_that_holds_no_submission_is_told_so(board_checkout, update_golden):
    changes = {"geneb_ci/check/runner.py": (REGULAR, b"x"), "README.md": (REGULAR, b"x")}
    number = board_checkout.pull(changes)
    golden("no-submission.md", board_checkout.both(number), update=update_golden)
