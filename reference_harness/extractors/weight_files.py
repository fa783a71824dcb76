"""The weight files of a model, and their digests."""

from pathlib import Path

from reference_harness.formats.files import file_sha256

SAFETENSORS_ENDINGS = (".safetensors",)
"""Endings of files of safetensors."""
PICKLE_ENDINGS = (".bin", ".pt", ".pth", ".ckpt")
"""Endings of files of torch, which are pickles."""
OTHER_ENDINGS = (".h5", ".msgpack", ".onnx", ".npz", ".npy")
"""Endings of weight files of other libraries."""


def weight_files(path: Path) -> list[Path]:
    """Return the weight files below a folder, sorted by path; if `path` is a file, only that."""
    if path.is_file():
        return [path]
    endings = (*SAFETENSORS_ENDINGS, *PICKLE_ENDINGS, *OTHER_ENDINGS)
    return sorted(file for file in path.rglob("*") if file.is_file() and file.suffix in endings)


def digests(path: Path, files: list[Path] | None = None) -> dict[str, str]:
    """Return path relative to `path` -> sha256, for `files` or all weight files of `path`."""
    weights = weight_files(path) if files is None else files
    return {_relative_name(file, path): file_sha256(file) for file in weights}


def _relative_name(file: Path, path: Path) -> str:
    """Return the path of a file relative to `path`; the file's name if they are equal."""
    return file.name if file == path else file.relative_to(path).as_posix()
