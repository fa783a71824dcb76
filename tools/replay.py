"""Replays a recorded exchange with GitHub: `python -m tools.replay FILE reconcile --pr 4`.

Runs a command of geneb-ci on a server that answers as GitHub did when GENEB_GITHUB_LOG=FILE was
set (docs/maintainer/first-hour.md). Then says which requests were not recorded, and which answers
are not as GitHub publishes its API. The exit code is 1 where there are any, and else that of the
command.
"""

import os
import sys
from pathlib import Path

from geneb_ci.cli.main import main as geneb_ci
from tests.github.recorded import RecordedServer
from tests.github.server import TOKEN
from tests.github.serving import serving


def main(arguments: list[str]) -> int:
    """Run the command on the recording; return the exit code."""
    if len(arguments) < 2:  # noqa: PLR2004 (a file and a command)
        print(__doc__)
        return 2
    server = RecordedServer(Path(arguments[0]))
    server.excused = "deviations are listed here"
    with serving(server):
        os.environ |= {"GITHUB_API_URL": server.address, "GH_TOKEN": TOKEN}
        os.environ.pop("GENEB_GITHUB_LOG", None)
        code = int(geneb_ci(arguments[1:]))
    for line in server.unrecorded:
        print(f"not recorded: {line}", file=sys.stderr)
    for line in sorted({*server.faults_of_form}):
        print(f"not as published: {line}", file=sys.stderr)
    return 1 if server.unrecorded or server.faults_of_form else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
