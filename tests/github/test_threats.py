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


def fabricated(**said: Any) -> Files:
    document = small("model") | said
    document["results"]["full"]["promoter_tata"]["Acc"] = 1.7
    return sound() | {ROW: (REGULAR, encoded(document))}


def test_row_1_pwn_request_no_code_of_the_pull_request_runs(place):
    """Threat 1: the extractor is bytes to us; nothing is checked out, installed or imported."""
    changes = sound() | {
        MODULE: (REGULAR, EVIL),
        "conftest.py": (REGULAR, EVIL),
        "sitecustomize.py": (REGULAR, EVIL),
        "geneb_ci/__init__.py": (REGULAR, EVIL),
    }
    before = sorted(path for path in place.root.rglob("*"))
    place.both(place.pull(changes))
    assert sorted(path for path in place.root.rglob("*")) == before
    assert not (place.root / "pwned").exists()


def test_row_2_poisoned_artifacts_and_caches_are_out_of_reach(place):
    """Threat 2: only trees, blobs and metadata are asked for."""
    number = place.pull(sound())
    place.both(number)
    place.run("reconcile")
    prefix = "/repos/org/board"
    allowed = ("/graphql", *(prefix + one for one in ALLOWED_PATHS))
    assert all(path.startswith(allowed) for _, path in place.server.requests)


def test_row_4_a_forged_green_check_does_not_pass(place):
    """Threat 4: a status of the same name by another account, and a label, count for nothing."""
    number = place.pull(fabricated())
    sha = place.server.pulls[number]["head"]["sha"]
    forged = {"context": "geneb/verdict", "state": "success", "description": "1 note"}
    place.server.statuses[sha] = [forged | {"creator": STRANGER}, forged | {"creator": None}]
    place.server.pulls[number]["labels"] = [{"name": "geneb: passed"}, {"name": "help wanted"}]
    code, line, _ = place.run("reconcile")
    assert [pull["number"] for pull in json.loads(line)["pulls"]] == [number]
    assert place.report(line)[0] == code == 0
    assert place.status(number)[0] == "failure"
    assert place.server.labels(number) == ["help wanted", "geneb: changes needed"]


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
    said = capsys.readouterr()
    assert "nothing was built: every submission must pass every check" in said.err
    assert "score-out-of-range" in said.out
    assert not (tmp_path / "board").exists()


def test_row_5_a_verdict_is_about_bytes(place):
    """Threat 5: the verdict names the SHA-256 of each file; other bytes have no verdict."""
    number = place.pull(sound())
    verdict = place.verdict(number)
    by_path = {file["path"]: file["sha256"] for file in verdict["files"]}
    assert sorted(by_path) == sorted([ROW, CARD_PATH, MODULE])
    comment = place.both(number)
    assert all(digest in comment for digest in by_path.values())


def test_row_5_the_head_moves_while_the_trees_are_read(place):
    """Threat 5: all reads are by SHA, so a push in between changes nothing of what is judged."""
    number = place.pull(sound())
    old = place.server.pulls[number]["head"]["sha"]
    new = place.server.commit(place.files | fabricated(), place.base)

    def push(_verb, path):
        if "/git/trees/" in path:
            place.server.pulls[number]["head"]["sha"] = new

    place.server.before = push
    code, line, _ = place.run("reconcile", "--pr", str(number))
    (pull,) = json.loads(line)["pulls"]
    assert (code, pull["head_sha"], pull["outcome"]) == (0, old, "passed")
    assert place.report(line)[0] == 4
    assert place.server.writes() == []
    assert new not in place.server.statuses


def test_row_6_approve_then_push(place):
    """Threat 6: the event's head is not the head any more: exit 4, and nothing is read or run."""
    number = place.pull(sound())
    approved = place.server.pulls[number]["head"]["sha"]
    place.server.pulls[number]["head"]["sha"] = place.server.commit(place.files, place.base)
    for arguments in (["--pr", str(number), "--head-sha", approved], ["--head-sha", approved]):
        place.server.requests.clear()
        code, out, _ = place.run("reconcile", *arguments)
        assert (code, out) == (4, "")
        assert not any("/git/" in path for _, path in place.server.requests)


def test_row_22_a_row_that_spoofs_another(place):
    """Threat 22: one name in two spellings is one name."""
    document = small("model") | {"model_id": "ALPHA"}
    changes = {
        "submissions/ALPHA.json": (REGULAR, encoded(document)),
        "submissions/cards/ALPHA.md": (REGULAR, CARD.encode()),
        "submissions/extractors/alpha_2.py": (REGULAR, b"x = 1\n"),
    }
    verdict = place.verdict(place.pull(changes))
    assert verdict["outcome"] == "changes-needed"
    assert "model-id-collision" in {finding["rule"] for finding in verdict["findings"]}


def test_row_22_paths_that_climb_or_look_alike(place):
    """Threat 22: a path is a model's only if its name is plain ASCII, in the very folder."""
    for path in (
        "submissions/../.github/workflows/x.json",
        "submissions/m\u043edel.json",
        "submissions/model.json\n",
        "submissions/-model.json",
        f"submissions/{'m' * 129}.json",
    ):
        verdict = place.verdict(place.pull({path: (REGULAR, encoded(small("model")))}))
        assert (verdict["outcome"], verdict["model"], verdict["files"]) == (
            "needs-maintainer",
            None,
            [],
        )
    for path in ("submissions/sub/model.json", "Submissions/model.json"):
        verdict = place.verdict(place.pull({path: (REGULAR, encoded(small("model")))}))
        assert (verdict["outcome"], verdict["model"], verdict["files"]) == (
            "changes-needed",
            None,
            [],
        )
        assert verdict["findings"][0]["rule"] == "misplaced-file"


def test_row_23_what_only_a_tree_tells(place):
    """Threat 23: links and submodules are never read, LFS pointers are no rows."""
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    verdict = place.verdict(place.pull(sound() | {ROW: (REGULAR, pointer)}))
    assert "lfs-pointer" in {finding["rule"] for finding in verdict["findings"]}
    link = place.pull(sound() | {CARD_PATH: ("120000", b"/proc/1/environ")})
    verdict = place.verdict(link)
    assert CARD_PATH not in {file["path"] for file in verdict["files"]}
    assert verdict["outcome"] == "changes-needed"


def test_row_25_a_stale_verdict_is_not_written_over_a_newer_one(place):
    """Threat 25: yesterday's run, replayed, finds another head."""
    number = place.pull(sound())
    code, stale, _ = place.run("reconcile", "--pr", str(number))
    assert code == 0
    new = place.server.commit(place.files | fabricated(), place.base)
    place.server.pulls[number]["head"]["sha"] = new
    newer = place.both(number)
    written = len(place.server.writes())
    assert place.report(stale)[0] == 4
    assert len(place.server.writes()) == written
    assert place.comment(number) == newer
    assert place.status(number)[0] == "failure"


def test_row_26_the_reading_job_needs_no_write_scope(place):
    """Threat 26: `reconcile` and `triage` work with a token that may read only."""
    number = place.pull(sound())
    place.server.permissions = READ
    assert place.verdict(number)["outcome"] == "passed"
    assert place.run("reconcile")[0] == 0
    assert place.run("triage", "--no-cache")[0] == 0
    assert place.server.writes() == []


def test_row_26_the_writing_job_reads_no_byte_of_the_pull_request(place):
    """Threat 26: with write scopes, only the verdict is parsed."""
    number = place.pull(sound())
    _, line, _ = place.run("reconcile", "--pr", str(number))
    place.server.requests.clear()
    place.report(line)
    assert [
        (verb, path.split("?")[0].removeprefix("/repos/org/board"))
        for verb, path in place.server.requests
    ] == [
        ("GET", "/commits/HEAD"),
        ("POST", "/graphql"),
        ("POST", "/issues/1/labels"),
        ("POST", "/issues/1/comments"),
        ("POST", f"/statuses/{json.loads(line)['pulls'][0]['head_sha']}"),
    ]
    assert place.server.comments[number][0]["user"] == BOT


def test_anothers_row_is_not_changed_in_silence(place):
    """Threat 17's other side: an edit of a published row says what it corrects, or fails."""
    alpha = small("alpha")
    alpha["results"]["full"]["promoter_tata"]["MCC"] = 0.1
    row = {"submissions/alpha.json": (REGULAR, encoded(alpha))}
    verdict = place.verdict(place.pull(row))
    assert verdict["is_edit"] is True
    assert "edited-without-note" in {finding["rule"] for finding in verdict["findings"]}
    card = CARD + "\n- **Correction:** 2026-11-20, full regime rerun\n"
    number = place.pull(row | {"submissions/cards/alpha.md": (REGULAR, card.encode())})
    verdict = place.verdict(number)
    assert verdict["outcome"] == "passed"
    assert all(standing["before"] is not None for standing in verdict["standings"])
    assert "asks its author before merging" in place.both(number)
