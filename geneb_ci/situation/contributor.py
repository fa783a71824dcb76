"""The situations of a contributor, from a folder without a clone to an open pull request."""

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from geneb_ci.common.finding import first_and_more
from geneb_ci.situation.table import BOARD_ADDRESS, Situation
from geneb_ci.situation.work_tree import CloneState
from reference_harness.formats.text import plural, quoted

NAMED_PATHS_MAX = 3
"""Maximum number of paths that a line names."""
MISSING_CARD_RULE = "missing-card"
"""Rule about a row without a card."""


class ProblemSummary(NamedTuple):
    """A summary of findings about a row, card or branch: their number, rules and first message."""

    number: int = 0
    """Number of the findings."""
    rules: tuple[str, ...] = ()
    """Ids of the rules without repetition, in the order of the findings."""
    first_message: str = ""
    """Message of the first finding; "" without any."""

    @property
    def number_with_rules(self) -> str:
        """The number of findings, followed by their rules."""
        return f"{self.number} ({first_and_more(list(self.rules))})"


NO_PROBLEMS = ProblemSummary()
"""The summary of no finding."""


class MisplacedFile(NamedTuple):
    """A file in the wrong folder."""

    path: str
    right_path: str
    """Path where the file belongs."""
    is_tracked: bool
    """Whether git tracks the file."""


class ResultsFolder(NamedTuple):
    """A folder of results from which no row has been made."""

    folder: str
    file_count: int
    """Number of files in the folder."""
    arguments: tuple[str, ...]
    """Options of `geneb-ci pack` for facts that are not in the files."""
    model_id: str


class DeclaredReceipt(NamedTuple):
    """The receipt that a row declares."""

    is_published: bool
    """Whether the row says where the files are published."""
    file_count: int
    """Number of files of the receipt."""
    folder: str = ""
    """Folder of the working tree with the files; "" if there is none."""
    needs_data: bool = True
    """Whether task data must be downloaded to compute the row's cells from the receipt."""


class OpenPull(NamedTuple):
    """The open pull request of the branch on GitHub."""

    number: int
    verdict: str
    """Outcome of the verdict; "waiting" without one, "stale" if main has changed since."""
    next_to_act: str
    """Account that must act next, "geneb-ci", or a role in words if the account is unknown."""
    action: str
    """The next action of this account."""


@dataclass(frozen=True)
class BranchState(CloneState):
    """Everything that determines the next step of a contributor."""

    address: str = BOARD_ADDRESS
    """Address of the board's repository, used if the clone has no remote."""
    submission_file: str = ""
    """Outside of a board, name of a file in the folder that may be a submission; else ""."""
    misplaced_files: tuple[MisplacedFile, ...] = ()
    """Files of a submission in wrong folders."""
    models: tuple[str, ...] = ()
    """Ids of the models with changed files on the branch or in the working tree."""
    other_models_files: tuple[str, ...] = ()
    """Files of all models except the first; empty if any of them is committed."""
    row: str = ""
    """Path of the row; "" if there is none."""
    card: str = ""
    """Path of the model card; "" if there is neither card nor row."""
    module: str = ""
    """Path of the contributor's extractor; "" for a built-in one."""
    class_name: str = ""
    """Name of the extractor's class; "" if unknown."""
    run_command: tuple[str, ...] = ()
    """Words of the command that makes the row; empty if there is a row."""
    results: ResultsFolder | None = None
    """The first folder with results of another program; None without one."""
    is_practice_board: bool = False
    """Whether this is a practice board without a remote."""
    is_fixable: bool = False
    """Whether `geneb-ci check --fix` would change the row."""
    row_errors: ProblemSummary = NO_PROBLEMS
    """Errors about the row."""
    card_errors: ProblemSummary = NO_PROBLEMS
    """Errors about the card, or placeholders in it."""
    extractor_error: str = ""
    """Why the harness cannot call the extractor; "" if it can."""
    is_module_missing: bool = False
    """Whether the row names an extractor that the working tree lacks."""
    warnings: ProblemSummary = NO_PROBLEMS
    """Warnings about the row or the card."""
    uncommitted: tuple[str, ...] = ()
    """Paths of the submission's files that are not committed."""
    other_uncommitted: tuple[str, ...] = ()
    """Paths of other uncommitted files below the folder of submissions."""
    changed_file_count: int = 0
    """Number of files that the commits of the branch change."""
    outdated: tuple[str, ...] = ()
    """Paths of files that the base branch has changed as well."""
    verdict_errors: ProblemSummary = NO_PROBLEMS
    """Errors of the server's verdict on the last commit."""
    receipt: DeclaredReceipt | None = None
    """The receipt that the row declares; None without one."""
    pull: OpenPull | None = None
    """The open pull request of the branch; None without one, or if GitHub was not asked."""
    github_repository: str = ""
    """OWNER/NAME of the repository whose pull requests were read; "" if GitHub was not asked."""

    @property
    def model(self) -> str:
        """Id of the model if there is exactly one; else ""."""
        return self.models[0] if len(self.models) == 1 else ""

    @property
    def title(self) -> str:
        """The first line, with the role, the branch and the model; "" if the state is unknown."""
        if self.refusal or not self.is_board:
            return ""
        branch_text = f"branch {self.tree.branch}" if self.tree.branch else "no branch"
        model_text = f", model {self.model}" if self.model else ""
        return f"contributor: {branch_text}{model_text}"


def _command(*words: str) -> str:
    """Return words as a command for a shell, quoted where needed."""
    return shlex.join(words)


def _path_list(paths: Iterable[str]) -> str:
    """Return paths as a list in a line, at most `NAMED_PATHS_MAX` of them."""
    return first_and_more([quoted(path)[1:-1] for path in paths], NAMED_PATHS_MAX)


def _explain_missing_clone(branch: BranchState) -> Iterator[str]:
    yield "this folder is not in a clone of a board: it has no submissions/ and no benchmark"
    if branch.submission_file:
        yield f"{branch.submission_file} may be a submission, which can be checked in any folder"
    yield (
        "to contribute a model, fork the repository of a board on GitHub and clone the fork; to "
        "make a board of your own: geneb-ci init . --repo OWNER/NAME"
    )


def _clone_board_command(branch: BranchState) -> str:
    if branch.submission_file:
        return _command("geneb-ci", "check", branch.submission_file)
    return f"git clone {shlex.quote(branch.address)}"


def _explain_merge_conflict(branch: BranchState) -> Iterator[str]:
    count_text = plural(len(branch.tree.conflicts), "file")
    yield f"git could not combine two versions of {count_text}: " + (
        _path_list(branch.tree.conflicts)
    )
    yield (
        "in each file, keep the right lines, and delete those that begin with <<<<<<<, ======= or "
        ">>>>>>>"
    )


def _resolve_conflict_command(branch: BranchState) -> str:
    paths = _command(*branch.tree.conflicts)
    return f"${{EDITOR:-vi}} {paths} && git add -- {paths} && git commit --no-edit"


def _explain_misplaced_files(branch: BranchState) -> Iterator[str]:
    for move in branch.misplaced_files[:NAMED_PATHS_MAX]:
        yield (
            f"{quoted(move.path)} is in the wrong folder; its path must be "
            f"{quoted(move.right_path)}"
        )
    yield "a file in the wrong folder is neither checked nor shown on the board"


def _move_file_command(branch: BranchState) -> str:
    move = branch.misplaced_files[0]
    folder = str(PurePosixPath(move.right_path).parent)
    words = ("git", "mv") if move.is_tracked else ("mv", "-n")
    return f"{_command('mkdir', '-p', folder)} && {_command(*words, move.path, move.right_path)}"


def _explain_several_models(branch: BranchState) -> Iterator[str]:
    models = plural(len(branch.models), "model")
    yield f"the branch has files of {models}: {_path_list(branch.models)}"
    yield "a pull request may have only one model: put every other model on a branch of its own"
    if branch.other_models_files:
        yield (
            "the command sets the files of the other models aside; on another branch, "
            "`git stash pop` restores them"
        )


def _stash_other_models_command(branch: BranchState) -> str:
    if not branch.other_models_files:
        return "geneb-ci check"
    return _command("git", "stash", "push", "--include-untracked", "--", *branch.other_models_files)


def _explain_unpacked_results(branch: BranchState) -> Iterator[str]:
    if branch.results is not None:
        files = plural(branch.results.file_count, "file")
        yield f"{branch.results.folder} has {files} of results, from which no row has been made yet"


def _pack_results_command(branch: BranchState) -> str:
    folder = branch.results
    if folder is None:
        return ""
    output = f"submissions/{folder.model_id or 'ID'}.json"
    return _command("geneb-ci", "pack", folder.folder, *folder.arguments, "--output", output)


def _explain_missing_row(branch: BranchState) -> Iterator[str]:
    yield (
        f"{branch.card or branch.module} exists, but its row does not; the evaluation writes the "
        "row"
    )
    if branch.card_errors.number:
        yield f"{branch.card} still has placeholders: {branch.card_errors.first_message}"
    if branch.extractor_error:
        yield branch.extractor_error
    yield "DIR is the folder of the task data: `geneb-harness data pull DIR` downloads them"


def _run_harness_command(branch: BranchState) -> str:
    return _command(*branch.run_command)


def _explain_missing_base_branch(branch: BranchState) -> Iterator[str]:
    yield "the clone has no main branch of its own or of a remote to compare this branch with"
    if not branch.tree.remotes:
        yield "add the address of the board's repository as a remote, and fetch it"


def _fetch_base_branch_command(branch: BranchState) -> str:
    if branch.tree.remotes:
        return "git fetch --all"
    return f"git remote add upstream {shlex.quote(branch.address)} && git fetch upstream"


def _explain_unchanged_branch(branch: BranchState) -> Iterator[str]:
    base = branch.tree.base or "the last commit"
    yield f"nothing differs from {base}, so there is no change to submit"
    if branch.tree.is_on_base and branch.tree.behind:
        yield (
            f"{branch.tree.upstream} has {plural(branch.tree.behind, 'commit')} more: run `git "
            "pull`"
        )
    yield (
        "to correct a row of the board, edit the file of the row; to add a model of the Hub, run "
        "the command, which writes the first files of the model"
    )


def _explain_row_errors(branch: BranchState) -> Iterator[str]:
    yield f"{branch.row}: errors: {branch.row_errors.number_with_rules}"
    yield f"the first error: {branch.row_errors.first_message}"
    if branch.is_fixable:
        yield "some errors have only one possible correction, which --fix makes"


def _check_row_command(branch: BranchState) -> str:
    words = ["--fix"] if branch.is_fixable and branch.row_errors.number else []
    return _command("geneb-ci", "check", *words, branch.row)


def _explain_missing_card(branch: BranchState) -> Iterator[str]:
    yield f"{branch.row} passes, but the server refuses a row without a card"
    yield (
        "write a card with architecture, weights, input, pooling, layer, training data, zero-shot "
        "and known overlap; `geneb-ci explain incomplete-card` has a template"
    )


def _write_card_command(branch: BranchState) -> str:
    folder = str(PurePosixPath(branch.card).parent)
    return f"{_command('mkdir', '-p', folder)} && {_edit_card_command(branch)}"


def _explain_card_errors(branch: BranchState) -> Iterator[str]:
    yield f"{branch.card}: errors: {branch.card_errors.number_with_rules}"
    yield f"the first error: {branch.card_errors.first_message}"


def _edit_card_command(branch: BranchState) -> str:
    return (
        f"${{EDITOR:-vi}} {shlex.quote(branch.card)} && {_command('geneb-ci', 'check', branch.row)}"
    )


def _explain_unusable_extractor(branch: BranchState) -> Iterator[str]:
    yield branch.extractor_error
    yield "auditors repeat the run with this very file, so it is part of the submission"


def _edit_extractor_command(branch: BranchState) -> str:
    spec = f"{branch.module}:{branch.class_name or 'CLASS'}"
    check = _command("geneb-harness", "extractors", "check", spec)
    if branch.is_module_missing:
        return f"{_command('cp', '-n', 'FILE.py', branch.module)} && {check}"
    return f"${{EDITOR:-vi}} {shlex.quote(branch.module)} && {check}"


def _explain_practice_row(branch: BranchState) -> Iterator[str]:
    yield f"{branch.row} passes, on a practice board that is only on this machine"
    yield (
        "commit the row, as if a maintainer had merged a pull request; a real board needs a pull "
        "request"
    )
    if branch.receipt is not None and not branch.receipt.is_published:
        yield (
            "for a real board, you would first publish the receipt of the row: geneb-ci receipt "
            "push"
        )
    yield from _list_uncommitted_files(branch)


def _commit_practice_row_command(branch: BranchState) -> str:
    return f"{_commit_submission_command(branch)} && geneb-ci next --as maintainer"


def _explain_unpublished_receipt(branch: BranchState) -> Iterator[str]:
    if branch.receipt is not None:
        files = plural(branch.receipt.file_count, "file")
        yield f"{branch.row} declares a receipt of {files}, but not where they are published"
    yield (
        "publish the files in an existing data set of the Hub; the command adds the data set's "
        "commit to the row"
    )


def _push_receipt_command(branch: BranchState) -> str:
    folder = (branch.receipt.folder if branch.receipt is not None else "") or "DIR"
    return _command(
        *("geneb-ci", "receipt", "push", branch.row, "--receipt", folder, "--repo", "OWNER/NAME")
    )


def _explain_unverified_receipt(branch: BranchState) -> Iterator[str]:
    yield (
        f"{branch.row} passes every check; its published receipt has not been verified on this "
        "machine"
    )
    yield "compute every cell from the receipt, as auditors will, before you commit the row"
    yield from _list_uncommitted_files(branch)


def _verify_receipt_and_commit_command(branch: BranchState) -> str:
    words = ["geneb-ci", "receipt", "verify", branch.row]
    if branch.receipt is not None and branch.receipt.needs_data:
        words += ["--data", "DIR"]
    return f"{_command(*words)} && {_commit_submission_command(branch)}"


def _explain_work_on_base_branch(branch: BranchState) -> Iterator[str]:
    current = branch.tree.branch or "no branch"
    yield f"a pull request needs a branch of its own, but you are on {current}"


def _new_branch_command(branch: BranchState) -> str:
    return _command("git", "switch", "--create", f"add-{branch.model or 'model'}")


def _explain_uncommitted_submission(branch: BranchState) -> Iterator[str]:
    yield f"{branch.row or 'the submission'} passes, but is not committed"
    yield from _list_warnings(branch)
    yield from _list_uncommitted_files(branch)


def _list_uncommitted_files(branch: BranchState) -> Iterator[str]:
    yield f"not committed, so the server would not see: {_path_list(branch.uncommitted)}"
    if ignored := [path for path in branch.uncommitted if path in branch.tree.ignored_files]:
        yield f"git ignores {_path_list(ignored)}; the command adds them all the same"
    if branch.other_uncommitted:
        file_list = _path_list(branch.other_uncommitted)
        yield f"the command leaves out files that are not part of a submission: {file_list}"


def _commit_submission_command(branch: BranchState) -> str:
    message = f"Add {branch.model}" if branch.model else "Add a submission"
    add = _command(*branch.tree.add_command(*branch.uncommitted))
    return f"{add} && {_command('git', 'commit', '-m', message)}"


def _explain_outdated_branch(branch: BranchState) -> Iterator[str]:
    yield f"{branch.tree.base} has meanwhile changed the same files: {_path_list(branch.outdated)}"
    yield (
        f"merge {branch.tree.base} and keep the changes of both branches; otherwise the pull "
        f"request would undo the changes of {branch.tree.base}"
    )


def _merge_base_branch_command(branch: BranchState) -> str:
    remote, slash, base = branch.tree.base.partition("/")
    fetch = f"{_command('git', 'fetch', remote, base)} && " if slash else ""
    return f"{fetch}{_command('git', 'merge', branch.tree.base)}"


def _explain_verdict_with_errors(branch: BranchState) -> Iterator[str]:
    errors = branch.verdict_errors.number_with_rules
    yield f"the server would refuse the last commit; errors: {errors}"
    yield f"the first error: {branch.verdict_errors.first_message}"


def _explain_unpushed_branch(branch: BranchState) -> Iterator[str]:
    yield f"the branch is ready: {plural(branch.changed_file_count, 'file')} committed, no error"
    yield from _list_warnings(branch)
    yield from _list_other_uncommitted_files(branch)
    if not branch.tree.remotes:
        yield "the clone has no remote: add the address of your fork of the board's repository"
    elif branch.tree.upstream:
        yield f"{plural(branch.tree.ahead, 'commit')} not pushed to {branch.tree.upstream} yet"
    else:
        yield "the branch is only on this machine"


def _list_warnings(branch: BranchState) -> Iterator[str]:
    if branch.warnings.number:
        yield f"warnings, to explain in the card: {branch.warnings.number_with_rules}"


def _list_other_uncommitted_files(branch: BranchState) -> Iterator[str]:
    if branch.other_uncommitted:
        file_list = _path_list(branch.other_uncommitted)
        yield f"not committed, so the server would not see: {file_list}"


def _push_branch_command(branch: BranchState) -> str:
    if not branch.tree.remotes:
        return f"git remote add origin {shlex.quote(branch.address)}"
    if branch.tree.upstream:
        return "git push"
    remote = "origin" if "origin" in branch.tree.remotes else min(branch.tree.remotes)
    return _command("git", "push", "--set-upstream", remote, branch.tree.branch)


def _explain_missing_pull_request(branch: BranchState) -> Iterator[str]:
    yield f"the branch is pushed to {branch.tree.upstream} and passes"
    yield from _list_warnings(branch)
    yield from _list_other_uncommitted_files(branch)
    if branch.github_repository:
        yield f"{branch.github_repository} has no open pull request of this commit"
    else:
        yield (
            "whether the branch has a pull request was not checked: to check, set GH_TOKEN and "
            "pass --repo OWNER/NAME"
        )


def _create_pull_command(branch: BranchState) -> str:
    words = ["gh", "pr", "create", "--title", f"Add {branch.model or branch.tree.branch}"]
    words += ["--base", branch.tree.base_name or "main", "--fill-first"]
    if branch.tree.repository:
        words += ["--repo", branch.tree.repository]
        fork_name = branch.tree.remotes.get(branch.tree.upstream.partition("/")[0], "")
        owner = fork_name.partition("/")[0]
        words += ["--head", f"{owner}:{branch.tree.branch}" if owner else branch.tree.branch]
    return _command(*words)


def _explain_open_pull_request(branch: BranchState) -> Iterator[str]:
    if branch.pull is not None:
        yield f"pull request {branch.pull.number}: {branch.pull.verdict}"
        yield f"the next to act is {branch.pull.next_to_act}: {branch.pull.action}"


def _view_pull_command(branch: BranchState) -> str:
    number = str(branch.pull.number) if branch.pull is not None else ""
    return _command("gh", "pr", "view", number, "--repo", branch.github_repository, "--comments")


def _has_submission_files(branch: BranchState) -> bool:
    """Whether the branch has a file of a submission, committed or not."""
    return bool(branch.row or branch.card or branch.module or branch.uncommitted)


CONTRIBUTOR_SITUATIONS: tuple[Situation[BranchState], ...] = (
    Situation(
        "no-clone",
        "the folder is not in a clone of a board",
        lambda s: not s.is_board,
        _explain_missing_clone,
        _clone_board_command,
    ),
    Situation(
        "git-refuses",
        "git cannot read the clone",
        lambda s: s.refusal,
        lambda s: s.refusal_lines("contributor", " of the branch"),
        lambda _: "git status",
    ),
    Situation(
        "merge-conflict",
        "a merge left files with both versions",
        lambda s: s.tree.conflicts,
        _explain_merge_conflict,
        _resolve_conflict_command,
    ),
    Situation(
        "misplaced-file",
        "a row, a card or an extractor is in the wrong folder",
        lambda s: s.misplaced_files,
        _explain_misplaced_files,
        _move_file_command,
    ),
    Situation(
        "several-models",
        "the branch has files of several models",
        lambda s: len(s.models) > 1,
        _explain_several_models,
        _stash_other_models_command,
    ),
    Situation(
        "results-not-packed",
        "there are results of another program, from which no row has been made",
        lambda s: not s.row and s.results,
        _explain_unpacked_results,
        _pack_results_command,
    ),
    Situation(
        "no-row-yet",
        "there is a card or an extractor, as `geneb-ci new` writes them, but no row",
        lambda s: not s.row and (s.card or s.module),
        _explain_missing_row,
        _run_harness_command,
    ),
    Situation(
        "no-base-branch",
        "there is no branch that pull requests could be merged into",
        lambda s: not s.tree.base and s.tree.head,
        _explain_missing_base_branch,
        _fetch_base_branch_command,
    ),
    Situation(
        "nothing-changed",
        "neither the branch nor the working tree changes anything",
        lambda s: not _has_submission_files(s) and not s.changed_file_count,
        _explain_unchanged_branch,
        lambda _: "geneb-ci new OWNER/MODEL",
    ),
    Situation(
        "row-with-errors",
        "the row does not pass the checks",
        lambda s: s.row_errors.number,
        _explain_row_errors,
        _check_row_command,
    ),
    Situation(
        "extractor-unusable",
        "the row's extractor is missing, is not the one that ran, or cannot be called",
        lambda s: s.extractor_error,
        _explain_unusable_extractor,
        _edit_extractor_command,
    ),
    Situation(
        "row-without-card",
        "the row has no card",
        lambda s: s.card_errors.rules == ("missing-card",),
        _explain_missing_card,
        _write_card_command,
    ),
    Situation(
        "card-with-errors",
        "the card has placeholders, or contradicts the row",
        lambda s: s.card_errors.number,
        _explain_card_errors,
        _edit_card_command,
    ),
    Situation(
        "practice-row",
        "the row passes, but is not committed, on a practice board without a remote",
        lambda s: s.is_practice_board and s.row in s.uncommitted,
        _explain_practice_row,
        _commit_practice_row_command,
    ),
    Situation(
        "receipt-not-published",
        "the row declares a receipt, but not where its files are published",
        lambda s: s.receipt is not None and not s.receipt.is_published,
        _explain_unpublished_receipt,
        _push_receipt_command,
    ),
    Situation(
        "on-the-base-branch",
        "the files are on the branch that pull requests are merged into, or on no branch",
        lambda s: _has_submission_files(s) and (s.tree.is_on_base or not s.tree.branch),
        _explain_work_on_base_branch,
        _new_branch_command,
    ),
    Situation(
        "receipt-not-verified",
        "the receipt is published, but the row is not committed yet",
        lambda s: s.receipt is not None and s.row in s.uncommitted,
        _explain_unverified_receipt,
        _verify_receipt_and_commit_command,
    ),
    Situation(
        "not-committed",
        "the submission passes, perhaps with warnings, but is not committed",
        lambda s: s.uncommitted,
        _explain_uncommitted_submission,
        _commit_submission_command,
    ),
    Situation(
        "outdated-branch",
        "the base branch has meanwhile changed the same files",
        lambda s: s.outdated,
        _explain_outdated_branch,
        _merge_base_branch_command,
    ),
    Situation(
        "verdict-with-errors",
        "the server would refuse the last commit",
        lambda s: s.verdict_errors.number,
        _explain_verdict_with_errors,
        lambda _: "geneb-ci check",
    ),
    Situation(
        "not-pushed",
        "the branch is ready, but not all commits are pushed",
        lambda s: not s.tree.is_pushed,
        _explain_unpushed_branch,
        _push_branch_command,
    ),
    Situation(
        "pull-request-open",
        "the branch has an open pull request (seen only with `--repo`)",
        lambda s: s.pull is not None,
        _explain_open_pull_request,
        _view_pull_command,
    ),
    Situation(
        "no-pull-request",
        "the branch is pushed; it has no pull request, or GitHub was not asked",
        lambda _: True,
        _explain_missing_pull_request,
        _create_pull_command,
    ),
)
"""Situations of a contributor, in the order of a submission's steps."""
