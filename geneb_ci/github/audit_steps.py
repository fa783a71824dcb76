"""The steps of an audit by workflows: open, rerun, deliver, propose.

`open_audit` may write on GitHub, and draws; `rerun_order` runs without a token; `deliver_outcome`
has the key, and never runs the contributor's code.
"""

import contextlib
import hashlib
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from geneb_ci.audit.commit import commit, read_submission
from geneb_ci.audit.compare.embedding_outcome import AnyOutcome, RerunResult
from geneb_ci.audit.compare.outcome import AuditOutcome
from geneb_ci.audit.errors import AuditRefused
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.record.signing import Signing, audits_folder_of, write_record
from geneb_ci.audit.record.verify import Verification
from geneb_ci.audit.samples import TaskSample
from geneb_ci.audit.sampling.beacon_source import BeaconSource
from geneb_ci.audit.workflow import draw_plan, rerun_plan
from geneb_ci.common.actions import run_address
from geneb_ci.common.config import Layout, benchmark_of, find_layout, is_practice
from geneb_ci.common.errors import GenebError, NothingChecked, UsageProblem
from geneb_ci.common.finding import Severity, first_and_more
from geneb_ci.github import audits, report
from geneb_ci.github.api import GitHub, repository_address
from geneb_ci.github.attached_record import AttachedRecord, attach, attached_record
from geneb_ci.github.audit_ready import (
    pull_request_client,
    require_machine,
    require_trusted_key,
    signing_key,
)
from geneb_ci.github.audit_targets import AuditTarget
from geneb_ci.github.audits import AuditOrder
from geneb_ci.github.errors import ConversationLocked, Tampered
from geneb_ci.github.main_branch import Clone, changed_main, configured_folders, layout_of_main
from geneb_ci.github.one_line import decode
from geneb_ci.github.replies import Commit
from geneb_ci.github.trees import Main, main_at
from geneb_ci.github.verdict.base_branch import BaseBranch
from geneb_ci.github.verdict.checker import PullChecker
from geneb_ci.github.verdict.model import FileDigest
from geneb_ci.publish.git import GitRepository
from geneb_ci.render.markdown import code_span
from reference_harness.formats.files import blob_id
from reference_harness.formats.submission_terms import SUBMISSION_BYTES_MAX
from reference_harness.formats.text import Say

if TYPE_CHECKING:
    from geneb_ci.audit.rerun.prepare import Machine


def restart_fix(order: AuditOrder) -> str:
    """Return the fix that starts an audit of a pull request or of a row of main again."""
    subject = f"row={order.model_id}" if order.is_on_main else f"pr={order.number}"
    return f"audit again: gh workflow run audit.yml -f {subject}"


def open_audit(
    github: GitHub, layout: Layout, target: AuditTarget, relays: tuple[str, ...], say: Say
) -> AuditOrder:
    """Begin an audit: publish a commitment to a row, draw the tasks, and return the order.

    Raises GenebError after writing a comment with the error and its fix.
    """
    try:
        if target.is_locked:
            message = f"the conversation of pull request {target.number} is locked"
            fix = f"unlock the conversation, and set the label {report.AUDIT_LABEL} again"
            raise ConversationLocked(message, fix)  # no comment could keep its draw
        require_machine()
        order = _order_with_draw(github, layout, target, relays, say)
        earlier_orders = audits.earlier_orders(github, target.number)
        audits.write_comment(
            github, target.number, [*earlier_orders, order], audits.draw_comment(order)
        )
    except GenebError as error:
        audits.set_state_label(github, target.number, report.FAILED)
        text = audits.refusal_comment(target.name, error, target.retry_text, run_address())
        with contextlib.suppress(ConversationLocked):
            audits.write_refusal(github, target.number, text)
        raise error from None
    audits.set_state_label(github, target.number, report.RUNNING)
    return order


def _order_with_draw(
    github: GitHub, layout: Layout, target: AuditTarget, relays: tuple[str, ...], say: Say
) -> AuditOrder:
    """Publish a commitment to a row, draw the tasks to rerun, and return the order.

    Raises AuditRefused if the pull request has errors.
    """
    main = main_at(github, github.main(), configured_folders(layout))
    head = target.head_sha or main.sha
    with layout_of_main(github, layout.root, main) as main_layout:
        if target.model:
            model, rows = target.model, [_row_on_main(main_layout, main, target.model)]
        else:
            model, rows = _row_of_pull(github, main_layout, main, target)
        bytes_by_path = audits.files_at_head(github, rows)
        with (
            changed_main(main_layout, main, bytes_by_path) as head_layout,
            tempfile.TemporaryDirectory() as draws_folder,
        ):
            file = Path(str(head_layout.submissions)) / f"{model}.json"
            submission = read_submission(file)
            commitment = commit(submission)
            earlier_orders = audits.earlier_orders_of_model(github, target.number, commitment, say)
            published_at, published_on = audits.publish_commitment(
                github, head, commitment.sha256, earlier_orders
            )
            say(f"commitment {commitment.sha256}, public since {published_at}")
            earlier_plans = audits.write_plans(
                Path(draws_folder), earlier_orders, commitment.sha256, published_at
            )
            beacon = BeaconSource(None, relays, None, "", reveal=False)
            sample = TaskSample(earlier_plans=earlier_plans)
            plan = draw_plan(commitment, published_at, submission, sample, head_layout, beacon, say)
        return AuditOrder(
            format_version="1.0",
            repository=github.connection.repository,
            number=target.number,
            head_sha=head,
            main_sha=main.sha,
            nonce=secrets.token_hex(16),
            plan=plan,
            files=rows,
            published_on=published_on,
            is_on_main=bool(target.model),
        )


def _row_of_pull(
    github: GitHub, layout: Layout, main: Main, target: AuditTarget
) -> tuple[str, list[FileDigest]]:
    """Return the id of a pull request's model, and the digests of the files of its row.

    Raises AuditRefused if the pull request has errors or no row.
    """
    checked = PullChecker(github, BaseBranch(layout), main).judge(target.head_sha)
    errors = [finding.rule for finding in checked.findings if finding.severity is Severity.ERROR]
    if errors or checked.result is None:
        raise AuditRefused(
            f"{target.name} cannot be audited, because it has "
            f"{'errors: ' + first_and_more(sorted(set(errors))) if errors else 'no row'}",
            "push a row that passes every check; the verdict above lists the errors",
        )
    return checked.change.model, [file for file in checked.files if "/audits/" not in file.path]


def _row_on_main(layout: Layout, main: Main, model: str) -> FileDigest:
    """Return the path and the digests of a model's row on main."""
    file = Path(str(layout.submissions)) / f"{model}.json"
    path = file.relative_to(layout.root).as_posix()
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return FileDigest(path=path, blob=main.files[path].sha, sha256=digest)


def rerun_order(order: AuditOrder, layout: Layout, machine: "Machine", say: Say) -> AnyOutcome:
    """Rerun an order in a clone at its commit of main, and return the unsigned outcome.

    The row's files are fetched without a token into a folder without git, and so are the task data
    if this machine has none.
    """
    repository = GitRepository(layout.root)
    clone = Clone(repository)
    if repository.resolve("HEAD") != order.main_sha:
        raise UsageProblem(
            f"HEAD is not the commit {order.main_sha}, for which the audit was ordered",
            f"run git checkout {order.main_sha}",
        )
    repository.run(
        *("-c", "credential.helper=", "fetch", "--quiet", "--depth=1", "--no-tags"),
        *(_git_address(order), order.head_sha),
    )
    bytes_by_path = {}
    for file in order.files:
        ((_, raw),) = repository.blobs([file.blob])
        if blob_id(raw) != file.blob or len(raw) > SUBMISSION_BYTES_MAX:
            raise Tampered(
                f"{file.path} is not the file that the commitment of the audit names",
                restart_fix(order),
            )
        bytes_by_path[file.path] = raw
    main = main_at(clone, clone.commit("HEAD"), configured_folders(layout))
    with (
        changed_main(layout, main, bytes_by_path) as head_layout,
        tempfile.TemporaryDirectory() as data_folder,
    ):
        if machine.data is None and not is_practice(benchmark_of(head_layout).sha256):
            machine = replace(machine, data=_fetch_data(order, head_layout, Path(data_folder)))
        unsigned = Signing(head_layout, None, audits_folder_of(head_layout), say)
        return rerun_plan(order.plan, unsigned, machine).outcome


def _git_address(order: AuditOrder) -> str:
    server = os.environ.get("AUDIT_SERVER") or os.environ.get("GITHUB_SERVER_URL") or ""
    return repository_address(order.repository, {"GITHUB_SERVER_URL": server})


def _fetch_data(order: AuditOrder, layout: Layout, folder: Path) -> Path:
    """Fetch the data of the tasks to be rerun into `folder`, and return it.

    Raises NothingChecked if that fails.
    """
    tasks = [word for task in order.plan.chosen for word in ("--tasks", task.task)]
    definition = layout.root / "schemas" / "benchmark.json"
    command = [sys.executable, "-I", "-m", "geneb_ci", "data", "pull", str(folder), *tasks]
    process = subprocess.run(  # noqa: S603 (this program)
        [*command, "--benchmark", str(definition)], check=False, stdout=subprocess.DEVNULL
    )
    if process.returncode:
        raise NothingChecked(
            "the task data could not be fetched",
            "run the command again, or pass --data with the folder of the task data",
        )
    return folder


def deliver_outcome(
    github: GitHub, layout: Layout, order: AuditOrder, line: str, key_file: Path | None, say: Say
) -> None:
    """Sign the outcome in `line`, verify every step, and propose or attach the record.

    Raises GenebError, such as AuditRefused for an empty line, after writing a comment with the
    error and its fix.
    """
    orders = audits.earlier_orders(github, order.number)
    if order.plan.commitment_sha256 not in {prior.plan.commitment_sha256 for prior in orders}:
        orders.append(order)

    def write_state(label: str, comment: str) -> None:
        audits.set_state_label(github, order.number, label)
        audits.write_comment(github, order.number, orders, comment)

    try:
        write_state(*_propose_or_attach(github, layout, order, line, key_file, say))
    except GenebError as error:
        write_state(report.FAILED, audits.failure_comment(order, error, run_address()))
        raise


def _propose_or_attach(
    github: GitHub, layout: Layout, order: AuditOrder, line: str, key_file: Path | None, say: Say
) -> tuple[str, str]:
    """Sign an outcome, propose or attach its record, and return the label and the comment."""
    with signing_key(key_file) as signer:
        require_trusted_key(signer, layout)
    writer = _pull_request_client(github, is_needed=not line, say=say)
    if not line:
        raise AuditRefused(
            "the run ended without an outcome",
            f"read the log of the run, then {restart_fix(order)}",
        )
    outcome = decode(line, AuditOutcome, "the outcome", restart_fix(order))
    _require_same_repository(github, order)
    if outcome.plan != order.plan:
        raise AuditRefused(
            "the plan of the outcome differs from that of the audit order", restart_fix(order)
        )
    if not audits.is_commitment_published(github, order):
        raise AuditRefused(
            "GitHub shows no status with the commitment of this audit that was set at "
            f"{order.plan.committed_at}",
            restart_fix(order),
        )
    with _main_with_row(github, layout, order, {}) as (audited, row):
        folder, root = audits_folder_of(audited.layout), audited.layout.root
        shown_on = order.published_on or order.head_sha
        signing = Signing(audited.layout, signer, folder, say, shown_on)
        signing.sign_start(order.plan, order.number)
        record_path = write_record(RerunResult(outcome), signer, find_layout(root), folder)
        verification = _verify_record(find_layout(root), record_path, restart_fix(order))
        paths = [file.relative_to(root).as_posix() for file in sorted(record_path.parent.iterdir())]
        signed_files = {
            name: (root / name).read_text() for name in paths if name not in audited.main.files
        }
    pull = None if order.is_on_main else github.pull(order.number)
    agrees = outcome.verdict == "agrees"
    label = report.AGREES if agrees else report.DIFFERS
    attached = AttachedRecord(
        format_version="1.0",
        order=order,
        record=record_path.stem,
        verdict="agrees" if agrees else "differs",
        is_whole=agrees and pull is not None and pull.head.sha == order.head_sha,
        files=signed_files,
    )
    subject = f"audit {record_path.stem} of #{order.number}: {outcome.verdict}"
    if writer is None:
        attach(github, attached)
        next_step = (
            "Its signed record is in a comment below. A maintainer proposes it in a checkout of "
            f"main: {code_span(f'geneb-ci audit propose {order.number}')}."
        )
        say(f"{subject}; its record is attached")
        return label, audits.record_comment(order, verification, outcome.verdict, next_step)
    with writer:
        number = _open_record_pull(writer, attached, audited.commit, row)
    audits.set_state_label(github, number, label)
    _close_audited(github, attached, is_pull_open=pull is None or pull.state == "open")
    next_step = (
        f"Merge #{number}, which has this row and its record, and replaces this pull request."
        if attached.is_whole
        else f"#{number} has only the record; merge it, so that this draw counts."
    )
    say(f"{subject}; pull request #{number} has its record")
    return label, audits.record_comment(order, verification, outcome.verdict, next_step)


def _pull_request_client(github: GitHub, *, is_needed: bool, say: Say) -> GitHub | None:
    """Return a client that may open pull requests; None if the token is missing or refused.

    With `is_needed`, raises UsageProblem if the token is refused.
    """
    try:
        return pull_request_client(github.connection.repository, github.own_account_id)
    except UsageProblem as error:
        if is_needed:
            raise
        say(f"{error.message}: the record is attached to a comment")
        return None


def propose_record(github: GitHub, layout: Layout, number: int) -> tuple[AttachedRecord, int]:
    """Open a pull request with the record in the comments on a pull request or an issue.

    Returns the record and the number of the new pull request. Raises the errors of
    `attached_record`, and AuditRefused if a step of the record does not verify.
    """
    attached = attached_record(github, number)
    order = attached.order
    _require_same_repository(github, order)
    with _main_with_row(github, layout, order, attached.signed_files) as (audited, row):
        paths = [audited.layout.root / path for path in attached.files]
        (path,) = (path for path in paths if path.stem == attached.record)
        _verify_record(audited.layout, path, audits.RETRY_FIX)
    pull_number = _open_record_pull(github, attached, audited.commit, row)
    _close_audited(github, attached, is_pull_open=True)
    return attached, pull_number


class _AuditedMain(NamedTuple):
    """Main on GitHub, and a folder with the files of main and of an audited row."""

    commit: Commit
    main: Main
    layout: Layout


@contextlib.contextmanager
def _main_with_row(
    github: GitHub, layout: Layout, order: AuditOrder, signed: dict[str, bytes]
) -> Iterator[tuple[_AuditedMain, dict[str, bytes]]]:
    """Yield main with the audited and the signed files, and the audited files by their paths."""
    head = github.main()
    main = main_at(github, head, configured_folders(layout))
    with layout_of_main(github, layout.root, main) as main_layout:
        row = audits.files_at_head(github, order.files)
        with changed_main(main_layout, main, {**row, **signed}) as changed_layout:
            yield _AuditedMain(head, main, changed_layout), row


def _require_same_repository(github: GitHub, order: AuditOrder) -> None:
    """Raise AuditRefused if an audit was ordered in another repository."""
    if order.repository.casefold() != github.connection.repository.casefold():
        raise AuditRefused(
            f"the audit was ordered in {order.repository}, not in {github.connection.repository}",
            "run the command in a checkout of that repository",
        )


def _verify_record(layout: Layout, record: Path, fix: str) -> Verification:
    """Verify a record, and return every step. Raises AuditRefused if a step does not hold."""
    verification = AuditRepository(layout).verification(record)
    if difference := audits.first_failure(verification):
        raise AuditRefused(f"the record does not verify: {difference}", fix)
    return verification


def _open_record_pull(
    writer: GitHub, attached: AttachedRecord, main: Commit, row: dict[str, bytes]
) -> int:
    """Open a pull request with a record, and its row if complete, and return the number."""
    files = {**row, **attached.signed_files} if attached.is_whole else attached.signed_files
    return audits.propose_files(writer, attached.order, main, files, attached.record)


def _close_audited(github: GitHub, attached: AttachedRecord, *, is_pull_open: bool) -> None:
    """Close the pull request or issue of an audit whose record was proposed."""
    order = attached.order
    if order.is_on_main:
        github.close(order.number, "issues")
    elif attached.is_whole and is_pull_open:
        github.close(order.number)
