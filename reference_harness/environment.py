"""The environment of a run: harness commit, packages, processor, time."""

import contextlib
import functools
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
from importlib.metadata import Distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .extractors.base import BaseEmbeddingExtractor

if TYPE_CHECKING:  # the process in a sandbox needs no models of files
    from .formats.run_record import HarnessRef

DISTRIBUTION = "geneb-ci"
"""Name under which this program is installed."""
PACKAGES = (
    "numpy", "scipy", "scikit-learn", "threadpoolctl", "torch", "transformers", "tokenizers",
    "safetensors", "huggingface-hub",
)  # fmt: skip
"""Packages whose version can change an embedding or a score, recorded if installed."""
UNRECORDED_DISTRIBUTIONS = (DISTRIBUTION, "huggingface-hub", "ray", "msgpack", "protobuf", "psutil")
"""Distributions that move files and text and change no number. They and all that they require are
not recorded unless in `PACKAGES`, so that neither a download of weights nor a cluster changes the
identity of a run. Ray's requirements are listed here too, as they may be installed without Ray."""
SHORT_SEQUENCE = "ACGT" * 16
"""A sequence that every model accepts; embedding it imports what a forward pass needs."""
GIT_SECONDS = 10  # git status of this repository takes well under a second
"""Time limit of a git command; `git status` of this repository takes well under a second."""


def packages() -> dict[str, str]:
    """Return the version of Python and of each of `PACKAGES` that is installed, by name."""
    return {"python": platform.python_version()} | _versions(PACKAGES)


def _versions(names: Iterable[str]) -> dict[str, str]:
    """Return the version of each distribution that is installed, by normalised name."""
    distributions = _distributions()
    return {
        name: version
        for name in names
        if name in distributions
        for version in _metadata_values(distributions[name], "Version")
    }


def _distributions() -> dict[str, Distribution]:
    """Return the installed distributions, those that are first on the path, by normalised name."""
    distributions: dict[str, Distribution] = {}
    for folder in map(os.path.abspath, sys.path):
        with contextlib.suppress(OSError):  # an entry of the path need not exist
            for distribution in _distributions_in(folder, Path(folder).stat().st_mtime_ns):
                for name in _metadata_values(distribution, "Name"):
                    distributions.setdefault(_normalised_name(name), distribution)
    return distributions


@functools.cache
def _distributions_in(folder: str, _mtime_ns: int) -> tuple[Distribution, ...]:
    """Return the distributions of a folder that was last changed at a time."""
    return tuple(importlib.metadata.distributions(path=[folder]))


@functools.cache
def _metadata_values(distribution: Distribution, field: str) -> tuple[str, ...]:
    """Return the values of a field of a distribution's metadata.

    importlib.metadata parses the whole file, which takes twenty times as long, and this is called
    for every distribution at the start of each run and worker.
    """
    metadata = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
    return tuple(re.findall(rf"^{field}: *(.*)$", metadata.partition("\n\n")[0], re.MULTILINE))


def packages_of(extractor: BaseEmbeddingExtractor) -> dict[str, str]:
    """Return `packages()` and the version of every other distribution that the extractor uses.

    A distribution counts as used if one of its modules is imported after the built extractor has
    embedded a short sequence. A failure to embed it is ignored, as the first task will fail too.
    """
    with contextlib.suppress(Exception):
        extractor.extract_embeddings([SHORT_SEQUENCE], batch_size=1)
    modules = {name.partition(".")[0] for name in sys.modules}
    versions = packages()
    known_names = _with_requirements(UNRECORDED_DISTRIBUTIONS) | versions.keys()
    other_names = {
        name
        for name, distribution in _distributions().items()
        # Modules last: the list of torch's files alone takes longer than all other names.
        if name not in known_names and modules & _modules_of(distribution)
    }
    return versions | _versions(sorted(other_names))


@functools.cache
def _modules_of(distribution: Distribution) -> set[str]:
    """Return the names of a distribution's top-level modules.

    This is five times as fast as importlib.metadata's `packages_distributions`.
    """
    if modules := (distribution.read_text("top_level.txt") or "").split():
        return set(modules)
    first_parts = set(_FIRST_PATH_PART.findall(distribution.read_text("RECORD") or ""))
    return {
        first_part if is_folder else inspect.getmodulename(first_part) or ""
        for first_part, is_folder in first_parts
    }


def _with_requirements(distributions: Iterable[str]) -> set[str]:
    """Return distributions with all that they require, without extras."""
    installed, required = _distributions(), set[str]()
    pending_names = list(distributions)
    while pending_names:
        name = pending_names.pop()
        if name in required:
            continue
        required.add(name)
        for line in _metadata_values(installed[name], "Requires-Dist") if name in installed else ():
            requirement, _, condition = line.partition(";")
            if "extra" not in condition and (match := _DISTRIBUTION_NAME.match(requirement)):
                pending_names.append(_normalised_name(match.group()))
    return required


_FIRST_PATH_PART = re.compile(r'^"?([^,/\n]*)(/?)', re.MULTILINE)
"""The first part of the path on each line of a RECORD, and "/" if it is a folder."""
_DISTRIBUTION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""The name of a distribution at the beginning of a requirement."""


def _normalised_name(name: str) -> str:
    """Return the normalised name of a distribution, as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def harness() -> "HarnessRef":
    """Return the harness's version; in a checkout also the commit, and whether files differ."""
    folder = Path(__file__).resolve().parent
    commit = _git(folder, "rev-parse", "HEAD") if _is_tracked(folder) else None
    changed = _git(folder, "status", "--porcelain", "--", ".", "../schemas") if commit else ""
    try:
        version = importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        version = "unknown"
    from .formats.run_record import HarnessRef

    return HarnessRef(version=version, commit=commit, dirty=changed != "")


def _is_tracked(folder: Path) -> bool:
    """Whether git tracks this module; a repository may also contain an untracked installation."""
    return bool(_git(folder, "ls-files", "--", Path(__file__).name))


def git_refusal() -> str:
    """Return git's message if it finds no commit of this checkout; "" outside a checkout."""
    folder = Path(__file__).resolve().parent
    if "site-packages" in folder.parts:
        return ""
    refusal = _git_output_and_error(folder, "rev-parse", "HEAD")[1]
    return "" if "not a git repository" in refusal else refusal


def _git(folder: Path, *words: str) -> str | None:
    """Return the output of a git command in a folder; None if it fails."""
    output, refusal = _git_output_and_error(folder, *words)
    return None if refusal else output


def _git_output_and_error(folder: Path, *words: str) -> tuple[str, str]:
    """Return the output of git and "", or "" and the reason why it failed."""
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
    """Return the name of the accelerator of a torch device, else of the processor."""
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
    """Allow or forbid TF32 in matrix products and convolutions, if torch is imported."""
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        # Both settings: if they contradict each other, torch raises an error when they are read.
        torch.set_float32_matmul_precision("high" if allowed else "highest")
        torch.backends.cuda.matmul.allow_tf32 = allowed
        torch.backends.cudnn.allow_tf32 = allowed


def tf32(device: str) -> bool:
    """Return whether embeddings on a device may have been computed with TF32 (11-bit mantissa)."""
    if not device.startswith("cuda") or "torch" not in sys.modules:
        return False
    return any(name.endswith("allow_tf32") for name in _torch_flags_on(sys.modules["torch"]))


def _torch_flags_on(torch: Any) -> list[str]:  # the module
    """Return the names of `TORCH_FLAGS` that are on, or whose state torch cannot report."""

    def is_on(flag: str) -> bool:
        try:
            return bool(operator.attrgetter(flag)(torch.backends))
        except RuntimeError:  # set by the older and the newer of torch's interfaces
            return True

    return [name for name in TORCH_FLAGS if is_on(name)]


def _matmul_precision(torch: Any) -> str:  # the module
    """Return torch's precision of matrix products; `MIXED` if devices differ."""
    try:
        return str(torch.get_float32_matmul_precision())
    except RuntimeError:  # as above
        return MIXED


def set_exact() -> None:
    """Make the result of GPU kernels depend only on their input, if torch is imported.

    Deterministic kernels are chosen, with a warning where there is none, and sums in half precision
    are rounded once. The kernel may still depend on the shape of a batch, which "exact" batching
    does not fix: its batches have equal lengths, but not equal numbers of sequences.
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


TORCH_FLAGS = (
    "cuda.matmul.allow_tf32",
    "cudnn.allow_tf32",
    "cudnn.benchmark",
    "cudnn.deterministic",
    "cuda.matmul.allow_bf16_reduced_precision_reduction",
    "cuda.matmul.allow_fp16_reduced_precision_reduction",
)
"""Boolean settings below `torch.backends` that select kernels and their precision."""
MIXED = "mixed"
"""Recorded as the precision of matrix products if it differs between kinds of device."""
ATTENTION_KERNELS = ("flash", "mem_efficient", "math", "cudnn")
"""Kernels of torch's scaled dot-product attention, which chooses among the allowed ones."""


def numerics(extractor: object) -> dict[str, Any]:
    """Return the settings of torch that select kernels, and the attention of the model's config.

    Return {} if torch is not imported.
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
        "flags": _torch_flags_on(torch),
    }


def now() -> str:
    """Return the time in UTC, to the second, in the format of records."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
