"""The table of situations of a contributor's branch, from no clone to an open pull request."""

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from geneb_ci.common.finding import first_and_more
from geneb_ci.situation.table import BOARD, Situation
from geneb_ci.situation.work_tree import CloneState
from reference_harness.formats.text import plural, quoted

PATHS_SHOWN = 3
"""Maximum number of paths that a line names."""
BACK = "brings them back"
MISSING_CARD = "missing-card"


class ProblemCounts(NamedTuple):
    """Findings of one severity about a row, its card or its extractor."""

    number: int = 0
    rules: tuple[str, ...] = ()
    """Ids of the rules, each once, in the order of the findings."""
    first: str = ""
    """The first message."""

    @property
    def with_rules(self) -> str:
        """The number of findings, followed by their rules."""
        return f"{self.number} ({first_and_more(list(self.rules))})"


NO_PROBLEMS = ProblemCounts()


class MisplacedFile(NamedTuple):
    """A file in the wrong folder."""

    path: str
    target: str
    """Path where the file belongs."""
    is_tracked: bool
    """Whether git tracks the file."""


class ResultsFolder(NamedTuple):
    """A folder of results of which no row was made."""

    folder: str
    files: int
    """Number of files in the folder."""
    arguments: tuple[str, ...]
    """Options of `geneb-ci pack` for facts that the files lack."""
    model_id: str


class ReceiptFacts(NamedTuple):
    """The receipt that a row declares."""

    is_published: bool
    files: int
    """Number of files of the receipt."""
    folder: str = ""
    """Folder of the working tree with the files; "" where none has them."""
    needs_data: bool = True
    """Whether task data have to be fetched to compute its cells."""


class OpenPull(NamedTuple):
    """The open pull request of the branch on GitHub."""

    number: int
    verdict: str
    """Outcome of the verdict, or a text that it has none yet."""
    who: str
    """Role of the person who acts next."""
    action: str
    """What this person does next."""


@dataclass(frozen=True)
class BranchState(CloneState):
    """Everything that determines the next step of a contributor."""

    address: str = BOARD
    """Address of the board's repository, for a clone without a remote."""
    submission_file: str = ""
    """Outside of a board: a file in the folder that may be a submission; else ""."""
    moves: tuple[MisplacedFile, ...] = ()
    models: tuple[str, ...] = ()
    """Ids of the models of which the branch or the working tree has files."""
    other_models_files: tuple[str, ...] = ()
    """Files of all models but the first, where none of them is committed."""
    row: str = ""
    """Path of the row; "" where there is none."""
    card: str = ""
    """Path of the model card; "" where there is neither card nor row."""
    module: str = ""
    """Path of the contributor's extractor; "" for a built-in one."""
    class_name: str = ""
    """Name of the extractor's class; "" where it is not known."""
    run_command: tuple[str, ...] = ()
    """Words of the command that makes the row; empty where there is one."""
    results: ResultsFolder | None = None
    is_practised: bool = False
    """Whether this is a practice board without a remote."""
    is_fixable: bool = False
    """Whether `geneb-ci check --fix` would change the row."""
    row_errors: ProblemCounts = NO_PROBLEMS
    card_errors: ProblemCounts = NO_PROBLEMS
    extractor_error: str = ""
    """Why the harness cannot call the extractor; "" where it can."""
    is_module_missing: bool = False
    warnings: ProblemCounts = NO_PROBLEMS
    pending: tuple[str, ...] = ()
    """Paths of the submission's files that are not committed."""
    other_uncommitted: tuple[str, ...] = ()
    """Paths of other uncommitted files below the folder of submissions."""
    change: int = 0
    """Number of files that the commits of the branch change."""
    outdated: tuple[str, ...] = ()
    """Paths of files that the base branch has changed too."""
    verdict: ProblemCounts = NO_PROBLEMS
    """Errors of the server's verdict on the last commit."""
    receipt: ReceiptFacts | None = None
    pull: OpenPull | None = None
    github_repository: str = ""
    """OWNER/NAME of the repository whose pull requests were read; "" where none were."""

    @property
    def model(self) -> str:
        """Id of the model if there is exactly one; else ""."""
        return self.models[0] if len(self.models) == 1 else ""

    @property
    def title(self) -> str:
        """The first line of every situation: the role, the branch, and the model."""
        where = f"branch {self.tree.branch}" if self.tree.branch else "no branch"
        model_text = f", model {self.model}" if self.model else ""
        return f"contributor: {where}{model_text}"


def _join(*words: str) -> str:
    return shlex.join(words)


def _listed(paths: Iterable[str]) -> str:
    return first_and_more([quoted(path)[1:-1] for path in paths], PATHS_SHOWN)


def _outside(state: BranchState) -> Iterator[str]:
    yield "this folder is in no clone of a board: it has no submissions/ and no benchmark"
    if state.submission_file:
        yield f"{state.submission_file} may be a submission, and is checked anywhere"
    yield (
        "a contributor forks the repository of a board on GitHub, and clones the fork; who runs a "
        "board makes one: geneb-ci init . --repo OWNER/NAME"
    )


def _clone(state: BranchState) -> str:
    if state.submission_file:
        return _join("geneb-ci", "check", state.submission_file)
    return f"git clone {BOARD}"


def _conflicts(state: BranchState) -> Iterator[str]:
    yield state.title
    yield f"a merge left {plural(len(state.tree.conflicts), 'file')} with both versions: " + (
        _listed(state.tree.conflicts)
    )
    yield "keep of each what is right, until no line begins with <<<<<<<, ======= or >>>>>>>"


def _resolve(state: BranchState) -> str:
    paths = _join(*state.tree.conflicts)
    return f"${{EDITOR:-vi}} {paths} && git add -- {paths} && git commit --no-edit"


def _moves(state: BranchState) -> Iterator[str]:
    yield state.title
    for move in state.moves[:PATHS_SHOWN]:
        yield f"{quoted(move.path)} is not where it belongs: {quoted(move.target)}"
    yield "files are known by their places: elsewhere nothing checks them, and nothing shows them"


def _move(state: BranchState) -> str:
    move = state.moves[0]
    folder = str(PurePosixPath(move.target).parent)
    words = ("git", "mv") if move.is_tracked else ("mv", "-n")
    return f"{_join('mkdir', '-p', folder)} && {_join(*words, move.path, move.target)}"


def _several(state: BranchState) -> Iterator[str]:
    yield state.title
    yield f"the branch has files of {plural(len(state.models), 'model')}: {_listed(state.models)}"
    yield "a pull request has one model: put the others on branches of their own"
    if state.other_models_files:
        yield f"set aside what is not committed of them; on another branch, `git stash pop` {BACK}"


def _set_aside(state: BranchState) -> str:
    if not state.other_models_files:
        return "geneb-ci check"
    return _join("git", "stash", "push", "--include-untracked", "--", *state.other_models_files)


def _results(state: BranchState) -> Iterator[str]:
    yield state.title
    if state.results is not None:
        files = plural(state.results.files, "file")
        yield f"{state.results.folder} has {files} of results, and no row was made from them"


def _pack(state: BranchState) -> str:
    results = state.results
    if results is None:
        return ""
    output = f"submissions/{results.model_id or 'ID'}.json"
    return _join("geneb-ci", "pack", results.folder, *results.arguments, "--output", output)


def _template(state: BranchState) -> Iterator[str]:
    yield state.title
    yield f"{state.card or state.module} is there, and no row: run the evaluation, which writes one"
    if state.card_errors.number:
        yield f"{state.card} still has placeholders: {state.card_errors.first}"
    if state.extractor_error:
        yield state.extractor_error
    yield "DIR is the folder of the task data: `geneb-harness data pull DIR` fetches them"


def _run(state: BranchState) -> str:
    return _join(*state.run_command)


def _no_base(state: BranchState) -> Iterator[str]:
    yield state.title
    yield "the clone has no main branch, and none of a remote: what the branch adds is not known"
    if not state.tree.remotes:
        yield "add the address of the board's repository, and fetch it"


def _fetch(state: BranchState) -> str:
    if state.tree.remotes:
        return "git fetch --all"
    return f"git remote add upstream {shlex.quote(state.address)} && git fetch upstream"


def _unchanged(state: BranchState) -> Iterator[str]:
    yield state.title
    base = state.tree.base or "the last commit"
    yield f"nothing differs from {base}: there is no model to submit"
    if state.tree.is_on_base and state.tree.behind:
        yield f"{state.tree.upstream} has {plural(state.tree.behind, 'commit')} more: git pull"
    yield (
        "the first files of a model follow from what the Hub says of it; for a model elsewhere "
        "they are written by hand"
    )


def _row_errors(state: BranchState) -> Iterator[str]:
    yield state.title
    yield f"{state.row}: errors: {state.row_errors.with_rules}"
    yield f"the first: {state.row_errors.first}"
    if state.is_fixable:
        yield "some of it can be repaired in one way only, which --fix does"


def _check_row(state: BranchState) -> str:
    words = ["--fix"] if state.is_fixable and state.row_errors.number else []
    return _join("geneb-ci", "check", *words, state.row)


def _no_card(state: BranchState) -> Iterator[str]:
    yield state.title
    yield f"{state.row} passes, and has no card: the server refuses a row without one"
    yield (
        "write what readers need: architecture, weights, input, pooling, layer, training data, "
        "zero-shot, known overlap; `geneb-ci explain incomplete-card` shows how"
    )


def _write_card(state: BranchState) -> str:
    folder = str(PurePosixPath(state.card).parent)
    return f"{_join('mkdir', '-p', folder)} && {_edit_card(state)}"


def _card_errors(state: BranchState) -> Iterator[str]:
    yield state.title
    yield f"{state.card}: errors: {state.card_errors.with_rules}"
    yield f"the first: {state.card_errors.first}"


def _edit_card(state: BranchState) -> str:
    return f"${{EDITOR:-vi}} {shlex.quote(state.card)} && {_join('geneb-ci', 'check', state.row)}"


def _extractor(state: BranchState) -> Iterator[str]:
    yield state.title
    yield state.extractor_error
    yield "the run is repeated with this very file, so it is part of the submission"


def _edit_extractor(state: BranchState) -> str:
    spec = f"{state.module}:{state.class_name or 'CLASS'}"
    check = _join("geneb-harness", "extractors", "check", spec)
    if state.is_module_missing:
        return f"{_join('cp', '-n', 'FILE.py', state.module)} && {check}"
    return f"${{EDITOR:-vi}} {shlex.quote(state.module)} && {check}"


def _practised(state: BranchState) -> Iterator[str]:
    yield state.title
    yield f"{state.row} passes, on a practice board that is on this machine alone"
    yield "commit it where a maintainer would merge it; a real board has a pull request for it"
    if state.receipt is not None and not state.receipt.is_published:
        yield "its receipt is published first where the board has a server: geneb-ci receipt push"
    yield from _uncommitted(state)


def _commit_practised(state: BranchState) -> str:
    return f"{_commit(state)} && geneb-ci next --as maintainer"


def _receipt(state: BranchState) -> Iterator[str]:
    yield state.title
    if state.receipt is not None:
        files = plural(state.receipt.files, "file")
        yield f"{state.row} declares a receipt of {files}, and does not say where they are"
    yield "publish them as a data set of the Hub, which has to exist; the row then names its commit"


def _push_receipt(state: BranchState) -> str:
    folder = (state.receipt.folder if state.receipt is not None else "") or "DIR"
    return _join(
        *("geneb-ci", "receipt", "push", state.row, "--receipt", folder, "--repo", "OWNER/NAME")
    )


def _published_receipt(state: BranchState) -> Iterator[str]:
    yield state.title
    yield f"{state.row} passes every check; its receipt is published, and not looked at here"
    yield "compute every cell from it again before you commit the row, as auditors will"
    yield from _uncommitted(state)


def _verify_and_commit(state: BranchState) -> str:
    words = ["geneb-ci", "receipt", "verify", state.row]
    if state.receipt is not None and state.receipt.needs_data:
        words += ["--data", "DIR"]
    return f"{_join(*words)} && {_commit(state)}"


def _base(state: BranchState) -> Iterator[str]:
    yield state.title
    branch = state.tree.branch or "none"
    yield f"a pull request is made from a branch of its own, and this is {branch}"


def _branch_off(state: BranchState) -> str:
    return _join("git", "switch", "--create", f"add-{state.model or 'model'}")


def _pending(state: BranchState) -> Iterator[str]:
    yield state.title
    yield f"{state.row or 'the submission'} passes, and is not committed"
    if state.warnings.number:
        yield f"warnings: {state.warnings.with_rules}; they stop nothing, explain them in the card"
    yield from _uncommitted(state)


def _uncommitted(state: BranchState) -> Iterator[str]:
    yield f"not committed, so that the server does not see it: {_listed(state.pending)}"
    if ignored := [path for path in state.pending if path in state.tree.ignored]:
        yield f"git ignores {_listed(ignored)}: they are added all the same"
    if state.other_uncommitted:
        yield f"of no submission, and left out: {_listed(state.other_uncommitted)}"


def _commit(state: BranchState) -> str:
    message = f"Add {state.model}" if state.model else "Add a submission"
    add = _join(*state.tree.add(*state.pending))
    return f"{add} && {_join('git', 'commit', '-m', message)}"


def _outdated(state: BranchState) -> Iterator[str]:
    yield state.title
    yield f"{state.tree.base} has changed since, in the same files: {_listed(state.outdated)}"
    yield "merge it, and keep what is yours; a merge would otherwise undo another's change"


def _merge(state: BranchState) -> str:
    remote, slash, branch = state.tree.base.partition("/")
    fetch = f"{_join('git', 'fetch', remote, branch)} && " if slash else ""
    return f"{fetch}{_join('git', 'merge', state.tree.base)}"


def _refused_change(state: BranchState) -> Iterator[str]:
    yield state.title
    yield f"the server would refuse the last commit: errors: {state.verdict.with_rules}"
    yield f"the first: {state.verdict.first}"


def _check_branch(_: BranchState) -> str:
    return "geneb-ci check"


def _unpushed(state: BranchState) -> Iterator[str]:
    yield state.title
    yield f"the branch is ready: {plural(state.change, 'file')} committed, no error"
    yield from _warned(state)
    yield from _strays(state)
    if not state.tree.remotes:
        yield "the clone has no remote: add the address of your fork of the board's repository"
    elif state.tree.upstream:
        yield f"{plural(state.tree.ahead, 'commit')} not pushed to {state.tree.upstream} yet"
    else:
        yield "it is on this machine alone"


def _warned(state: BranchState) -> Iterator[str]:
    if state.warnings.number:
        yield f"warnings: {state.warnings.with_rules}; they stop nothing, explain them in the card"


def _strays(state: BranchState) -> Iterator[str]:
    if state.other_uncommitted:
        listed = _listed(state.other_uncommitted)
        yield f"not committed, so that the server does not see it: {listed}"


def _push(state: BranchState) -> str:
    if not state.tree.remotes:
        return f"git remote add origin {shlex.quote(state.address)}"
    if state.tree.upstream:
        return "git push"
    remote = "origin" if "origin" in state.tree.remotes else min(state.tree.remotes)
    return _join("git", "push", "--set-upstream", remote, state.tree.branch)


def _pushed(state: BranchState) -> Iterator[str]:
    yield state.title
    yield f"the branch is pushed to {state.tree.upstream}, and passes"
    yield from _warned(state)
    yield from _strays(state)
    if state.github_repository:
        yield f"{state.github_repository} has no open pull request of this commit"
    else:
        yield "whether it has a pull request: not looked at (--repo OWNER/NAME, with GH_TOKEN)"


def _open_pull(state: BranchState) -> str:
    words = ["gh", "pr", "create", "--title", f"Add {state.model or state.tree.branch}"]
    words += ["--base", state.tree.base_name or "main", "--fill-first"]
    if state.tree.repository:
        words += ["--repo", state.tree.repository]
        fork = state.tree.remotes.get(state.tree.upstream.partition("/")[0], "")
        owner = fork.partition("/")[0]
        words += ["--head", f"{owner}:{state.tree.branch}" if owner else state.tree.branch]
    return _join(*words)


def _open(state: BranchState) -> Iterator[str]:
    yield state.title
    if state.pull is not None:
        yield f"pull request {state.pull.number}: {state.pull.verdict}"
        yield f"now it is the turn of {state.pull.who}: {state.pull.action}"


def _view(state: BranchState) -> str:
    number = str(state.pull.number) if state.pull is not None else ""
    return _join("gh", "pr", "view", number, "--repo", state.github_repository, "--comments")


def _has_submission_files(state: BranchState) -> bool:
    return bool(state.row or state.card or state.module or state.pending)


TABLE: tuple[Situation[BranchState], ...] = (
    Situation(
        "no-clone",
        "the folder is in no clone of a board",
        lambda s: not s.is_board,
        _outside,
        _clone,
    ),
    Situation(
        "git-refuses",
        "git does not read the clone",
        lambda s: s.refusal,
        lambda s: s.refusal_lines("contributor", " of the branch"),
        lambda _: "git status",
    ),
    Situation(
        "merge-conflict",
        "a merge left files with both versions",
        lambda s: s.tree.conflicts,
        _conflicts,
        _resolve,
    ),
    Situation(
        "misplaced-file",
        "a row, a card or an extractor lies in another folder than its own",
        lambda s: s.moves,
        _moves,
        _move,
    ),
    Situation(
        "several-models",
        "the branch has files of several models",
        lambda s: len(s.models) > 1,
        _several,
        _set_aside,
    ),
    Situation(
        "results-not-packed",
        "there are results of another program, and no row was made from them",
        lambda s: not s.row and s.results,
        _results,
        _pack,
    ),
    Situation(
        "no-row-yet",
        "a card or an extractor is there, such as `geneb-ci new` writes, and no row",
        lambda s: not s.row and (s.card or s.module),
        _template,
        _run,
    ),
    Situation(
        "no-base-branch",
        "nothing says which branch pull requests go to",
        lambda s: not s.tree.base and s.tree.head,
        _no_base,
        _fetch,
    ),
    Situation(
        "nothing-changed",
        "the branch and the working tree have nothing of a model",
        lambda s: not _has_submission_files(s) and not s.change,
        _unchanged,
        lambda _: "geneb-ci new OWNER/MODEL",
    ),
    Situation(
        "row-with-errors",
        "the row does not pass the checks",
        lambda s: s.row_errors.number,
        _row_errors,
        _check_row,
    ),
    Situation(
        "extractor-unusable",
        "the extractor that the row names is missing, another one than ran, or cannot be called",
        lambda s: s.extractor_error,
        _extractor,
        _edit_extractor,
    ),
    Situation(
        "row-without-card",
        "the row has no card",
        lambda s: s.card_errors.rules == ("missing-card",),
        _no_card,
        _write_card,
    ),
    Situation(
        "card-with-errors",
        "the card has placeholders, or contradicts the row",
        lambda s: s.card_errors.number,
        _card_errors,
        _edit_card,
    ),
    Situation(
        "practice-row",
        "the row passes, on a practice board without a remote, and is not committed",
        lambda s: s.is_practised and s.row in s.pending,
        _practised,
        _commit_practised,
    ),
    Situation(
        "receipt-not-published",
        "the row declares a receipt, and does not say where its files are",
        lambda s: s.receipt is not None and not s.receipt.is_published,
        _receipt,
        _push_receipt,
    ),
    Situation(
        "on-the-base-branch",
        "the files are on the branch that pull requests go to, or on none",
        lambda s: _has_submission_files(s) and (s.tree.is_on_base or not s.tree.branch),
        _base,
        _branch_off,
    ),
    Situation(
        "receipt-not-verified",
        "the receipt is published, and the row is not committed yet",
        lambda s: s.receipt is not None and s.row in s.pending,
        _published_receipt,
        _verify_and_commit,
    ),
    Situation(
        "not-committed",
        "the submission passes, perhaps with warnings, and is not committed",
        lambda s: s.pending,
        _pending,
        _commit,
    ),
    Situation(
        "outdated-branch",
        "the base branch has changed the same files since",
        lambda s: s.outdated,
        _outdated,
        _merge,
    ),
    Situation(
        "verdict-with-errors",
        "the server would refuse the last commit",
        lambda s: s.verdict.number,
        _refused_change,
        _check_branch,
    ),
    Situation(
        "not-pushed",
        "the branch is ready, and has commits that no server has",
        lambda s: not s.tree.is_pushed,
        _unpushed,
        _push,
    ),
    Situation(
        "pull-request-open",
        "the branch has an open pull request (with `--repo`)",
        lambda s: s.pull is not None,
        _open,
        _view,
    ),
    Situation(
        "no-pull-request",
        "the branch is pushed, and has no pull request, or it was not looked at",
        lambda _: True,
        _pushed,
        _open_pull,
    ),
)
"""Situations of a contributor, in the order of a submission's steps."""
