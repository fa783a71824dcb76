"""Downloads the weights of an audit at a pinned revision, and verifies them by the commitment.

This phase has network access and runs no untrusted code. Its process has no limits, so sizes are
checked before a file is downloaded or read. Each JSON file is read once, and parsed only if it is
as short as a configuration. A weight file is hashed as a stream; the header of a safetensors file
is read by the library of that format. A pickle is never opened here.
"""

import hashlib
import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from geneb_ci.audit.commitment import Weights
from geneb_ci.audit.rerun import fetching
from geneb_ci.common import download
from geneb_ci.common.errors import UsageProblem, WeightsRefused
from geneb_ci.common.finding import first_and_more
from geneb_ci.models.entry import FILE_NAME_PATTERN
from reference_harness.formats.files import (
    NotReadable,
    file_line_ends_clause,
    file_sha256,
    read_json,
    read_regular,
)
from reference_harness.formats.hub_storage import (
    XET_DOWNLOAD_SETTINGS,
    StorageFailure,
    set_xet_environment,
    storage_failure,
)
from reference_harness.formats.recognition import ENCODING, disguise_of
from reference_harness.formats.text import Say, quoted, silent

COMMIT_PATTERN = re.compile(r"[0-9a-f]{40}")
"""The id of a git commit."""
PICKLE_ENDINGS = frozenset(
    {".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".npy", ".npz"}
)
"""Endings of files that may contain a pickle."""
PICKLE_LEVEL = 2
"""Sandbox level below which pickled weights are refused: opening a pickle runs its code."""
WEIGHT_ENDINGS = frozenset({*PICKLE_ENDINGS, ".safetensors", ".h5", ".msgpack", ".onnx"})
"""Endings of weight files: each such file has to be named in the commitment."""
HUB_PATTERNS = ("*.json", "*.txt", "*.model", "*.vocab", "*.py")
"""Files of a Hub repository that are downloaded with the committed weight files."""
MANUAL_FETCH_FIX = (
    "fetch the files by hand and name their folder: --weights DIR; digests are compared"
)
CONFIG_BYTES_MAX = 1 << 20
"""Largest size of a JSON file that is parsed, in bytes: configurations have a few kB."""
JSON_VALUES_MAX = 200_000
"""Largest number of values in a JSON file: a third of those that `CONFIG_BYTES_MAX` can hold."""
JSON_BYTES_MAX = 1 << 26
"""Largest size of a JSON file, parsed or not, in bytes: twice that of the largest vocabularies."""
UNCOMMITTED_BYTES_MAX = 1 << 28
"""Largest size, all together, of files that the commitment does not name, in bytes: vocabularies,
code, configurations."""
FILES_MAX = 1_000
"""Largest number of files of a model: the largest models have 200."""
LISTED_FILES_MAX = 10 * FILES_MAX
"""Largest number of files of a repository or folder, ignored files included."""
SAFETENSORS_HEADER_BYTES_MAX = 1 << 24
"""Largest header of a safetensors file, in bytes: a tensor takes about 100."""
_HEADER_LENGTH_BYTES = 8
"""Number of bytes, at the start of a safetensors file, that contain the length of the header."""
_AUTO_MAP_PATTERN = re.compile(rb"auto_map|\\u00(?:5[fF]|6[1dDfF]|7[045])")
"""The key auto_map, or a JSON escape of one of its letters."""

NO_WEIGHT_FILE = "the commitment names no weight file"
NAME_FILES_FIX = (
    "commit with --weights NAME=SHA256 for each weight file, or ask for a submission that lists "
    "its weight files"
)


def fetch_weights(
    weights: Weights, folder: Path, *, endpoint: str | None = None, say: Say = silent
) -> Path:
    """Download the committed files that `folder` lacks, and return the folder.

    From a Hub repository, the committed revision is downloaded, with configurations; any other file
    comes from its committed address, and an interrupted download is continued. `endpoint` is the
    address of another Hub than huggingface.co; `say` gets a line for each file. Raises UsageProblem
    for files without an address; WeightsRefused for a revision that is not a commit, for too many
    or too large files, and for files that are not delivered or not the committed ones.
    """
    if weights.kind != "huggingface":
        return _fetch_files(weights, folder, say)
    if weights.revision is None or not COMMIT_PATTERN.fullmatch(weights.revision):
        raise WeightsRefused(
            f"revision {weights.revision!r} of {weights.location} is not a commit, so its files "
            "can change",
            "commit to a revision of 40 hex digits",
        )
    from huggingface_hub import HfApi, RepoFile  # a second to import
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, LocalEntryNotFoundError
    from huggingface_hub.utils import filter_repo_objects

    set_xet_environment(XET_DOWNLOAD_SETTINGS)
    api, patterns = HfApi(endpoint=endpoint, token=False), [*HUB_PATTERNS, *sorted(weights.files)]
    try:
        repository_files = api.list_repo_tree(
            weights.location, revision=weights.revision, recursive=True
        )
        listing = list(itertools.islice(repository_files, LISTED_FILES_MAX + 1))
        _refuse_too_many_files(len(listing), LISTED_FILES_MAX)
        files = (entry for entry in listing if isinstance(entry, RepoFile))
        chosen_files = filter_repo_objects(
            files, allow_patterns=patterns, key=lambda file: file.path
        )
        _refuse_large_files({file.path: file.size for file in chosen_files}, weights)
        api.snapshot_download(
            weights.location,
            revision=weights.revision,
            allow_patterns=patterns,
            local_dir=folder,
        )
    except (HfHubHTTPError, LocalEntryNotFoundError, ValueError) as error:
        message = str(error).partition("\n")[0]
        advice = "check the network, and that the repository is public and still has that commit"
        if isinstance(error, GatedRepoError):
            message, advice = (
                "the repository is gated",
                f"accept the terms of {weights.location} on the Hub; or {MANUAL_FETCH_FIX}",
            )
        raise WeightsRefused(
            f"{weights.location} at {weights.revision} cannot be fetched: {message}", advice
        ) from error
    except (OSError, RuntimeError) as error:
        failure = storage_failure(error)
        if isinstance(failure, StorageFailure):
            raise WeightsRefused(
                (
                    f"{weights.location} at {weights.revision} cannot be fetched: "
                    f"{failure.description}"
                ),
                "run the command again later",
            ) from error
        raise (failure or error) from error
    return folder


def provide_weights(
    weights: Weights, folder: Path, level: int, say: Say = silent
) -> dict[str, str]:
    """Download the committed files that `folder` lacks, and verify all of them.

    Returns the SHA-256 of every file in `folder`, by its name. Raises what `fetch_weights` and
    `verify_weights` raise.
    """
    if not folder.is_dir() or any(not (folder / name).is_file() for name in weights.files):
        fetch_weights(weights, folder, say=say)
    return verify_weights(folder, weights, level)


def _fetch_files(weights: Weights, folder: Path, say: Say) -> Path:
    """Download files from their addresses; an archive with several of them is downloaded once."""
    for name in weights.files:
        if not FILE_NAME_PATTERN.fullmatch(name) or ".." in name.split("/"):
            raise WeightsRefused(
                f"{quoted(name)} is not the name of a file below the folder of weights",
                "make a new commitment, with the names under which the files are published",
            )
    missing_files = [name for name in weights.files if not (folder / name).is_file()]
    files_without_address = [name for name in missing_files if name not in weights.addresses]
    if not weights.files:
        raise UsageProblem(NO_WEIGHT_FILE, NAME_FILES_FIX)
    if files_without_address:
        raise UsageProblem(
            f"the commitment has no address of {first_and_more(files_without_address)}, only "
            f"{weights.kind} {weights.location}",
            MANUAL_FETCH_FIX,
        )
    archives: dict[str, dict[str, str]] = {}
    for name in missing_files:
        address, _, member = weights.addresses[name].partition("#")
        if member:
            archives.setdefault(address, {})[member] = name
        else:
            say(f"fetching {name} from {urlsplit(address).netloc}")
            download.download(
                address, folder / name, weights.files[name], fetching.WEIGHTS_DOWNLOAD
            )
    for address, members in archives.items():
        say(f"fetching {first_and_more(list(members.values()))} from {urlsplit(address).netloc}")
        fetching.download_members(
            address,
            {member: folder / name for member, name in members.items()},
            {member: weights.files[name] for member, name in members.items()},
        )
    return folder


def verify_weights(folder: Path, weights: Weights, level: int) -> dict[str, str]:
    """Verify a folder of weights by the commitment; return the SHA-256 of every file, by name.

    Raises WeightsRefused for a link, for too many or too large files, for a weight file that is
    missing, changed or not in the commitment, for a pickle below sandbox level 2, for a malformed
    safetensors header, and for a configuration that names code of another repository.
    """
    files = _files_by_name(folder)
    _refuse_large_files({name: file.stat().st_size for name, file in files.items()}, weights)
    digests, configurations = _digests_and_configurations(files)
    for name, expected in sorted(weights.files.items()):
        digest = digests.get(name)
        if digest != expected:
            raise WeightsRefused(
                f"{name}: sha256 {digest}, expected {expected} as in the commitment"
                f"{file_line_ends_clause(files[name], expected)}"
                if digest
                else f"{name}: there is no such file, expected sha256 {expected} as in the "
                "commitment",
                (digest and _no_weights_fix(files[name]))
                or "download the committed revision, or ask for a submission with these weights",
            )
    for name, file in files.items():
        if file.suffix in WEIGHT_ENDINGS and name not in weights.files:
            raise WeightsRefused(
                f"{name} is a weight file that the commitment does not name",
                f"remove {name}, or name {name} in the submission and make a new commitment",
            )
        if file.suffix in PICKLE_ENDINGS and level < PICKLE_LEVEL:
            raise WeightsRefused(
                f"{name} may contain a pickle, and loading a pickle runs code: the sandbox has "
                f"level {level}, expected {PICKLE_LEVEL} or above",
                f"audit with --level {PICKLE_LEVEL}, or ask for weights in safetensors",
            )
        if file.suffix == ".safetensors":
            _check_safetensors(file, name)
    for name, raw in configurations.items():
        _check_config(raw, name, weights, files)
    if weights.kind != "none" and not weights.files:
        raise WeightsRefused(NO_WEIGHT_FILE, NAME_FILES_FIX)
    return digests


def _digests_and_configurations(
    files: Mapping[str, Path],
) -> tuple[dict[str, str], dict[str, bytes]]:
    """Return the SHA-256 of each file and the content of each configuration, both by name."""
    digests, configurations = {}, {}
    for name, file in files.items():
        if file.suffix != JSON_SUFFIX:
            digests[name] = file_sha256(file)
            continue
        raw = _json_bytes(file, name)
        digests[name] = hashlib.sha256(raw).hexdigest()
        if len(raw) <= CONFIG_BYTES_MAX:
            configurations[name] = raw
    return digests, configurations


def _no_weights_fix(file: Path) -> str:
    """Return the fix for a file that contains no weights, such as a pointer of git LFS.

    Returns "" if the kind of the file is not recognised.
    """
    if file.stat().st_size > JSON_BYTES_MAX:
        return ""
    disguise = disguise_of(file.read_bytes(), markup=True)
    is_text = disguise is not None and disguise.kind != ENCODING
    return f"it {disguise.predicate}: {disguise.fix}" if disguise is not None and is_text else ""


def _files_by_name(folder: Path) -> dict[str, Path]:
    """Return the path of each file in a folder, by name, without the cache of the Hub's client.

    Raises WeightsRefused for a link, since the sandbox contains only this folder.
    """
    paths_by_name = {}
    paths = list(itertools.islice(folder.rglob("*"), LISTED_FILES_MAX + 1))
    _refuse_too_many_files(len(paths), LISTED_FILES_MAX)
    for path in sorted(paths):
        name = path.relative_to(folder).as_posix()
        if name.startswith(".cache/"):
            continue
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise WeightsRefused(
                f"{name} is a link or a special file, expected a regular file",
                "replace it by the file itself: `cp -rL` copies the files that links point to, and "
                "`hf download --local-dir DIR` makes no links",
            )
        if path.is_file():
            paths_by_name[name] = path
    return paths_by_name


def _refuse_too_many_files(count: int, limit: int) -> None:
    """Raise WeightsRefused if the number of files exceeds a limit."""
    if count > limit:
        raise WeightsRefused(
            f"the weights have {count:,} files or more, expected at most {limit:,}",
            "ask for a repository with only the files of this model, or download these files by "
            "hand and name their folder: --weights DIR",
        )


def _refuse_large_files(sizes: Mapping[str, int], weights: Weights) -> None:
    """Raise WeightsRefused for too many or too large files; `sizes` is name to bytes."""
    _refuse_too_many_files(len(sizes), FILES_MAX)
    for name, size in sizes.items():
        limit = JSON_BYTES_MAX if name.endswith(JSON_SUFFIX) else download.DOWNLOAD_BYTES_MAX
        if size > limit:
            raise WeightsRefused(
                f"{name} has {size:,} bytes, expected at most {limit:,}",
                "ask the contributor for smaller files"
                if name in weights.files
                else "ask for a repository, or name a folder, without this file",
            )
    other_sizes = {name: size for name, size in sizes.items() if name not in weights.files}
    if (total := sum(other_sizes.values())) > UNCOMMITTED_BYTES_MAX:
        largest_file = max(other_sizes, key=other_sizes.__getitem__)
        raise WeightsRefused(
            f"files that the commitment does not name have {total:,} bytes in all, the largest is "
            f"{largest_file}; expected at most {UNCOMMITTED_BYTES_MAX:,}",
            "remove files that the model does not need, or name them in the submission and make "
            "a new commitment",
        )


JSON_SUFFIX = ".json"


def _json_bytes(file: Path, name: str) -> bytes:
    """Return the bytes of a JSON file of a model.

    Raises WeightsRefused for a file that is longer than a configuration and may name code.
    """
    try:
        raw = read_regular(file, JSON_BYTES_MAX)
    except NotReadable as error:
        raise WeightsRefused(f"{name} {error.reason}", f"remove or replace {name}") from error
    if len(raw) > CONFIG_BYTES_MAX and _AUTO_MAP_PATTERN.search(raw):
        raise WeightsRefused(
            f"{name} has {len(raw):,} bytes and may name code by auto_map; such a file may have "
            f"at most {CONFIG_BYTES_MAX:,}",
            f"shorten {name}, or ask for weights that name code in config.json only",
        )
    return raw


def _check_config(raw: bytes, name: str, weights: Weights, files: Mapping[str, Path]) -> None:
    """Refuse `auto_map` entries that name another repository, whose revision is not pinned.

    An entry may name the repository itself, if the folder contains the module. Raises
    WeightsRefused.
    """
    try:
        configuration = read_json(raw, values_max=JSON_VALUES_MAX)
    except ValueError as error:
        raise WeightsRefused(
            f"{name} cannot be read as JSON: {error}", f"repair or remove {name}"
        ) from error
    is_on_hub = weights.kind == "huggingface"
    for code in _auto_map_texts(configuration):
        repository, separator, module_path = code.partition("--")
        has_module = f"{module_path.partition('.')[0]}.py" in files
        if separator and not (has_module and (repository == weights.location or not is_on_hub)):
            raise WeightsRefused(
                f"{name}: auto_map names {quoted(code)}, code of another repository whose revision "
                "is not pinned",
                "ask for that module beside the weights, named without `--`",
            )


def _auto_map_texts(document: Any) -> Iterator[str]:
    """Yield every text below a key `auto_map` at any depth."""
    pending = [(document, False)]
    while pending:
        member, is_inside = pending.pop()
        if isinstance(member, dict):
            pending += [(inner, is_inside or key == "auto_map") for key, inner in member.items()]
        elif isinstance(member, list):
            pending += [(inner, is_inside) for inner in member]
        elif is_inside and isinstance(member, str):
            yield member


def _check_safetensors(file: Path, name: str) -> None:
    """Raise WeightsRefused for a safetensors file whose header is too long or invalid."""
    from safetensors import SafetensorError, safe_open  # not part of the core

    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(_HEADER_LENGTH_BYTES), "little")
    if length > SAFETENSORS_HEADER_BYTES_MAX:
        raise WeightsRefused(
            f"{name} is not a valid safetensors file: its header has {length:,} bytes, expected at "
            f"most {SAFETENSORS_HEADER_BYTES_MAX:,}",
            "ask the contributor to save the weights again, by the library safetensors",
        )
    try:
        with safe_open(file, framework="numpy"):
            pass
    except (SafetensorError, OSError) as error:
        raise WeightsRefused(
            f"{name} is not a valid safetensors file: {error}",
            "ask the contributor to save the weights again, by the library safetensors",
        ) from error
