"""Outputs of a step of GitHub Actions, and the summary of its run."""

import os
from pathlib import Path

OUTPUTS, SUMMARY = "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"


def run_address() -> str:
    """Return the address of this run of GitHub Actions; "" outside GitHub Actions."""
    names = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")
    server, repository, run = (os.environ.get(name, "") for name in names)
    return f"{server}/{repository}/actions/runs/{run}" if run else ""


def set_output(name: str, value: str) -> None:
    """Set the output `name` of this step; do nothing outside GitHub Actions.

    Raises ValueError for a value of several lines, which could set other outputs.
    """
    if len(value.splitlines()) > 1:
        raise ValueError(f"the value of the output {name} has several lines, expected one")
    _append_to_file(OUTPUTS, f"{name}={value}\n")


def add_summary(text: str) -> None:
    """Add a paragraph to the summary of the run; do nothing outside GitHub Actions."""
    _append_to_file(SUMMARY, f"{text}\n\n")


def _append_to_file(variable: str, text: str) -> None:
    """Append a text to the file that an environment variable names; do nothing without it."""
    path = os.environ.get(variable)
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)
