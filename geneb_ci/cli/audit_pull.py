"""`geneb-ci audit open`, `job`, `send`, `deliver`: an open pull request audited by jobs."""

import contextlib
import hashlib
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from geneb_ci.audit.commit import commit, read_submission
from geneb_ci.audit.compare.embedding_outcome import RerunResult
from geneb_ci.audit.compare.outcome import AuditOutcome
from geneb_ci.audit.compare.tolerance import tolerance_digest
from geneb_ci.audit.errors import AuditRefused
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.record.signing import audits_of, sign_start
from geneb_ci.audit.samples import TaskSample
from geneb_ci.audit.sampling.beacon_source import BeaconSource
from geneb_ci.audit.workflow import Signing, draw_plan, rerun_plan, write_record
from geneb_ci.cli.audit_draw import relay_option
from geneb_ci.cli.main import echo, say
from geneb_ci.cli.shared import LayeredCommand, Seconds, machine_of, machine_options
from geneb_ci.common.actions import add_summary, run_address, set_output
from geneb_ci.common.config import Layout, benchmark_of, find_layout, is_practice
from geneb_ci.common.errors import Exit, GenebError, NothingChecked, UsageProblem
from geneb_ci.common.finding import Severity, exact_name, first_and_more
from geneb_ci.github import audits, hub_jobs, report
from geneb_ci.github.api import ACTIONS_BOT, GitHub, connect
from geneb_ci.github.attached import AttachedRecord, attach, attached_record
from geneb_ci.github.audit_ready import (
    FLAVOR,
    WRITER,
    require_machine,
    require_trusted,
    signing_key,
    writer_of,
)
from geneb_ci.github.audit_targets import AuditTarget, pull_to_audit, row_to_audit
from geneb_ci.github.audits import refuse_tokens
from geneb_ci.github.errors import ConversationLocked, Tampered
from geneb_ci.github.main_branch import Clone, further_places, lay_out_main, layout_of_main
from geneb_ci.github.replies import Commit
from geneb_ci.github.sides import Main, git_sha, main_at
from geneb_ci.github.transport import decode, encode
from geneb_ci.github.verdict.collect import Judge
from geneb_ci.github.verdict.decide import BaseBranch
from geneb_ci.github.verdict.model import FileDigest
from geneb_ci.publish.git import GitRepository
from geneb_ci.render.markdown import code
from geneb_ci.submission.reading import BYTES_MAX

ORDER, OUTCOME = "AUDIT_ORDER", "AUDIT_OUTCOME"
"""Variables of the environment: what the jobs of one run pass on."""


@contextlib.contextmanager
def _laid_out(own: Layout, main: Main, files: dict[str, bytes]) -> Iterator[Layout]:
    """Yield main with the files of a pull request, in a folder without git and without code."""
    with tempfile.TemporaryDirectory(prefix="geneb-ci-audit-") as name:
        yield lay_out_main(own, main, Path(os.path.realpath(name)), files)


_repo = click.option("--repo", metavar="OWNER/NAME", help="Repository; else GITHUB_REPOSITORY.")
_author = click.option(
    "--author-id",
    type=click.IntRange(min=1),
    default=ACTIONS_BOT,
    show_default=True,
    help="Account of the token; default: that of GitHub Actions.",
)


@click.command()
@click.option("--pr", type=click.IntRange(min=1), metavar="N", help="Audit this pull request.")
@click.option("--row", metavar="ID", help="Audit this row of main; an issue keeps its draws.")
@_repo
@_author
@relay_option
def open_command(
    pr: int | None, row: str | None, repo: str | None, author_id: int, relay: tuple[str, ...]
) -> int:
    """Commit to the head of a pull request, publish the digest, and draw.

    Without --pr and --row, the oldest open pull request with the label `audit`. The time of the
    status geneb/audit-commit, by GitHub's clock, decides the round, which is waited for. Prints one
    line, for `audit job`, `send` and `deliver`; in GitHub Actions it is also the step's output
    `order`. What is refused is a comment with what to do.
    """
    if pr is not None and row is not None:
        raise UsageProblem("--pr and --row exclude each other", "leave one of them out")
    layout = find_layout(Path.cwd())
    with connect(repo, author=author_id) as github:
        target = (
            pull_to_audit(github, pr)
            if row is None
            else row_to_audit(github, exact_name(row, rows_of_main(layout), "row of main"))
        )
        if target is None:
            say(f"no open pull request has the label {report.ASKED}")
            return Exit.CLEAN
        try:
            report.refuse_locked(target.number, is_locked=target.locked)
            require_machine()
            order = _opened(github, layout, target, relay)
            earlier = audits.earlier_orders(github, target.number)
            audits.write_comment(github, target.number, [*earlier, order], audits.begun_text(order))
        except GenebError as error:
            audits.mark(github, target.number, report.FAILED)
            text = audits.refused_text(target.name, error, target.again, run_address())
            with contextlib.suppress(ConversationLocked):
                audits.tell_refused(github, target.number, text)
            raise error from None
        audits.mark(github, target.number, report.RUNNING)
    line = encode(order, _open_again(order))
    echo(line)
    set_output("order", line)
    set_output("number", str(target.number))
    add_summary(audits.begun_text(order))
    return Exit.CLEAN


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@_repo
def publish_command(file: Path, repo: str | None) -> int:
    """Publish the commitment to a row of main, for an audit on your own machine.

    The digest becomes the status geneb/audit-commit of the head of main, unless it is there. It
    prints the options of `audit FILE` and `audit plan` that follow. GH_TOKEN may write statuses.
    """
    commitment = commit(read_submission(file), tolerance_digest())
    with connect(repo) as github:
        head = github.main().sha
        at, _ = audits.publish(github, head, commitment.sha256, ())
    say(f"commitment {commitment.sha256}, public since {at} as a status of {head}")
    echo(f"--committed-at {at} --shown-on {head}")
    return Exit.CLEAN


def rows_of_main(layout: Layout) -> list[str]:
    """Return the ids of the rows of a checkout of main."""
    return sorted(path.stem for path in Path(str(layout.submissions)).glob("*.json"))


def _opened(
    github: GitHub, layout: Layout, target: AuditTarget, relay: tuple[str, ...]
) -> audits.AuditOrder:
    """Commit to a head, publish the digest and draw. Raises AuditRefused for one with errors."""
    main = main_at(github, github.main(), further_places(layout))
    head = target.head_sha or main.sha
    with layout_of_main(github, layout.root, main) as own:
        if target.model:
            model, rows = target.model, [row_on_main(own, main, target.model)]
        else:
            model, rows = _row_of(github, own, main, target)
        raws = audits.files_at_head(github, rows)
        with _laid_out(own, main, raws) as laid_out, tempfile.TemporaryDirectory() as drawn:
            file = Path(str(laid_out.submissions)) / f"{model}.json"
            submission = read_submission(file)
            commitment = commit(submission, tolerance_digest())
            earlier = audits.draws_of(github, target.number, commitment, say)
            at, published_on = audits.publish(github, head, commitment.sha256, earlier)
            say(f"commitment {commitment.sha256}, public since {at}")
            before = audits.write_plans(Path(drawn), earlier, commitment.sha256, at)
            source = BeaconSource(None, relay, None, "", reveal=False)
            sample = TaskSample(earlier=before)
            plan = draw_plan(commitment, at, submission, sample, laid_out, source, say)
        return audits.AuditOrder(
            format_version="1.0",
            repository=github.wire.repository,
            number=target.number,
            head_sha=head,
            main_sha=main.sha,
            nonce=secrets.token_hex(16),
            plan=plan,
            files=rows,
            published_on=published_on,
            is_on_main=bool(target.model),
        )


def _row_of(
    github: GitHub, own: Layout, main: Main, target: AuditTarget
) -> tuple[str, list[FileDigest]]:
    """Return the model of a pull request and its files. Raises AuditRefused for one with errors."""
    judged = Judge(github, own, BaseBranch(own).modules, main).judge(target.head_sha)
    errors = [finding.rule for finding in judged.findings if finding.severity is Severity.ERROR]
    if errors or judged.result is None:
        raise AuditRefused(
            f"{target.name} cannot be audited: "
            f"{first_and_more(sorted(set(errors))) if errors else 'it has no row'}",
            "an audit begins with a row that passes every check: see the verdict above",
        )
    return judged.change.model, [file for file in judged.files if "/audits/" not in file.path]


def row_on_main(own: Layout, main: Main, model: str) -> FileDigest:
    """Return the row of a model on main."""
    file = Path(str(own.submissions)) / f"{model}.json"
    path = file.relative_to(own.root).as_posix()
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return FileDigest(path=path, blob=main.files[path].sha, sha256=digest)


def _order() -> audits.AuditOrder:
    line = os.environ.get(ORDER, "")
    if not line:
        raise UsageProblem(
            f"there is no order: {ORDER} is empty", "pass what `geneb-ci audit open` prints"
        )
    return decode(line, audits.AuditOrder, "the order", audits.AGAIN)


@click.command(cls=LayeredCommand, common=("--data", "--weights", "--gpu", "--level"))
@machine_options
def job_command(**machine: Any) -> int:
    """Run the audit of AUDIT_ORDER, where there is no token, and print its outcome, unsigned.

    Run it in a clone of the repository, at the commit of main that the order names. The files of
    the row are fetched without a token and laid out beside nothing of git. It refuses to start
    where a token is in the environment or in the home of the user.
    """
    refuse_tokens()
    order = _order()
    layout = find_layout(Path.cwd())
    repository = GitRepository(layout.root)
    clone = Clone(repository)
    if repository.resolve("HEAD") != order.main_sha:
        raise UsageProblem(
            f"this is not a checkout of the commit {order.main_sha}", "git checkout that commit"
        )
    address = _address(order)
    repository.run(
        *("-c", "credential.helper=", "fetch", "--quiet", "--depth=1", "--no-tags"),
        *(address, order.head_sha),
    )
    raws = {}
    for file in order.files:
        ((_, raw),) = repository.blobs([file.blob])
        if git_sha(raw) != file.blob or len(raw) > BYTES_MAX:
            raise Tampered(f"{file.path}: not the file that was committed to", _open_again(order))
        raws[file.path] = raw
    main = main_at(clone, clone.commit("HEAD"), further_places(layout))
    with _laid_out(layout, main, raws) as laid_out, tempfile.TemporaryDirectory() as data:
        if machine["data"] is None and not is_practice(benchmark_of(laid_out).sha256):
            machine["data"] = _pulled(order, laid_out, Path(data))
        unsigned = Signing(laid_out, None, audits_of(laid_out), say)
        result = rerun_plan(order.plan, unsigned, machine_of(machine))
    line = encode(result.outcome, _open_again(order))
    for text in hub_jobs.outcome_lines(line, order.nonce):
        echo(text)
    set_output("outcome", line)
    return Exit.CLEAN


def _open_again(order: audits.AuditOrder) -> str:
    """Return how to begin the audit of a pull request, or of a row of main, again."""
    subject = f"row={order.row}" if order.is_on_main else f"pr={order.number}"
    return f"audit again: gh workflow run audit.yml -f {subject}"


def _pulled(order: audits.AuditOrder, layout: Layout, folder: Path) -> Path:
    """Fetch the data of the tasks to be rerun. Raises NothingChecked."""
    tasks = [word for task in order.plan.chosen for word in ("--tasks", task.task)]
    definition = layout.root / "schemas" / "benchmark.json"
    command = [sys.executable, "-I", "-m", "geneb_ci", "data", "pull", str(folder), *tasks]
    process = subprocess.run(  # noqa: S603 (this program)
        [*command, "--benchmark", str(definition)], check=False, stdout=subprocess.DEVNULL
    )
    if process.returncode:
        raise NothingChecked(
            "the task data could not be fetched", "run it again, or pass --data with their folder"
        )
    return folder


def _address(order: audits.AuditOrder) -> str:
    server = os.environ.get("AUDIT_SERVER") or os.environ.get("GITHUB_SERVER_URL")
    return f"{(server or 'https://github.com').rstrip('/')}/{order.repository}"


@click.command()
@click.option(
    "--flavor",
    required=True,
    envvar=FLAVOR,
    metavar="NAME",
    help=f"Machine of the Hub, such as l4x1; else {FLAVOR}.",
)
@click.option(
    "--timeout",
    type=Seconds(),
    default="4h",
    envvar="AUDIT_TIMEOUT",
    show_default=True,
    help="Time limit; else AUDIT_TIMEOUT.",
)
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0),
    envvar="AUDIT_COST",
    metavar="USD",
    help="Refuse above this; else AUDIT_COST.",
)
@click.option(
    "--image",
    default=hub_jobs.IMAGE,
    envvar="AUDIT_IMAGE",
    show_default=True,
    help="Image of the Job; else AUDIT_IMAGE.",
)
@click.option("--namespace", metavar="NAME", help="Who pays; else the owner of HF_TOKEN.")
@click.option("--poll", type=float, default=hub_jobs.POLL_S, help="Seconds between two looks.")
@click.option("--dry-run", is_flag=True, help="Show machine, time limit and cost, and stop.")
def send_command(
    flavor: str,
    timeout: int,
    max_cost: float | None,
    image: str,
    namespace: str | None,
    poll: float,
    dry_run: bool,
) -> int:
    """Run the audit of AUDIT_ORDER as a Job of the Hub, and print its outcome, unsigned.

    Machine, time limit and the most that it costs are shown first. The Job gets no secret; HF_TOKEN
    stays here. The outcome comes back in its log.
    """
    order = _order()
    client = hub_jobs.api(os.environ.get("HF_TOKEN", ""))
    machine = hub_jobs.offer(client, flavor, timeout)
    say(machine.text)
    add_summary(machine.text)
    if max_cost is not None and machine.dollars > max_cost:
        raise UsageProblem(
            f"that is more than --max-cost {max_cost:.2f}",
            "pass a shorter --timeout, a smaller --flavor, or a higher --max-cost",
        )
    if dry_run:
        return Exit.CLEAN
    job = hub_jobs.start(client, order, machine, image, namespace)
    say(f"started {job.url}")
    line = hub_jobs.collect(client, job, order, machine, namespace, say, poll)
    echo(line)
    set_output("outcome", line)
    return Exit.CLEAN


@click.command()
@_repo
def ready_command(repo: str | None) -> int:
    """Look, before anything is rerun, whether its outcome could be signed and proposed.

    AUDIT_KEY is the private key of an entry of keys.json on main. AUDIT_TOKEN may be missing: then
    the signed record is attached to a comment. One that is there has to be valid.
    """
    layout = find_layout(Path.cwd())
    with signing_key(None) as signer:
        require_trusted(signer, layout)
    writer = writer_of(repo)
    if writer is None:
        say(f"{WRITER} is not set: the signed record will be attached to a comment")
    else:
        writer.wire.close()
    return Exit.CLEAN


@click.command()
@click.option("--key", type=click.Path(path_type=Path), help="Private key; else AUDIT_KEY.")
@_repo
@_author
def deliver_command(key: Path | None, repo: str | None, author_id: int) -> int:
    """Sign the outcome of AUDIT_ORDER, verify every step, and open a pull request with the record.

    AUDIT_OUTCOME is what `audit job` or `send` printed; where it is empty, the pull request is told
    that there is no record. GH_TOKEN comments and labels; AUDIT_TOKEN makes the branch and opens
    the pull request. The exit code is 11 when the record does not verify.
    """
    order, run = _order(), run_address()
    layout = find_layout(Path.cwd())
    with connect(repo, author=author_id) as github:
        orders = audits.earlier_orders(github, order.number)
        if order.plan.commitment_sha256 not in {prior.plan.commitment_sha256 for prior in orders}:
            orders.append(order)

        def end(state: str, text: str) -> None:
            audits.mark(github, order.number, state)
            audits.write_comment(github, order.number, orders, text)

        try:
            _deliver(github, layout, order, key, end)
        except GenebError as error:
            end(report.FAILED, audits.failed_text(order, error, run))
            raise
    return Exit.CLEAN


def _deliver(
    github: GitHub,
    layout: Layout,
    order: audits.AuditOrder,
    key: Path | None,
    end: Any,
) -> None:
    with signing_key(key) as signer:
        require_trusted(signer, layout)
    line = os.environ.get(OUTCOME, "")
    writer = _writer(github, is_needed=not line)
    if not line:
        raise AuditRefused(
            "the run ended without an outcome", f"read its log, then {_open_again(order)}"
        )
    outcome = decode(line, AuditOutcome, "the outcome", _open_again(order))
    if order.repository.casefold() != github.wire.repository.casefold():
        raise AuditRefused(f"the order is for {order.repository}", "run it where it belongs")
    if outcome.plan != order.plan:
        raise AuditRefused("the outcome is of another plan than the order", _open_again(order))
    main_commit = github.main()
    main = main_at(github, main_commit, further_places(layout))
    with layout_of_main(github, layout.root, main) as own:
        if not audits.is_published(github, order):
            raise AuditRefused(
                "the head has no status with this commitment at this time", _open_again(order)
            )
        raws = audits.files_at_head(github, order.files)
        with _laid_out(own, main, raws) as laid_out:
            folder = audits_of(laid_out)
            shown_on = order.published_on or order.head_sha
            sign_start(order.plan, signer, laid_out, folder, say, shown_on, order.number)
            path = write_record(RerunResult(outcome), signer, find_layout(laid_out.root), folder)
            verification = AuditRepository(find_layout(laid_out.root)).verification(path)
            if wrong := audits.does_not_hold(verification):
                raise AuditRefused(f"the record does not verify: {wrong}", _open_again(order))
            signed = {
                file.relative_to(laid_out.root).as_posix(): file.read_bytes()
                for file in sorted(path.parent.iterdir())
                if file.relative_to(laid_out.root).as_posix() not in main.files
            }
    pull = None if order.is_on_main else github.pull(order.number)
    agrees = outcome.verdict == "agrees"
    is_whole = agrees and pull is not None and pull.head.sha == order.head_sha
    state = report.AGREES if agrees else report.DIFFERS
    attached = AttachedRecord(
        format_version="1.0",
        order=order,
        record=path.stem,
        verdict="agrees" if agrees else "differs",
        is_whole=is_whole,
        files={name: raw.decode() for name, raw in signed.items()},
    )
    if writer is None:
        attach(github, attached)
        step = (
            "Its signed record is in a comment below. A maintainer proposes it in a checkout of "
            f"main: {code(f'geneb-ci audit propose {order.number}')}."
        )
        end(state, audits.record_text(order, verification, outcome.verdict, step))
        say(f"audit {path.stem} of #{order.number}: {outcome.verdict}; its record is attached")
        return
    with writer:
        number = propose_attached(writer, attached, main_commit, raws)
    step = (
        f"Merge #{number}, which has this row and its record; this pull request is closed for it."
        if is_whole
        else f"#{number} has the record alone: merge it, so that this draw counts."
    )
    end(state, audits.record_text(order, verification, outcome.verdict, step))
    audits.mark(github, number, state)
    if pull is None:
        github.close(order.number, "issues")
    elif is_whole and pull.state == "open":
        github.close(order.number)
    say(f"audit {path.stem} of #{order.number}: {outcome.verdict}; #{number}")


def _writer(github: GitHub, *, is_needed: bool) -> GitHub | None:
    """Return a client that opens pull requests; None without one, or with one that ended meanwhile.

    Raises UsageProblem for one that is refused where that `is_needed` as the reason of a failure.
    """
    try:
        return writer_of(github.wire.repository, github.author)
    except UsageProblem as error:
        if is_needed:
            raise
        say(f"{error.message}: the record is attached to a comment")
        return None


def propose_attached(
    writer: GitHub, attached: AttachedRecord, main: Commit, raws: dict[str, bytes]
) -> int:
    """Open the pull request of a record, with the row where it is whole; return its number."""
    files = {**raws, **attached.signed} if attached.is_whole else attached.signed
    return audits.propose(writer, attached.order, main, files, attached.record)


@click.command()
@click.argument("number", type=click.IntRange(min=1))
@_repo
@_author
def propose_command(number: int, repo: str | None, author_id: int) -> int:
    """Propose the signed record that a comment on a pull request or an issue has.

    NUMBER is that of the pull request or issue. Run it in a checkout of main, with a token
    (GH_TOKEN) that may write contents and pull requests. Every step of the record is verified
    first.
    """
    layout = find_layout(Path.cwd())
    with connect(repo, author=author_id) as github:
        attached = attached_record(github, number)
        order = attached.order
        if order.repository.casefold() != github.wire.repository.casefold():
            raise AuditRefused(f"the record is of {order.repository}", "propose it there")
        main_commit = github.main()
        main = main_at(github, main_commit, further_places(layout))
        raws = audits.files_at_head(github, order.files)
        files = {**raws, **attached.signed}
        with (
            layout_of_main(github, layout.root, main) as own,
            _laid_out(own, main, files) as laid_out,
        ):
            paths = [laid_out.root / path for path in attached.files]
            (path,) = (path for path in paths if path.stem == attached.record)
            verification = AuditRepository(laid_out).verification(path)
        if wrong := audits.does_not_hold(verification):
            raise AuditRefused(f"the record does not verify: {wrong}", audits.AGAIN)
        opened = propose_attached(github, attached, main_commit, raws)
        if attached.is_whole:
            github.close(order.number)
        elif order.is_on_main:
            github.close(order.number, "issues")
    echo(f"audit {attached.record}: {attached.verdict}; merge #{opened}")
    return Exit.CLEAN
