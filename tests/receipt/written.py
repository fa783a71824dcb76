"""Receipts that `geneb-harness run --receipt` wrote, and what somebody may do to them."""

import copy
import json
import shutil
import subprocess  # noqa: TC003 (in annotations only)
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reference_harness import mini
from reference_harness.data.task_data import Split, TaskData
from reference_harness.formats.submission import ReceiptTask, root_of_tasks
from reference_harness.receipt.rounding import RoundedEmbeddings
from reference_harness.receipt.task_file import write_task
from tests import forked
from tests.audit import unboxed
from tests.harness.support import Harness, write_flat

UNBOXED = Path(unboxed.__file__)
"""Lets the harness run in the process of a command: it has no limits, and loads nothing anew."""
MODEL = "four-mers"
UNSCALED_MIN = ("first", "second", "third", "fourth")
"""Tasks of 60 training and 41 test embeddings; ten training embeddings stand in all of them, and
one of these in every test split, too."""
OWN, SHARED, TESTED = 50, 10, 40


@dataclass
class Written:
    """A submission with the folder of its receipt."""

    folder: Path
    options: tuple[str, ...] = ()
    """Options that name data and benchmark."""

    @property
    def file(self) -> Path:
        """The submission."""
        return self.folder / f"{MODEL}.json"

    @property
    def receipt(self) -> Path:
        """The folder of its files."""
        return self.folder / "receipt"

    @property
    def document(self) -> Any:
        """What the submission says."""
        return json.loads(self.file.read_text())

    def says(self, document: Any) -> None:
        """Write the submission."""
        self.file.write_text(json.dumps(document, indent=1) + "\n")

    def copied(self, folder: Path) -> "Written":
        """Return a copy that may be altered."""
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.file, folder)
        shutil.copytree(self.receipt, folder / "receipt")
        return Written(folder, self.options)

    def rows(self, task: str) -> np.ndarray:
        """Return the embeddings of a task, to be changed."""
        raw = np.fromfile(self.receipt / f"{task}.f16", "<f2")
        return raw.reshape(-1, self.document["receipt"]["dim"])

    def put(self, task: str, rows: np.ndarray) -> None:
        """Write the file of a task, and nothing else."""
        (self.receipt / f"{task}.f16").write_bytes(rows.astype("<f2").tobytes())

    def sealed(self, task: str, rows: np.ndarray, scale_log2: int = 0) -> None:
        """Write the embeddings of a task, with every digest and root that follows from them."""
        document = self.document
        tasks = document["receipt"]["tasks"]
        made = write_task(
            self.receipt, task, RoundedEmbeddings(rows, scale_log2), tasks[task]["train"]
        )
        tasks[task] = made.model_dump(exclude={"dim"})
        document["receipt"]["root"] = root_of_tasks(
            {name: ReceiptTask(**task) for name, task in tasks.items()}, document["receipt"]["dim"]
        )
        document["receipt"]["rows"] = sum(task["train"] + task["test"] for task in tasks.values())
        self.says(document)

    def verify(
        self, *more: str, here: bool = True, apart: bool = False
    ) -> "subprocess.CompletedProcess[str]":
        """Run `geneb-ci receipt verify`; `here`: with the folder of the files.

        `apart`: with the harness in a process of its own, which has limits, as for a user.
        """
        words = ("--receipt", str(self.receipt)) if here else ()
        return forked.run(
            *("geneb_ci", "receipt", "verify", self.file.name, *words),
            *(*self.options, *more), cwd=self.folder, before=None if apart else UNBOXED,
        )  # fmt: skip

    def refused(self, *, apart: bool = False) -> tuple[str, str]:
        """Verify, and return the step that was refused and what was found."""
        done = self.verify("--quiet", "--format", "json", apart=apart)
        assert (done.returncode, done.stderr) == (11, ""), done.stdout + done.stderr
        document = json.loads(done.stdout)
        assert document["verified"] is False
        (step,) = [step for step in document["steps"] if step["state"] == "refused"]
        assert step["step"] == document["refused_at"]
        assert step["fix"]
        return step["step"], step["found"]


def run_receipt(folder: Path, *options: str) -> Written:
    """Run 4-mers with a receipt."""
    harness = Harness(folder)
    done = harness(
        *("run", "--model-id", MODEL, "--output", "record.json", "--quiet"),
        *("--submission", f"{MODEL}.json", "--receipt", "receipt", *options),
    )
    assert (done.returncode, done.stderr) == (0, "")
    named = [word for word in options if word not in {"--tasks", "mini_tf,mini_splice"}]
    return Written(folder, tuple(named))


def small_tasks(folder: Path) -> tuple[str, ...]:
    """Define a benchmark of the tasks SMALL in a folder, and return the options that name it."""
    source = mini.load("mini_tf")
    shared = slice(0, SHARED)
    for number, name in enumerate(UNSCALED_MIN):
        own = slice(SHARED + number * OWN, SHARED + (number + 1) * OWN)
        tests = slice(number * TESTED, (number + 1) * TESTED)
        train, test = source.train, source.test
        write_flat(
            TaskData(
                id=name,
                train=Split(
                    [*train.sequences[own], *train.sequences[shared]],
                    np.concatenate([train.labels[own], train.labels[shared]]),
                ),
                test=Split(
                    [*test.sequences[tests], train.sequences[0]],
                    np.concatenate([test.labels[tests], train.labels[:1]]),
                ),
            ),
            folder,
        )
    return defined(folder)


def defined(folder: Path) -> tuple[str, ...]:
    """Define a benchmark of the tasks in a folder, and return the options that name it."""
    done = forked.run("reference_harness", "data", "define", str(folder), cwd=folder)
    assert done.returncode == 0, done.stderr
    return "--data", str(folder), "--benchmark", str(folder / "benchmark.json")


def changed(written: Written, change: Callable[[Any], None]) -> None:
    """Change what a submission says."""
    document = copy.deepcopy(written.document)
    change(document)
    written.says(document)
