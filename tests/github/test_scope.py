"""What is a pull request's to change, and whose verdict it is: cases that a name alone decides."""

import hashlib
import json
from typing import Any

import pytest

from tests.github.conftest import CARD_PATH, MODULE, REGULAR, ROW, Place, encoded, sound
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


def publish(place: Place, files: Files) -> None:
    """Merge files into main: to the server and to the checkout."""
    place.files |= files
    place.base = place.server.default_head = place.server.commit(place.files)
    for path, (_, raw) in files.items():
        (place.root / path).write_bytes(raw)


def test_row_22_a_row_that_names_anothers_extractor_does_not_own_it(place):
    """Threat 22: a new row names alpha's module, and rewrites it, with a note in its own card."""
    code = b"class Model: ...  # every score is mine\n"
    changes = sound() | row("model", THEIRS, code) | {THEIRS: (REGULAR, code)}
    changes[CARD_PATH] = (REGULAR, NOTE.encode())
    del changes[MODULE]
    verdict = place.verdict(place.pull(changes))
    assert verdict["outcome"] == "needs-maintainer"
    # Its bytes are not read: what lies in the repository is held against the row's digest.
    assert rules(verdict) == {"extractor-mismatch", "foreign-file"}
    assert verdict["findings"][0]["file"] == THEIRS
    assert THEIRS not in {file["path"] for file in verdict["files"]}


def test_an_extractor_that_lies_there_already_is_no_one_elses(place):
    """Two models of one family share a module: the second row changes nothing of it."""
    code = place.files[THEIRS][1]
    changes = sound() | row("model", THEIRS, code)
    del changes[MODULE]
    assert place.verdict(place.pull(changes))["outcome"] == "passed"


@pytest.mark.parametrize(("is_shared", "outcome"), [(False, "passed"), (True, "needs-maintainer")])
def test_a_published_row_corrects_its_extractor_unless_another_uses_it(place, is_shared, outcome):
    old, new = place.files[THEIRS][1], b"class Model: ...  # pooling mended\n"
    publish(place, row("alpha", THEIRS, old) | (row("beta", THEIRS, old) if is_shared else {}))
    changes = row("alpha", THEIRS, new) | {THEIRS: (REGULAR, new)}
    without = place.verdict(place.pull(changes))
    assert "edited-without-note" in rules(without)
    noted = changes | {"submissions/cards/alpha.md": (REGULAR, NOTE.encode())}
    verdict = place.verdict(place.pull(noted))
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


def test_a_row_brings_the_lock_of_its_extractor(place):
    changes = sound()
    changes |= row("model", MODULE, changes[MODULE][1])
    verdict = place.verdict(place.pull(locked(changes, "model", PINNED)))
    assert verdict["outcome"] == "passed"
    assert f"{MODULE.removesuffix('.py')}.lock.txt" in {file["path"] for file in verdict["files"]}
    for lock in (b"-r /etc/passwd\n", PINNED + b"--extra-index-url //example.org\n"):
        refused = place.verdict(place.pull(locked(changes, "model", lock)))
        assert (refused["outcome"], rules(refused)) == ("changes-needed", {"unusable-lock"})
    other = place.verdict(place.pull(locked(changes, "model", PINNED, claimed=b"another")))
    assert (other["outcome"], rules(other)) == ("changes-needed", {"lock-mismatch"})


def test_a_lock_beside_anothers_extractor_is_not_the_rows(place):
    """It would change the packages in which the other row is audited."""
    code = place.files[THEIRS][1]
    changes = sound() | row("model", THEIRS, code)
    del changes[MODULE]
    verdict = place.verdict(place.pull(locked(changes, "model", PINNED)))
    assert verdict["outcome"] == "needs-maintainer"
    # Nor are its bytes read: none lies in the repository.
    assert rules(verdict) == {"foreign-file", "lock-mismatch"}
    assert "submissions/extractors/alpha.lock.txt" not in {one["path"] for one in verdict["files"]}


def test_a_row_cannot_lose_its_lock(place):
    code = place.files[THEIRS][1]
    publish(place, locked(row("alpha", THEIRS, code), "alpha", PINNED))
    gone = place.files | row("alpha", THEIRS, code)
    gone |= {"submissions/cards/alpha.md": (REGULAR, NOTE.encode())}
    del gone["submissions/extractors/alpha.lock.txt"]
    head = place.server.commit(gone, place.base)
    verdict = place.verdict(place.server.open_pull(head, place.base))
    assert "unusable-lock" in rules(verdict)


@pytest.mark.parametrize("path", [ROW, CARD_PATH, MODULE])
@pytest.mark.parametrize("mode", ["100755", "100664", "100000", "0100644"])
def test_38_a_mode_that_is_not_that_of_an_ordinary_file_never_passes(place, path, mode):
    verdict = place.verdict(place.pull(sound() | {path: (mode, sound()[path][1])}))
    assert verdict["outcome"] == "changes-needed"
    assert "executable-file" in rules(verdict)
    assert path not in {file["path"] for file in verdict["files"]}


def test_row_4_a_pass_on_another_branch_is_none_on_main(place):
    """Threat 4: one commit, two pull requests; the status is on the commit, main's verdict counts.

    A maintainer's branch holds a workflow. From there the head adds a submission only; from main,
    it brings the workflow along.
    """
    draft = place.files | {".github/workflows/draft.yml": (REGULAR, b"on: push\n")}
    branch = place.server.commit(draft, place.base)
    head = place.server.commit(draft | sound(), branch)
    to_main = place.server.open_pull(head, place.base)
    aside = place.server.open_pull(head, branch)
    place.server.pulls[aside]["base"]["ref"] = "draft"
    code, out, err = place.run("reconcile", "--pr", str(aside))
    assert (code, out) == (2, "")
    assert err == (
        f"geneb-ci: the base branch of pull request {aside} is 'draft', not 'main'\n"
        "  fix: pass a pull request with the base branch 'main'\n"
    )
    for arguments in ([], ["--head-sha", head]):
        (pull,) = json.loads(place.run("reconcile", *arguments)[1])["pulls"]
        assert (pull["number"], pull["outcome"]) == (to_main, "needs-maintainer")
    place.both(to_main)
    assert place.status(to_main)[0] == "pending"
    rows = json.loads(place.run("triage", "--format", "json", "--no-cache")[1])["pulls"]
    assert [row["number"] for row in rows] == [to_main]


def test_a_repository_that_was_renamed_is_not_read_by_its_old_name(place):
    """The redirection drops our parameters: a tree would come without its folders."""
    number = place.pull(sound())
    place.server.pulls[number]["base"]["repo"]["full_name"] = "org/new"
    for arguments in (["reconcile"], ["reconcile", "--pr", str(number)], ["triage", "--no-cache"]):
        code, out, err = place.run(*arguments)
        assert (code, out) == (2, "")
        assert err == (
            "geneb-ci: org/board was renamed to 'org/new'\n  fix: pass --repo with the new name\n"
        )


def test_one_merge_base_for_what_changed_and_what_it_was(place):
    """Main moved on: what others merged meanwhile is neither this change's nor held against it."""
    number = place.pull(sound())
    later = place.files | sound("later") | {"pyproject.toml": (REGULAR, b"[project]\n")}
    place.server.pulls[number]["base"]["sha"] = place.server.commit(later, place.base)
    verdict = place.verdict(number)
    assert (verdict["outcome"], verdict["base_sha"]) == ("passed", place.base)
    assert [file["path"] for file in verdict["files"]] == sorted([ROW, CARD_PATH, MODULE])
