"""Reads and validates [tool.geneb-ci] in a pyproject.toml, which may be hostile."""

import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geneb_ci.common.errors import BadConfiguration
from geneb_ci.common.finding import quoted
from geneb_ci.common.regular import NotReadable, read_regular

FILE = "pyproject.toml"
TABLE = "[tool.geneb-ci]"
# The largest in common use have about 30 kB; parsing takes 5 s per MB.
BYTES_MAX = 100_000
# Real keys have four parts. tomllib stores every prefix of a dotted key, so that a key of 50,000
# parts exhausts the memory.
KEY_PARTS_MAX = 16
_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.){0,64}+"|'[^'\n]*+')"""
_LONG_KEY = rf"(?<![A-Za-z0-9_-])(?:{_PART}[ \t]*+\.[ \t]*+){{{KEY_PARTS_MAX}}}".encode()
PLACES = ("submissions", "cards", "extractors", "benchmark", "policy", "audits")
LISTS = ("select", "ignore")

_ISOLATED = "or use no settings at all: geneb-ci check --isolated"


@dataclass(frozen=True)
class Settings:
    """The content of one [tool.geneb-ci] table; paths are absolute."""

    path: Path
    places: dict[str, Path]
    lists: dict[str, tuple[str, ...]]


def read_settings(path: Path) -> Settings | None:
    """Return the settings in a pyproject.toml; None if there is no such file or table.

    Raises BadConfiguration, which names the file and the key, if they are invalid.
    """
    table = _table(path)
    if table is None:
        return None
    places: dict[str, Path] = {}
    lists: dict[str, tuple[str, ...]] = {}
    for key, value in table.items():
        if key in LISTS and isinstance(value, list) and all(isinstance(i, str) for i in value):
            lists[key] = tuple(value)
        elif key in PLACES and isinstance(value, str) and "\0" not in value:
            places[key] = Path(os.path.normpath(path.parent / value))
        else:
            known = ", ".join((*PLACES, *LISTS))
            raise BadConfiguration(
                f"{path}: {TABLE} {_key(key)} = {_value(value)} is not a setting",
                f"settings are {known}; select and ignore are lists of strings, the others paths",
            )
    return Settings(path, places, lists)


def _table(path: Path) -> dict[str, Any] | None:
    try:
        raw = read_regular(path, BYTES_MAX)
    except NotReadable as error:
        if error.missing:
            return None
        raise BadConfiguration(
            f"{path}: {error.reason}: its {TABLE} cannot be read",
            f"make it a readable file, {_ISOLATED}",
        ) from error
    if b"geneb-ci" not in raw:
        return None
    if re.search(_LONG_KEY, raw):  # compiled here: few places have settings
        raise BadConfiguration(
            f"{path}: {TABLE}: a dotted key, or a string that looks like one, has more than "
            f"{KEY_PARTS_MAX} parts",
            f"shorten it, {_ISOLATED}",
        )
    try:
        document = tomllib.loads(raw.decode("utf-8"))
    except ValueError as error:
        raise BadConfiguration(f"{path}: {TABLE}: {error}", "fix the TOML") from error
    except RecursionError as error:
        raise BadConfiguration(
            f"{path}: {TABLE}: the TOML is nested too deeply", "fix the TOML"
        ) from error
    tool = document.get("tool", {})
    if not isinstance(tool, dict):
        raise BadConfiguration(
            f"{path}: tool = {_value(tool)} is not a table", f"write it as {TABLE}"
        )
    table = tool.get("geneb-ci")
    if table is not None and not isinstance(table, dict):
        raise BadConfiguration(
            f"{path}: tool.geneb-ci = {_value(table)} is not a table", f"write it as {TABLE}"
        )
    return table


def _key(key: str) -> str:
    return key if key.isascii() and key.isidentifier() else quoted(key)


def _value(value: object) -> str:
    """Return a value of a setting as text; its type if it cannot be printed."""
    try:
        return quoted(value)
    except (ValueError, RecursionError):  # a number of too many digits, too many brackets
        return f"a value of type {type(value).__name__}"
