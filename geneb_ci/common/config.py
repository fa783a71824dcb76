"""Paths of a repository: detected from the folder, or set by [tool.geneb-ci] in pyproject.toml."""

import contextlib
import enum
import functools
import itertools
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from geneb_ci.common.benchmark import load_benchmark, shipped_benchmark, upstream_benchmark
from geneb_ci.common.errors import BadConfiguration, NothingChecked, UsageProblem
from geneb_ci.common.shipped import shipped
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import NotReadable, read_json, read_text
from reference_harness.formats.text import quoted

SETTINGS_FILE = "pyproject.toml"
"""File at the root of a repository that may have settings."""
SETTINGS_TABLE = "[tool.geneb-ci]"
"""Table of that file with the settings."""
SETTINGS_BYTES_MAX = 100_000
"""Maximum size of a pyproject.toml: the largest in use have about 30 kB; parsing takes 5 s per
MB."""
KEY_PARTS_MAX = 16
"""Maximum number of parts of a dotted key in TOML; real keys have four. tomllib stores every prefix
of such a key, so that 50,000 parts exhaust the memory."""
_KEY_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.){0,64}+"|'[^'\n]*+')"""
_LONG_KEY = rf"(?<![A-Za-z0-9_-])(?:{_KEY_PART}[ \t]*+\.[ \t]*+){{{KEY_PARTS_MAX}}}".encode()
"""Pattern of a dotted key with more than `KEY_PARTS_MAX` parts."""
PATH_SETTINGS = ("submissions", "cards", "extractors", "benchmark", "policy", "audits")
"""Settings whose values are paths of folders or files."""
LIST_SETTINGS = ("select", "ignore")
"""Settings whose values are lists of rules and families."""
ADDRESS_SETTINGS = ("repository", "site", "space")
"""Addresses that the pages of a board link to: its repository on GitHub, the published board, and
the Hugging Face Space that shows it in a frame."""
_PLAIN_ADDRESS = re.compile(r"https://[A-Za-z0-9.-]+(/[A-Za-z0-9._~-]+)*/?")
_FORM_BY_SETTINGS = {
    PATH_SETTINGS: "a path",
    LIST_SETTINGS: "a list of strings",
    ADDRESS_SETTINGS: "an https address",
}
"""Words for the form of a value, by the names of settings that have such values."""

_TABLE_FIX = f"write the settings as the table {SETTINGS_TABLE}"
_ISOLATED_FIX = "or use no settings at all: geneb-ci check --isolated"


@dataclass(frozen=True)
class Settings:
    """The settings in the table [tool.geneb-ci] of a pyproject.toml, by name."""

    path: Path
    """The pyproject.toml with the table."""
    paths: dict[str, Path]
    """Absolute paths."""
    lists: dict[str, tuple[str, ...]]
    """Lists of rules and families."""
    addresses: dict[str, str] = field(default_factory=dict)
    """Addresses without a slash at the end."""


def read_settings(path: Path) -> Settings | None:
    """Return the settings in a pyproject.toml; None if there is no such file or table.

    Raises BadConfiguration, with the file and the key in its message, if they are invalid.
    """
    table = _table(path)
    if table is None:
        return None
    paths: dict[str, Path] = {}
    lists: dict[str, tuple[str, ...]] = {}
    addresses: dict[str, str] = {}
    for setting, value in table.items():
        if (
            setting in LIST_SETTINGS
            and isinstance(value, list)
            and all(isinstance(i, str) for i in value)
        ):
            lists[setting] = tuple(value)
        elif setting in PATH_SETTINGS and isinstance(value, str) and "\0" not in value:
            paths[setting] = Path(os.path.normpath(path.parent / value))
        elif (
            setting in ADDRESS_SETTINGS
            and isinstance(value, str)
            and _PLAIN_ADDRESS.fullmatch(value)
        ):
            addresses[setting] = value.rstrip("/")
        else:
            raise _setting_error(path, setting, value)
    return Settings(path, paths, lists, addresses)


def _setting_error(path: Path, setting: str, value: object) -> BadConfiguration:
    """Return the error for a setting that does not exist, or whose value has another form."""
    for names, form in _FORM_BY_SETTINGS.items():
        if setting in names:
            return BadConfiguration(
                f"{path}: {SETTINGS_TABLE} {setting} is {_value_text(value)}, expected {form}",
                f"correct the value, {_ISOLATED_FIX}",
            )
    all_names = ", ".join(itertools.chain(*_FORM_BY_SETTINGS))
    return BadConfiguration(
        f"{path}: {SETTINGS_TABLE} has the unknown setting {_setting_name(setting)}",
        f"name one of the settings {all_names}",
    )


def _table(path: Path) -> dict[str, Any] | None:
    """Return the table [tool.geneb-ci] of a pyproject.toml; None without the file or the table."""
    try:
        raw = read_text(path, SETTINGS_BYTES_MAX)
    except NotReadable as error:
        if error.missing:
            return None
        raise BadConfiguration(
            f"{path}: {error.reason}, so its table {SETTINGS_TABLE} cannot be read",
            f"make pyproject.toml a readable file, {_ISOLATED_FIX}",
        ) from error
    if b"geneb-ci" not in raw:
        return None
    if re.search(_LONG_KEY, raw):  # compiled here: few repositories have settings
        raise BadConfiguration(
            f"{path}: {SETTINGS_TABLE} cannot be read: a dotted key, or a string that looks "
            f"like a dotted key, has more than {KEY_PARTS_MAX} parts",
            f"shorten the key, {_ISOLATED_FIX}",
        )
    try:
        document = tomllib.loads(raw.decode("utf-8"))
    except ValueError as error:
        raise BadConfiguration(
            f"{path}: {SETTINGS_TABLE} cannot be read: the file is not valid TOML: {error}",
            f"correct the file, {_ISOLATED_FIX}",
        ) from error
    except RecursionError as error:
        raise BadConfiguration(
            f"{path}: {SETTINGS_TABLE} cannot be read: the TOML is nested too deeply",
            f"remove the nesting, {_ISOLATED_FIX}",
        ) from error
    tool = document.get("tool", {})
    if not isinstance(tool, dict):
        raise BadConfiguration(f"{path}: tool is {_value_text(tool)}, expected a table", _TABLE_FIX)
    table = tool.get("geneb-ci")
    if table is not None and not isinstance(table, dict):
        raise BadConfiguration(
            f"{path}: tool.geneb-ci is {_value_text(table)}, expected a table", _TABLE_FIX
        )
    return table


def _setting_name(setting: str) -> str:
    """Return the name of an unknown setting, quoted where it is not a plain word."""
    return setting if setting.isascii() and setting.isidentifier() else quoted(setting)


def _value_text(value: object) -> str:
    """Return the value of a setting as text, or its type if it cannot be printed."""
    try:
        return quoted(value)
    except (ValueError, RecursionError):  # a number of too many digits, too many brackets
        return f"a value of type {type(value).__name__}"


PRACTICE_BENCHMARK = "benchmark-mini.json"
"""Shipped file of the practice benchmark."""
POLICY_BYTES_MAX = 2_000_000
"""Maximum size of a file of the policy: a list of 40 rows has 4 kB, of 20,000 rows 2 MB."""


def is_practice(sha256: str) -> bool:
    """Whether a benchmark, by its digest, is the practice benchmark that ships with the package."""
    return sha256 == shipped_benchmark(PRACTICE_BENCHMARK).sha256


class LayoutKind(enum.StrEnum):
    """Kind of repository that a file is in; ALONE for a file outside of repositories."""

    ALONE = "alone"
    GENEB_CI = "geneb-ci"
    """A repository that `geneb-ci init` makes."""
    UPSTREAM = "upstream"
    """The repository of the GENEB project."""


@dataclass(frozen=True)
class Layout:
    """Where a repository has its folders and files; None for those that it does not have."""

    kind: LayoutKind
    root: Path
    """Top folder of the repository; for the kind ALONE, the folder of the file."""
    submissions: Path | None = None
    cards: Path | None = None
    extractors: Path | None = None
    benchmark: Path | None = None
    """File with the definition of the benchmark."""
    policy: Path | None = None
    audits: Path | None = None
    """Folder of the audit records."""
    select: tuple[str, ...] = ()
    """Rules and families that are run; empty for all."""
    ignore: tuple[str, ...] = ()
    """Rules and families that are not run."""
    repository: str = ""
    """Address of the repository on GitHub; "" if no setting gives it."""
    site: str = ""
    """Address at which the board is published; "" if no setting gives it."""
    space: str = ""
    """Address of the Space that shows the board in a frame; "" if no setting gives it."""
    settings: Settings | None = field(default=None, compare=False)
    """The [tool.geneb-ci] table, if there is one."""

    def has_submission(self, path: Path) -> bool:
        """Whether a file is directly in the folder of submissions."""
        return self.submissions is not None and path.parent == self.submissions


_DEFAULT_PATHS = {
    LayoutKind.GENEB_CI: {
        "submissions": "submissions",
        "cards": "submissions/cards",
        "extractors": "submissions/extractors",
        "benchmark": "schemas/benchmark.json",
        "policy": "leaderboard/policy",
        "audits": "leaderboard/audits",
    },
    LayoutKind.UPSTREAM: {
        "submissions": "submissions",
        "cards": "model_cards",
        "extractors": "harness/extractors",
        "benchmark": "benchmark/benchmark_spec.json",
    },
}
"""Default paths in each kind of repository, by the setting that replaces each."""


def default_folder(kind: LayoutKind, setting: str) -> str:
    """Return the default path of a folder in a kind of repository, relative to its root.

    If the kind has no such folder, return its path in a repository of geneb-ci.
    """
    return _DEFAULT_PATHS.get(kind, {}).get(setting, _DEFAULT_PATHS[LayoutKind.GENEB_CI][setting])


_CONTRIBUTOR_FOLDERS = ("submissions", "cards", "extractors")
"""Settings of the folders that contributors write to."""
_FILE_SETTINGS = ("benchmark",)
"""Settings whose path is a file, not a folder."""
ROWS_FOLDER = "submissions"
"""Folder that the root of a repository has."""
LAYOUT_FILES = (SETTINGS_FILE, *(folders["benchmark"] for folders in _DEFAULT_PATHS.values()))
"""Files by which the kind and the paths of a repository are recognised, besides `ROWS_FOLDER`."""

Finder = Callable[[Path], Layout]
"""A function that returns the layout for the files of a folder."""


@functools.cache
def find_layout(folder: Path, *, isolated: bool = False) -> Layout:
    """Return the layout of the repository that a folder is in; of kind ALONE if there is none.

    Settings and benchmarks inside a folder of submissions are ignored, because contributors write
    there. With `isolated`, all settings are ignored. Raises BadConfiguration if a [tool.geneb-ci]
    of a parent folder cannot be used.
    """
    nearest = Layout(LayoutKind.ALONE, folder)
    for root in (folder, *folder.parents):
        layout = _layout_at(root, isolated=isolated)
        if layout is None:
            continue
        if nearest.kind is LayoutKind.ALONE or _is_in_submissions(nearest.root, layout):
            nearest = layout
    return nearest


def layout_finder(*, isolated: bool = False, config_from: Path | None = None) -> Finder:
    """Return a function that finds layouts, with settings of each repository or of `config_from`.

    `config_from` is the folder of a trusted checkout, or its pyproject.toml. With `isolated`, no
    settings are used. Raises UsageProblem if `config_from` does not exist, or is given together
    with `isolated`.
    """
    if isolated and config_from is not None:
        raise UsageProblem("--isolated and --config-from exclude each other", "omit one of them")
    if config_from is None:
        return functools.partial(find_layout, isolated=isolated)
    root = config_from.parent if config_from.name == SETTINGS_FILE else config_from
    if not (config_from.is_file() if config_from.name == SETTINGS_FILE else config_from.is_dir()):
        raise UsageProblem(
            f"--config-from {config_from}: there is no such folder or {SETTINGS_FILE}",
            f"pass the folder of a trusted checkout or its {SETTINGS_FILE}: --config-from PATH",
        )
    layout = _layout_from(Path(os.path.realpath(root)), Path.cwd())
    return lambda _: layout


def _layout_from(checkout: Path, tree: Path) -> Layout:
    """Return a layout with submissions, cards and extractors of the untrusted `tree`.

    Rules, benchmark, policy and audits are those of the trusted `checkout`, or the shipped ones.
    Raises NothingChecked if the path of a folder in the tree has a symbolic link.
    """
    own_layout = _layout_at(checkout, trusted=True) or _layout(LayoutKind.GENEB_CI, checkout, None)
    contributed_folders: dict[str, Path] = {}
    for folder in _CONTRIBUTOR_FOLDERS:
        default = checkout / _DEFAULT_PATHS[own_layout.kind][folder]
        path: Path = (
            own_layout.settings.paths.get(folder, default) if own_layout.settings else default
        )
        if path.is_relative_to(checkout):
            path = tree / path.relative_to(checkout)
            if os.path.realpath(path) != str(path):
                raise NothingChecked(
                    f"{path}: the folder of {folder} is reached by a symbolic link; it leads to "
                    f"{os.path.realpath(path)}",
                    "replace each symbolic link on this path by the folder itself",
                )
        contributed_folders[folder] = path
    return Layout(
        own_layout.kind,
        tree,
        **contributed_folders,  # type: ignore[arg-type]  # keys are Layout's own
        benchmark=own_layout.benchmark,
        policy=own_layout.policy,
        audits=own_layout.audits,
        select=own_layout.select,
        ignore=own_layout.ignore,
        settings=own_layout.settings,
    )


def _is_in_submissions(root: Path, layout: Layout) -> bool:
    """Whether a folder is inside the folder of submissions of a layout."""
    return (
        layout.submissions is not None
        and layout.submissions != layout.root
        and root.is_relative_to(layout.submissions)
    )


def _layout_at(root: Path, *, isolated: bool = False, trusted: bool = False) -> Layout | None:
    """Return the layout of the repository whose root is this folder; None if it is not a root.

    A trusted repository may have no submissions yet.
    """
    settings = None if isolated else read_settings(root / SETTINGS_FILE)
    for kind in (LayoutKind.GENEB_CI, LayoutKind.UPSTREAM):
        may_be_root = trusted or (root / ROWS_FOLDER).is_dir()
        if may_be_root and (root / _DEFAULT_PATHS[kind]["benchmark"]).is_file():
            return _layout(kind, root, settings)
    return None if settings is None else _layout(LayoutKind.GENEB_CI, root, settings)


def _layout(kind: LayoutKind, root: Path, settings: Settings | None) -> Layout:
    """Return the layout of a repository: default paths that exist, and the paths of settings.

    Raises BadConfiguration for a path of a setting that is not a folder.
    """
    members: dict[str, Any] = {
        name: root / relative
        for name, relative in _DEFAULT_PATHS[kind].items()
        if (root / relative).exists()
    }
    if settings is None:
        return Layout(kind, root, **members)
    for setting, path in settings.paths.items():
        _require_folder(settings, setting, path)
    members |= settings.paths | settings.lists | settings.addresses
    return Layout(kind, root, **members, settings=settings)


def _require_folder(settings: Settings, setting: str, path: Path) -> None:
    """Raise BadConfiguration if the path of a setting exists and is not a folder.

    The path of a setting in `_FILE_SETTINGS` may also be a file.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        fault = "is a broken link" if path.is_symlink() else ""
    except OSError as error:
        fault = f"cannot be read: {error.strerror}"
    else:
        fault = "" if setting in _FILE_SETTINGS or stat.S_ISDIR(mode) else "is not a folder"
    if fault:
        raise BadConfiguration(
            f"{path}: {fault}{_origin_text(settings, setting)}", f"correct the setting {setting}"
        )


def _origin_text(settings: Settings | None, setting: str) -> str:
    """Return the end of a message: which setting gives the path; "" for a default path."""
    if settings is None or setting not in settings.paths:
        return ""
    return f" (set by {SETTINGS_TABLE} {setting} in {settings.path})"


@contextlib.contextmanager
def setting_in_errors(layout: Layout, setting: str) -> Iterator[None]:
    """In a BadConfiguration that the block raises, add which setting gives the path."""
    try:
        yield
    except BadConfiguration as error:
        raise BadConfiguration(
            f"{error.message}{_origin_text(layout.settings, setting)}", error.fix
        ) from error


def benchmark_of(layout: Layout) -> Benchmark:
    """Return the benchmark definition of a layout, or the shipped one.

    Raises BadConfiguration if its own definition cannot be used.
    """
    if layout.benchmark is None:
        return shipped_benchmark()
    with setting_in_errors(layout, "benchmark"):
        if layout.benchmark.match(_DEFAULT_PATHS[LayoutKind.UPSTREAM]["benchmark"]):
            return upstream_benchmark(layout.benchmark)
        return load_benchmark(layout.benchmark)


_RESTORE_FIX = "restore the file from the main branch"


def cache_folder(name: str) -> Path:
    """Return the path of a folder in the user's cache folder, which XDG_CACHE_HOME sets.

    Raises UsageProblem for a user without a home, as in some containers.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = Path(base) if base else Path.home() / ".cache"
    except RuntimeError as error:
        raise UsageProblem(
            "this user has no home folder to keep files in", "set XDG_CACHE_HOME to a folder"
        ) from error
    return folder / "geneb-ci" / name


def policy_bytes(path: Path, limit: int) -> bytes:
    """Return the content of a policy file.

    Raises BadConfiguration if it cannot be read, or has more than `limit` bytes.
    """
    try:
        return read_text(path, limit)
    except NotReadable as error:
        raise BadConfiguration(f"{path}: {error.reason}", _RESTORE_FIX) from error


OFFICIAL_LIST = "official.json"
"""File of the policy with the SHA-256 of each row of the benchmark's authors."""
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


def official_files(layout: Layout) -> dict[str, str]:
    """Return the SHA-256 of each file of the benchmark's authors, by file name.

    The list is the repository's, or the shipped one. Raises BadConfiguration if it is malformed.
    """
    path = (
        shipped("policy", OFFICIAL_LIST) if layout.policy is None else layout.policy / OFFICIAL_LIST
    )
    with setting_in_errors(layout, "policy"):
        try:
            digests = read_json(policy_bytes(path, POLICY_BYTES_MAX))["files"]
        except ValueError as error:
            raise BadConfiguration(
                f"{path}: the file is not valid JSON: {error}", _RESTORE_FIX
            ) from error
        except (KeyError, TypeError) as error:
            raise BadConfiguration(f"{path}: the key 'files' is missing", _RESTORE_FIX) from error
        if not isinstance(digests, dict):
            raise BadConfiguration(
                f"{path}: 'files' is {quoted(digests)}, expected an object", _RESTORE_FIX
            )
        for model, digest in digests.items():
            if not isinstance(digest, str) or _DIGEST.fullmatch(digest) is None:
                raise BadConfiguration(
                    f"{path}: 'files': {quoted(model)} is {quoted(digest)}, expected the sha256 of "
                    "a file, 64 hex digits in lower case",
                    _RESTORE_FIX,
                )
    return digests
