"""What a pull request changes: two trees side by side, frozen, with nothing left to fetch."""

import functools
import re
from dataclasses import dataclass, field

from geneb_ci.submission.models import MODEL_ID_MAX, MODEL_ID_PATTERN

REGULAR = "100644"
EXECUTABLE = "100755"
SYMLINK = "120000"
SUBMODULE = "160000"

_MODEL_ID = re.compile(MODEL_ID_PATTERN[1:-1])
# Names that Python or pytest would import by themselves are nobody's extractor.
_MODULE = re.compile(r"(?!conftest\.|sitecustomize\.)[A-Za-z0-9][A-Za-z0-9_.-]*\.py")


@dataclass(frozen=True)
class Blob:
    """One entry of a git tree: a file, a link or a submodule."""

    mode: str
    sha: str
    """Git's name of it: SHA-1 of "blob", its size and its bytes."""
    size: int = 0
    """In bytes; 0 for a submodule."""


@dataclass(frozen=True)
class FileChange:
    """One path that differs between the two trees; None on the side where it is not."""

    path: str
    before: Blob | None
    after: Blob | None


@dataclass(frozen=True)
class Places:
    """Folders of a repository, relative to its root, with slashes."""

    submissions: str = "submissions"
    cards: str = "submissions/cards"
    extractors: str = "submissions/extractors"


@dataclass(frozen=True)
class ChangeFault:
    """One fault of a change, at one of its paths; "" is the change as a whole."""

    rule: str
    file: str
    message: str
    found: str = ""
    expected: str = ""
    fix: str = ""


@dataclass(frozen=True)
class Change:
    """What a pull request changes, against the commit it began from."""

    files: tuple[FileChange, ...]
    """In the order of their paths."""
    truncated: bool = False
    """Whether GitHub left entries out of one of the two trees."""
    places: Places = field(default_factory=Places)
    module: str = ""
    """File name of the extractor that the changed row names, or ""."""
    is_there: bool = False
    """Whether the extractor that the row names ships with the harness, or lies there unchanged."""
    published_module: str = ""
    """File name of the extractor that the published row names, and no other row; or ""."""
    correction: str = ""
    """What the card says under "Correction", or ""."""

    @functools.cached_property
    def rows(self) -> tuple[FileChange, ...]:
        """Changes of files that are rows by their place and name."""
        return tuple(f for f in self.files if self._model_of(f.path, self.places.submissions))

    @functools.cached_property
    def model(self) -> str:
        """Id of the one model that the change is about, or "" where there is none or several.

        It is that of the only row that is added, else of the only row touched, else of the only
        card.
        """
        added = [f for f in self.rows if f.before is None]
        touched = added if len(added) == 1 else self.rows
        names = {self._model_of(f.path, self.places.submissions) for f in touched}
        if not self.rows:
            names = {self._model_of(f.path, self.places.cards, ".md") for f in self.files} - {""}
        return names.pop() if len(names) == 1 else ""

    @functools.cached_property
    def row(self) -> FileChange | None:
        """The change of the model's row, or None where it has none."""
        return self.at(f"{self.places.submissions}/{self.model}.json") if self.model else None

    @functools.cached_property
    def card(self) -> FileChange | None:
        """The change of the model's card, or None where it has none."""
        return self.at(f"{self.places.cards}/{self.model}.md") if self.model else None

    @functools.cached_property
    def extractor(self) -> FileChange | None:
        """The change of the model's extractor: the one its row names, or the only one added.

        One that was there before is the model's own only where its published row, and no other,
        named it: else any row could name another's extractor and rewrite it.
        """
        found = [f for f in self.files if self._is_module(f.path)]
        named = [
            f
            for f in found
            if (name := f.path.rsplit("/", 1)[-1]) == self.module
            and (f.before is None or name == self.published_module)
        ]
        added = [f for f in found if f.before is None]
        chosen = named or (added if len(added) == 1 and not self.module else [])
        return chosen[0] if chosen and self.row is not None else None

    @property
    def own(self) -> tuple[FileChange, ...]:
        """The model's files among the changes: its row, its card, its extractor."""
        return tuple(f for f in (self.row, self.card, self.extractor) if f is not None)

    def at(self, path: str) -> FileChange | None:
        """Return the change at a path, or None."""
        return self._by_path.get(path)

    @functools.cached_property
    def _by_path(self) -> dict[str, FileChange]:
        return {f.path: f for f in self.files}

    def _is_module(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return folder == self.places.extractors and bool(_MODULE.fullmatch(name))

    def _model_of(self, path: str, folder: str, suffix: str = ".json") -> str:
        """Return the id of the model whose file in a folder this is, or ""."""
        parent, _, name = path.rpartition("/")
        stem = name.removesuffix(suffix)
        is_one = parent == folder and name.endswith(suffix) and len(stem) <= MODEL_ID_MAX
        return stem if is_one and _MODEL_ID.fullmatch(stem) else ""
