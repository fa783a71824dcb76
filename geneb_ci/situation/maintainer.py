"""The situations of a maintainer of a board, the most urgent first."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from geneb_ci.common.finding import first_and_more
from geneb_ci.github.ages import OVERDUE_AFTER, duration
from geneb_ci.publish.difference import LiveStatus
from geneb_ci.situation.table import Situation
from geneb_ci.situation.work_tree import CloneState
from reference_harness.formats.text import plural

NAMED_ITEMS_MAX = 3
"""Maximum number of rows and paths that a line names."""
COMMIT_ID_DIGITS = 12
"""Hex digits of a commit's id in a command."""
KEYS_PATH = "leaderboard/policy/keys.json"
"""Path of the list of trusted keys in a board's repository."""
CORRECTION_TEXT = (
    "the author of the row may correct the row; if the audit was wrong, withdraw the record of the "
    "audit: geneb-ci audit withdraw RECORD --reason WHY"
)
"""Text about the consequences of an audit that differs."""
_KEY_ENTRY_TEXT = (
    f"the command prints the entry of the key for {KEYS_PATH}; the key counts as soon as main has "
    "this entry"
)
"""Advice about a new key."""
APPLY_COMMAND = "GH_TOKEN=... HF_TOKEN=... geneb-ci init --apply"
"""Command that pushes a new board to GitHub and sets up the repository and the Space."""
AUDIT_LABEL = "audit"
"""Label of a pull request that requests an audit of its row."""
STATEMENTS_BRANCH = "audits"
"""Name of the new branch for statements that were committed on the local main branch."""
TIME, COMMIT, DIR = "TIME", "COMMIT", "DIR"
"""Placeholders in a command for values that are not in any file."""
REVOKED, EXPIRED, NOT_LISTED = "revoked", "expired", "not listed"
"""States of a key whose signatures do not count."""
DrawKey = tuple[str, tuple[str, ...]]
"""Identity of a draw: digest of its commitment, and options of `audit FILE` for its sample."""
OVERDUE_SECONDS = int(OVERDUE_AFTER.total_seconds())
"""Seconds after a draw from which an audit without a record is overdue."""


class KeyFacts(NamedTuple):
    """The user's private key for audits, and whether its signatures count."""

    path: str = ""
    """Path of the key file; "" if there is no key."""
    state: str = ""
    """Why its new signatures do not count, such as "revoked"; "" if they count."""
    owner: str = ""
    """Name of the key's owner in the list of trusted keys; "" if the list lacks it."""
    entry: str = ""
    """Entry to add to the list of trusted keys, as JSON; "" if the list has it."""
    free_path: str = "keys/audit.pem"
    """Path for a new key file, which does not exist yet."""


class LostStatement(NamedTuple):
    """A signed statement that was deleted or changed after another statement linked to it."""

    path: str
    reason: str
    """Why the statement counts as lost, in words."""
    commit: str
    """Last commit with the linked content; "" if unknown."""
    lost_count: int
    """Total number of lost statements."""


class BrokenStatement(NamedTuple):
    """A signed statement that does not verify, as an example of all of them."""

    path: str
    reason: str
    """The first step of its verification that does not hold."""
    broken_count: int
    """Total number of statements that do not verify."""


class PendingStatements(NamedTuple):
    """Signed statements that are not committed."""

    paths: tuple[str, ...]
    """Paths of the statements."""
    differing_model: str = ""
    """Id of a model whose record has the verdict `differs`; "" if there is none."""


class OpenAudit(NamedTuple):
    """A started audit without a record."""

    model: str
    file: str
    """Path of the submission."""
    commitment: str
    """Digest of the commitment."""
    statement: str = ""
    """Path of the signed commitment or start; "" if nothing was signed."""
    work_folder: str = ""
    """Path of the work folder; "" if this machine has none."""
    plan: str = ""
    """Path of the plan; "" if nothing is drawn, or the plan is in the work folder."""
    sample: tuple[str, ...] = ()
    """Options of `audit FILE` that select the sample."""
    typed_words: tuple[str, ...] = ()
    """Words of the command that started the audit in the root of this clone; empty if unknown."""
    is_drawn: bool = False
    """Whether the sample has been drawn."""
    is_rerun: bool = False
    """Whether every result has been computed, so that only the record is missing."""
    is_practice: bool = False
    """Whether this is an audit for practice, whose draw anybody can predict."""
    shown_on: str = ""
    """Commit of main that added the signed commitment; "" if there is none."""
    committed_at: str = ""
    """Time at which the digest became public, in UTC; "" if unknown."""
    due: str = ""
    """Time at which the beacon publishes the round, in UTC; "" if unknown."""
    is_due: bool = False
    """Whether the beacon has already published the round."""
    age_seconds: int | None = None
    """Seconds since the draw, or since the commitment was merged to main; None if unknown."""

    @property
    def draw_key(self) -> DrawKey:
        """The commitment's digest and the options of its sample, which identify the draw."""
        return self.commitment, self.sample


class AuditCandidate(NamedTuple):
    """A row that no audit confirms, so that a maintainer should audit the row."""

    model: str
    file: str
    """Path of the submission."""
    weight: float
    """Sum of the scores of the row's warnings."""
    withdrawal_reason: str = ""
    """Why the row's last audit was withdrawn; "" if it was not."""
    refusal: str = ""
    """Why the row cannot be audited now; "" if it can."""


class LiveBoard(NamedTuple):
    """The Space of a board, and whether it serves the board of this clone or another one."""

    space: str
    status: LiveStatus
    """How the served board compares with the board of this clone."""


class WaitingPull(NamedTuple):
    """The first pull request that waits for a maintainer."""

    number: int
    name: str
    """Name of the model or of the author."""
    age: str
    """Time for which the pull request has been open, as text."""
    action: str
    """The next action of a maintainer."""
    number_waiting: int
    """Total number of pull requests that wait for a maintainer."""
    is_to_be_audited: bool = False
    """Whether the next action is an audit of the row."""
    address: str = ""
    """Address of the repository for git; "" if the program gh can be used."""


@dataclass(frozen=True)
class BoardState(CloneState):
    """Everything that determines the next step of a maintainer."""

    row_count: int = 0
    """Number of rows of the board."""
    has_answers: bool = True
    """Whether `geneb-ci init` made the repository."""
    signer_count: int = 1
    """Number of keys and workflows whose signatures count."""
    key: KeyFacts = KeyFacts()  # noqa: RUF009 (immutable)
    """The user's private key for audits."""
    lost_statement: LostStatement | None = None
    """The first lost statement; None if none is lost."""
    broken_statement: BrokenStatement | None = None
    """A statement that does not verify; None if all do."""
    pending: PendingStatements | None = None
    """Signed statements that are not committed; None without any."""
    unmerged: tuple[str, ...] = ()
    """Paths of committed statements that the remote's main branch lacks."""
    audits: tuple[OpenAudit, ...] = ()
    """Started audits without a record, the most urgent one first."""
    audit_candidates: tuple[AuditCandidate, ...] = ()
    """Rows that need an audit, the most suspicious one first."""
    failing_rows: tuple[str, ...] = ()
    """Ids of rows that do not pass the checks."""
    disputed: tuple[str, ...] = ()
    """Ids of disputed rows."""
    live: LiveBoard | None = None
    """The published board; None if the Hub was not asked."""
    pull: WaitingPull | None = None
    """The first pull request that waits for a maintainer; None if none is known."""
    is_github_known: bool = False
    """Whether GitHub was asked for pull requests and statuses."""
    repository: str = ""
    """OWNER/NAME on GitHub; "" if unknown."""
    space: str = ""
    """OWNER/NAME on the Hub; "" if unknown."""
    needs_data: bool = True
    """Whether a rerun needs task data that must be downloaded."""

    @property
    def title(self) -> str:
        """The first line, with the role, the rows and their audits; "" for an unknown state."""
        if self.refusal or not self.is_board:
            return ""
        return f"maintainer: {plural(self.row_count, 'row')}, {self.audit_summary}"

    @property
    def audit_summary(self) -> str:
        """Numbers of rows to audit and of unfinished audits, and the disputed rows, in words."""
        audits = f", {plural(len(self.audits), 'audit')} not finished" if self.audits else ""
        disputed = f", disputed: {first_and_more(list(self.disputed))}" if self.disputed else ""
        return f"{len(self.audit_candidates)} to audit{audits}{disputed}"

    @property
    def audit(self) -> OpenAudit:
        """The most urgent started audit."""
        return self.audits[0]

    @property
    def signing_options(self) -> list[str]:
        """Words of the option that names the key."""
        return ["--key", self.key.path or "KEY.pem"]


def _path_list(paths: tuple[str, ...]) -> str:
    """Return paths as a list in a line, at most `NAMED_ITEMS_MAX` of them."""
    return first_and_more(list(paths), NAMED_ITEMS_MAX)


def _repository_option(board: BoardState) -> str:
    """Return the advice to name the repository by an option."""
    return f"pass --repo {board.repository or 'OWNER/NAME'}"


def _explain_missing_board(_: BoardState) -> Iterator[str]:
    yield "maintainer: this folder is not in the repository of a board"
    yield "change to a clone of your board, or make a new board with its files, a key and a row"


def _explain_incomplete_setup(_: BoardState) -> Iterator[str]:
    yield "the repository has neither the settings of a board nor a trusted key"
    yield "geneb-ci init writes the missing files and keeps the existing ones"


def _init_board_command(board: BoardState) -> str:
    return shlex.join(["geneb-ci", "init", ".", "--repo", board.repository or "OWNER/NAME"])


def _explain_missing_rows(_: BoardState) -> Iterator[str]:
    yield "a board cannot be built without a row"


def _explain_failing_rows(board: BoardState) -> Iterator[str]:
    yield f"rows with errors: {_path_list(board.failing_rows)}"
    yield "a board can only be built and published if every row passes"


def _explain_broken_history(board: BoardState) -> Iterator[str]:
    if board.lost_statement is not None:
        yield f"the history of signed statements is broken: {board.lost_statement.reason}"
        if board.lost_statement.lost_count > 1:
            yield f"{plural(board.lost_statement.lost_count, 'statement')} are lost in total"
        if not board.lost_statement.commit:
            yield "no commit of this clone has the original content: fetch main and try again"
    yield (
        "until the history is restored, rows that need a lost statement have no trust level, and "
        "nothing is published"
    )


def _restore_statement_command(board: BoardState) -> str:
    if board.lost_statement is None or not board.lost_statement.commit:
        return "geneb-ci audit verify"
    return shlex.join(
        [
            "git",
            "restore",
            f"--source={board.lost_statement.commit[:COMMIT_ID_DIGITS]}",
            "--",
            board.lost_statement.path,
        ]
    )


def _explain_broken_statement(board: BoardState) -> Iterator[str]:
    if (broken := board.broken_statement) is not None:
        yield f"{broken.path} does not verify: {broken.reason}"
        if broken.broken_count > 1:
            yield f"{plural(broken.broken_count, 'statement')} do not verify in total"
    yield "while a statement is invalid, no trust level is computed; the command shows every step"


def _verify_statement_command(board: BoardState) -> str:
    path = board.broken_statement.path if board.broken_statement is not None else ""
    return shlex.join(["geneb-ci", "audit", "verify", path])


def _explain_differing_record(board: BoardState) -> Iterator[str]:
    model = board.pending.differing_model if board.pending is not None else ""
    yield f"an audit of {model} found other scores than the row claims"
    yield (
        "merge the record of the audit; if the row is still in a pull request, do not merge that "
        "pull request"
    )
    yield f"the board marks a row on main as disputed; {CORRECTION_TEXT}"


def _explain_uncommitted_statements(board: BoardState) -> Iterator[str]:
    if board.pending is not None:
        yield f"signed, but not committed: {_path_list(board.pending.paths)}"
    yield "a statement counts as soon as it is on the main branch; later statements link to it"


def _commit_statements_command(board: BoardState) -> str:
    paths = board.pending.paths if board.pending is not None else ()
    folders = sorted({path.rpartition("/")[0] for path in paths})
    models = [folder.rpartition("/")[2] for folder in folders]
    is_plain = len(paths) > 1 and not {*paths} & {*board.tree.ignored_files}
    add = shlex.join(board.tree.add_command(*(folders if is_plain else paths)))
    return f"{add} && {shlex.join(['git', 'commit', '-m', f'Audit {first_and_more(models)}'])}"


def _explain_unmerged_statements(board: BoardState) -> Iterator[str]:
    yield f"committed here, but not on {board.tree.base}: {_path_list(board.unmerged)}"
    yield "open a pull request, in which the server verifies the statements again and merges them"


def _push_statements_command(board: BoardState) -> str:
    if board.tree.upstream and not board.tree.is_on_base:
        return "git push"
    branch = STATEMENTS_BRANCH if board.tree.is_on_base else board.tree.branch
    remote = board.tree.base.partition("/")[0]
    push = shlex.join(["git", "push", "--set-upstream", remote, branch])
    switch = shlex.join(["git", "switch", "--create", branch])
    return f"{switch} && {push}" if board.tree.is_on_base else push


def _explain_statements_in_review(board: BoardState) -> Iterator[str]:
    yield f"pushed to {board.tree.upstream}, but not on {board.tree.base}: " + (
        _path_list(board.unmerged)
    )
    if not board.is_github_known:
        yield (
            "whether this branch has a pull request was not checked; if it has one, merge that "
            "pull request"
        )


def _create_statements_pull_command(board: BoardState) -> str:
    words = ["gh", "pr", "create", "--title", "Add audits", "--fill-first"]
    return shlex.join([*words, *(["--repo", board.repository] if board.repository else [])])


def _explain_missing_key(_: BoardState) -> Iterator[str]:
    yield f"no signature counts, since {KEYS_PATH} has no key"
    yield f"make a key; {_KEY_ENTRY_TEXT}"


def _explain_unusable_key(board: BoardState) -> Iterator[str]:
    if board.key.state == REVOKED:
        yield f"your key {board.key.path} is revoked, so none of its signatures counts"
    else:
        yield f"your key {board.key.path} has expired, so new signatures by it do not count"
    yield f"make a new key; {_KEY_ENTRY_TEXT}"


def _explain_unlisted_key(board: BoardState) -> Iterator[str]:
    yield f"your key {board.key.path} is not in {KEYS_PATH}, so its signatures do not count"
    yield (
        "add the entry of the key to the member `keys` of this file, by pull request, with the "
        "name of the owner of the key:"
    )
    yield board.key.entry


def _make_key_command(board: BoardState) -> str:
    words = ["geneb-ci", "audit", "keygen", "--output", board.key.free_path]
    return shlex.join([*words, "--owner", board.key.owner or "NAME"])


def _continue_audit_command(board: BoardState, *options: str) -> str:
    """Return the command that continues an audit: `audit run` for a plan, else `audit FILE`."""
    audit = board.audit
    is_drawn_here = bool(audit.work_folder) and audit.is_drawn
    if audit.plan:
        words = ["geneb-ci", "audit", "run", audit.plan]
    elif audit.typed_words:
        words = [word for word in audit.typed_words if word != "--unsigned"]
        practice = [["--practice"]] if audit.is_practice and not is_drawn_here else []
        for option in (*practice, [*options], board.signing_options):
            words += [] if {*option[:1]} & {*words} else option
        return shlex.join(words)
    else:
        words = ["geneb-ci", "audit", audit.file, *audit.sample]
        if not audit.work_folder and audit.is_drawn:
            words += ["--committed-at", audit.committed_at]
        if audit.is_practice and not is_drawn_here:
            words.append("--practice")
    if board.needs_data and not audit.is_rerun:
        words += ["--data", DIR]
    if audit.shown_on and not audit.is_practice:
        words += ["--shown-on", audit.shown_on]
    return shlex.join([*words, *options, *board.signing_options])


def _explain_unsigned_record(board: BoardState) -> Iterator[str]:
    yield f"the audit of {board.audit.model} is computed, but its record is not signed"
    yield "the command signs the record without computing anything again"


def _explain_overdue_audit(board: BoardState) -> Iterator[str]:
    yield (
        f"the audit of {board.audit.model} is overdue: "
        f"its sample was drawn {duration(board.audit.age_seconds)} ago, "
        "but it has no record"
    )
    yield "until the audit has a record, its sample is added to all other samples for this model"


def _explain_sample_not_rerun(board: BoardState) -> Iterator[str]:
    yield f"the sample of {board.audit.model} is drawn, but not rerun yet"
    if board.needs_data:
        yield f"{DIR} is the folder of the task data: `geneb-ci data pull {DIR}` downloads them"
    if board.audit.statement and not board.audit.plan and not board.audit.work_folder:
        yield f"the command makes the same plan again as in {board.audit.statement}"


def _explain_future_round(board: BoardState) -> Iterator[str]:
    yield (
        f"the commitment of {board.audit.model} has been public since {board.audit.committed_at}; "
        f"the beacon's round that decides its sample is due at {board.audit.due}"
    )
    yield "the command waits for this round, then draws the sample"


def _explain_published_round(board: BoardState) -> Iterator[str]:
    yield (
        f"the commitment of {board.audit.model} has been public since {board.audit.committed_at}, "
        "and the beacon's round that decides its sample has been published"
    )


def _draw_sample_command(board: BoardState) -> str:
    audit = board.audit
    time = [] if audit.is_practice else ["--committed-at", audit.committed_at or TIME]
    if audit.work_folder or not audit.statement:
        return _continue_audit_command(board, *time)
    words = ["geneb-ci", "audit", "plan", audit.statement, *time, *audit.sample]
    words += ["--practice"] if audit.is_practice else ["--shown-on", audit.shown_on or COMMIT]
    return shlex.join([*words, "--output", "PLAN.json", *board.signing_options])


def _explain_unpublished_commitment(board: BoardState) -> Iterator[str]:
    if board.is_github_known and board.audit.shown_on:
        yield (
            f"the commitment of {board.audit.model} is made, but commit "
            f"{board.audit.shown_on[:COMMIT_ID_DIGITS]} has no status that publishes it"
        )
    else:
        yield f"the commitment of {board.audit.model} is made; it is not known whether it is public"
    if not board.is_github_known:
        yield f"statuses on GitHub were not checked: {_repository_option(board)}"
    yield (
        "set GH_TOKEN and run the command, which publishes the digest of the commitment as a "
        "status of main; the time of this status decides the sample"
    )


def _publish_commitment_command(board: BoardState) -> str:
    words = ["geneb-ci", "audit", "publish", f"submissions/{board.audit.model}.json"]
    return shlex.join([*words, *(["--repo", board.repository] if board.repository else [])])


def _explain_undrawn_practice_sample(board: BoardState) -> Iterator[str]:
    yield f"the commitment of {board.audit.model} is made; a practice sample can be drawn at once"


def _explain_outdated_space(board: BoardState) -> Iterator[str]:
    if board.live is not None:
        texts = {
            LiveStatus.NOTHING: "has no board yet",
            LiveStatus.BEHIND: "has an older board than main: rows or records were merged later",
            LiveStatus.OTHER: "has a board that is neither the one of main nor a newer one",
        }
        yield f"the Space {board.live.space} {texts.get(board.live.status, board.live.status)}"
    yield (
        "the workflow publish.yml publishes the board after a merge; to publish the board now, set "
        "HF_TOKEN and run the command"
    )


def _publish_board_command(board: BoardState) -> str:
    return shlex.join(["geneb-ci", "publish", "--space", board.live.space if board.live else ""])


def _explain_waiting_pull_requests(board: BoardState) -> Iterator[str]:
    if board.pull is not None:
        yield (
            f"number of pull requests that wait for a maintainer: {board.pull.number_waiting}; the "
            f"oldest is {board.pull.number}, {board.pull.name}, open for {board.pull.age}"
        )
        yield board.pull.action


def _view_pull_command(board: BoardState) -> str:
    return pull_command(board.pull, board.repository) if board.pull is not None else ""


def pull_command(pull: WaitingPull, repository: str) -> str:
    """Return the command for the next action on a pull request, or one that shows it."""
    if pull.address:
        fetch = shlex.join(["git", "fetch", pull.address, f"pull/{pull.number}/head"])
        return f"{fetch} && git diff HEAD...FETCH_HEAD"
    if pull.action.startswith("gh "):
        return f"{pull.action} --repo {repository}"
    subcommand = ["edit", "--add-label", AUDIT_LABEL] if pull.is_to_be_audited else ["view"]
    return shlex.join(
        ["gh", "pr", subcommand[0], str(pull.number), "--repo", repository, *subcommand[1:]]
    )


def _first_candidate(board: BoardState) -> AuditCandidate | None:
    """Return the row that should be audited first; None if no row can be audited."""
    return next((row for row in board.audit_candidates if not row.refusal), None)


def _explain_local_board(board: BoardState) -> Iterator[str]:
    yield "the board is only on this machine: its clone has no remote"
    create = f"create {board.repository} as an empty repository on GitHub"
    if _has_practice_rows(board):
        yield (
            f"for practice, the board can stay on this machine; to publish the board, {create} and "
            f"run: {APPLY_COMMAND}"
        )
        if _first_candidate(board) is None:
            yield "no row is left to audit: the command shows the trust levels and the page"
        return
    yield f"{create}; the command pushes the board to GitHub and sets up the repository"
    if _first_candidate(board) is not None:
        yield f"or audit a row before you push: {_audit_candidate_command(board)}"


def _has_practice_rows(board: BoardState) -> bool:
    """Whether a practice board has further rows than the one that `geneb-ci init` wrote."""
    return not board.needs_data and board.row_count > 1


def _practise_or_push_command(board: BoardState) -> str:
    if not _has_practice_rows(board):
        return APPLY_COMMAND
    return (
        "geneb-ci trust && geneb-ci serve"
        if _first_candidate(board) is None
        else _audit_candidate_command(board)
    )


def _explain_row_to_audit(board: BoardState) -> Iterator[str]:
    candidate = _first_candidate(board)
    if candidate is not None:
        weight_text = (
            f"; its warnings have the weight {candidate.weight:g}" if candidate.weight else ""
        )
        yield f"audit {candidate.model} first: no audit confirms this row{weight_text}"
        if candidate.withdrawal_reason:
            yield f"the last audit of this row was withdrawn: {candidate.withdrawal_reason}"
        later_models = [
            row.model for row in board.audit_candidates if row is not candidate and not row.refusal
        ]
        if later_models:
            yield f"then {first_and_more(later_models, NAMED_ITEMS_MAX)}"
    yield from _explain_unauditable_rows(board)
    yield from _list_unasked_servers(board)


def _explain_unauditable_rows(board: BoardState) -> Iterator[str]:
    """Yield how many rows cannot be audited now, and why the first one cannot."""
    unauditable = [row for row in board.audit_candidates if row.refusal]
    if unauditable:
        yield (
            f"number of rows that cannot be audited: {len(unauditable)}; the first is "
            f"{unauditable[0].model}: {unauditable[0].refusal}"
        )


def _list_unasked_servers(board: BoardState) -> Iterator[str]:
    if not board.is_github_known:
        yield f"pull requests were not checked: {_repository_option(board)}"
    if board.live is None:
        yield f"the published board was not checked: pass --space {board.space or 'OWNER/NAME'}"


def _audit_candidate_command(board: BoardState) -> str:
    candidate = _first_candidate(board)
    words = ["geneb-ci", "audit", candidate.file if candidate is not None else ""]
    words += ["--data", DIR] if board.needs_data else ["--practice"]
    return shlex.join([*words, *board.signing_options])


def _explain_disputed_row(board: BoardState) -> Iterator[str]:
    yield f"{board.disputed[0]} is disputed: an audit found other scores than the row claims"
    yield CORRECTION_TEXT
    yield from _explain_unauditable_rows(board)


def _explain_finished_work(board: BoardState) -> Iterator[str]:
    yield from _explain_unauditable_rows(board)
    yield from _list_unasked_servers(board)


def _ask_servers_command(board: BoardState) -> str:
    words = ["geneb-ci", "next", "--as", "maintainer"]
    if not board.is_github_known:
        words += ["--repo", board.repository or "OWNER/NAME"]
    if board.live is None:
        words += ["--space", board.space or "OWNER/NAME"]
    return "" if board.is_github_known and board.live is not None else shlex.join(words)


MAINTAINER_SITUATIONS: tuple[Situation[BoardState], ...] = (
    Situation(
        "no-board",
        "the folder is not in the repository of a board",
        lambda s: not s.is_board,
        _explain_missing_board,
        _init_board_command,
    ),
    Situation(
        "git-refuses",
        "git cannot read the clone",
        lambda s: s.refusal,
        lambda s: s.refusal_lines("maintainer"),
        lambda _: "git status",
    ),
    Situation(
        "setup-incomplete",
        "there are rows, but neither trusted keys nor the settings that `geneb-ci init` writes",
        lambda s: not s.has_answers and not s.signer_count,
        _explain_incomplete_setup,
        _init_board_command,
    ),
    Situation(
        "history-broken",
        "a signed statement was changed or deleted",
        lambda s: s.lost_statement,
        _explain_broken_history,
        _restore_statement_command,
    ),
    Situation(
        "record-broken",
        "a signed statement does not verify",
        lambda s: s.broken_statement,
        _explain_broken_statement,
        _verify_statement_command,
    ),
    Situation(
        "record-differs",
        "an uncommitted record has the verdict that claims differ",
        lambda s: s.pending and s.pending.differing_model,
        _explain_differing_record,
        _commit_statements_command,
    ),
    Situation(
        "statement-not-committed",
        "signed statements are not committed",
        lambda s: s.pending,
        _explain_uncommitted_statements,
        _commit_statements_command,
    ),
    Situation(
        "statement-in-review",
        "signed statements are on a branch that is pushed",
        lambda s: s.unmerged and s.tree.is_pushed and not s.tree.is_on_base,
        _explain_statements_in_review,
        _create_statements_pull_command,
    ),
    Situation(
        "statement-not-merged",
        "signed statements are committed only on this machine",
        lambda s: s.unmerged,
        _explain_unmerged_statements,
        _push_statements_command,
    ),
    Situation(
        "no-key",
        "no key is trusted, and you have no key",
        lambda s: not s.signer_count and not s.key.path,
        _explain_missing_key,
        _make_key_command,
    ),
    Situation(
        "key-revoked",
        "your key is revoked",
        lambda s: s.key.state == REVOKED,
        _explain_unusable_key,
        _make_key_command,
    ),
    Situation(
        "key-expired",
        "your key has expired",
        lambda s: s.key.state == EXPIRED,
        _explain_unusable_key,
        _make_key_command,
    ),
    Situation(
        "key-not-listed",
        "your key is not in the list of trusted keys",
        lambda s: s.key.state == NOT_LISTED,
        _explain_unlisted_key,
        lambda _: f"${{EDITOR:-vi}} {KEYS_PATH}",
    ),
    Situation(
        "record-not-signed",
        "an audit is computed, but its record is not signed",
        lambda s: s.audits and s.audit.is_rerun,
        _explain_unsigned_record,
        _continue_audit_command,
    ),
    Situation(
        "audit-overdue",
        "a sample was drawn more than a week ago, but has no record",
        lambda s: s.audits and s.audit.is_drawn and (s.audit.age_seconds or 0) > OVERDUE_SECONDS,
        _explain_overdue_audit,
        _continue_audit_command,
    ),
    Situation(
        "audit-not-run",
        "a sample is drawn, but not rerun",
        lambda s: s.audits and s.audit.is_drawn,
        _explain_sample_not_rerun,
        _continue_audit_command,
    ),
    Situation(
        "practice-not-drawn",
        "no sample is drawn yet for a commitment on a practice board",
        lambda s: s.audits and s.audit.is_practice,
        _explain_undrawn_practice_sample,
        _draw_sample_command,
    ),
    Situation(
        "round-due",
        "a commitment is public, and the beacon has published its round (seen only with `--repo`)",
        lambda s: s.audits and s.audit.is_due,
        _explain_published_round,
        _draw_sample_command,
    ),
    Situation(
        "round-not-due",
        "a commitment is public, but its round is not published yet (seen only with `--repo`)",
        lambda s: s.audits and s.audit.due,
        _explain_future_round,
        _draw_sample_command,
    ),
    Situation(
        "commitment-not-public",
        "a commitment is made, but is not known to be public",
        lambda s: s.audits,
        _explain_unpublished_commitment,
        _publish_commitment_command,
    ),
    Situation(
        "row-refused",
        "a row does not pass the checks, so that no board can be built",
        lambda s: s.failing_rows,
        _explain_failing_rows,
        lambda _: "geneb-ci check submissions",
    ),
    Situation(
        "no-row",
        "the board has no row",
        lambda s: not s.row_count,
        _explain_missing_rows,
        lambda _: "geneb-ci new OWNER/MODEL",
    ),
    Situation(
        "board-not-published",
        "the Space has no board (seen only with `--space`)",
        lambda s: s.live is not None and s.live.status is LiveStatus.NOTHING,
        _explain_outdated_space,
        _publish_board_command,
    ),
    Situation(
        "board-behind",
        "the Space has an older board than main, or another one (seen only with `--space`)",
        lambda s: s.live is not None and s.live.status in {LiveStatus.BEHIND, LiveStatus.OTHER},
        _explain_outdated_space,
        _publish_board_command,
    ),
    Situation(
        "pull-request-waits",
        "a pull request waits for a maintainer (seen only with `--repo`)",
        lambda s: s.pull,
        _explain_waiting_pull_requests,
        _view_pull_command,
    ),
    Situation(
        "not-on-github",
        "`geneb-ci init` made the board, but it has not been pushed to GitHub",
        lambda s: s.has_answers and not s.tree.remotes,
        _explain_local_board,
        _practise_or_push_command,
    ),
    Situation(
        "row-to-audit",
        "no audit confirms a contributed row; rows with the heaviest warnings come first",
        _first_candidate,
        _explain_row_to_audit,
        _audit_candidate_command,
    ),
    Situation(
        "row-disputed",
        "an audit of a row differs, and nothing else is left to do",
        lambda s: s.disputed,
        _explain_disputed_row,
        lambda s: shlex.join(["geneb-ci", "explain", s.disputed[0]]),
    ),
    Situation(
        "nothing-to-do",
        "nothing is left to do, or servers were not asked",
        lambda _: True,
        _explain_finished_work,
        _ask_servers_command,
    ),
)
"""Situations of a maintainer, the most urgent first: broken statements, then started audits."""
