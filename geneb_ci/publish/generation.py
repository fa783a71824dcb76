"""A generation of the board: every published file, as a function of a commit."""

import contextlib
import hashlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from geneb_ci.audit.record.old_log import LOG_FOLDER, log_files
from geneb_ci.audit.record.published import statements_file
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.board.board import WatchResults, board_of, checked_rows
from geneb_ci.board.page import INDEX, assembled_files, page_files, with_data
from geneb_ci.board.rows import board_file_bytes
from geneb_ci.board.site.inputs import SourceCommit, site_of
from geneb_ci.board.site.render import completed_index, editions, site_files
from geneb_ci.check.runner import files_of
from geneb_ci.common.config import Layout, LayoutKind, benchmark_of, find_layout
from geneb_ci.common.errors import BadConfiguration
from geneb_ci.publish.git import (
    AUDITS_FOLDER,
    BENCHMARK_FILE,
    BOARD_INPUTS,
    CODE_FOLDER,
    PAGE_FOLDER,
    POLICY_FOLDER,
    SUBMISSIONS_FOLDER,
    UNPUBLISHED_FOLDERS,
    BadRepository,
    GitRepository,
    write_commit_files,
)
from geneb_ci.publish.ledger import WatchSteps, ledger
from geneb_ci.publish.manifest import (
    MANIFEST_FILE,
    Manifest,
    Rollback,
    encode_manifest,
    manifest_of,
)

LEDGER_FILE = "ledger.json"
"""File of the Space with the history of every row."""
PUBLISHED_LOG_FOLDER = "audits/log"
"""Folder of the Space with an old log of audits, for readers of that log."""


@dataclass(frozen=True)
class Generation:
    """The published files of one commit; `files` has all but manifest.json and the editions."""

    files: dict[str, bytes]
    """All published files except manifest.json and the editions, by path."""
    manifest: Manifest
    """The content of manifest.json."""
    models: int = 0
    """Number of models on the board."""
    editions: dict[str, bytes] = field(default_factory=dict)
    """Permanent pages by path; they contain the generation's id, so that id is no digest of them.
    """

    @property
    def published(self) -> dict[str, bytes]:
        """Bytes of every file, by its name on the Space."""
        return {**self.files, **self.editions, MANIFEST_FILE: encode_manifest(self.manifest)}

    @property
    def outputs(self) -> dict[str, str]:
        """Digests that the building job passes to the publishing job, by the name of its output."""
        manifest = hashlib.sha256(encode_manifest(self.manifest)).hexdigest()
        return {"generation": self.manifest.generation, "manifest": manifest}

    def with_rollback(self, rollback: Rollback) -> "Generation":
        """Return the same board with the record of a rollback in its manifest."""
        manifest = self.manifest.model_copy(update={"rollback": rollback})
        return Generation(self.files, manifest, self.models, self.editions)


def source_commit_of(repository: GitRepository, commit: str) -> str:
    """Return the newest commit up to `commit` that changed an input of the published files.

    Raises BadRepository if there is none, or if the clone is shallow.
    """
    repository.require_whole()
    newest = repository.newest_change(commit, (*BOARD_INPUTS, CODE_FOLDER))
    if newest is None:
        raise BadRepository(
            f"{repository.root}: commit {commit} has no submissions",
            "run this in a clone of the submissions repository",
        )
    return newest


def generate(
    repository: GitRepository,
    commit: str,
    watch_checks: WatchResults = lambda results, _: results,
    watch_ledger: WatchSteps = lambda line, _: line,
) -> Generation:
    """Build every published file of a commit from its tree.

    `watch_checks` shows the progress of checks, `watch_ledger` that of the ledger. The function
    changes the current folder during the build, so it is not thread-safe. Raises
    SubmissionsRefused, BadRepository, BadConfiguration, BrokenRecordError, InvalidBoard, and
    UsageProblem if the extra `build` is not installed.
    """
    commit_id = source_commit_of(repository, commit)
    built_ledger = ledger(repository, commit_id, watch=watch_ledger)
    with tempfile.TemporaryDirectory(prefix="geneb-ci-") as temporary:
        folder = Path(temporary).resolve()
        write_commit_files(repository, commit_id, folder)
        with contextlib.chdir(folder):  # so that findings have paths relative to the repository
            layout = find_layout(folder)
            _require_default_paths(layout)
            rows = checked_rows(layout, files_of([Path()]), watch_checks)
            ledger_document = built_ledger.model_dump(mode="json")
            board = board_of(rows, layout, events=ledger_document["events"])
            scripts = board.scripts()
            page = assembled_files(dict(_page_files(folder / PAGE_FOLDER)))
            if INDEX not in page:  # without its own page, a repository gets that of this version
                page = page_files() | page
            page = with_data(page, scripts)
            built = SourceCommit(
                commit_id, repository.time_of(commit_id), tuple(ledger_document["events"])
            )
            site = site_of(rows, board.parsed_files, benchmark_of(layout), layout, built)
            page[INDEX] = completed_index(page[INDEX], site)
            page |= site.picture
            files = {
                **page,
                **board.files,
                **scripts,
                **site_files(site),
                **_statement_files(layout),
            }
            files[LEDGER_FILE] = board_file_bytes(LEDGER_FILE, ledger_document)
            manifest = manifest_of(files, commit_id)
            published_files = manifest.model_dump(mode="json")["files"]
            edition_pages = editions(site, manifest.generation, published_files)
    return Generation(files, manifest, board.models, edition_pages)


def _require_default_paths(layout: Layout) -> None:
    """Raise BadConfiguration if settings name other folders than those that the ledger reads."""
    expected_paths = {
        "submissions": SUBMISSIONS_FOLDER,
        "policy": POLICY_FOLDER,
        "audits": AUDITS_FOLDER,
    }
    if layout.kind is LayoutKind.GENEB_CI:  # upstream's is elsewhere
        expected_paths["benchmark"] = BENCHMARK_FILE
    for name, expected in expected_paths.items():
        folder: Path | None = getattr(layout, name)
        if folder not in {None, layout.root / expected}:
            raise BadConfiguration(
                f"pyproject.toml: [tool.geneb-ci] sets {name} to another path than {expected!r}, "
                "the only path that can be published",
                f"move the files to {expected}, and remove {name} from [tool.geneb-ci]",
            )


def _statement_files(layout: Layout) -> dict[str, bytes]:
    """Return the files with signed statements and of an old log, by their path on the Space."""
    statements = statements_file(AuditRepository(layout).history)
    if layout.audits is None or not (layout.audits / LOG_FOLDER).is_dir():
        return statements
    files = log_files(layout.audits / LOG_FOLDER)
    return statements | {
        f"{PUBLISHED_LOG_FOLDER}/{path}": content for path, content in files.items()
    }


def _page_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield path and bytes of the page's files and the Space card, which are kept in `folder`."""
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        is_published = (
            relative.parts[0] not in UNPUBLISHED_FOLDERS and relative.as_posix() != MANIFEST_FILE
        )
        if path.is_file() and is_published:
            yield relative.as_posix(), path.read_bytes()
