"""Rules on the list of changed files of a pull request: how many, which, and of what kind."""

import re
import shlex
from collections.abc import Callable, Iterator

from geneb_ci.check.change import (
    EXECUTABLE,
    REGULAR,
    SUBMODULE,
    SYMLINK,
    Change,
    ChangeFault,
    FileChange,
)
from geneb_ci.check.rule import ChangeRule
from geneb_ci.common.finding import Severity
from reference_harness.formats.text import plural, quoted


def truncated_tree(change: Change) -> Iterator[ChangeFault]:
    """Report that GitHub's list of the repository's files is incomplete."""
    if change.is_truncated:
        message = "GitHub truncated the list of files of the repository"
        yield ChangeFault(TRUNCATED_TREE.id, "", message, "a truncated tree", "every file")


TRUNCATED_TREE = ChangeRule(
    id="truncated-tree",
    severity=Severity.ERROR,
    what="GitHub did not list every file of the repository.",
    why="A changed workflow or another model's row could be among the files that are not listed.",
    fix="Wait: a maintainer reviews the change by hand. You cannot fix this yourself.",
    check=truncated_tree,
)


CHANGED_FILES_MAX = 50
"""Maximum number of changed files that rules report one by one; a submission has at most four."""


def too_many_files(change: Change) -> Iterator[ChangeFault]:
    """Report a pull request that changes more than CHANGED_FILES_MAX files."""
    if len(change.files) > CHANGED_FILES_MAX:
        message = f"the pull request changes {len(change.files):,} files"
        actual = plural(len(change.files), "file")
        yield ChangeFault(
            TOO_MANY_FILES.id,
            "",
            message,
            actual,
            "at most 4: the row, its card, its extractor, the extractor's lock",
        )


TOO_MANY_FILES = ChangeRule(
    id="too-many-files",
    severity=Severity.ERROR,
    what="The pull request changes more files than a submission has.",
    why=(
        "Among many files a harmful change goes unnoticed, and GitHub lists only the first 3,000."
    ),
    fix=(
        "Open a pull request from a fresh branch of main, with the files of one model: row, card, "
        "extractor, and the extractor's lock if it has one."
    ),
    check=too_many_files,
)


_GENERATED_FILES = frozenset({"RULES.md"})
"""Files that `make generate` writes."""
_GENERATED_FOLDERS = ("schemas/",)
"""Folders of files that `make generate` writes."""
_HAND_WRITTEN_FOLDERS = ("leaderboard/policy/", "leaderboard/audits/")
"""Folders in leaderboard/ whose JSON files are not part of a built board."""


def is_generated(path: str) -> bool:
    """Whether the file at this path is written by a program."""
    is_board_file = path.startswith("leaderboard/") and path.endswith(".json")
    return (
        path in _GENERATED_FILES
        or path.startswith(_GENERATED_FOLDERS)
        or (is_board_file and not path.startswith(_HAND_WRITTEN_FOLDERS))
    )


def generated_file(change: Change) -> Iterator[ChangeFault]:
    """Report each changed file that a program writes."""
    for file in change.files:
        if is_generated(file.path):
            message = f"{quoted(file.path)} is generated and must not be edited"
            yield ChangeFault(GENERATED_FILE.id, file.path, message, "an edit", "no edit")


GENERATED_FILE = ChangeRule(
    id="generated-file",
    severity=Severity.ERROR,
    what="The pull request edits a generated file.",
    why="The board and the schemas are computed, never edited by hand.",
    fix=(
        "Remove the change from this pull request: `git checkout main -- FILE`. The file is "
        "regenerated after the merge."
    ),
    check=generated_file,
)


def foreign_file(change: Change) -> Iterator[ChangeFault]:
    """Report each file that is not the model's own row, card, extractor, lock or audit record."""
    expected_paths = {file.path for file in (*change.model_files, *change.rows, *change.records)}
    expected = "the row, the card, the extractor, its lock and audit records of one model"
    misplaced_paths = {file.path for file in change.files if right_place(file, change)}
    # If the row is in a wrong folder, its card and extractor count as the model's own.
    is_row_misplaced = any(path.endswith(".json") for path in misplaced_paths) and not change.rows
    for file in change.files:
        is_own = (
            file.path in expected_paths or file.path in misplaced_paths or is_generated(file.path)
        )
        is_beside_misplaced_row = (
            is_row_misplaced and file.before is None and change.is_model_path(file.path)
        )
        if not is_own and not is_beside_misplaced_row:
            message = f"{quoted(file.path)} is not a file of the submitted model"
            yield ChangeFault(FOREIGN_FILE.id, file.path, message, quoted(file.path), expected)


FOREIGN_FILE = ChangeRule(
    id="foreign-file",
    severity=Severity.ERROR,
    what="The pull request changes a file that does not belong to the submitted model.",
    why=(
        "A submission is reviewed for its scores; changes of workflows, policy or other models "
        "could slip through."
    ),
    fix=(
        "Remove the change from this pull request: `git checkout main -- FILE` for a file that "
        "exists on main, `git rm FILE` for one that you added. Open a separate pull request for "
        "the change, which a maintainer reviews."
    ),
    check=foreign_file,
)


_WRONG_FOLDERS = re.compile(
    r"(submissions?|results?|rows|models?|model_cards|cards|harness|extractors)(/.*)?|",
    re.IGNORECASE,
)
"""Folders in which people put rows, cards and extractors by mistake; "" is the root."""
_HIDDEN_FOLDER = re.compile(r"(^|/)\.")
"""A path with a hidden folder, or that leads upwards."""
_NAMES_OF_OTHER_FILES = re.compile(
    r"[A-Z_]+\.md|(package(-lock)?|tsconfig|renovate|composer|\..*)\.json|"
    r"(setup|conftest|sitecustomize|noxfile|tasks|__init__)\.py"
)
"""Names of files that belong where they are, such as README.md, package.json or setup.py."""


def right_place(file: FileChange, change: Change) -> str:
    """Return where a new row, card or extractor in a wrong folder belongs; "" for other files.

    It is judged by folder and name alone; the file's contents are not read.
    """
    folder, _, file_name = file.path.rpartition("/")
    is_new = file.before is None and file.after is not None and file.after.mode == REGULAR
    is_likely_mistake = _WRONG_FOLDERS.fullmatch(folder) and not _HIDDEN_FOLDER.search(folder)
    if not is_new or not is_likely_mistake or _NAMES_OF_OTHER_FILES.fullmatch(file_name):
        return ""
    folders, stem = change.folders, file_name.rpartition(".")[0]
    target = ""
    if file_name.endswith(".json"):
        target = f"{folders.submissions}/{file_name}"
    elif file_name.endswith(".py"):
        target = f"{folders.extractors}/{file_name}"
    elif file_name.endswith(".md") and (folder or stem in _added_models(change)):
        target = f"{folders.cards}/{file_name}"
    is_valid_name = change.is_model_path(target)
    return (
        target if is_valid_name and target != file.path and change.change_at(target) is None else ""
    )


def _added_models(change: Change) -> set[str]:
    """Return the ids of the models whose rows are added, in any folder."""
    paths = (f.path for f in change.files if f.before is None and f.path.endswith(".json"))
    return {path.rpartition("/")[2].removesuffix(".json") for path in paths}


def misplaced_file(change: Change) -> Iterator[ChangeFault]:
    """Report each new row, card or extractor in a wrong folder, and how to move it."""
    for file in change.files:
        target = right_place(file, change)
        if target:
            message = f"the file belongs at {quoted(target)}"
            folder = target.rpartition("/")[0]
            move = shlex.join(["git", "mv", file.path, target])
            yield ChangeFault(
                MISPLACED_FILE.id,
                file.path,
                message,
                "",
                quoted(target),
                fix=f"Run `mkdir -p {folder}`, `{move}`, then commit and push.",
            )


MISPLACED_FILE = ChangeRule(
    id="misplaced-file",
    severity=Severity.ERROR,
    what="A row, a card or an extractor is in the wrong folder.",
    why="Files are found by their folders: in another folder they are neither checked nor shown.",
    fix="Move it with `git mv` to submissions/, submissions/cards/ or submissions/extractors/.",
    check=misplaced_file,
)


def colliding_paths(change: Change) -> Iterator[ChangeFault]:
    """Report each path that differs from an earlier one only in letter case."""
    path_by_folded: dict[str, str] = {}
    for file in change.files:
        if file.after is None:
            continue
        earlier_path = path_by_folded.setdefault(file.path.casefold(), file.path)
        if earlier_path != file.path:
            message = f"{quoted(file.path)} and {quoted(earlier_path)} differ only in letter case"
            expected = "paths that differ in more than letter case"
            yield ChangeFault(COLLIDING_PATHS.id, file.path, message, quoted(file.path), expected)


COLLIDING_PATHS = ChangeRule(
    id="colliding-paths",
    severity=Severity.ERROR,
    what="Two paths of the pull request differ only in letter case.",
    why="On macOS and Windows both are one file, and the checkout decides which one is read.",
    fix="Keep one of the two.",
    check=colliding_paths,
)


def _mode_faults(
    change: Change, rule: str, objection_to: Callable[[str], str | None]
) -> Iterator[ChangeFault]:
    """Yield a fault for each path whose new file mode is not allowed.

    `objection_to` returns why a mode is not allowed, or None.
    """
    for file in change.files:
        if file.after is not None and (objection := objection_to(file.after.mode)) is not None:
            message, mode_text = (
                f"{quoted(file.path)} is {objection}",
                quoted(file.after.mode)[1:-1],
            )
            yield ChangeFault(rule, file.path, message, f"mode {mode_text}", "mode 100644")


def symbolic_link(change: Change) -> Iterator[ChangeFault]:
    """Report each path that becomes a symbolic link."""
    return _mode_faults(change, SYMBOLIC_LINK.id, {SYMLINK: "a symbolic link"}.get)


SYMBOLIC_LINK = ChangeRule(
    id="symbolic-link",
    severity=Severity.ERROR,
    what="A path of the pull request is a symbolic link.",
    why="A link can point to any file on the machine that reads it, such as a maintainer's keys.",
    fix="Run `git rm --cached FILE`, then add a regular file.",
    check=symbolic_link,
)


def git_submodule(change: Change) -> Iterator[ChangeFault]:
    """Report each path that becomes a submodule."""
    return _mode_faults(change, GIT_SUBMODULE.id, {SUBMODULE: "a submodule"}.get)


GIT_SUBMODULE = ChangeRule(
    id="git-submodule",
    severity=Severity.ERROR,
    what="A path of the pull request is a submodule.",
    why=(
        "A submodule points to another repository, whose content nobody reviewed and whose owner "
        "can replace it."
    ),
    fix="Remove the submodule with `git rm --cached FILE`, and add the files themselves.",
    check=git_submodule,
)


_MODES_WITHOUT_OBJECTION = frozenset({REGULAR, SYMLINK, SUBMODULE})
"""Git modes that the rule `executable-file` accepts: links and submodules have rules of their own.
Git itself writes only 100644 and 100755 for files, but a git tree can hold any mode."""


def _mode_objection(mode: str) -> str | None:
    """Return what a file of this mode is, for a message; None if the mode is accepted."""
    if mode in _MODES_WITHOUT_OBJECTION:
        return None
    return "marked as executable" if mode == EXECUTABLE else "not a regular file"


def executable_file(change: Change) -> Iterator[ChangeFault]:
    """Report each path that is executable or not a regular file."""
    return _mode_faults(change, EXECUTABLE_FILE.id, _mode_objection)


EXECUTABLE_FILE = ChangeRule(
    id="executable-file",
    severity=Severity.ERROR,
    what="A file of the pull request is executable, or is not a regular file.",
    why="Rows, cards and extractor modules are never executed directly, so none needs this mode.",
    fix="Run `git update-index --chmod=-x FILE` and commit; for other modes, add the file again.",
    check=executable_file,
)


def deleted_file(change: Change) -> Iterator[ChangeFault]:
    """Report each deleted path; renaming a file deletes its old path."""
    for file in change.files:
        if file.after is None:
            message = f"{quoted(file.path)} is deleted or renamed"
            yield ChangeFault(DELETED_FILE.id, file.path, message, "no file", "the file unchanged")


DELETED_FILE = ChangeRule(
    id="deleted-file",
    severity=Severity.ERROR,
    what="The pull request deletes or renames a file.",
    why="Deleting or renaming a row would separate it from its history and its audits.",
    fix=(
        "Restore the file: `git checkout main -- FILE`. To withdraw your own row, open an issue; a "
        "maintainer will remove it from the board."
    ),
    check=deleted_file,
)


def outdated_branch(change: Change) -> Iterator[ChangeFault]:
    """Report each file that was also changed on the base branch after the branch was made."""
    for path in change.outdated_paths:
        message = f"{quoted(path)} was changed on main after this branch was made"
        yield ChangeFault(
            OUTDATED_BRANCH.id,
            path,
            message,
            "two versions",
            "a branch that contains main's version",
        )


OUTDATED_BRANCH = ChangeRule(
    id="outdated-branch",
    severity=Severity.ERROR,
    what="A file of the pull request was also changed on main after the branch was made.",
    why="A merge would combine both texts into a file that nobody has checked.",
    fix="Fetch main of the repository that the pull request is for (in a clone of a fork, `origin` "
    "is the fork), run `git merge FETCH_HEAD` on your branch, resolve the conflict, and push.",
    check=outdated_branch,
)
