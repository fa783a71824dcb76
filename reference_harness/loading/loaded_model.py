"""Find which weights an extractor loaded: location, revision and digests of their files.

The extractor's declaration is compared with the files that the process opened while it was built
and embedded once. A file in the cache of the Hub shows its repository and commit. Of other files,
only a declared digest shows where they are published.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from reference_harness.extractors.base import UNDECLARED, ExtractorError
from reference_harness.extractors.weight_files import (
    OTHER_ENDINGS,
    PICKLE_ENDINGS,
    SAFETENSORS_ENDINGS,
    weight_files,
)
from reference_harness.formats.files import file_sha256

from .file_watch import is_within, package_folders

_HUB_CACHE_PATH = re.compile(r"/models--([^/]+)/snapshots/([0-9a-f]{40})/(.+)\Z")
"""Path of a file in the cache of the Hub: `OWNER--NAME`, commit, path in the repository."""
_WEIGHT_ENDINGS = frozenset({*SAFETENSORS_ENDINGS, *PICKLE_ENDINGS, *OTHER_ENDINGS})
"""Endings of the names of weight files."""


class WeightFile(NamedTuple):
    """A file of weights that was loaded."""

    path: Path
    """Path on this machine."""
    name: str
    """Path of the file in the repository or folder of the model, else the file's name."""
    repository: str
    """Repository on the Hub, `OWNER/NAME`; "" if unknown."""
    revision: str
    """Commit of the repository; "" if unknown."""


class LoadedModel(NamedTuple):
    """A model as a run record describes it, with a sentence on what it does not describe, or ""."""

    model: dict[str, Any]
    """The `model` of a run record."""
    note: str = ""
    """A sentence on what the record does not describe; "" if it describes all."""


def loaded_model(
    declared: dict[str, Any], name_model: str, opened_files: Iterable[str]
) -> LoadedModel:
    """Return the loaded model, in the terms of submission format 1.1.

    `name_model` is the repository of the weights on the Hub or their folder, or "" without weights.
    `opened_files` are paths that the process has opened. Raise ExtractorError if files contradict
    the extractor's declaration.
    """
    folder = Path(name_model)
    is_folder = bool(name_model) and folder.exists()
    files = list(_weight_files(opened_files, folder if is_folder else None))
    if not files:  # a native library may have opened them unseen
        paths = _declared_files(declared, name_model)
        if not paths and is_folder and not declared["weights"] and declared["kind"] != "none":
            paths = list(map(str, weight_files(folder)))
        files = list(_weight_files(paths, folder))
    if not files:
        note = "no file of weights was seen to be loaded, so the run records none"
        return LoadedModel(declared | {"weights": {}}, note if declared["weights"] else "")
    if declared["kind"] == "none":
        msg = (
            f'the extractor declares a source of kind "none", but loaded {files[0].name}: '
            "declare where that file is from"
        )
        raise ExtractorError(msg)
    weights = {file.name: file_sha256(file.path) for file in files}
    _check_digests(declared["weights"], weights)
    return _with_source(declared, files, weights)


def without_unused(
    model: dict[str, Any], name_model: str, opened_files: Iterable[str]
) -> LoadedModel:
    """Return the model of a built-in extractor without the weight files that it did not open.

    Other variants of the weights may be in the same folder.
    """
    opened_names = {file.name for file in _weight_files(opened_files, Path(name_model))}
    weights = {name: digest for name, digest in model["weights"].items() if name in opened_names}
    return LoadedModel(model | {"weights": weights or model["weights"]})


def _weight_files(paths: Iterable[str], folder: Path | None) -> Iterable[WeightFile]:
    """Yield the files of weights among the paths, in order of path."""
    packages, model_folder = package_folders(), None if folder is None else folder.resolve()
    for path in sorted(map(Path, paths)):
        if path.suffix.lower() not in _WEIGHT_ENDINGS:
            continue
        real_path = path.resolve()
        if is_within(real_path, packages):
            continue
        if snapshot := _HUB_CACHE_PATH.search(path.as_posix()):
            repository, revision, file_name = snapshot.groups()
            yield WeightFile(path, file_name, repository.replace("--", "/"), revision)
        elif (
            model_folder is not None
            and real_path.is_relative_to(model_folder)
            and real_path != model_folder
        ):
            yield WeightFile(path, real_path.relative_to(model_folder).as_posix(), "", "")
        else:
            yield WeightFile(path, path.name, "", "")


def _declared_files(declared: dict[str, Any], name_model: str) -> list[str]:
    """Return the existing paths of the weight files that an extractor declares."""
    paths = [Path(name_model, name) for name in declared["weights"]] if name_model else []
    existing_paths = [str(path) for path in paths if path.is_file()]
    if existing_paths or declared["kind"] != "huggingface" or not declared["revision"]:
        return existing_paths
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return []
    location, revision = declared["location"], declared["revision"]
    cached_paths = (
        try_to_load_from_cache(location, name, revision=revision) for name in declared["weights"]
    )
    return [path for path in cached_paths if isinstance(path, str)]


def _check_digests(declared: dict[str, str], weights: dict[str, str]) -> None:
    """Raise ExtractorError if a loaded file has another digest than the extractor declares."""
    for name, digest in weights.items():
        expected = declared.get(name, digest)
        if expected != digest:
            msg = (
                f"the extractor declares that {name} has the sha256 {expected}, but the loaded "
                f"file has {digest}: load the declared file, or declare the loaded one"
            )
            raise ExtractorError(msg)


def _with_source(
    declared: dict[str, Any], files: list[WeightFile], weights: dict[str, str]
) -> LoadedModel:
    """Return the model with its published source: the files' repository, or the declared one."""
    origins = sorted({(file.repository, file.revision) for file in files})
    declared_source = (declared["location"], declared["revision"])
    declared_kind = declared["kind"]
    origins_text = [f"{repository} at {revision}" for repository, revision in origins if repository]
    if len(origins_text) > 1 or (
        origins_text and declared_kind != UNDECLARED and origins != [declared_source]
    ):
        declared_text = (
            f"{declared_source[0]} at {declared_source[1]}"
            if declared_kind == "huggingface"
            else f"kind {declared_kind}"
        )
        msg = (
            f"the extractor declares {declared_text} as its source, but loaded {files[0].name} of "
            f"{', '.join(origins_text)}: load and declare one commit of one repository"
        )
        raise ExtractorError(msg)
    if origins_text:
        repository, revision = origins[0]
        recorded_source: dict[str, Any] = {"kind": "huggingface", "location": repository}
        return LoadedModel(recorded_source | {"revision": revision, "weights": weights})
    is_published = declared_kind in {"huggingface", "url"}
    if not is_published or weights.keys() <= declared["weights"].keys():
        return LoadedModel(declared | {"weights": weights})
    parent = files[0].path.resolve().parent.name
    note = (
        f"nothing shows that the weights of the folder {parent} are those of {declared_source[0]}, "
        'so the run records no source: declare their digests in "weights" of the source, or load '
        "them from the Hub"
    )
    recorded_source = {"kind": "local", "location": parent, "revision": None}
    return LoadedModel(recorded_source | {"weights": weights}, note)
