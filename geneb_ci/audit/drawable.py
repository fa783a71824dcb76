"""Which regimes of a submission an audit compares, and which of its tasks it may draw."""

from collections.abc import Sequence

from geneb_ci.audit.steps import AuditRefused
from geneb_ci.benchmark import Benchmark
from geneb_ci.errors import BadConfiguration
from geneb_ci.finding import listed
from geneb_ci.read.submission import Submission


def drawable(
    submission: Submission, benchmark: Benchmark, audited: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Give the audited regimes that have scores, and the tasks with a score in any of them.

    Both are in the order of the benchmark. One claim is enough: else a gap, declared in one regime,
    would keep a task's other scores from every audit.
    Raises BadConfiguration for an audited regime that the benchmark does not have, and AuditRefused
    when nothing is claimed.
    """
    if unknown := [name for name in audited if name not in benchmark.regimes]:
        raise BadConfiguration(
            f"policy.toml: [audit] regimes names {listed(unknown)}, and {benchmark.name} has "
            f"{', '.join(benchmark.regimes)}",
            "name regimes of the benchmark",
        )
    regimes = [
        name for name in benchmark.regimes if name in audited and submission.results.get(name)
    ]
    claimed = {task for regime in regimes for task in submission.results[regime]}
    tasks = [task for task in benchmark.task_ids if task in claimed]
    if not tasks:
        raise AuditRefused(
            "the submission has no score in a regime that is audited",
            f"audited are {', '.join(audited)}",
        )
    return regimes, tasks
