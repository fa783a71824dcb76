"""Publishes the digest of a commitment as a commit status: the time GitHub gives it is t0.

usage: python3 -I tools/open_audit.py COMMITMENT.json, as `geneb-ci audit commit` prints it

Reads GITHUB_API_URL, GITHUB_REPOSITORY, GITHUB_SHA and GITHUB_STEP_SUMMARY, which the runner sets,
and GH_TOKEN, which may write statuses. A time-out leaves open whether the status was set: then
nothing is retried, and a person looks.
"""

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from geneb_ci.audit.files import committed_text, read_commitment
from geneb_ci.errors import GenebError

CONTEXT = "geneb/audit-commit"
SECONDS_MAX = 30


def published(commitment: str) -> str:
    """Set the status and give its time, as GitHub writes it. Raises OSError when it was not set."""
    api, token = os.environ["GITHUB_API_URL"], os.environ["GH_TOKEN"]
    place = f"/repos/{os.environ['GITHUB_REPOSITORY']}/statuses/{os.environ['GITHUB_SHA']}"
    body = {"state": "success", "context": CONTEXT, "description": commitment}
    request = urllib.request.Request(  # noqa: S310 (the runner's own address)
        api + place,
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"},
        method="POST",
    )
    with urllib.request.urlopen(request, timeout=SECONDS_MAX) as response:  # noqa: S310
        answer: dict[str, Any] = json.load(response)
    return str(answer["created_at"])


def main() -> int:
    """Publish one commitment, and say so in the step summary; gives the exit code."""
    try:
        commitment = read_commitment(Path(sys.argv[1]))
    except GenebError as error:
        print(f"{error.message}\n  fix: {error.fix}", file=sys.stderr)
        return error.exit_code
    try:
        opened = published(commitment.sha256)
    except (OSError, ValueError, KeyError) as error:
        print(f"the commitment was not published: {error}", file=sys.stderr)
        print(
            "  fix: look at the statuses of the commit; if it is not there, run this again",
            file=sys.stderr,
        )
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
