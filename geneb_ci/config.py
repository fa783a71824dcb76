"""Where things lie: found by looking, overridden by [tool.geneb-ci] in a pyproject.toml."""

import enum
import functools
import json
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geneb_ci.benchmark import Benchmark, load_benchmark, shipped_benchmark, upstream_benchmark
from geneb_ci.errors import BadConfiguration
from geneb_ci.shipped import shipped

PRACTICE_BENCHMARK = "benchmark-mini.json"


class Kind(enum.StrEnum):
    """What kind of place a file lies in."""

    ALONE = "alone"
    GENEB_CI = "geneb-ci"
    UPSTREAM = "upstream"


@dataclass(frozen=True)
class Layout:
    """Folders and files of one place; None for what the place does not have."""

    kind: Kind
    root: Path
    submissions: Path | None = None
    cards: Path | None = None
    extractors: Path | None = None
    benchmark: Path | None = None
    policy: Path | None = None
    audits: Path | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def holds(self, path: Path) -> bool:
        """Whether a file lies directly in the folder of submissions."""
        return self.submissions is not None and path.parent == self.submissions


_FOLDERS = {
    Kind.GENEB_CI: {
        "submissions": "submissions",
        "cards": "submissions/cards",
        "extractors": "submissions/extractors",
        "benchmark": "schemas/benchmark.json",
        "policy": "leaderboard/policy",
        "audits": "leaderboard/audits",
    },
    Kind.UPSTREAM: {
        "submissions": "submissions",
        "cards": "model_cards",
        "extractors": "harness/extractors",
        "benchmark": "benchmark/benchmark_spec.json",
    },
}
_LISTS = ("select", "ignore")


@functools.cache
def find_layout(folder: Path) -> Layout:
    """Look from a folder upwards for a repository of submissions; else the file is alone.

    What lies among the submissions is a contributor's: no settings and no benchmark there count.
    Raises BadConfiguration when a [tool.geneb-ci] on the way cannot be used.
    """
    found = Layout(Kind.ALONE, folder)
    for root in (folder, *folder.parents):
        layout = _layout_at(root)
        if layout is None:
            continue
        if found.kind is Kind.ALONE or _among_submissions(found.root, layout):
            found = layout
    return found


def _among_submissions(root: Path, layout: Layout) -> bool:
    return (
        layout.submissions is not None
        and layout.submissions != layout.root
        and root.is_relative_to(layout.submissions)
    )


def _layout_at(root: Path) -> Layout | None:
    """Give the layout of a repository whose root this is."""
    table = _table(root / "pyproject.toml")
    for kind in (Kind.GENEB_CI, Kind.UPSTREAM):
        if (root / _FOLDERS[kind]["benchmark"]).is_file() and (root / "submissions").is_dir():
            return _layout(kind, root, table or {})
    return None if table is None else _layout(Kind.GENEB_CI, root, table)


def _table(path: Path) -> dict[str, Any] | None:
    """Give [tool.geneb-ci] of a pyproject.toml, or None when there is none."""
    try:
        raw = path.read_bytes()
    except OSError:
        return None
    if b"geneb-ci" not in raw:
        return None
    try:
        table = tomllib.loads(raw.decode("utf-8")).get("tool", {}).get("geneb-ci")
    except ValueError as error:
        raise BadConfiguration(f"{path}: {error}", "repair the TOML") from error
    if table is not None and not isinstance(table, dict):
        raise BadConfiguration(
            f"{path}: tool.geneb-ci = {table!r} is not a table", "write it as [tool.geneb-ci]"
        )
    return table


def _layout(kind: Kind, root: Path, table: dict[str, Any]) -> Layout:
    lists: dict[str, tuple[str, ...]] = {}
    # What is not there by default is not there; what somebody named must be.
    paths = {
        name: root / relative
        for name, relative in _FOLDERS[kind].items()
        if (root / relative).exists()
    }
    for key, value in table.items():
        if (
            key in _LISTS
            and isinstance(value, list)
            and all(isinstance(item, str) for item in value)
        ):
            lists[key] = tuple(value)
        elif key in _FOLDERS[Kind.GENEB_CI] and isinstance(value, str):
            paths[key] = Path(os.path.normpath(root / value))
        else:
            known = ", ".join((*_FOLDERS[Kind.GENEB_CI], *_LISTS))
            raise BadConfiguration(
                f"{root / 'pyproject.toml'}: [tool.geneb-ci] {key} = {value!r} is not a setting",
                f"settings are {known}; select and ignore are lists of texts, the rest are paths",
            )
    return Layout(kind, root, **paths, **lists)  # type: ignore[arg-type]  # keys are Layout's own


def benchmark_of(layout: Layout) -> Benchmark:
    """Give the benchmark definition in force in a place.

    Raises BadConfiguration when the place has one that cannot be used.
    """
    if layout.benchmark is None:
        return shipped_benchmark()
    if layout.benchmark == layout.root / _FOLDERS[Kind.UPSTREAM]["benchmark"]:
        return upstream_benchmark(layout.benchmark)
    return load_benchmark(layout.benchmark)


def policy_file(layout: Layout, name: str, member: str) -> dict[str, Any]:
    """Give one member of a policy file: the place's own, or the shipped one.

    Raises BadConfiguration when the file cannot be used.
    """
    path = layout.policy / name if layout.policy is not None else shipped("policy", name)
    try:
        value = json.loads(path.read_bytes())[member]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadConfiguration(
            f"{path}: {member!r} cannot be read: {error}", "restore the file from the main branch"
        ) from error
    if not isinstance(value, dict):
        raise BadConfiguration(
            f"{path}: {member!r} is not an object", "restore the file from the main branch"
        )
    return value
