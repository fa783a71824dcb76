"""Which files hold a model's weights, and their digests."""

import hashlib
from pathlib import Path

SAFE = (".safetensors",)
PICKLED = (".bin", ".pt", ".pth", ".ckpt")
OTHER = (".h5", ".msgpack", ".onnx", ".npz", ".npy")


def weight_files(path: Path) -> list[Path]:
    """Return the weight files of a model's folder, in order of path; a file is its own."""
    if path.is_file():
        return [path]
    endings = (*SAFE, *PICKLED, *OTHER)
    return sorted(file for file in path.rglob("*") if file.is_file() and file.suffix in endings)


def digests(path: Path, files: list[Path] | None = None) -> dict[str, str]:
    """Return path below `path` to sha256 (64 hex digits), for all weight files or for `files`."""
    weights = weight_files(path) if files is None else files
    return {_name(file, path): sha256(file) for file in weights}


def sha256(file: Path) -> str:
    """Return the sha256 of a file, read piece by piece: weights do not fit in memory twice."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _name(file: Path, path: Path) -> str:
    return file.name if file == path else file.relative_to(path).as_posix()
