"""Rows of the threat table that concern GitHub's side: one attack each, or more."""

import json
from typing import Any

from geneb_ci.cli.main import main
from tests.cli import repository
from tests.github.conftest import CARD_PATH, MODULE, REGULAR, ROW, encoded, sound
from tests.github.history import Files
from tests.github.server import BOT, READ, STRANGER
from tests.small import CARD, small

EVIL = b"import os\nos.system('touch pwned')\n"
ALLOWED_PATHS = (
    "/pulls",
    "/compare/",
    "/git/trees/",
    "/git/blobs/",
    "/git/matching-refs/heads/gh-readonly-queue/",
    "/issues",
    "/commits/",
    "/statuses/",
)


def fabricated(**options: Any) -> Files:
    document = small("model") | options
    document["results"]["full"]["promoter_tata"]["Acc"] = 1.7
    return sound() | {ROW: (REGULAR, encoded(document))}


def test_row_1_pwn_request_no_code_of_the_pull_request_runs(board_checkout):
    """Threat 1: the extractor is bytes to us; nothing is checked out, installed or imported."""
    changes = sound() | {
        MODULE: (REGULAR, EVIL),
        "conftest.py": (REGULAR, EVIL),
        "sitecustomize.py": (REGULAR, EVIL),
        "geneb_ci/__init__.py": (REGULAR, EVIL),
    }
    before = sorted(path for path in board_checkout.root.rglob("*"))
    board_checkout.both(board_checkout.pull(changes))
    assert sorted(path for path in board_checkout.root.rglob("*")) == before
    assert not (board_checkout.root / "pwned").exists()


def test_row_2_poisoned_artifacts_and_caches_are_out_of_reach(board_checkout):
    """Threat 2: only trees, blobs and metadata are asked for."""
    number = board_checkout.pull(sound())
    board_checkout.both(number)
    board_checkout.run("reconcile")
    prefix = "/repos/org/board"
    allowed = ("/graphql", *(prefix + allowed_path for allowed_path in ALLOWED_PATHS))
    assert all(path.startswith(allowed) for _, path in board_checkout.server.requests)


def test_row_4_a_forged_green_check_does_not_pass(board_checkout):
    """Threat 4: a status of the same name by another account, and a label, count for nothing."""
    number = board_checkout.pull(fabricated())
    sha = board_checkout.server.pulls[number]["head"]["sha"]
    forged = {"context": "geneb/verdict", "state": "success", "description": "1 note"}
    board_checkout.server.statuses[sha] = [
        forged | {"creator": STRANGER},
        forged | {"creator": None},
    ]
    board_checkout.server.pulls[number]["labels"] = [
        {"name": "geneb: passed"},
        {"name": "help wanted"},
    ]
    code, line, _ = board_checkout.run("reconcile")
    assert [pull["number"] for pull in json.loads(line)["pulls"]] == [number]
    assert board_checkout.report(line)[0] == code == 0
    assert board_checkout.status(number)[0] == "failure"
    assert board_checkout.server.labels(number) == ["help wanted", "geneb: changes needed"]


def test_row_4_a_bad_file_that_was_merged_all_the_same_is_never_built(
    tmp_path, monkeypatch, capsys
):
    """Threat 4: every light was green, and somebody merged: the job *build* checks from zero."""
    (root := tmp_path / "main").mkdir()
    document = json.loads(fabricated()[ROW][1])
    repository.put(repository.small_repository(root, "alpha", "beta"), "model", document)
    merged = repository.commit(root)
    monkeypatch.chdir(root)
    assert main(["build", "--at", merged, "--output", str(tmp_path / "board")]) == 11
    captured_output = capsys.readouterr()
    assert "nothing was built: every submission must pass every check" in captured_output.err
    assert "score-out-of-range" in captured_output.out
    assert not (tmp_path / "board").exists()


def test_row_5_a_verdict_is_about_bytes(board_checkout):
    """Threat 5: the verdict names the SHA-256 of each file; other bytes have no verdict."""
    number = board_checkout.pull(sound())
    verdict = board_checkout.verdict(number)
    by_path = {file["path"]: file["sha256"] for file in verdict["files"]}
    assert sorted(by_path) == sorted([ROW, CARD_PATH, MODULE])
    comment = board_checkout.both(number)
    assert all(digest in comment for digest in by_path.values())


def test_row_5_the_head_moves_while_the_trees_are_read(board_checkout):
    """Threat 5: all reads are by SHA, so a push in between changes nothing of what is judged."""
    number = board_checkout.pull(sound())
    old = board_checkout.server.pulls[number]["head"]["sha"]
    new = board_checkout.server.commit(board_checkout.files | fabricated(), board_checkout.base)

    def push(_verb, path):
        if "/git/trees/" in path:
            board_checkout.server.pulls[number]["head"]["sha"] = new

    board_checkout.server.before = push
    code, line, _ = board_checkout.run("reconcile", "--pr", str(number))
    (pull,) = json.loads(line)["pulls"]
    assert (code, pull["head_sha"], pull["outcome"]) == (0, old, "passed")
    assert board_checkout.report(line)[0] == 4
    assert board_checkout.server.writes() == []
    assert new not in board_checkout.server.statuses


def test_row_6_approve_then_push(board_checkout):
    """Threat 6: the event's head is not the head any more: exit 4, and nothing is read or run."""
    number = board_checkout.pull(sound())
    approved = board_checkout.server.pulls[number]["head"]["sha"]
    board_checkout.server.pulls[number]["head"]["sha"] = board_checkout.server.commit(
        board_checkout.files, board_checkout.base
    )
    for arguments in (["--pr", str(number), "--head-sha", approved], ["--head-sha", approved]):
        board_checkout.server.requests.clear()
        code, out, _ = board_checkout.run("reconcile", *arguments)
        assert (code, out) == (4, "")
        assert not any("/git/" in path for _, path in board_checkout.server.requests)


def test_row_22_a_row_that_spoofs_another(board_checkout):
    """Threat 22: one name in two spellings is one name."""
    document = small("model") | {"model_id": "ALPHA"}
    changes = {
        "submissions/ALPHA.json": (REGULAR, encoded(document)),
        "submissions/cards/ALPHA.md": (REGULAR, CARD.encode()),
        "submissions/extractors/alpha_2.py": (REGULAR, b"x = 1\n"),
    }
    verdict = board_checkout.verdict(board_checkout.pull(changes))
    assert verdict["outcome"] == "changes-needed"
    assert "model-id-collision" in {finding["rule"] for finding in verdict["findings"]}


def test_row_22_paths_that_climb_or_look_alike(board_checkout):
    """Threat 22: a path is a model's only if its name is plain ASCII, in the very folder."""
    for path in (
        "submissions/../.github/workflows/x.json",
        "submissions/m\u043edel.json",
        "submissions/model.json\n",
        "submissions/-model.json",
        f"submissions/{'m' * 129}.json",
    ):
        verdict = board_checkout.verdict(
            board_checkout.pull({path: (REGULAR, encoded(small("model")))})
        )
        assert (verdict["outcome"], verdict["model"], verdict["files"]) == (
            "needs-maintainer",
            None,
            [],
        )
    for path in ("submissions/sub/model.json", "Submissions/model.json"):
        verdict = board_checkout.verdict(
            board_checkout.pull({path: (REGULAR, encoded(small("model")))})
        )
        assert (verdict["outcome"], verdict["model"], verdict["files"]) == (
            "changes-needed",
            None,
            [],
        )
        assert verdict["findings"][0]["rule"] == "misplaced-file"


def test_row_23_what_only_a_tree_tells(board_checkout):
    """Threat 23: links and submodules are never read, LFS pointers are no rows."""
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    verdict = board_checkout.verdict(board_checkout.pull(sound() | {ROW: (REGULAR, pointer)}))
    assert "lfs-pointer" in {finding["rule"] for finding in verdict["findings"]}
    link = board_checkout.pull(sound() | {CARD_PATH: ("120000", b"/proc/1/environ")})
    verdict = board_checkout.verdict(link)
    assert CARD_PATH not in {file["path"] for file in verdict["files"]}
    assert verdict["outcome"] == "changes-needed"


def test_row_25_a_stale_verdict_is_not_written_over_a_newer_one(board_checkout):
    """Threat 25: yesterday's run, replayed, finds another head."""
    number = board_checkout.pull(sound())
    code, stale, _ = board_checkout.run("reconcile", "--pr", str(number))
    assert code == 0
    new = board_checkout.server.commit(board_checkout.files | fabricated(), board_checkout.base)
    board_checkout.server.pulls[number]["head"]["sha"] = new
    newer = board_checkout.both(number)
    written = len(board_checkout.server.writes())
    assert board_checkout.report(stale)[0] == 4
    assert len(board_checkout.server.writes()) == written
    assert board_checkout.comment(number) == newer
    assert board_checkout.status(number)[0] == "failure"


def test_row_26_the_reading_job_needs_no_write_scope(board_checkout):
    """Threat 26: `reconcile` and `triage` work with a token that may read only."""
    number = board_checkout.pull(sound())
    board_checkout.server.permissions = READ
    assert board_checkout.verdict(number)["outcome"] == "passed"
    assert board_checkout.run("reconcile")[0] == 0
    assert board_checkout.run("triage", "--no-cache")[0] == 0
    assert board_checkout.server.writes() == []


def test_row_26_the_writing_job_reads_no_byte_of_the_pull_request(board_checkout):
    """Threat 26: with write scopes, only the verdict is parsed."""
    number = board_checkout.pull(sound())
    _, line, _ = board_checkout.run("reconcile", "--pr", str(number))
    board_checkout.server.requests.clear()
    board_checkout.report(line)
    assert [
        (verb, path.split("?")[0].removeprefix("/repos/org/board"))
        for verb, path in board_checkout.server.requests
    ] == [
        ("GET", "/commits/HEAD"),
        ("POST", "/graphql"),
        ("POST", "/issues/1/labels"),
        ("POST", "/issues/1/comments"),
        ("POST", f"/statuses/{json.loads(line)['pulls'][0]['head_sha']}"),
    ]
    assert board_checkout.server.comments[number][0]["user"] == BOT


def test_anothers_row_is_not_changed_in_silence(board_checkout):
    """Threat 17's other side: an edit of a published row says what it corrects, or fails."""
    alpha = small("alpha")
    alpha["results"]["full"]["promoter_tata"]["MCC"] = 0.1
    row = {"submissions/alpha.json": (REGULAR, encoded(alpha))}
    verdict = board_checkout.verdict(board_checkout.pull(row))
    assert verdict["is_edit"] is True
    assert "edited-without-note" in {finding["rule"] for finding in verdict["findings"]}
    card = CARD + "\n- **Correction:** 2026-11-20, full regime rerun\n"
    number = board_checkout.pull(row | {"submissions/cards/alpha.md": (REGULAR, card.encode())})
    verdict = board_checkout.verdict(number)
    assert verdict["outcome"] == "passed"
    assert all(standing["before"] is not None for standing in verdict["standings"])
    assert "asks its author before merging" in board_checkout.both(number)
