"""The manifest of a data folder: digests at download, against which later runs verify it."""

import json
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .benchmark import Dataset
from .errors import DataError
from .files import read_bounded, sha256, write_json

NAME = "manifest.json"
BYTES_MAX = 10_000_000  # 100 tasks take 40 kB


class _ManifestPart(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class FileFacts(_ManifestPart):
    """One file."""

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    bytes: Annotated[int, Field(ge=0)]


class TaskFacts(_ManifestPart):
    """One task: digest of its content and rows of each class."""

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    train: dict[str, int]
    test: dict[str, int]


class Manifest(_ManifestPart):
    """The content of `manifest.json`."""

    schema_version: str = "1.0"
    repo_id: str
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    files: dict[str, FileFacts]
    tasks: dict[str, TaskFacts]

    @classmethod
    def of_folder(cls, folder: Path) -> "Manifest | None":
        """Read the folder's manifest, or return None where there is none.

        Raises DataError when there is one that cannot be used.
        """
        path = folder / NAME
        if not path.exists():
            return None
        try:
            return cls.model_validate_json(read_bounded(path, BYTES_MAX))
        except (OSError, ValidationError, json.JSONDecodeError) as error:
            raise DataError([f"{path}: not a manifest: {error}"]) from error

    def names(self, dataset: Dataset) -> bool:
        """Whether the data came from the dataset and revision the benchmark pins."""
        return (self.repo_id, self.revision) == (dataset.repo_id, dataset.revision)

    def verify(self, folder: Path, files: tuple[Path, ...]) -> None:
        """Verify sizes and digests of files.

        Raises DataError with every file that differs or is not listed.
        """
        faults = []
        for file in files:
            said = self.files.get(file.relative_to(folder).as_posix())
            if said is None:
                faults.append(f"{file}: not in {NAME}: download the data again")
            elif (size := file.stat().st_size) != said.bytes:
                faults.append(f"{file}: {size} bytes, {NAME} says {said.bytes}")
            elif (digest := sha256(file)) != said.sha256:
                faults.append(f"{file}: sha256 {digest}, {NAME} says {said.sha256}")
        if faults:
            raise DataError(faults)

    def write(self, folder: Path) -> Path:
        """Write the manifest into the folder and return its path."""
        write_json(folder / NAME, self.model_dump())
        return folder / NAME
