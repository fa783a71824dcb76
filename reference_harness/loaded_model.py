"""Which weights an extractor loaded: location, revision and digests are those of the files.

What an extractor declares is compared with the files that the process opened while it was built and
embedded once. A file in the cache of the Hub names its repository and commit. Of a file elsewhere
nothing shows where it is published but its digest, if the extractor declares that.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from reference_harness.formats.files import file_sha256

from .extractors.base import UNDECLARED, ExtractorError
from .extractors.weights import OTHER_FORMATS, PICKLED, SAFE, weight_files
from .file_watch import is_within, package_folders

_SNAPSHOT = re.compile(r"/models--([^/]+)/snapshots/([0-9a-f]{40})/(.+)\Z")
"""A file in the cache of the Hub: `OWNER--NAME`, commit, and its path in the repository."""
_ENDINGS = frozenset({*SAFE, *PICKLED, *OTHER_FORMATS})


class WeightFile(NamedTuple):
    """A file of weights that was loaded."""

    path: Path
    name: str
    """Its path in the repository or folder of the model; else its name."""
    repository: str
    """Repository of the Hub, `OWNER/NAME`; "" where nothing shows it."""
    revision: str


class LoadedModel(NamedTuple):
    """The facts of a model for a record, and a sentence on what it leaves out, or ""."""

    model: dict[str, Any]
    note: str = ""


def loaded_model(
    declared: dict[str, Any], name_model: str, opened_files: Iterable[str]
) -> LoadedModel:
    """Return the model that was loaded, in the terms of submission format 1.1.

    `opened_files` are paths that the process opened meanwhile. Raises ExtractorError where files
    contradict what the extractor declares.
    """
    folder = Path(name_model)
    is_folder = bool(name_model) and folder.exists()
    files = list(_weight_files(opened_files, folder if is_folder else None))
    if not files:  # a library may open them by itself
        paths = _declared_files(declared, name_model)
        if not paths and is_folder and not declared["weights"] and declared["kind"] != "none":
            paths = list(map(str, weight_files(folder)))
        files = list(_weight_files(paths, folder))
    if not files:
        note = "no file of weights was seen to be loaded, so the run names none"
        return LoadedModel(declared | {"weights": {}}, note if declared["weights"] else "")
    if declared["kind"] == "none":
        msg = (
            f'the extractor declares a source of kind "none", and loaded {files[0].name}: '
            "declare where that is from"
        )
        raise ExtractorError(msg)
    weights = {file.name: file_sha256(file.path) for file in files}
    _check_digests(declared["weights"], weights)
    return _located(declared, files, weights)


def without_unused(
    model: dict[str, Any], name_model: str, opened_files: Iterable[str]
) -> LoadedModel:
    """Return the model of a built-in extractor, which hashes its files, without those left closed.

    Other variants of the weights may lie beside those that were loaded.
    """
    names = {file.name for file in _weight_files(opened_files, Path(name_model))}
    weights = {name: digest for name, digest in model["weights"].items() if name in names}
    return LoadedModel(model | {"weights": weights or model["weights"]})


def _weight_files(paths: Iterable[str], folder: Path | None) -> Iterable[WeightFile]:
    """Yield the files of weights among some paths, in order of name."""
    packages, own_folder = package_folders(), None if folder is None else folder.resolve()
    for path in sorted(map(Path, paths)):
        real = path.resolve()
        if path.suffix.lower() not in _ENDINGS or is_within(real, packages):
            continue
        if snapshot := _SNAPSHOT.search(path.as_posix()):
            repository, revision, inside = snapshot.groups()
            yield WeightFile(path, inside, repository.replace("--", "/"), revision)
        elif own_folder is not None and real.is_relative_to(own_folder) and real != own_folder:
            yield WeightFile(path, real.relative_to(own_folder).as_posix(), "", "")
        else:
            yield WeightFile(path, path.name, "", "")


def _declared_files(declared: dict[str, Any], name_model: str) -> list[str]:
    """Return the paths of the files that an extractor declares, where they are here."""
    paths = [Path(name_model, name) for name in declared["weights"]] if name_model else []
    present = [str(path) for path in paths if path.is_file()]
    if present or declared["kind"] != "huggingface" or not declared["revision"]:
        return present
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return []
    location, revision = declared["location"], declared["revision"]
    cached = (
        try_to_load_from_cache(location, name, revision=revision) for name in declared["weights"]
    )
    return [path for path in cached if isinstance(path, str)]


def _check_digests(declared: dict[str, str], weights: dict[str, str]) -> None:
    for name, digest in weights.items():
        expected = declared.get(name, digest)
        if expected != digest:
            msg = (
                f"the extractor declares that {name} has the sha256 {expected}, and the file that "
                f"was loaded has {digest}: load that file, or declare this one"
            )
            raise ExtractorError(msg)


def _located(
    declared: dict[str, Any], files: list[WeightFile], weights: dict[str, str]
) -> LoadedModel:
    """Return where the files are published: in their repository, or where their digests are."""
    origins = sorted({(file.repository, file.revision) for file in files})
    claimed = (declared["location"], declared["revision"])
    kind = declared["kind"]
    origins_text = [f"{repository} at {revision}" for repository, revision in origins if repository]
    if len(origins_text) > 1 or (origins_text and kind != UNDECLARED and origins != [claimed]):
        claimed_text = f"{claimed[0]} at {claimed[1]}" if kind == "huggingface" else f"kind {kind}"
        msg = (
            f"the extractor declares {claimed_text} as its source, and loaded {files[0].name} of "
            f"{', '.join(origins_text)}: load and declare one commit of one repository"
        )
        raise ExtractorError(msg)
    if origins_text:
        repository, revision = origins[0]
        source: dict[str, Any] = {"kind": "huggingface", "location": repository}
        return LoadedModel(source | {"revision": revision, "weights": weights})
    is_published = kind in {"huggingface", "url"}
    if not is_published or weights.keys() <= declared["weights"].keys():
        return LoadedModel(declared | {"weights": weights})
    parent = files[0].path.resolve().parent.name
    note = (
        f"nothing shows that the weights of the folder {parent} are those of {claimed[0]}: the run "
        'names neither; declare their digests in "weights" of the source, or load them from the Hub'
    )
    source = {"kind": "local", "location": parent, "revision": None}
    return LoadedModel(source | {"weights": weights}, note)
