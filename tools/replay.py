"""Replays a recorded exchange with GitHub: `python -m tools.replay FILE reconcile --pr 4`.

Runs a geneb-ci command against a server that answers as GitHub did while GENEB_GITHUB_LOG=FILE was
set (docs/maintainer/first-hour.md). Then it lists the requests that were not recorded, and the
answers that deviate from GitHub's published API. The exit code is 1 if there are any, otherwise
that of the command.
"""

import argparse
import os
import sys
from pathlib import Path

from geneb_ci.cli.main import main as geneb_ci
from geneb_ci.github.connection import LOG_VARIABLE
from tests.github.recorded import RecordedServer
from tests.github.server import TOKEN
from tests.github.serving import serving


def main(arguments: list[str] | None = None) -> int:
    """Run the command against the recording; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="the recording")
    parser.add_argument("command", help="a command of geneb-ci, and its arguments")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    server = RecordedServer(options.file)
    server.excused = "deviations are listed here"
    with serving(server):
        os.environ |= {"GITHUB_API_URL": server.address, "GH_TOKEN": TOKEN}
        os.environ.pop(LOG_VARIABLE, None)
        code = int(geneb_ci([options.command, *options.arguments]))
    for line in server.unrecorded:
        print(f"not recorded: {line}", file=sys.stderr)
    for line in sorted({*server.faults_of_form}):
        print(f"deviates from GitHub's published API: {line}", file=sys.stderr)
    return 1 if server.unrecorded or server.faults_of_form else code


if __name__ == "__main__":
    sys.exit(main())
