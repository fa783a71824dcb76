"""`make real-tasks`: fetches the six real tasks that some tests need, and holds them against pins.

python -m tools.real_tasks FOLDER

`geneb-harness data pull` fetches them at the revision that the benchmark pins. Exits 1 when they
differ from tests/real_tasks.json, or cannot be fetched; a run in a fork (FORK=true) goes on without
them and says so. Where GITHUB_OUTPUT names a file, it gets `folder=FOLDER` once they are there.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

PINS = Path(__file__).resolve().parent.parent / "tests/real_tasks.json"


def fetch(folder: Path, tasks: Iterable[str], options: Iterable[str]) -> bool:
    """Call the command that a user would; what it says goes to the log."""
    task_options = [word for task in tasks for word in ("--tasks", task)]
    command = [
        sys.executable,
        "-m",
        "reference_harness",
        "data",
        "pull",
        str(folder),
        *task_options,
        *options,
    ]
    return subprocess.run(command, check=False).returncode == 0


def differing(folder: Path, pins: dict[str, str]) -> list[str]:
    """Name the tasks whose content is not the pinned one."""
    manifest = json.loads((folder / "manifest.json").read_bytes())
    digests = {name: facts["sha256"] for name, facts in manifest["tasks"].items()}
    return [name for name, digest in pins.items() if digests.get(name) != digest]


def main(folder: Path, options: Iterable[str] = (), pinned: Path = PINS) -> int:
    """Fetch and compare; return the exit code. `options` go to `geneb-harness data pull`."""
    pins: dict[str, str] = json.loads(pinned.read_bytes())["tasks"]
    if not fetch(folder, pins, options):
        is_fork = os.environ.get("FORK") == "true"
        print(
            "real tasks: not supplied, since they could not be fetched (see above); "
            + ("the tests that need them will not run" if is_fork else "run this job again")
        )
        return 0 if is_fork else 1
    if wrong := differing(folder, pins):
        print(
            f"real tasks: {', '.join(wrong)}: the content is not what {pinned.name} pins; "
            "if the benchmark pins another revision, look at what changed and pin it anew"
        )
        return 1
    if output := os.environ.get("GITHUB_OUTPUT"):
        with Path(output).open("a", encoding="utf-8") as stream:
            print(f"folder={folder.resolve()}", file=stream)
    print(f"real tasks: {len(pins)} in {folder}, as pinned")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
