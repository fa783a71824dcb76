"""Audits of open pull requests: the order passed between jobs, and the texts written on GitHub.

A label requests an audit. A job that may write publishes the commitment and draws; a job without
any token reruns the sample; a job with the key signs, verifies every step, and opens a pull request
with the row and its record.
"""

import itertools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from geneb_ci.audit.commitment import Commitment, method_identity, same_method_reason
from geneb_ci.audit.record.verify import StepState, Verification
from geneb_ci.audit.sampling.plan import TaskPlan, json_text_of
from geneb_ci.check.change import MODEL_FILES_MAX, REGULAR, Blob
from geneb_ci.common.errors import GenebError
from geneb_ci.common.finding import Fault
from geneb_ci.github.api import COMMITMENT_STATUS, GitHub
from geneb_ci.github.comment import own_comment
from geneb_ci.github.errors import Tampered
from geneb_ci.github.one_line import decode, encode
from geneb_ci.github.prefetch import prefetch_conversations
from geneb_ci.github.replies import UNREADABLE_LABEL, Comment, Commit
from geneb_ci.github.report import AUDIT_LABEL, AUDIT_STATES, run_sentence
from geneb_ci.github.trees import GitReader, read_blob
from geneb_ci.github.verdict.model import REPOSITORY, FileDigest, PullNumber
from geneb_ci.render.markdown import code_span
from geneb_ci.render.plain import visible
from geneb_ci.render.table import Table
from reference_harness.formats.base import Hex40, StrictModel
from reference_harness.formats.text import Say, plural

AUDIT_BRANCH_PREFIX = "geneb-audit"
"""First part of the names of branches with audit records, before the slash."""
AUDIT_MARKER = "<!-- geneb-ci:audit:1 "
"""Beginning of our comment on the audits of a pull request."""
_ORDERS_LINE = re.compile(re.escape(AUDIT_MARKER) + r"([A-Za-z0-9+/=: ]{0,60000})-->")
"""First line of our comment on audits, which is hidden and has every order with a draw."""
ORDERS_MAX = 6
"""Maximum number of draws that a comment keeps: each takes up to 8,000 of its 65,536 characters."""
AUDITED_PULLS_MAX = 500
"""Maximum number of other pull requests with draws to read: 24 requests and 20 queries."""
RETRY_FIX = (
    "run the workflow audit again; if the pull request has a new commit, set the label again"
)
"""Advice after an audit that failed."""
_RESTORE_FIX = "restore the first line of that comment from its edit history"
_REASON_MAX = 300  # characters of an error message in a comment


class AuditOrder(StrictModel):
    """An order to run an audit: the plan with the drawn tasks, and the files of the row."""

    format_version: Literal["1.0"]
    repository: Annotated[str, Field(pattern=f"^{REPOSITORY}$")]
    number: PullNumber
    """Number of the pull request or issue whose comments list the audit."""
    head_sha: Hex40
    """Commit whose row is audited: the head of the pull request, or of main."""
    main_sha: Hex40
    """Commit of main whose code and benchmark the audit uses."""
    nonce: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    """Random text that the extractor does not know, so it cannot forge an outcome."""
    plan: TaskPlan
    """The plan with the drawn tasks."""
    files: Annotated[list[FileDigest], Field(min_length=1, max_length=MODEL_FILES_MAX)]
    """Row, card, extractor and lock at the head, as far as the pull request changes them."""
    published_on: Hex40 | None = None
    """Earlier head with the first status of this commitment; None if `head_sha` has it."""
    is_on_main: bool = False
    """Whether the row is on main; then `number` is an issue and `head_sha` a commit of main."""

    @property
    def model_id(self) -> str:
        """Id of the model."""
        return self.plan.commitment.model_id


def publish_commitment(
    github: GitHub, sha: str, digest: str, earlier_orders: Iterable[AuditOrder]
) -> tuple[str, str | None]:
    """Set the status that publishes a commitment, unless it exists.

    Return the time of the first status by GitHub's clock, and the earlier head that has it; None
    if `sha` has it. Only the first status counts, so a commitment has one time, one round
    and one draw.
    """
    publications: list[tuple[str, str | None]] = [
        (order.plan.committed_at, order.published_on or order.head_sha)
        for order in earlier_orders
        if order.plan.commitment_sha256 == digest
    ]
    if published_at := github.publication_time(sha, digest):
        publications.append((published_at, None))
    if publications:
        return min(
            publications, key=lambda publication: publication[0]
        )  # ISO 8601 in UTC sorts as it is
    return github.set_status(sha, "success", digest, COMMITMENT_STATUS).moment, None


def is_commitment_published(github: GitHub, order: AuditOrder) -> bool:
    """Whether a status of the audited commit publishes the commitment at the time of the plan."""
    digest, sha = order.plan.commitment_sha256, order.published_on or order.head_sha
    return github.publication_time(sha, digest) == order.plan.committed_at


def files_at_head(reader: GitReader, files: Iterable[FileDigest]) -> dict[str, bytes]:
    """Return the bytes of the files of a row by path; one request for each file.

    Raises Tampered if they do not match their git object ids, or are too large.
    """
    contents = {}
    for file in files:
        raw = read_blob(reader, Blob(REGULAR, file.blob))
        if isinstance(raw, Fault):
            raise Tampered(f"{file.path}: {raw.message}", RETRY_FIX)
        contents[file.path] = raw
    return contents


def set_state_label(github: GitHub, number: int, state: str) -> None:
    """Replace the labels that show the state of an audit by `state`; keep all other labels."""
    audit_labels = {AUDIT_LABEL, *AUDIT_STATES}
    present = github.labels(number)
    if audit_labels & set(present) != {state} or UNREADABLE_LABEL in present:
        github.replace_labels(number, present, audit_labels, state)


def earlier_orders(github: GitHub, number: int) -> list[AuditOrder]:
    """Return the earlier orders to audit a pull request, which our own comment lists.

    Raises Tampered if they cannot be read, because ignoring a draw would allow a second one.
    """
    comment = _audit_comment(github, number)
    if comment is None:
        return []
    subject = f"the draws in the comment on #{number}"
    match = _ORDERS_LINE.match(comment.body)
    if match is None:
        raise Tampered(f"{subject} cannot be found", _RESTORE_FIX)
    try:
        return [decode(line, AuditOrder, subject, _RESTORE_FIX) for line in match[1].split()]
    except Tampered as error:
        raise Tampered(f"{subject} cannot be read: {error.message}", _RESTORE_FIX) from error


def earlier_orders_of_model(
    github: GitHub, number: int, commitment: Commitment, say: Say
) -> list[AuditOrder]:
    """Return the earlier orders for the model of a commitment, from all audited pull requests.

    The same model has the same id, weights, code or claims. Pull request `number` and all others,
    open or closed, with a label of an audit are read; of these, the newest 500, and `say` gets a
    message if there are more. Raises the errors of `earlier_orders`.
    """
    audited_numbers: set[int] = set()
    for label in AUDIT_STATES:
        audited_numbers.update(
            itertools.islice(github.numbers_with_label(label), AUDITED_PULLS_MAX + 1)
        )
    other_numbers = sorted(audited_numbers - {number}, reverse=True)
    if len(other_numbers) > AUDITED_PULLS_MAX:
        say(
            f"draws of the newest {AUDITED_PULLS_MAX} audited pull requests are read, not of "
            "older ones"
        )
    numbers_read = other_numbers[:AUDITED_PULLS_MAX]
    prefetch_conversations(github, numbers_read)
    identity = method_identity(commitment)
    orders = [
        order
        for pull_number in (number, *numbers_read)
        for order in earlier_orders(github, pull_number)
    ]
    github.conversations.clear()  # nothing that is written later may rest on them
    return [
        order
        for order in orders
        if same_method_reason(method_identity(order.plan.commitment), identity)
    ]


def write_plans(
    folder: Path, orders: Iterable[AuditOrder], digest: str, published_at: str
) -> tuple[Path, ...]:
    """Write the plans of earlier draws into a folder, and return their paths.

    Plans of this commitment are written only if their time is `published_at`, that of its first
    status.
    """
    paths = []
    for number, order in enumerate(orders):
        plan = order.plan
        if plan.commitment_sha256 != digest or plan.committed_at == published_at:
            paths.append(folder / f"{number}.json")
            paths[-1].write_text(json_text_of(plan), encoding="utf-8")
    return tuple(paths)


def _audit_comment(github: GitHub, number: int) -> Comment | None:
    """Return our comment on the audits of a pull request; None without one."""
    conversation = github.conversations.get(number)
    known_comments = conversation.comments if conversation is not None else []
    # The comments that were read for many at once may end before ours.
    return own_comment(
        itertools.chain(known_comments, github.comments(number)),
        github.own_account_id,
        AUDIT_MARKER,
    )


def write_comment(github: GitHub, number: int, orders: Iterable[AuditOrder], text: str) -> None:
    """Write our only comment on the audits of a pull request, with their draws in a hidden line."""
    line_by_commitment = {
        order.plan.commitment_sha256: encode(order, RETRY_FIX) for order in orders
    }
    body = f"{AUDIT_MARKER}{' '.join(list(line_by_commitment.values())[-ORDERS_MAX:])} -->\n{text}"
    comment = _audit_comment(github, number)
    if comment is None:
        github.add_comment(number, body)
    elif comment.body.strip() != body.strip():
        github.edit_comment(comment.id, body)


def write_refusal(github: GitHub, number: int, text: str) -> None:
    """Write into our comment on the audits why one did not start; keep the draws that it lists.

    If that comment cannot be read, write a new one.
    """
    try:
        orders = earlier_orders(github, number)
    except GenebError:
        github.add_comment(number, text)
    else:
        write_comment(github, number, orders, text)


def draw_comment(order: AuditOrder) -> str:
    """Return the comment that announces which tasks of a row are drawn for an audit."""
    plan = order.plan
    return (
        f"### Audit of {code_span(order.model_id)}: tasks are drawn\n\n"
        f"Commitment {code_span(plan.commitment_sha256)} to commit {order.head_sha} is public "
        f"since {plan.committed_at}, as status `{COMMITMENT_STATUS}`. Round {_round_text(plan)} "
        f"of the beacon drew {len(plan.drawn)} of {len(plan.tickets)} tasks; {len(plan.chosen)} "
        "are rerun. New commits are not audited, but this draw counts for their audit.\n"
    )


def _round_text(plan: TaskPlan) -> str:
    """Return the number of the beacon's round that decided a draw, as text."""
    return str(plan.beacon.round) if plan.beacon.kind == "drand" else "(fallback)"


def failure_comment(order: AuditOrder, error: GenebError, run_address: str) -> str:
    """Return the comment on an audit that failed before its record was signed, with what to do."""
    reason, fix = (
        code_span(visible(t, _REASON_MAX)) for t in (error.message, error.fix or RETRY_FIX)
    )
    return (
        f"{draw_comment(order)}\n**No record**: {reason}. **Next step**: {fix}. The draw "
        f"counts for the next audit, which the label `{AUDIT_LABEL}` starts."
        f"{run_sentence(run_address)}\n"
    )


def refusal_comment(subject: str, error: GenebError, retry_text: str, run_address: str) -> str:
    """Return the comment on an audit that did not begin, with what to do."""
    reason, fix = (
        code_span(visible(t, _REASON_MAX)) for t in (error.message, error.fix or RETRY_FIX)
    )
    return (
        f"### The audit of {code_span(subject)} did not begin\n\n{reason}\n\n"
        f"**Next step.** {fix}. Then {retry_text}.{run_sentence(run_address)}\n"
    )


def record_comment(
    order: AuditOrder, verification: Verification, verdict: str, next_step: str
) -> str:
    """Return the comment on an audit with a record: every step of its verification."""
    rows = [
        (code_span(step.name), step.state.value, _message_cell(step.message))
        for step in verification.steps
    ]
    table = "\n".join(Table(("step", "state", ""), rows).markdown_lines())
    return (
        f"### Audit of {code_span(order.model_id)}: {verdict}\n\nOf commit {order.head_sha}, "
        f"{plural(len(order.plan.chosen), 'task')} rerun. {next_step}\n\n"
        f"<details><summary>Every step of the record, verified</summary>\n\n{table}\n\n</details>\n"
    )


def _message_cell(message: str) -> str:
    return code_span(visible(message, _REASON_MAX)) if message else ""


def first_failure(verification: Verification) -> str:
    """Return the first step of a record that does not hold; "" if all do."""
    for step in verification.steps:
        if step.state is not StepState.HOLDS:
            return f"{step.name}: {step.message or step.state.value}"
    return ""


def propose_files(
    writer: GitHub, order: AuditOrder, main: Commit, files: Mapping[str, bytes], record: str
) -> int:
    """Open a pull request that adds these files, unless one is open, and return its number.

    `record` is the id of the audit. The token must be allowed to write contents and to open pull
    requests, which the default token of a job in Actions is not.
    """
    branch = f"{AUDIT_BRANCH_PREFIX}/{order.number}-{record}"
    has_row = len(files) > 1
    title = (
        f"Add {order.model_id} and its audit" if has_row else f"Add an audit of {order.model_id}"
    )
    message = f"{title}\n\nAudit {record} of #{order.number}, commit {order.head_sha}."
    if branch not in writer.branches(branch):
        writer.make_branch(branch, main, files, message)
    body = (
        f"Audit `{record}` of commit {order.head_sha}, for #{order.number}. "
        + ("Row, card and extractor are those of that commit, byte for byte. " if has_row else "")
        + "The verdict on this pull request verifies every step of the record again.\n"
    )
    return writer.propose(branch, "main", title, body)
