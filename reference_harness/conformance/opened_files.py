"""Check which files an extractor opens: only weights and packages are expected."""

import os
import sys
import tempfile
from pathlib import Path

from reference_harness.loading.file_watch import WATCH, is_within, package_folders
from reference_harness.loading.loader import locate
from reference_harness.text import first_and_more

from .result import BrokenError
from .sequences import mixed_lengths
from .subject import Subject, call_code

CODE_ENDINGS = frozenset({".py", ".pyc", ".pyi", ".so", ".pth"})
"""Endings of files that an import opens, allowed in any folder."""
WEIGHT_ENDINGS = frozenset(
    {".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".h5", ".onnx", ".gguf"}
)
"""Endings of weights, allowed in any folder."""
DATA_ENDINGS = frozenset({
    ".csv", ".tsv", ".parquet", ".arrow", ".feather", ".jsonl", ".fa", ".fasta", ".fna", ".bed",
    ".vcf", ".db", ".sqlite",
})  # fmt: skip
"""Endings of data sets, reported even in a folder of weights, as no tokenizer needs any."""
SYSTEM_FOLDERS = ("/proc", "/sys", "/dev", "/etc", "/usr", "/lib", "/lib64", "/opt")
"""Folders of libraries, drivers, time zones and certificates."""


def files_read(subject: Subject) -> str:
    """Check that this process has opened only weights, packages and temporary files so far."""
    subject.embed(mixed_lengths())
    unexpected = [path for path in list(WATCH.opened) if not _is_expected(Path(path), subject)]
    if unexpected:
        data_files = [path for path in unexpected if _endings(Path(path)) & DATA_ENDINGS]
        listed_files = sorted(data_files or unexpected)
        content = "data" if data_files else "neither weights nor part of a package"
        msg = (
            f"the extractor opens {first_and_more(listed_files)}, which is {content}: an embedding "
            "must depend on the sequence and the weights alone; do not open this file, or put it "
            "into the folder of --model if it is part of the model"
        )
        raise BrokenError(msg, call_code(mixed_lengths()[:1], 1))
    return (
        "The extractor opens only weights, packages and temporary files, as far as Python can see."
    )


def _is_expected(path: Path, subject: Subject) -> bool:
    """Whether every extractor may open a file, or this one as a part of its model."""
    endings = _endings(path)
    if endings & CODE_ENDINGS or is_within(path, package_folders()):
        return True
    if endings & DATA_ENDINGS:
        return False
    module_folder = locate(subject.spec, subject.folder).resolve().parent
    own_paths = [module_folder, *named_paths(subject)]
    return (
        bool(endings & WEIGHT_ENDINGS)
        or is_within(path, own_paths)
        or is_within(path, _expected_folders())
    )


def _endings(path: Path) -> set[str]:
    """Return all endings of a file's name, such as ".csv" and ".gz"."""
    return {ending.lower() for ending in path.suffixes[-2:]}


def named_paths(subject: Subject) -> list[Path]:
    """Return the existing paths in the command, absolute: of the weights, and in options."""
    named = [subject.name_model, *(v for v in subject.options.values() if isinstance(v, str))]
    return [Path(text).resolve() for text in named if text and Path(text).exists()]


def _expected_folders() -> list[Path]:
    """Return the folders in which every extractor may open files.

    They are those of the system, temporary files, the user's caches and imported modules.
    """
    folders = [Path(folder) for folder in (*SYSTEM_FOLDERS, tempfile.gettempdir())]
    caches = ("HF_HOME", "HF_HUB_CACHE", "TORCH_HOME", "XDG_CACHE_HOME", "TRITON_CACHE_DIR")
    folders += [Path(os.environ[name]) for name in caches if os.environ.get(name)]
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 (Path.home raises where there is none)
    folders += [
        home / cache_name for cache_name in (".cache", ".config", ".local", ".triton", ".nv")
    ]
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    folders += {Path(file).parent for file in files if file}
    return [folder.resolve() for folder in folders]
