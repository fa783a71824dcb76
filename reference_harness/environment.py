"""The surroundings of a run: harness commit, packages, processor, time."""

import contextlib
import importlib.metadata
import inspect
import operator
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .extractors.base import BaseEmbeddingExtractor

if TYPE_CHECKING:  # the process in a sandbox needs no models of files
    from .formats.run_record import HarnessRef

DISTRIBUTION = "geneb-ci"
PACKAGES = (
    "numpy", "scipy", "scikit-learn", "threadpoolctl", "torch", "transformers", "tokenizers",
    "safetensors", "huggingface-hub",
)  # fmt: skip
"""Packages whose version can move an embedding or a score, recorded wherever they are installed."""
OTHER_DISTRIBUTIONS = (DISTRIBUTION, "huggingface-hub", "ray", "msgpack", "protobuf", "psutil")
"""Distributions that bring what moves files and text but no number: all that they require is left
out, if it is not in `PACKAGES`. The Hub's client loads its own only when it downloads, and a second
run, whose weights are here, is the same run; so is one on a cluster. Ray's own are named, for they
are left out where it is not installed, too."""
SHORT = "ACGT" * 16
"""A sequence that every model takes: what a forward pass imports is loaded once it is embedded."""
GIT_SECONDS = 10  # a status of this repository takes well under one


def packages() -> dict[str, str]:
    """Return Python's version and that of each of `PACKAGES` that is installed."""
    return {"python": platform.python_version()} | _versions(PACKAGES)


def _versions(names: Iterable[str]) -> dict[str, str]:
    """Return the version of each distribution that is installed."""
    versions = {}
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            for version in _metadata_values(importlib.metadata.distribution(name), "Version"):
                versions[name] = version
    return versions


def _metadata_values(distribution: importlib.metadata.Distribution, field: str) -> list[str]:
    """Return the values of a field of its metadata.

    The library parses all of it for each, the description too: twenty times the time, at each start
    of a run and of each of its workers.
    """
    text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
    return re.findall(rf"^{field}: *(.*)$", text.partition("\n\n")[0], re.MULTILINE)


def packages_of(extractor: BaseEmbeddingExtractor) -> dict[str, str]:
    """Return `packages` and every other distribution that the extractor uses, by name.

    Measured, not listed: those of which a module is loaded in this process once the extractor,
    which is built, has embedded a short sequence. A failure to embed it is ignored, as the first
    task will show it.
    """
    with contextlib.suppress(Exception):
        extractor.extract_embeddings([SHORT], batch_size=1)
    modules = {name.partition(".")[0] for name in sys.modules}
    installed = importlib.metadata.distributions()
    users = (package for package in installed if modules & _modules_of(package))
    used = {_canonical(name) for package in users for name in _metadata_values(package, "Name")}
    versions = packages()
    more = used - _required(OTHER_DISTRIBUTIONS) - versions.keys()
    return versions | _versions(sorted(more))


def _modules_of(distribution: importlib.metadata.Distribution) -> set[str]:
    """Return the names of its modules at the top, as `packages_distributions` finds them.

    That one makes an object of every file: five times the time.
    """
    if names := (distribution.read_text("top_level.txt") or "").split():
        return set(names)
    firsts = set(_FIRST.findall(distribution.read_text("RECORD") or ""))
    return {
        first if is_folder else inspect.getmodulename(first) or "" for first, is_folder in firsts
    }


def _required(names: Iterable[str]) -> set[str]:
    """Return distributions with all that they require, extras aside."""
    required: set[str] = set()
    open_names = list(names)
    while open_names:
        name = open_names.pop()
        if name in required:
            continue
        required.add(name)
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            for line in _metadata_values(importlib.metadata.distribution(name), "Requires-Dist"):
                requirement, _, condition = line.partition(";")
                if "extra" not in condition and (match := _NAME.match(requirement)):
                    open_names.append(_canonical(match.group()))
    return required


_FIRST = re.compile(r'^"?([^,/\n]*)(/?)', re.MULTILINE)
"""The first part of the path on each line of a RECORD, and whether it is a folder."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def _canonical(name: str) -> str:
    """Return the name of a distribution in its one spelling, as indexes of packages compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def harness() -> "HarnessRef":
    """Return version and, from a checkout, commit and whether the working tree differs from it."""
    folder = Path(__file__).resolve().parent
    commit = _git(folder, "rev-parse", "HEAD") if _tracked(folder) else None
    changed = _git(folder, "status", "--porcelain", "--", ".", "../schemas") if commit else ""
    try:
        version = importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        version = "unknown"
    from .formats.run_record import HarnessRef

    return HarnessRef(version=version, commit=commit, dirty=changed != "")


def _tracked(folder: Path) -> bool:
    """Whether git tracks this very file: an installation below someone's repository is not it."""
    return bool(_git(folder, "ls-files", "--", Path(__file__).name))


def git_refusal() -> str:
    """Return why git names no commit of this checkout, in its words; "" where this is none."""
    folder = Path(__file__).resolve().parent
    if "site-packages" in folder.parts:
        return ""
    refusal = _asked_git(folder, "rev-parse", "HEAD")[1]
    return "" if "not a git repository" in refusal else refusal


def _git(folder: Path, *words: str) -> str | None:
    output, refusal = _asked_git(folder, *words)
    return None if refusal else output


def _asked_git(folder: Path, *words: str) -> tuple[str, str]:
    """Return the output of git, and why there is none, or ""."""
    try:
        process = subprocess.run(  # noqa: S603 - fixed words, no shell
            ["git", "-C", str(folder), *words],  # noqa: S607 - git is where the user has it
            capture_output=True, text=True, timeout=GIT_SECONDS, check=False,
            env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return "", str(error)
    if process.returncode:
        return "", " ".join(process.stderr.split()) or f"exit code {process.returncode}"
    return process.stdout.strip(), ""


def hardware(device: str) -> str:
    """Return the model of the accelerator of a torch device, else of the processor."""
    if device.startswith("cuda") and "torch" in sys.modules:
        return str(sys.modules["torch"].cuda.get_device_name(device))
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def set_tf32(*, allowed: bool) -> None:
    """Allow or forbid TF32 in matrix products and convolutions, where torch is in use."""
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        # Not `allow_tf32` alone: beside another precision, torch refuses to say which it has.
        torch.set_float32_matmul_precision("high" if allowed else "highest")
        torch.backends.cuda.matmul.allow_tf32 = allowed
        torch.backends.cudnn.allow_tf32 = allowed


def tf32(device: str) -> bool:
    """Return whether embeddings on a device may have been computed with TF32's 11 bits."""
    if not device.startswith("cuda") or "torch" not in sys.modules:
        return False
    return any(name.endswith("allow_tf32") for name in _flags_on(sys.modules["torch"]))


def _flags_on(torch: Any) -> list[str]:  # the module
    """Return the names of FLAGS that are on, or may be: where torch does not say."""

    def is_on(name: str) -> bool:
        try:
            return bool(operator.attrgetter(name)(torch.backends))
        except RuntimeError:  # set by the older and the newer of torch's interfaces
            return True

    return [name for name in FLAGS if is_on(name)]


def _matmul_precision(torch: Any) -> str:  # the module
    try:
        return str(torch.get_float32_matmul_precision())
    except RuntimeError:  # as above
        return MIXED


def set_exact() -> None:
    """Make the kernels of a GPU a function of their input, where torch is in use.

    Of those that sum in any order the deterministic one is taken, with a warning where there is
    none, and sums in half precision are rounded once. What is left is the choice of a kernel by
    the shape of a batch: batches of equal lengths have the same columns, not the same embeddings.
    """
    if "torch" not in sys.modules:
        return
    torch = sys.modules["torch"]
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # as cuBLAS asks for it
    torch.use_deterministic_algorithms(True, warn_only=True)  # noqa: FBT003 - its own signature
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    set_tf32(allowed=False)


FLAGS = (
    "cuda.matmul.allow_tf32",
    "cudnn.allow_tf32",
    "cudnn.benchmark",
    "cudnn.deterministic",
    "cuda.matmul.allow_bf16_reduced_precision_reduction",
    "cuda.matmul.allow_fp16_reduced_precision_reduction",
)
"""Names below `torch.backends`: what chooses kernels and their precision, on or off."""
MIXED = "mixed"
"""Precision of matrix products that differs between kinds of device."""
ATTENTION_KERNELS = ("flash", "mem_efficient", "math", "cudnn")
"""Of torch's scaled dot-product attention; which of those allowed is taken depends on the input."""


def numerics(extractor: object) -> dict[str, Any]:
    """Return the settings of torch that choose kernels, and the attention of the model's config.

    Empty where torch is not in use.
    """
    if "torch" not in sys.modules:
        return {}
    torch = sys.modules["torch"]
    config = getattr(getattr(extractor, "model", None), "config", None)
    attention = getattr(config, "_attn_implementation", None)
    return {
        "attention": attention if isinstance(attention, str) else "",
        "attention_kernels": [
            name
            for name in ATTENTION_KERNELS
            if getattr(torch.backends.cuda, f"{name}_sdp_enabled", bool)()
        ],
        "deterministic": bool(torch.are_deterministic_algorithms_enabled()),
        "matmul_precision": _matmul_precision(torch),
        "compiled": getattr(extractor, "compiled", False) is True,
        "flags": _flags_on(torch),
    }


def now() -> str:
    """Return the time in UTC, to the second, as records write it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
