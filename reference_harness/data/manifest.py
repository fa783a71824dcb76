"""The manifest of a data folder: digests made at download, to verify it later."""

from pathlib import Path

from pydantic import ValidationError

from reference_harness.errors import DataError
from reference_harness.formats.base import Count, Hex40, Hex64, StrictModel, first_error
from reference_harness.formats.benchmark import Dataset
from reference_harness.formats.files import NotReadable, file_sha256, read_text, write_json

MANIFEST_NAME = "manifest.json"
MANIFEST_BYTES_MAX = 10_000_000  # 100 tasks have 40 kB


def repair_advice(repo_id: str, folder: Path) -> str:
    """Return how a user makes a folder's files and manifest agree, as a clause for a message."""
    if repo_id.startswith("local:"):  # as `data define` writes
        return (
            f"restore the files, or delete benchmark.json and {MANIFEST_NAME} and run "
            f"geneb-harness data define {folder}"
        )
    return f"run geneb-harness data pull {folder}"


class FileFacts(StrictModel):
    """The digest and size of one file."""

    sha256: Hex64
    bytes: Count


class TaskFacts(StrictModel):
    """The digest of one task's content, and the number of sequences per class."""

    sha256: Hex64
    train: dict[str, int]
    test: dict[str, int]


class Manifest(StrictModel):
    """The content of `manifest.json`."""

    schema_version: str = "1.0"
    repo_id: str
    revision: Hex40
    files: dict[str, FileFacts]
    tasks: dict[str, TaskFacts]

    @classmethod
    def of_folder(cls, folder: Path) -> "Manifest | None":
        """Return the folder's manifest; None if there is none.

        Raise DataError if there is an invalid one.
        """
        path = folder / MANIFEST_NAME
        if not path.exists():
            return None
        fix = (
            f"delete this file and run geneb-harness data pull {folder}, or data define for "
            "tasks of your own"
        )
        try:
            return cls.model_validate_json(read_text(path, MANIFEST_BYTES_MAX))
        except ValidationError as error:
            fault = first_error(error, with_input=True)
            raise DataError([f"{path}: not a manifest: {fault}: {fix}"]) from error
        except NotReadable as error:
            msg = f"{path}: not a manifest: it {error.reason}: {fix}"
            raise DataError([msg]) from error

    def is_of_dataset(self, dataset: Dataset) -> bool:
        """Whether the data are those of the dataset and revision that the benchmark pins."""
        return (self.repo_id, self.revision) == (dataset.repo_id, dataset.revision)

    def verify(self, folder: Path, files: tuple[Path, ...]) -> None:
        """Verify sizes and digests of files.

        Raise DataError with every file that differs or is not listed.
        """
        faults = []
        fix = repair_advice(self.repo_id, folder)
        for file in files:
            listed_file = self.files.get(file.relative_to(folder).as_posix())
            if listed_file is None:
                faults.append(
                    f"{file}: {MANIFEST_NAME} does not list this file: delete the file, or {fix}"
                )
            elif (size := file.stat().st_size) != listed_file.bytes:
                faults.append(
                    f"{file}: {size} bytes, expected {listed_file.bytes} as in "
                    f"{MANIFEST_NAME}: {fix}"
                )
            elif (digest := file_sha256(file)) != listed_file.sha256:
                faults.append(
                    f"{file}: sha256 {digest}, expected {listed_file.sha256} as in "
                    f"{MANIFEST_NAME}: {fix}"
                )
        if faults:
            raise DataError(faults)

    def write(self, folder: Path) -> Path:
        """Write the manifest into the folder and return its path."""
        write_json(folder / MANIFEST_NAME, self.model_dump())
        return folder / MANIFEST_NAME
