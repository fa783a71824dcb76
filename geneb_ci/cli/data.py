"""`geneb-ci data`: pull, verify and audit the task data."""

from geneb_ci.cli.harness import handed_over

command = handed_over("data", "Pull, verify and audit the pinned task data.")
