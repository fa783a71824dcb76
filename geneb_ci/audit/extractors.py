"""The folder of extractors: read once, digested as a whole; which module of it ran."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from geneb_ci.audit.code_shape import code_shape
from geneb_ci.audit.commitment import ExtractorCode
from geneb_ci.audit.steps import AuditRefused
from geneb_ci.common.config import Layout
from geneb_ci.submission.bytes import read_bytes
from geneb_ci.submission.fault import Fault

BUILTIN = "builtin:"
IGNORED = "__pycache__"
"""Python's own cache, which any import leaves behind. It is not digested, and the sandbox does not
read it."""
FILES_MAX = 1000
"""More files than this are not extractors. Each may have as many bytes as a submission."""
HARNESS = (sys.executable, "-m", "reference_harness")
_PLAIN_FILES = "keep only plain source files in the folder of extractors"


class ExtractorFolder(NamedTuple):
    """Every file of a repository's folder of extractors, as it was when it was read."""

    folder: Path
    root: Path
    """Root of the repository, to which paths in a commitment are relative."""
    files: dict[str, bytes]
    """Relative name, with slashes, to content; in order of name."""


def read_extractors(layout: Layout) -> ExtractorFolder | None:
    """Read the folder of extractors of a repository; None where it has none.

    Raises AuditRefused for a link, a file that is too large or irregular, and for more than
    `FILES_MAX` files.
    """
    if layout.extractors is None:
        return None
    return ExtractorFolder(layout.extractors, layout.root, tree_files(layout.extractors))


def tree_files(folder: Path) -> dict[str, bytes]:
    """Read every file below a folder: relative name to content, in order of name.

    Raises what `read_extractors` does.
    """
    found: dict[str, bytes] = {}
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != IGNORED)
        for name in (*files, *(name for name in folders if (Path(place) / name).is_symlink())):
            path = Path(place) / name
            raw = read_bytes(path)
            if isinstance(raw, Fault):
                raise AuditRefused(f"{path}: {raw.message}", _PLAIN_FILES)
            found[path.relative_to(folder).as_posix()] = raw
            if len(found) > FILES_MAX:
                raise AuditRefused(f"{folder}: it holds more than {FILES_MAX} files", _PLAIN_FILES)
    return dict(sorted(found.items()))


def tree_digest(files: Mapping[str, bytes]) -> str:
    """Return SHA-256 over a line `<sha256>  <name>` for each file, in order of name."""
    lines = [f"{hashlib.sha256(raw).hexdigest()}  {name}\n" for name, raw in sorted(files.items())]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def extractor_code(
    found: ExtractorFolder | None,
    path: str,
    class_name: str,
    claimed: str | None,
    options: Mapping[str, str],
) -> ExtractorCode:
    """Return the extractor that a run names, as it is in the folder of extractors.

    `claimed` is the digest that the run names, or None. Only the last part of `path` counts, so
    that it never leads out of the folder.
    Raises AuditRefused when the module is not there or is another one.
    """
    if path.startswith(BUILTIN):
        if claimed is None:
            raise AuditRefused(
                f"{path} is named without the digest of its source",
                "a built-in extractor writes format 1.1, which has the digest: ask for that file",
            )
        return ExtractorCode(
            path=path,
            class_name=class_name,
            sha256=claimed,
            options=dict(sorted(options.items())),
            tree=tree_digest({}),
        )
    name = path.rsplit("/", 1)[-1]
    if found is None:
        raise AuditRefused(
            f"the extractor {name!r} cannot be found: the submission is in no repository",
            "put the submission and its extractor into a checkout, and commit to that",
        )
    if name not in found.files:
        raise AuditRefused(
            f"{found.folder}: there is no extractor {name!r}",
            "add the module that ran to the checkout",
        )
    sha256 = hashlib.sha256(found.files[name]).hexdigest()
    if claimed not in {None, sha256}:
        raise AuditRefused(
            f"the extractor {name!r} is not the one that ran: sha256 {sha256}, expected {claimed}",
            "ask for the extractor exactly as it ran, or for a new run",
        )
    return ExtractorCode(
        path=Path(os.path.relpath(found.folder / name, found.root)).as_posix(),
        class_name=class_name,
        sha256=sha256,
        options=dict(sorted(options.items())),
        tree=tree_digest(found.files),
        shape=code_shape(found.files, name, class_name),
    )


class BuiltIn(NamedTuple):
    """A built-in extractor of the harness that is installed here."""

    path: str
    class_name: str
    sha256: str
    """Digest of its source, as the harness writes it into submissions."""


def built_in(path: str) -> BuiltIn:
    """Return the built-in extractor `builtin:NAME` of the installed harness.

    Raises AuditRefused where the harness has none of that name, or is not installed.
    """
    done = subprocess.run(  # noqa: S603 (our own words, and a name of the maintainers)
        [*HARNESS, "extractors", "digest", path], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise AuditRefused(
            f"{path}: the harness has no such extractor: {done.stderr.strip()[-200:]}",
            "correct the entry of the model registry, or install geneb-ci[audit]",
        )
    return BuiltIn(**json.loads(done.stdout))


def write_modules(modules: Mapping[str, bytes], folder: Path) -> None:
    """Write the files that were digested: the sandbox sees these, not what changed since."""
    for name, raw in modules.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
