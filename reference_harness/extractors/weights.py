"""The weight files of a model, and their digests."""

from pathlib import Path

from reference_harness.formats.files import file_sha256

SAFE = (".safetensors",)
PICKLED = (".bin", ".pt", ".pth", ".ckpt")
OTHER_FORMATS = (".h5", ".msgpack", ".onnx", ".npz", ".npy")


def weight_files(path: Path) -> list[Path]:
    """Return the weight files below a folder, sorted by path; for a file, only itself."""
    if path.is_file():
        return [path]
    endings = (*SAFE, *PICKLED, *OTHER_FORMATS)
    return sorted(file for file in path.rglob("*") if file.is_file() and file.suffix in endings)


def digests(path: Path, files: list[Path] | None = None) -> dict[str, str]:
    """Return the sha256 of `files`, or of all weight files, by path relative to `path`."""
    weights = weight_files(path) if files is None else files
    return {_name(file, path): file_sha256(file) for file in weights}


def _name(file: Path, path: Path) -> str:
    return file.name if file == path else file.relative_to(path).as_posix()
