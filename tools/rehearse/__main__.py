"""`make rehearse`: runs every job of every workflow on this machine, and says which would fail.

usage: python -m tools.rehearse [--job WORKFLOW[.JOB]]... [--root DIR] [--borrow]
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.house.workflow_file import Workflow
from tools.rehearse import workflow as reading
from tools.rehearse.job import Outcome
from tools.rehearse.standins import TABLE
from tools.rehearse.story import DOCS, Story, timed
from tools.rehearse.world import world

ROOT = Path(__file__).resolve().parents[2]
TAIL = 30  # last lines of a failed step's log that are printed


def main(arguments: list[str] | None = None) -> int:
    """Rehearse; return 0 if every job passes, 1 if something would fail."""
    parser = argparse.ArgumentParser(prog="make rehearse", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--job",
        action="append",
        default=[],
        metavar="WORKFLOW[.JOB]",
        help="only this job, such as publish.push, with the jobs it needs; repeatable",
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="rehearse another checkout")
    parser.add_argument(
        "--borrow",
        action="store_true",
        help="install nothing: all jobs use the Python of this program, for a quick look",
    )
    options = parser.parse_args(arguments)
    started = time.monotonic()
    root = options.root.resolve()
    failures: list[str] = []
    try:
        workflows = reading.workflows(root)
        failures += reading.versions(root, workflows)
    except reading.Unsound as error:
        return _print_summary([str(error)], [], started)
    jobs = [f"{name}.{job}" for name, workflow in workflows.items() for job in workflow.jobs]
    chosen = [job for job in jobs if not options.job or {job, job.split(".")[0]} & set(options.job)]
    if options.borrow:  # this program's environment cannot build the site
        chosen = [job for job in chosen if job not in DOCS]
    if unknown := [
        name for name in options.job if not any({j, j.split(".")[0]} & {name} for j in jobs)
    ]:
        parser.error(f"there is no job {unknown[0]!r}; there are: {', '.join(jobs)}")
    if failures:
        return _print_summary(failures, [], started)
    with (
        tempfile.TemporaryDirectory(prefix="geneb-ci-rehearsal-", ignore_cleanup_errors=True) as at,
        world(
            root, Path(at).resolve(), set(chosen).__contains__, _say, borrow=options.borrow
        ) as rehearsed,
    ):
        story = Story(rehearsed)
        for title, chapter in story.chapters():
            print(f"{title}:", flush=True)
            _, failure = timed(chapter)
            if failure:
                failures.append(f"{title}: {failure}")
                break
        else:
            ran = {o.job.split(" ")[0] for o in rehearsed.outcomes if o.conclusion != "skipped"}
            failures += [f"{job} was never run by the story" for job in chosen if job not in ran]
            failures += [
                f"{job} has the permission `{scope}` but never used it: remove it, or extend the "
                "story to use it"
                for job in chosen
                if job in ran
                for scope in _unused(workflows, job, rehearsed.used[job])
            ]
        failed = [o for o in rehearsed.outcomes if o.conclusion == "failure" and not o.intended]
    return _print_summary(
        failures, failed, started, partly=len(chosen) < len(jobs) or options.borrow
    )


def _unused(workflows: dict[str, Workflow], job: str, used: set[str]) -> list[str]:
    """Return the permissions of a job, given by its full name, that no run has used."""
    workflow, _, job_id = job.partition(".")
    return reading.unused(workflows[workflow], workflows[workflow].jobs[job_id], used)


def _say(outcome: Outcome) -> None:
    """Print an ended job, with one line per step."""
    print(f"  {outcome.job}: {outcome.conclusion}, {outcome.seconds:.1f} s", flush=True)
    for step in outcome.steps:
        note = f" ({step.note})" if step.note else ""
        print(f"    {step.seconds:6.1f} s  {step.conclusion:8} {step.name}{note}", flush=True)


def _print_summary(
    failures: list[str], failed: list[Outcome], begun: float, *, partly: bool = False
) -> int:
    """Print the summary and return the exit code."""
    print("\nreplaced by stand-ins:")
    for stand_in in TABLE:
        print(f"  {stand_in.name}: {stand_in.instead}")
    for outcome in failed:
        for step in outcome.steps:
            if step.conclusion == "failure":
                print(f"\n{outcome.job}, {step.name}: {step.note or 'failed'}; its log ends:")
                print("\n".join(f"  | {line}" for line in step.log.splitlines()[-TAIL:]))
    duration = f"{time.monotonic() - begun:.0f} s"
    if failures or failed:
        print(f"\nred after {duration}:")
        for failure in failures or [f"{outcome.job} failed" for outcome in failed]:
            print(f"  {failure}")
        return 1
    print(
        f"\ngreen after {duration}"
        + (": only the chosen jobs ran" if partly else ": every job ran")
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
