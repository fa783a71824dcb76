"""What is a pull request's to change, and whose verdict it is: cases that a name alone decides."""

import hashlib
import json
from typing import Any

import pytest

from tests.github.conftest import CARD_PATH, MODULE, REGULAR, ROW, BoardCheckout, encoded, sound
from tests.github.history import Files
from tests.small import CARD, small_v11

THEIRS = "submissions/extractors/alpha.py"
NOTE = CARD + "\n- **Correction:** 2026-11-20, full regime rerun\n"


def row(name: str, module: str, code: bytes) -> Files:
    """Return a row of format 1.1 that names a module and the digest of its bytes."""
    document: dict[str, Any] = small_v11(name)
    document["run"]["extractor"] |= {"path": module, "sha256": hashlib.sha256(code).hexdigest()}
    return {f"submissions/{name}.json": (REGULAR, encoded(document))}


def rules(verdict: dict[str, Any]) -> set[str]:
    return set(verdict["places"])


def publish(board_checkout: BoardCheckout, files: Files) -> None:
    """Merge files into main: to the server and to the checkout."""
    board_checkout.files |= files
    board_checkout.base = board_checkout.server.default_head = board_checkout.server.commit(
        board_checkout.files
    )
    for path, (_, raw) in files.items():
        (board_checkout.root / path).write_bytes(raw)


def test_row_22_a_row_that_names_anothers_extractor_does_not_own_it(board_checkout):
    """Threat 22: a new row names alpha's module, and rewrites it, with a note in its own card."""
    code = b"class Model: ...  # every score is mine\n"
    changes = sound() | row("model", THEIRS, code) | {THEIRS: (REGULAR, code)}
    changes[CARD_PATH] = (REGULAR, NOTE.encode())
    del changes[MODULE]
    verdict = board_checkout.verdict(board_checkout.pull(changes))
    assert verdict["outcome"] == "needs-maintainer"
    # Its bytes are not read: what lies in the repository is held against the row's digest.
    assert rules(verdict) == {"extractor-mismatch", "foreign-file"}
    assert verdict["findings"][0]["file"] == THEIRS
    assert THEIRS not in {file["path"] for file in verdict["files"]}


def test_an_extractor_that_lies_there_already_is_no_one_elses(board_checkout):
    """Two models of one family share a module: the second row changes nothing of it."""
    code = board_checkout.files[THEIRS][1]
    changes = sound() | row("model", THEIRS, code)
    del changes[MODULE]
    assert board_checkout.verdict(board_checkout.pull(changes))["outcome"] == "passed"


@pytest.mark.parametrize(("is_shared", "outcome"), [(False, "passed"), (True, "needs-maintainer")])
def test_a_published_row_corrects_its_extractor_unless_another_uses_it(
    board_checkout, is_shared, outcome
):
    old, new = board_checkout.files[THEIRS][1], b"class Model: ...  # pooling corrected\n"
    publish(
        board_checkout, row("alpha", THEIRS, old) | (row("beta", THEIRS, old) if is_shared else {})
    )
    changes = row("alpha", THEIRS, new) | {THEIRS: (REGULAR, new)}
    without = board_checkout.verdict(board_checkout.pull(changes))
    assert "edited-without-note" in rules(without)
    noted = changes | {"submissions/cards/alpha.md": (REGULAR, NOTE.encode())}
    verdict = board_checkout.verdict(board_checkout.pull(noted))
    assert (verdict["outcome"], verdict["is_edit"]) == (outcome, True)


PINNED = b"h5py==3.16.0 --hash=sha256:" + b"0" * 64 + b"\n"


def locked(files: Files, name: str, lock: bytes, claimed: bytes = b"") -> Files:
    """Add a lock to the extractor of a row, and its digest to the run."""
    path = f"submissions/{name}.json"
    document = json.loads(files[path][1])
    document["run"]["environment"] = hashlib.sha256(claimed or lock).hexdigest()
    module = document["run"]["extractor"]["path"].removesuffix(".py")
    return files | {
        path: (REGULAR, encoded(document)),
        f"{module}.lock.txt": (REGULAR, lock),
    }


def test_a_row_brings_the_lock_of_its_extractor(board_checkout):
    changes = sound()
    changes |= row("model", MODULE, changes[MODULE][1])
    verdict = board_checkout.verdict(board_checkout.pull(locked(changes, "model", PINNED)))
    assert verdict["outcome"] == "passed"
    assert f"{MODULE.removesuffix('.py')}.lock.txt" in {file["path"] for file in verdict["files"]}
    for lock in (b"-r /etc/passwd\n", PINNED + b"--extra-index-url //example.org\n"):
        refused = board_checkout.verdict(board_checkout.pull(locked(changes, "model", lock)))
        assert (refused["outcome"], rules(refused)) == ("changes-needed", {"unusable-lock"})
    other = board_checkout.verdict(
        board_checkout.pull(locked(changes, "model", PINNED, claimed=b"another"))
    )
    assert (other["outcome"], rules(other)) == ("changes-needed", {"lock-mismatch"})


def test_a_lock_beside_anothers_extractor_is_not_the_rows(board_checkout):
    """It would change the packages in which the other row is audited."""
    code = board_checkout.files[THEIRS][1]
    changes = sound() | row("model", THEIRS, code)
    del changes[MODULE]
    verdict = board_checkout.verdict(board_checkout.pull(locked(changes, "model", PINNED)))
    assert verdict["outcome"] == "needs-maintainer"
    # Nor are its bytes read: none lies in the repository.
    assert rules(verdict) == {"foreign-file", "lock-mismatch"}
    assert "submissions/extractors/alpha.lock.txt" not in {
        file["path"] for file in verdict["files"]
    }


def test_a_row_cannot_lose_its_lock(board_checkout):
    code = board_checkout.files[THEIRS][1]
    publish(board_checkout, locked(row("alpha", THEIRS, code), "alpha", PINNED))
    gone = board_checkout.files | row("alpha", THEIRS, code)
    gone |= {"submissions/cards/alpha.md": (REGULAR, NOTE.encode())}
    del gone["submissions/extractors/alpha.lock.txt"]
    head = board_checkout.server.commit(gone, board_checkout.base)
    verdict = board_checkout.verdict(board_checkout.server.open_pull(head, board_checkout.base))
    assert "unusable-lock" in rules(verdict)


@pytest.mark.parametrize("path", [ROW, CARD_PATH, MODULE])
@pytest.mark.parametrize("mode", ["100755", "100664", "100000", "0100644"])
def test_38_a_mode_that_is_not_that_of_an_ordinary_file_never_passes(board_checkout, path, mode):
    verdict = board_checkout.verdict(
        board_checkout.pull(sound() | {path: (mode, sound()[path][1])})
    )
    assert verdict["outcome"] == "changes-needed"
    assert "executable-file" in rules(verdict)
    assert path not in {file["path"] for file in verdict["files"]}


def test_row_4_a_pass_on_another_branch_is_none_on_main(board_checkout):
    """Threat 4: one commit, two pull requests; the status is on the commit, main's verdict counts.

    A maintainer's branch holds a workflow. From there the head adds a submission only; from main,
    it brings the workflow along.
    """
    draft = board_checkout.files | {".github/workflows/draft.yml": (REGULAR, b"on: push\n")}
    branch = board_checkout.server.commit(draft, board_checkout.base)
    head = board_checkout.server.commit(draft | sound(), branch)
    to_main = board_checkout.server.open_pull(head, board_checkout.base)
    aside = board_checkout.server.open_pull(head, branch)
    board_checkout.server.pulls[aside]["base"]["ref"] = "draft"
    code, out, err = board_checkout.run("reconcile", "--pr", str(aside))
    assert (code, out) == (2, "")
    assert err == (
        f"geneb-ci: the base branch of pull request {aside} is 'draft', not 'main'\n"
        "  fix: pass a pull request with the base branch 'main'\n"
    )
    for arguments in ([], ["--head-sha", head]):
        (pull,) = json.loads(board_checkout.run("reconcile", *arguments)[1])["pulls"]
        assert (pull["number"], pull["outcome"]) == (to_main, "needs-maintainer")
    board_checkout.both(to_main)
    assert board_checkout.status(to_main)[0] == "pending"
    rows = json.loads(board_checkout.run("triage", "--format", "json", "--no-cache")[1])["pulls"]
    assert [row["number"] for row in rows] == [to_main]


def test_a_repository_that_was_renamed_is_not_read_by_its_old_name(board_checkout):
    """The redirection drops our parameters: a tree would come without its folders."""
    number = board_checkout.pull(sound())
    board_checkout.server.pulls[number]["base"]["repo"]["full_name"] = "org/new"
    for arguments in (["reconcile"], ["reconcile", "--pr", str(number)], ["triage", "--no-cache"]):
        code, out, err = board_checkout.run(*arguments)
        assert (code, out) == (2, "")
        assert err == (
            "geneb-ci: org/board was renamed to 'org/new'\n  fix: pass --repo with the new name\n"
        )


def test_one_merge_base_for_what_changed_and_what_it_was(board_checkout):
    """Main moved on: what others merged meanwhile is neither this change's nor held against it."""
    number = board_checkout.pull(sound())
    later = board_checkout.files | sound("later") | {"pyproject.toml": (REGULAR, b"[project]\n")}
    board_checkout.server.pulls[number]["base"]["sha"] = board_checkout.server.commit(
        later, board_checkout.base
    )
    verdict = board_checkout.verdict(number)
    assert (verdict["outcome"], verdict["base_sha"]) == ("passed", board_checkout.base)
    assert [file["path"] for file in verdict["files"]] == sorted([ROW, CARD_PATH, MODULE])
