"""Make a benchmark of a folder of task files: the definition and the manifest that a run reads.

The protocol is GENEB's. Sizes and classes are counted, and `dataset.revision` is a hash of the
content, so that a run on other data is noticed.
"""

import re
from pathlib import Path

from reference_harness.errors import DataError, OptionError
from reference_harness.formats.benchmark import TASK_ID_PATTERN, Benchmark
from reference_harness.formats.files import dumps, file_sha256, write_json

from . import benchmark
from .manifest import MANIFEST_NAME as MANIFEST
from .manifest import FileFacts, Manifest, TaskFacts
from .task_data import REVISION_EXPLANATION, TaskData, content_revision, task_definition
from .task_folder import files_by_task, read_task

DEFINITION_FILE = "benchmark.json"
"""Name of the file of a new definition, in the folder of the task files."""
NEW_HARNESS_VERSION = "1.0"
"""Version of the harness in a new definition; its author may edit it."""
NEW_CATEGORY = "Own tasks"
"""Category of every task in a new definition; its author may edit it."""


def define(folder: Path, name: str | None = None) -> tuple[Path, Benchmark]:
    """Write `benchmark.json` and `manifest.json` into a folder of task files.

    Return the path of the definition and its content. `name` is the benchmark's, by default that of
    the folder. Raise DataError with all errors of the files, OptionError if the folder already has
    a definition or a manifest.
    """
    if not folder.is_dir():
        raise DataError([f"{folder}: no such folder"])
    definition = folder / DEFINITION_FILE
    if existing := [path for path in (definition, folder / MANIFEST) if path.exists()]:
        use = f"pass --benchmark {definition} to a run, or " if definition in existing else ""
        msg = (
            f"{existing[0]} exists and is not replaced: {use}delete this file and run the command "
            "again"
        )
        raise OptionError(msg)
    task_files = _read_tasks(folder)
    title = name or folder.resolve().name
    tasks = [data for data, _ in task_files]
    document = benchmark.new_definition(
        name=title,
        harness_version=NEW_HARNESS_VERSION,
        repo_id=f"local:{title}",
        revision=content_revision(tasks),
        made_by="a folder of task files",
        category_order=[NEW_CATEGORY],
        sources={"revision": REVISION_EXPLANATION},
        tasks=[task_definition(data, data.id, NEW_CATEGORY) for data in tasks],
    )
    parsed_benchmark = benchmark.parsed_definition(dumps(document), str(definition))
    write_json(definition, document)
    files = {
        file.relative_to(folder).as_posix(): FileFacts(
            sha256=file_sha256(file), bytes=file.stat().st_size
        )
        for _, paths in task_files
        for file in paths
    }
    facts = {
        data.id: TaskFacts(
            sha256=data.sha256, train=data.train.class_counts, test=data.test.class_counts
        )
        for data, _ in task_files
    }
    pin = parsed_benchmark.dataset
    Manifest(repo_id=pin.repo_id, revision=pin.revision, files=files, tasks=facts).write(folder)
    return definition, parsed_benchmark


def _read_tasks(folder: Path) -> list[tuple[TaskData, tuple[Path, ...]]]:
    """Return every task of a folder and its files. Raise DataError with all errors."""
    faults: list[str] = []
    tasks: dict[str, tuple[TaskData, tuple[Path, ...]]] = {}
    for task_id, files in files_by_task(folder, faults):
        if not re.fullmatch(TASK_ID_PATTERN, task_id):
            faults.append(
                f"{files[0]}: the name is the task's id, but {task_id!r} has other characters than "
                "letters, digits, '.', '_' and '-': rename the file"
            )
        elif task_id in tasks:
            first_file = tasks[task_id][1][0]
            faults.append(
                f"{files[0]}: task {task_id} is already in {first_file}: delete one of the two"
            )
        else:
            try:
                tasks[task_id] = read_task(task_id, files), files
            except DataError as error:
                faults.extend(error.faults)
    if faults:
        raise DataError(faults)
    if not tasks:
        msg = (
            f"{folder}: no task found: expected <task_id>.csv with the columns "
            "text,label,split, or "
            "tasks/<task_id>/train.csv and test.csv with text,label"
        )
        raise DataError([msg])
    return list(tasks.values())
