"""The fetch phase: network, no untrusted code. Weights are pinned, hashed, compared, looked over.

Of a safetensors file the header is read, by the format's own library; a pickle is never opened.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydantic_core

from geneb_ci.audit import storage
from geneb_ci.audit.commitment import Weights
from geneb_ci.common.errors import UsageProblem, WeightsRefused

COMMIT = re.compile(r"[0-9a-f]{40}")
PICKLED = frozenset({".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".npy", ".npz"})
PICKLE_LEVEL = 2
"""Sandbox level below which pickled weights are refused: opening one runs what its author wrote."""
WEIGHT_ENDINGS = frozenset({*PICKLED, ".safetensors", ".h5", ".msgpack", ".onnx"})
PATTERNS = ("*.json", "*.txt", "*.model", "*.vocab", "*.py")
"""Files of a Hub repository that are fetched beside the weight files that the commitment names."""
CONFIG_MAX = 1 << 26
"""Bytes of one JSON file of a model: the largest vocabularies in use have a few million."""


def fetch(weights: Weights, folder: Path, *, endpoint: str | None = None) -> Path:
    """Download the committed revision of a Hub repository into `folder`, and give the folder.

    `endpoint` is another Hub than huggingface.co. Raises WeightsRefused for a revision that can
    move, or when the Hub cannot give it.
    """
    if weights.kind != "huggingface":
        raise UsageProblem(
            f"weights of kind {weights.kind!r} are not fetched from a Hub",
            "name the folder that holds them",
        )
    if weights.revision is None or not COMMIT.fullmatch(weights.revision):
        raise WeightsRefused(
            f"revision {weights.revision!r} of {weights.location} can move",
            "commit to the 40 hex digits of a commit",
        )
    from huggingface_hub import HfApi  # noqa: PLC0415 (a second to import)
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError  # noqa: PLC0415

    storage.limit(storage.DOWNLOAD_LIMITS)
    try:
        HfApi(endpoint=endpoint, token=False).snapshot_download(
            weights.location,
            revision=weights.revision,
            allow_patterns=[*PATTERNS, *sorted(weights.files)],
            local_dir=folder,
        )
    except (HfHubHTTPError, LocalEntryNotFoundError, ValueError) as error:
        raise WeightsRefused(
            f"{weights.location} at {weights.revision} cannot be fetched: {error}",
            "see that the repository is public and still has that commit",
        ) from error
    except (OSError, RuntimeError) as error:
        told = storage.told_by(error)
        if isinstance(told, storage.Told):
            raise WeightsRefused(
                f"{weights.location} at {weights.revision} cannot be fetched: {told.what}",
                "run the command again later",
            ) from error
        raise (told or error) from error
    return folder


def verify(folder: Path, weights: Weights, level: int) -> dict[str, str]:
    """Hold a folder of weights against the commitment; gives name to sha256 of every file in it.

    Raises WeightsRefused for a link, for a weight file that is missing, other than committed or
    not committed to, for a pickle below sandbox level 2, for a malformed safetensors header, and
    for a configuration that fetches code from another repository.
    """
    files = _files(folder)
    digests = {name: _sha256(file) for name, file in files.items()}
    for name, expected in sorted(weights.files.items()):
        found = digests.get(name)
        if found != expected:
            raise WeightsRefused(
                f"{name}: sha256 {found or 'of no file'}, the commitment has {expected}",
                "fetch the committed revision; other weights are another submission",
            )
    for name, file in files.items():
        if file.suffix in WEIGHT_ENDINGS and name not in weights.files:
            raise WeightsRefused(
                f"{name} is a weight file that the commitment does not name",
                "remove it, or commit to it before the draw",
            )
        if file.suffix in PICKLED and level < PICKLE_LEVEL:
            raise WeightsRefused(
                f"{name} may hold a pickle, and opening one runs code: sandbox level {level}",
                f"audit at level {PICKLE_LEVEL} or above, or convert it to safetensors",
            )
        if file.suffix == ".safetensors":
            _check_safetensors(file, name)
        if file.suffix == ".json":
            _check_config(file, name)
    if weights.kind != "none" and not weights.files:
        raise WeightsRefused(
            "the commitment names no weight file", "submissions list the digest of each"
        )
    return digests


def _files(folder: Path) -> dict[str, Path]:
    """Return name to path of every file; what the Hub's client keeps for itself is left out."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.startswith(".cache/"):
            continue
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise WeightsRefused(
                f"{name} is a link or a special file", "put the file itself in its place"
            )
        if path.is_file():
            found[name] = path
    return found


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _check_config(file: Path, name: str) -> None:
    """Refuse `auto_map` entries that name another repository, which no revision here pins.

    Read by the parser that transformers uses, so that both see the same value.
    """
    if file.stat().st_size > CONFIG_MAX:
        raise WeightsRefused(f"{name} has more than {CONFIG_MAX:,} bytes", "remove or shorten it")
    try:
        value = pydantic_core.from_json(file.read_bytes())  # it bounds the depth by itself
    except ValueError as error:
        raise WeightsRefused(f"{name} is no JSON: {error}", "repair or remove it") from error
    for text in _mapped(value):
        if "--" in text:
            raise WeightsRefused(
                f"{name}: auto_map names {text!r}, code of another repository that nothing pins",
                "copy that module beside the weights and name it without `--`",
            )


def _mapped(value: Any) -> Iterator[str]:  # noqa: ANN401 (JSON has no narrower type)
    """Return every text below an `auto_map`, wherever it stands."""
    waiting = [(value, False)]
    while waiting:
        one, inside = waiting.pop()
        if isinstance(one, dict):
            waiting += [(inner, inside or key == "auto_map") for key, inner in one.items()]
        elif isinstance(one, list):
            waiting += [(inner, inside) for inner in one]
        elif inside and isinstance(one, str):
            yield one


def _check_safetensors(file: Path, name: str) -> None:
    """Refuse a header that is too long, that lies, or whose tensors overlap or leave gaps."""
    from safetensors import SafetensorError, safe_open  # noqa: PLC0415 (not part of the core)

    try:
        with safe_open(file, framework="numpy"):
            pass
    except (SafetensorError, OSError) as error:
        raise WeightsRefused(
            f"{name} is no sound safetensors file: {error}", "save the weights again"
        ) from error
