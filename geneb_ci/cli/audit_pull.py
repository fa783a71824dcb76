"""`geneb-ci audit open`, `job`, `send`, `deliver`: an open pull request audited by jobs."""

import contextlib
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
from geneb_ci.audit.record.keys import private_key
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.record.signing import audits_of, sign_start
from geneb_ci.audit.samples import TaskSample
from geneb_ci.audit.sampling.beacon_source import BeaconSource
from geneb_ci.audit.workflow import Signing, draw_plan, rerun_plan, write_record
from geneb_ci.cli.audit_draw import relay_option
from geneb_ci.cli.main import echo, say
from geneb_ci.cli.shared import LayeredCommand, Seconds, machine_of, machine_options
from geneb_ci.common.config import Layout, benchmark_of, find_layout, is_practice
from geneb_ci.common.errors import Exit, GenebError, NothingChecked, UsageProblem
from geneb_ci.common.finding import Severity, first_and_more
from geneb_ci.github import audits, hub_jobs, report
from geneb_ci.github.api import ACTIONS_BOT, GitHub, connect
from geneb_ci.github.audits import KEY_TEXT, WRITER, refuse_tokens
from geneb_ci.github.errors import Tampered
from geneb_ci.github.main_branch import Clone, further_places, lay_out_main, layout_of_main
from geneb_ci.github.sides import Main, git_sha, main_at
from geneb_ci.github.transport import decode, encode
from geneb_ci.github.verdict.collect import Judge
from geneb_ci.github.verdict.decide import BaseBranch
from geneb_ci.publish.git import GitRepository
from geneb_ci.submission.reading import BYTES_MAX

ORDER, OUTCOME, RUN = "AUDIT_ORDER", "AUDIT_OUTCOME", "AUDIT_RUN"
"""Variables of the environment: what the jobs of one run pass on."""


@contextlib.contextmanager
def _laid_out(own: Layout, main: Main, files: dict[str, bytes]) -> Iterator[Layout]:
    """Yield main with the files of a pull request, in a folder without git and without code."""
    with tempfile.TemporaryDirectory(prefix="geneb-ci-audit-") as name:
        yield lay_out_main(own, main, Path(os.path.realpath(name)), files)


def _output(name: str, value: str) -> None:
    """Set an output of the step, where GitHub Actions runs it."""
    path = os.environ.get("GITHUB_OUTPUT")
    if path:
        with Path(path).open("a", encoding="utf-8") as outputs:
            outputs.write(f"{name}={value}\n")  # one line of ASCII: no delimiter to guess


def _summary(text: str) -> None:
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        with Path(path).open("a", encoding="utf-8") as summary:
            summary.write(f"{text}\n\n")


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
@_repo
@_author
@relay_option
def open_command(pr: int | None, repo: str | None, author_id: int, relay: tuple[str, ...]) -> int:
    """Commit to the head of a pull request, publish the digest, and draw.

    Without --pr, the oldest open pull request with the label `audit`. The time of the status
    geneb/audit-commit, by GitHub's clock, decides the round, which is waited for. Prints one line,
    for `audit job`, `send` and `deliver`; in
    GitHub Actions it is also the step's output `order`.
    """
    layout = find_layout(Path.cwd())
    with connect(repo, author=author_id) as github:
        pull = audits.pull_to_audit(github, pr)
        if pull is None:
            say(f"no open pull request has the label {report.ASKED}")
            return Exit.CLEAN
        try:
            report.refuse_locked(pull)
            order = _opened(github, layout, pull.number, pull.head.sha, relay)
            earlier = audits.earlier_orders(github, pull.number)
            audits.write_comment(github, pull.number, [*earlier, order], audits.begun_text(order))
        except GenebError as error:
            audits.mark(github, pull.number, report.FAILED)
            raise error from None
        audits.mark(github, pull.number, report.RUNNING)
    line = encode(order, _open_again(order))
    echo(line)
    _output("order", line)
    _summary(audits.begun_text(order))
    return Exit.CLEAN


def _opened(
    github: GitHub, layout: Layout, number: int, head: str, relay: tuple[str, ...]
) -> audits.AuditOrder:
    """Commit to a head, publish the digest and draw. Raises AuditRefused for one with errors."""
    main = main_at(github, github.main(), further_places(layout))
    with layout_of_main(github, layout.root, main) as own:
        judged = Judge(github, own, BaseBranch(own).modules, main).judge(head)
        errors = [finding.rule for finding in judged.findings if finding.severity is Severity.ERROR]
        model = judged.change.model
        if errors or judged.result is None:
            raise AuditRefused(
                f"pull request {number} cannot be audited: "
                f"{first_and_more(sorted(set(errors))) if errors else 'it has no row'}",
                "an audit begins with a row that passes every check",
            )
        rows = [file for file in judged.files if "/audits/" not in file.path]
        raws = audits.files_at_head(github, rows)
        with _laid_out(own, main, raws) as laid_out, tempfile.TemporaryDirectory() as drawn:
            file = Path(str(laid_out.submissions)) / f"{model}.json"
            submission = read_submission(file)
            commitment = commit(submission, tolerance_digest())
            earlier = audits.draws_of(github, number, commitment, say)
            at, published_on = audits.publish(github, head, commitment.sha256, earlier)
            say(f"commitment {commitment.sha256}, public since {at}")
            before = audits.write_plans(Path(drawn), earlier, commitment.sha256, at)
            source = BeaconSource(None, relay, None, "", reveal=False)
            sample = TaskSample(earlier=before)
            plan = draw_plan(commitment, at, submission, sample, laid_out, source, say)
        return audits.AuditOrder(
            format_version="1.0",
            repository=github.wire.repository,
            number=number,
            head_sha=head,
            main_sha=main.sha,
            nonce=secrets.token_hex(16),
            plan=plan,
            files=rows,
            published_on=published_on,
        )


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
    _output("outcome", line)
    return Exit.CLEAN


def _open_again(order: audits.AuditOrder) -> str:
    """Return how to begin the audit of a pull request again, with a new draw."""
    return f"audit again: gh workflow run audit.yml -f pr={order.number}"


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
@click.option("--flavor", required=True, metavar="NAME", help="Machine of the Hub, such as l4x1.")
@click.option("--timeout", type=Seconds(), default="4h", show_default=True, help="Time limit.")
@click.option("--max-cost", type=click.FloatRange(min=0), metavar="USD", help="Refuse above this.")
@click.option("--image", default=hub_jobs.IMAGE, show_default=True, help="Image of the Job.")
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
    _summary(machine.text)
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
    _output("outcome", line)
    return Exit.CLEAN


@click.command()
@click.option("--key", type=click.Path(path_type=Path), help=f"Private key; else {KEY_TEXT}.")
@_repo
@_author
def deliver_command(key: Path | None, repo: str | None, author_id: int) -> int:
    """Sign the outcome of AUDIT_ORDER, verify every step, and open a pull request with the record.

    AUDIT_OUTCOME is what `audit job` or `send` printed; where it is empty, the pull request is told
    that there is no record. GH_TOKEN comments and labels; AUDIT_TOKEN makes the branch and opens
    the pull request. The exit code is 11 when the record does not verify.
    """
    order, run = _order(), os.environ.get(RUN, "")
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
            end(report.FAILED, audits.failed_text(order, error.message, run))
            raise
    return Exit.CLEAN


def _deliver(
    github: GitHub,
    layout: Layout,
    order: audits.AuditOrder,
    key: Path | None,
    end: Any,
) -> None:
    line = os.environ.get(OUTCOME, "")
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
    with _signing_key(key) as signer, layout_of_main(github, layout.root, main) as own:
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
    pull = github.pull(order.number)
    is_whole = outcome.verdict == "agrees" and pull.head.sha == order.head_sha
    files = {**raws, **signed} if is_whole else signed
    with connect_writer(github) as writer:
        number = audits.propose(writer, order, main_commit, files, path.stem)
    step = (
        f"Merge #{number}, which has this row and its record; this pull request is closed for it."
        if is_whole
        else f"#{number} has the record alone: merge it, so that this draw counts."
    )
    state = report.AGREES if outcome.verdict == "agrees" else report.DIFFERS
    end(state, audits.record_text(order, verification, outcome.verdict, step))
    audits.mark(github, number, state)
    if is_whole and pull.state == "open":
        github.close_pull(order.number)
    say(f"audit {path.stem} of pull request {order.number}: {outcome.verdict}; #{number}")


def connect_writer(github: GitHub) -> GitHub:
    """Return a client with the token that may write contents. Raises UsageProblem without it."""
    token = os.environ.get(WRITER, "")
    if not token:
        raise UsageProblem(
            f"{WRITER} is not set: a token that may make branches and open pull requests",
            "store the token of an App with Contents: write and Pull requests: write as the secret "
            f"{WRITER} of the environment geneb-audit",
        )
    return connect(github.wire.repository, {**os.environ, "GH_TOKEN": token}, github.author)


@contextlib.contextmanager
def _signing_key(path: Path | None) -> Iterator[Any]:
    """Yield the key of a file, or the one whose text is the secret `AUDIT_KEY`."""
    if path is not None or not os.environ.get(KEY_TEXT):
        yield private_key(path)
        return
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "key.pem"
        file.touch(mode=0o600)
        file.write_text(os.environ[KEY_TEXT].strip() + "\n", encoding="utf-8")
        private = private_key(file)
    yield private
