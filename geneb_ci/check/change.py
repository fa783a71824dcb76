"""The change that a pull request makes: the complete difference between two git trees."""

import enum
import functools
import re
from dataclasses import dataclass, field

from reference_harness.formats.package_lock import LOCK_SUFFIX
from reference_harness.formats.submission_terms import MODEL_ID_MAX, MODEL_ID_PATTERN

REGULAR = "100644"
"""Git mode of a file that is not executable."""
EXECUTABLE = "100755"
"""Git mode of an executable file."""
SYMLINK = "120000"
"""Git mode of a symbolic link."""
SUBMODULE = "160000"
"""Git mode of a submodule."""
MODEL_FILE_SUFFIXES = (".json", ".md", ".py", LOCK_SUFFIX)
"""Suffixes of rows, cards, extractors, lock files and signed statements. A file with another
suffix, such as a file of a cache, does not belong to a model."""

_MODEL_ID = re.compile(MODEL_ID_PATTERN[1:-1])
"""A valid model id."""
MODEL_FILES_MAX = 4
"""Maximum number of files of a model: row, card, extractor and the extractor's lock file."""
_EXTRACTOR_FILE = re.compile(r"(?!conftest\.|sitecustomize\.)[A-Za-z0-9][A-Za-z0-9_.-]*\.py")
"""A file name that an extractor may have. conftest.py and sitecustomize.py are excluded: pytest and
Python import them automatically."""


@dataclass(frozen=True)
class Blob:
    """An entry of a git tree: a file, a link or a submodule."""

    mode: str
    """Git mode, such as REGULAR; a hostile tree may have other modes."""
    sha: str
    """Git object id: SHA-1 of "blob", the size and the bytes."""
    size: int = 0
    """In bytes; 0 for a submodule."""


@dataclass(frozen=True)
class FileChange:
    """A file that a pull request adds, changes or deletes."""

    path: str
    before: Blob | None
    """The file on the base branch; None if the pull request adds it."""
    after: Blob | None
    """The file in the pull request; None if the pull request deletes it."""


@dataclass(frozen=True)
class RepositoryFolders:
    """Folders of a repository, relative to its root, with slashes."""

    submissions: str = "submissions"
    cards: str = "submissions/cards"
    extractors: str = "submissions/extractors"
    audits: str = "leaderboard/audits"


class RivalKind(enum.StrEnum):
    """Kinds of collision of two open pull requests."""

    FILE = "file"
    """A changed file."""
    NAME = "name"
    """The id or the display name of the models."""
    COPY = "copy"
    """The scores, up to differences between reruns."""


@dataclass(frozen=True)
class Rival:
    """Another open pull request that claims the same file or name, or has the same scores."""

    number: int
    """Number of the pull request."""
    kind: RivalKind
    subject: str
    """By kind: the file or the name that both claim, or the model that has the same scores."""


@dataclass(frozen=True)
class ChangeFault:
    """One problem of a pull request, in `file`; "" if it concerns the change as a whole."""

    rule: str
    """Id of the rule that reports the problem."""
    file: str
    message: str
    found: str = ""
    expected: str = ""
    fix: str = ""
    """Advice, if it is more specific than that of the rule."""


@dataclass(frozen=True)
class Change:
    """The change that a pull request makes to the base branch."""

    files: tuple[FileChange, ...]
    """In the order of their paths."""
    is_truncated: bool = False
    """Whether GitHub listed the files of the base branch or of the pull request incompletely."""
    folders: RepositoryFolders = field(default_factory=RepositoryFolders)
    """Folders by which the kind of a changed file is judged."""
    named_module: str = ""
    """File name of the extractor that the changed row names, or ""."""
    has_extractor: bool = False
    """Whether the row's extractor is built into the harness, or already in the repository."""
    published_module: str = ""
    """File name of the extractor that the published row names; "" if other rows name it too."""
    correction: str = ""
    """The card's text under "Correction", or ""."""
    outdated_paths: tuple[str, ...] = ()
    """Files that were also changed on the base branch after the pull request's branch was made."""
    invalid_records: tuple[tuple[str, str], ...] = ()
    """Audit records that fail verification: the path, and the message of the step that failed."""
    rivals: tuple[Rival, ...] = ()
    """Open pull requests that cannot be merged together with this pull request, or copy its row."""

    @functools.cached_property
    def rows(self) -> tuple[FileChange, ...]:
        """Changes of files that are rows, judged by folder and file name."""
        return tuple(f for f in self.files if self._model_of(f.path, self.folders.submissions))

    @functools.cached_property
    def model(self) -> str:
        """Id of the model that the change is about; "" for a change of no model, or of several.

        It is the id of the only added row; otherwise of the only changed row; otherwise of the only
        changed card. In a change of audit records alone it is the id of the audited model.
        """
        added = [f for f in self.rows if f.before is None]
        rows = added if len(added) == 1 else self.rows
        model_ids = {self._model_of(f.path, self.folders.submissions) for f in rows}
        if self.is_evidence:
            model_ids = {self._audited_model(f.path) for f in self.files}
        elif not self.rows:
            model_ids = {self._model_of(f.path, self.folders.cards, ".md") for f in self.files} - {
                ""
            }
        return model_ids.pop() if len(model_ids) == 1 else ""

    @functools.cached_property
    def is_evidence(self) -> bool:
        """Whether the change only adds or edits audit records and the files signed with them."""
        return bool(self.files) and all(
            change.after is not None
            and change.after.mode == REGULAR
            and self._audited_model(change.path)
            for change in self.files
        )

    @functools.cached_property
    def records(self) -> tuple[FileChange, ...]:
        """Added or changed audit records of the model, with the files that their signatures cover.

        Empty unless the change concerns one model.
        """
        return self.records_of(self.model) if self.model else ()

    def records_of(self, model: str) -> tuple[FileChange, ...]:
        """Return added or changed audit records of a model, and the files that they cover."""
        return tuple(
            file
            for file in self.files
            if file.after is not None
            and file.after.mode == REGULAR
            and self._audited_model(file.path) == model
        )

    def _audited_model(self, path: str) -> str:
        """Return the id of the model whose audit record is at `path`; "" if none is."""
        folder, _, file_name = path.rpartition("/")
        parent, _, model = folder.rpartition("/")
        # The log of all records is extended on main only, by the holder of its key.
        is_record = parent == self.folders.audits and file_name.endswith(".json") and model != "log"
        return model if is_record and _MODEL_ID.fullmatch(model) else ""

    @functools.cached_property
    def row(self) -> FileChange | None:
        """The change of the model's row, or None when there is none."""
        return (
            self.change_at(f"{self.folders.submissions}/{self.model}.json") if self.model else None
        )

    @functools.cached_property
    def card(self) -> FileChange | None:
        """The change of the model's card, or None when there is none."""
        return self.change_at(f"{self.folders.cards}/{self.model}.md") if self.model else None

    @functools.cached_property
    def extractor(self) -> FileChange | None:
        """The change of the model's extractor, which the row names or which is the only added one.

        An existing extractor belongs to the model only if its published row, and no other row,
        names it. Otherwise a row could name another model's extractor and rewrite it.
        """
        modules = [f for f in self.files if self._is_extractor_path(f.path)]
        named_modules = [
            f
            for f in modules
            if (name := f.path.rsplit("/", 1)[-1]) == self.named_module
            and (f.before is None or name == self.published_module)
        ]
        added_modules = [f for f in modules if f.before is None]
        candidates = named_modules or (
            added_modules if len(added_modules) == 1 and not self.named_module else []
        )
        return candidates[0] if candidates and self.row is not None else None

    @functools.cached_property
    def lock(self) -> FileChange | None:
        """The change of the lock file beside the model's extractor, never that of another model."""
        module = self.extractor.path if self.extractor is not None else ""
        if not module and self.named_module and self.named_module == self.published_module:
            module = f"{self.folders.extractors}/{self.named_module}"
        return self.change_at(f"{module.removesuffix('.py')}{LOCK_SUFFIX}") if module else None

    @property
    def model_files(self) -> tuple[FileChange, ...]:
        """The model's own files among the changes: row, card, extractor and its lock file."""
        files = (self.row, self.card, self.extractor, self.lock)
        return tuple(file for file in files if file is not None)

    def change_at(self, path: str) -> FileChange | None:
        """Return the change of the file at a path; None if the file does not change."""
        return self._change_by_path.get(path)

    @functools.cached_property
    def _change_by_path(self) -> dict[str, FileChange]:
        """The changed files by path."""
        return {f.path: f for f in self.files}

    def is_model_path(self, path: str) -> bool:
        """Whether a path is that of the row, the card or the extractor of some model."""
        model_id = self._model_of(path, self.folders.submissions) or self._model_of(
            path, self.folders.cards, ".md"
        )
        return bool(model_id) or self._is_extractor_path(path)

    def _is_extractor_path(self, path: str) -> bool:
        """Whether a path is that of an extractor of some model."""
        folder, _, file_name = path.rpartition("/")
        return folder == self.folders.extractors and bool(_EXTRACTOR_FILE.fullmatch(file_name))

    def _model_of(self, path: str, folder: str, suffix: str = ".json") -> str:
        """Return the id of the model whose file in `folder` this path is, or ""."""
        parent_folder, _, file_name = path.rpartition("/")
        stem = file_name.removesuffix(suffix)
        is_model_file = (
            parent_folder == folder and file_name.endswith(suffix) and len(stem) <= MODEL_ID_MAX
        )
        return stem if is_model_file and _MODEL_ID.fullmatch(stem) else ""
