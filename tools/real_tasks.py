"""`make real-tasks`: fetches the six real tasks that some tests need, and verifies their digests.

python -m tools.real_tasks FOLDER

`geneb-harness data pull` fetches them at the revision that the benchmark pins. The exit code is 1
if they differ from tests/real_tasks.json or cannot be fetched; a run in a fork (FORK=true) instead
continues without them and says so. If GITHUB_OUTPUT names a file, `folder=FOLDER` is added to it
afterwards.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

PINS = Path(__file__).resolve().parent.parent / "tests/real_tasks.json"


def fetch(folder: Path, tasks: Iterable[str], options: Iterable[str]) -> bool:
    """Fetch tasks with the command that a user would run; return whether it succeeded."""
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
    """Return the ids of the tasks whose contents differ from the pinned digests."""
    manifest = json.loads((folder / "manifest.json").read_bytes())
    digests = {name: task_entry["sha256"] for name, task_entry in manifest["tasks"].items()}
    return [name for name, digest in pins.items() if digests.get(name) != digest]


def main(folder: Path, options: Iterable[str] = (), pins_file: Path = PINS) -> int:
    """Fetch the tasks and compare their digests with the pins in a file; return the exit code.

    `options` are passed to `geneb-harness data pull`.
    """
    pins: dict[str, str] = json.loads(pins_file.read_bytes())["tasks"]
    if not fetch(folder, pins, options):
        is_fork = os.environ.get("FORK") == "true"
        print(
            "real tasks: they could not be fetched (see above); "
            + ("the tests that need them will not run" if is_fork else "run this job again")
        )
        return 0 if is_fork else 1
    if wrong := differing(folder, pins):
        print(
            f"real tasks: {', '.join(wrong)}: the contents differ from the digests in "
            f"{pins_file.name}; "
            "if the benchmark pins a new revision, review the changes and update these digests"
        )
        return 1
    if output := os.environ.get("GITHUB_OUTPUT"):
        with Path(output).open("a", encoding="utf-8") as stream:
            print(f"folder={folder.resolve()}", file=stream)
    print(f"real tasks: {len(pins)} in {folder}, as pinned")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
