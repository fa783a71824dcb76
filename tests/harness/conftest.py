"""What the harness' tests share: the real tasks, a way to run the command, a small data folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import sklearn.linear_model  # noqa: F401 - loads every BLAS, so that the limit below reaches it
from threadpoolctl import threadpool_limits

from reference_harness.engine import threads
from reference_harness.tasks import Split, TaskData

# As in a worker: two pools of BLAS threads in one process spin against each other.
threadpool_limits(limits=threads.THREADS)

REPOSITORY = Path(__file__).resolve().parents[2]
REAL_TASKS = REPOSITORY.parent / "shared" / "geneb" / "tasks"
COMMAND_SECONDS = 120  # a run of mini takes four on an idle machine


@pytest.fixture(scope="session")
def real_tasks() -> Path:
    """Return the folder of the six real tasks; without it a developer's run skips, CI fails."""
    if not REAL_TASKS.is_dir():
        why = f"{REAL_TASKS} is missing: the six public GENEB tasks belong there"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(why)
    return REAL_TASKS


class Harness:
    """Runs `geneb-harness` as a user does, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "GENEB_HARNESS_CACHE": str(folder / "cache"),
            "PYTHONPATH": str(REPOSITORY),
        }

    def __call__(self, *words: object, code: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run to the end; `code` replaces the module to run."""
        return subprocess.run(
            self.command(*words, code=code),
            cwd=self.folder, env=self.environment, capture_output=True, text=True,
            timeout=COMMAND_SECONDS, check=False,
        )  # fmt: skip

    def command(self, *words: object, code: str | None = None) -> list[str]:
        start = ["-m", "reference_harness"] if code is None else ["-c", code]
        return [sys.executable, *start, *map(str, words)]

    def start(self, *words: object, code: str | None = None) -> subprocess.Popen[str]:
        """Start in a process group of its own, as a terminal does."""
        return subprocess.Popen(
            self.command(*words, code=code),
            cwd=self.folder, env=self.environment, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


def write_flat(data: TaskData, folder: Path) -> Path:
    """Write a task as `<task_id>.csv`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{data.id}.csv"
    lines = ["text,label,split"]
    for name, split in (("train", data.train), ("test", data.test)):
        lines += [f"{s},{y},{name}" for s, y in zip(split.sequences, split.labels, strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_remote(data: TaskData, folder: Path) -> Path:
    """Write a task as `tasks/<task_id>/{train,test}.csv`."""
    place = folder / "tasks" / data.id
    place.mkdir(parents=True, exist_ok=True)

    def write(name: str, split: Split) -> None:
        rows = [f"{s},{y}" for s, y in zip(split.sequences, split.labels, strict=True)]
        (place / f"{name}.csv").write_text("\n".join(["text,label", *rows]) + "\n", "utf-8")

    write("train", data.train)
    write("test", data.test)
    return place
