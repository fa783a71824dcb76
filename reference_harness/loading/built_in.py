"""Path, class and digest of the built-in extractors, found without NumPy."""

import hashlib
from pathlib import Path
from typing import NamedTuple

from reference_harness.extractors import BUILTINS
from reference_harness.formats.files import file_sha256

_FOLDER = Path(__file__).parents[1] / "extractors"
"""Folder of the modules of the built-in extractors."""


class BuiltInIdentity(NamedTuple):
    """Path, class and digest that identify a built-in extractor in a submission."""

    path: str
    """Text `builtin:<name>`, in place of the path of a file."""
    class_name: str
    """Name of the extractor's class."""
    sha256: str
    """Digest of its module and of all that this imports."""


def built_in_identity(builtin_name: str) -> BuiltInIdentity:
    """Return path, class and digest of a built-in extractor, without importing it."""
    builtin = BUILTINS[builtin_name]
    files = [_FOLDER / f for f in ("base.py", f"{builtin.module_name}.py", *builtin.helpers)]
    return BuiltInIdentity(f"builtin:{builtin_name}", builtin.class_name, _sha256_of_files(files))


def _sha256_of_files(files: list[Path]) -> str:
    """Return the digest of lines `<sha256> <name>`, in order of name, as `sha256sum` prints."""
    files = sorted(files, key=lambda file: file.name)
    text = "".join(f"{file_sha256(file)}  {file.name}\n" for file in files)
    return hashlib.sha256(text.encode()).hexdigest()
