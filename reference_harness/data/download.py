"""Download the pinned dataset from the Hugging Face Hub and write its manifest."""

import re
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from reference_harness.errors import DataError, OptionError
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import file_blob_id, file_sha256
from reference_harness.run.settings import task_names

from . import hub_client
from .manifest import MANIFEST_NAME, FileFacts, Manifest, TaskFacts, repair_advice
from .task_folder import Folder

if TYPE_CHECKING:
    from huggingface_hub import RepoFile

COMMIT_PATTERN = re.compile(r"[0-9a-f]{40}")
"""Pattern of a revision: a commit, as branches and tags can move."""


def pull(
    benchmark: Benchmark,
    folder: Path,
    *,
    revision: str | None = None,
    tasks: Sequence[str] = (),
    endpoint: str | None = None,
) -> Manifest:
    """Download the named tasks, or all, into `folder`, check them, and write `manifest.json`.

    `endpoint` is the address of the Hub, by default HF_ENDPOINT or huggingface.co. Complete files
    are not downloaded again. Raise OptionError for a revision that is no commit, or a benchmark
    whose data are on no Hub; DataError if the Hub cannot be read or its data differ from the
    benchmark's description.
    """
    commit = revision or benchmark.dataset.revision
    if not COMMIT_PATTERN.fullmatch(commit):
        msg = f"--revision {commit!r}: expected the 40 hex digits of a commit"
        raise OptionError(msg)
    repo_id = benchmark.dataset.repo_id
    if repo_id.startswith("builtin:"):
        msg = (
            f"{benchmark.name}: its task data are generated, not downloaded: leave --data and "
            "--benchmark out of `geneb-harness run`"
        )
        raise OptionError(msg)
    if ":" in repo_id:  # local:NAME, as `data define` writes
        msg = (
            f"{benchmark.name}: its task data ({repo_id}) are not on a Hub: get them from its "
            "maintainers and pass their folder as --data DIR"
        )
        raise OptionError(msg)
    patterns = [f"tasks/{task_id}/*" for task_id in task_names(tasks, benchmark)] or ["tasks/*"]
    _download(repo_id, commit, folder, patterns, endpoint)
    # Delete an older manifest, which does not describe the new files.
    (folder / MANIFEST_NAME).unlink(missing_ok=True)
    manifest = manifest_of(benchmark, folder, commit)
    manifest.write(folder)
    return manifest


def _download(
    repo_id: str, commit: str, folder: Path, patterns: list[str], endpoint: str | None
) -> None:
    """Download the files of a dataset that match the patterns, and check their digests.

    Raise DataError if the Hub cannot be read or a file has another digest.
    """
    # Imported here: the Hub's client takes a second to import, and only a download needs it.
    from huggingface_hub import HfApi, RepoFile, constants
    from huggingface_hub.utils import httpx

    hub_client.limit_downloads()
    origin = f"{endpoint or constants.ENDPOINT}/datasets/{repo_id} at {commit}"
    api = HfApi(endpoint=endpoint)
    files: list[RepoFile] = []
    try:
        listed_files = api.list_repo_tree(
            repo_id, repo_type="dataset", revision=commit, recursive=True
        )
        files = [
            file
            for file in listed_files
            if isinstance(file, RepoFile)
            and any(fnmatch(file.path, pattern) for pattern in patterns)
        ]
        # One large file is downloaded first, alone: without an access token for these, eight at
        # once would time out one after the other, each after half a minute.
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
        missing_files = [file.path for file in files if not (folder / file.path).is_file()]
        missing_text = (
            f" ({len(missing_files)} of {len(files)} files are missing)" if missing_files else ""
        )
        raise DataError([f"{origin}: {hub_client.failure_reason(error)}{missing_text}"]) from error
    altered = [file.path for file in files if not _has_listed_digest(folder / file.path, file)]
    for path in altered:
        (folder / path).unlink()  # else the client takes it for complete the next time
    if altered:
        raise DataError(
            [
                f"{origin}: {name} does not have the digest that the Hub lists: the "
                "copy was deleted; run the command again"
                for name in altered
            ]
        )


def _has_listed_digest(path: Path, listed: "RepoFile") -> bool:
    """Whether a file has the digest that the Hub lists; the client checks only its size."""
    if listed.lfs is not None:
        return file_sha256(path) == listed.lfs.sha256
    return file_blob_id(path) == listed.blob_id


def manifest_of(benchmark: Benchmark, folder: Path, commit: str) -> Manifest:
    """Return the manifest of a folder: the digest of each file and the classes of each task.

    Raise DataError if a task is unreadable or differs from the benchmark's.
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
            path = file.relative_to(folder).as_posix()
            files[path] = FileFacts(sha256=file_sha256(file), bytes=file.stat().st_size)
    if faults:
        raise DataError(faults)
    return Manifest(repo_id=benchmark.dataset.repo_id, revision=commit, files=files, tasks=facts)


def verify(benchmark: Benchmark, folder: Path) -> Manifest:
    """Check every file and task of a folder against its manifest, and return the manifest.

    Raise DataError with everything that differs or is missing, or if there is no manifest.
    """
    if not folder.is_dir():
        raise DataError(
            [f"{folder}: no such folder: {repair_advice(benchmark.dataset.repo_id, folder)}"]
        )
    manifest = Manifest.of_folder(folder)
    if manifest is None:
        fix = repair_advice(benchmark.dataset.repo_id, folder)
        raise DataError([f"{folder}: the folder has no {MANIFEST_NAME}: {fix}"])
    source = Folder(folder, benchmark)
    faults = [
        f"{folder / name}: the file is missing, but {MANIFEST_NAME} lists it: "
        f"{repair_advice(manifest.repo_id, folder)}"
        for name in manifest.files
        if not (folder / name).is_file()
    ]
    for task in benchmark.tasks:
        if task.id not in source.available():
            continue
        try:
            task_data = source.load(task)
        except DataError as error:
            faults.extend(error.faults)
            continue
        facts = manifest.tasks.get(task.id)
        if facts is None or facts.sha256 != task_data.sha256:
            faults.append(
                f"{folder}: task {task.id}: its content does not have the digest in "
                f"{MANIFEST_NAME}: {repair_advice(manifest.repo_id, folder)}"
            )
    if faults:
        raise DataError(faults)
    return manifest
