"""Publishes the digest of a commitment as a commit status: the time GitHub gives it is t0.

usage: python3 -I tools/open_audit.py COMMITMENT.json, as `geneb-ci audit commit` prints it

Reads GITHUB_API_URL, GITHUB_REPOSITORY, GITHUB_SHA and GITHUB_STEP_SUMMARY, which the runner sets,
and GH_TOKEN, which may write statuses. The time of a commitment never moves: one that stands on the
commit already is not published again, however often this runs. A time-out leaves open whether the
status was set; to run it again is safe.
"""

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from geneb_ci.audit.sampling.plan import committed_text, read_commitment
from geneb_ci.common.errors import GenebError

CONTEXT = "geneb/audit-commit"
SECONDS_MAX = 30
PER_PAGE = 100  # GitHub's largest page


def published(commitment: str) -> str:
    """Return the time of the status, as GitHub writes it, and set it where it does not stand yet.

    Raises OSError where GitHub could not be asked, ValueError where it cannot be told what stands.
    """
    sha = os.environ["GITHUB_SHA"]
    standing: list[dict[str, Any]] = _ask(f"/commits/{sha}/statuses?per_page={PER_PAGE}")
    if len(standing) == PER_PAGE:
        raise ValueError(f"the commit has {PER_PAGE} statuses or more: wait for the next commit")
    times = [
        str(status["created_at"])
        for status in standing
        if (status["context"], status["description"]) == (CONTEXT, commitment)
    ]
    if times:
        return min(times)  # the first counts: ISO 8601 in UTC sorts as it is
    body = {"state": "success", "context": CONTEXT, "description": commitment}
    return str(_ask(f"/statuses/{sha}", body)["created_at"])


def _ask(path: str, body: dict[str, str] | None = None) -> Any:
    """Ask once: a GET, or with a body a POST."""
    request = urllib.request.Request(  # noqa: S310 (the runner's own address)
        f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {os.environ['GH_TOKEN']}",
            "Accept": "application/vnd.github+json",
        },
    )
    with urllib.request.urlopen(request, timeout=SECONDS_MAX) as response:  # noqa: S310
        return json.load(response)


def main() -> int:
    """Publish one commitment, and say so in the step summary; return the exit code."""
    try:
        commitment = read_commitment(Path(sys.argv[1]))
    except GenebError as error:
        print(f"{error.message}\n  fix: {error.fix}", file=sys.stderr)
        return error.exit_code
    try:
        opened = published(commitment.sha256)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"the commitment was not published: {error}", file=sys.stderr)
        print("  fix: run this again: what stands is not published twice", file=sys.stderr)
        return 1
    # Escaped: what a contributor wrote shall not steer who reads the summary.
    text = json.dumps(json.loads(committed_text(commitment)), indent=2) + "\n"
    with Path(os.environ["GITHUB_STEP_SUMMARY"]).open("a", encoding="utf-8") as summary:
        summary.write(
            f"Commitment `{commitment.sha256}`, published at `{opened}`.\n\n```json\n{text}```\n"
        )
    print(f"{commitment.sha256} {opened}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
