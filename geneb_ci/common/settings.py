"""[tool.geneb-ci] of a pyproject.toml: read from a file that may be anything, held to its shape."""

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
# The largest in common use have some 30 kB, and parsing takes 5 s a megabyte.
BYTES_MAX = 100_000
# Real keys have four parts. The parser of the standard library keeps every beginning of a dotted
# key: one of 50,000 parts takes all the memory of a machine.
KEY_PARTS_MAX = 16
_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.){0,64}+"|'[^'\n]*+')"""
_LONG_KEY = rf"(?<![A-Za-z0-9_-])(?:{_PART}[ \t]*+\.[ \t]*+){{{KEY_PARTS_MAX}}}".encode()
PLACES = ("submissions", "cards", "extractors", "benchmark", "policy", "audits")
LISTS = ("select", "ignore")

_ISOLATED = "or use no settings at all: geneb-ci check --isolated"


@dataclass(frozen=True)
class Settings:
    """What one [tool.geneb-ci] says; places are absolute."""

    path: Path
    places: dict[str, Path]
    lists: dict[str, tuple[str, ...]]


def read_settings(path: Path) -> Settings | None:
    """Read the settings of a pyproject.toml; None where there is no such file or table.

    Raises BadConfiguration, which names the file and the key, where they cannot be used.
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
                f"settings are {known}; select and ignore are lists of texts, the rest are paths",
            )
    return Settings(path, places, lists)


def _table(path: Path) -> dict[str, Any] | None:
    try:
        raw = read_regular(path, BYTES_MAX)
    except NotReadable as error:
        if error.missing:
            return None
        raise BadConfiguration(
            f"{path}: {error.reason}: its {TABLE} is not known",
            f"put a readable file in its place, {_ISOLATED}",
        ) from error
    if b"geneb-ci" not in raw:
        return None
    if re.search(_LONG_KEY, raw):  # compiled here: few places have settings
        raise BadConfiguration(
            f"{path}: {TABLE}: a key has more than {KEY_PARTS_MAX} parts, or a text in it looks "
            "like one",
            f"shorten it, {_ISOLATED}",
        )
    try:
        document = tomllib.loads(raw.decode("utf-8"))
    except ValueError as error:
        raise BadConfiguration(f"{path}: {TABLE}: {error}", "repair the TOML") from error
    except RecursionError as error:
        raise BadConfiguration(
            f"{path}: {TABLE}: the TOML is nested too deep to be read", "repair the TOML"
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
    """Show a value of a setting; one that cannot be shown is named by its kind."""
    try:
        return quoted(value)
    except (ValueError, RecursionError):  # a number of too many digits, too many brackets
        return f"a value of the kind {type(value).__name__}"
