"""Fetches the pinned dataset from the Hugging Face Hub and writes its manifest."""

import re
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import file_blob_id, file_sha256

from . import storage
from .data import Folder
from .errors import DataError, OptionError
from .manifest import NAME, FileFacts, Manifest, TaskFacts
from .settings import task_names

if TYPE_CHECKING:
    from huggingface_hub import RepoFile

COMMIT = re.compile(r"[0-9a-f]{40}")
"""A branch or tag can move; a commit cannot."""


def pull(
    benchmark: Benchmark,
    folder: Path,
    *,
    revision: str | None = None,
    tasks: Sequence[str] = (),
    endpoint: str | None = None,
) -> Manifest:
    """Download the tasks, or those named, into `folder`, check them, and write `manifest.json`.

    `endpoint` is another Hub than huggingface.co or that of HF_ENDPOINT. Files that are already
    whole are not fetched again, so a stopped download goes on. Raises OptionError for a revision
    that is no commit, and DataError when the Hub cannot be read or gives other data than the
    benchmark describes.
    """
    commit = revision or benchmark.dataset.revision
    if not COMMIT.fullmatch(commit):
        msg = f"revision {commit!r}: expected the 40 hex digits of a commit"
        raise OptionError(msg)
    repo_id = benchmark.dataset.repo_id
    if ":" in repo_id:  # local:NAME, as `data define` writes, or builtin:NAME
        msg = (
            f"{benchmark.name}: its task data are on no Hub ({repo_id}): pass --data DIR, the "
            "folder in which its maintainers have them"
        )
        raise OptionError(msg)
    patterns = [f"tasks/{task_id}/*" for task_id in task_names(tasks, benchmark)] or ["tasks/*"]
    _fetch(repo_id, commit, folder, patterns, endpoint)
    # Delete an older manifest, which does not describe the new files.
    (folder / NAME).unlink(missing_ok=True)
    manifest = describe(benchmark, folder, commit)
    manifest.write(folder)
    return manifest


def _fetch(
    repo_id: str, commit: str, folder: Path, patterns: list[str], endpoint: str | None
) -> None:
    # The Hub's client takes a second to import, and only a download needs it.
    from huggingface_hub import HfApi, RepoFile, constants
    from huggingface_hub.utils import httpx

    storage.limit()
    where = f"{endpoint or constants.ENDPOINT}/datasets/{repo_id} at {commit}"
    api = HfApi(endpoint=endpoint)
    files: list[RepoFile] = []
    try:
        listed = api.list_repo_tree(repo_id, repo_type="dataset", revision=commit, recursive=True)
        files = [
            file
            for file in listed
            if isinstance(file, RepoFile)
            and any(fnmatch(file.path, pattern) for pattern in patterns)
        ]
        # One large file alone comes first: eight at once would wait for a token that is not to be
        # had one after the other, each for half a minute.
        for file in [file for file in files if file.xet_hash is not None][:1]:
            api.hf_hub_download(
                repo_id, file.path, repo_type="dataset", revision=commit, local_dir=folder
            )
        api.snapshot_download(
            repo_id,
            repo_type="dataset",
            revision=commit,
            local_dir=folder,
            allow_patterns=patterns,
        )
    except (OSError, RuntimeError, ValueError, httpx.HTTPError) as error:
        missing = [file.path for file in files if not (folder / file.path).is_file()]
        more = f" ({len(missing)} of {len(files)} files are missing)" if missing else ""
        raise DataError([f"{where}: {storage.reason(error)}{more}"]) from error
    altered = [file.path for file in files if not _is_as_listed(folder / file.path, file)]
    for name in altered:
        (folder / name).unlink()  # else the client takes it for whole the next time
    if altered:
        raise DataError(
            [
                f"{where}: {name} came with other bytes than the Hub lists: it was deleted; run "
                "the command again"
                for name in altered
            ]
        )


def _is_as_listed(path: Path, listed: "RepoFile") -> bool:
    """Whether a file has the digest that the Hub lists; the client looks at its size alone."""
    if listed.lfs is not None:
        return file_sha256(path) == listed.lfs.sha256
    return file_blob_id(path) == listed.blob_id


def describe(benchmark: Benchmark, folder: Path, commit: str) -> Manifest:
    """Return the manifest of a folder as it is now: every file's digest, every task's classes.

    Raises DataError when a task is unreadable or not the benchmark's.
    """
    source = Folder(folder, benchmark)
    faults: list[str] = []
    facts: dict[str, TaskFacts] = {}
    files: dict[str, FileFacts] = {}
    for task in benchmark.tasks:
        if task.id not in source.available():
            continue
        try:
            data = source.load(task)
        except DataError as error:
            faults.extend(error.faults)
            continue
        facts[task.id] = TaskFacts(
            sha256=data.sha256, train=data.train.class_counts, test=data.test.class_counts
        )
        for file in source.files(task.id):
            name = file.relative_to(folder).as_posix()
            files[name] = FileFacts(sha256=file_sha256(file), bytes=file.stat().st_size)
    if faults:
        raise DataError(faults)
    return Manifest(repo_id=benchmark.dataset.repo_id, revision=commit, files=files, tasks=facts)


def verify(benchmark: Benchmark, folder: Path) -> Manifest:
    """Check every file and task of a folder against its manifest, and return it.

    Raises DataError with everything that differs, is missing, or when there is no manifest.
    """
    if not folder.is_dir():
        fix = f"download the task data with geneb-harness data pull {folder}"
        raise DataError([f"{folder}: no such folder: {fix}"])
    manifest = Manifest.of_folder(folder)
    if manifest is None:
        raise DataError([f"{folder}: no {NAME}: make one with geneb-harness data pull {folder}"])
    source = Folder(folder, benchmark)
    faults = [
        f"{folder / name}: missing, {NAME} lists it"
        for name in manifest.files
        if not (folder / name).is_file()
    ]
    for task in benchmark.tasks:
        if task.id not in source.available():
            continue
        try:
            data = source.load(task)
        except DataError as error:
            faults.extend(error.faults)
            continue
        facts = manifest.tasks.get(task.id)
        if facts is None or facts.sha256 != data.sha256:
            faults.append(f"{folder}: task {task.id}: content differs from {NAME}")
    if faults:
        raise DataError(faults)
    return manifest
