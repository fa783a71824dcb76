"""What all files of one folder are held against: layout, benchmark, policy and other rows."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from geneb_ci.check.context import Policy
from geneb_ci.common.benchmark import Benchmark, shipped_benchmark
from geneb_ci.common.config import PRACTICE_BENCHMARK, Finder, Layout, benchmark_of, policy_file
from geneb_ci.submission.paths import files_in, located
from geneb_ci.submission.peers import Known, Peers, peers_of


@dataclass(frozen=True)
class Place:
    """What all files of one folder share."""

    layout: Layout
    benchmark: Benchmark
    policy: Policy
    peers: Peers


@dataclass(frozen=True)
class Against:
    """Rows to hold files against that do not lie among the submissions of a repository."""

    folder: Path | None = None
    shipped: bool = False
    """Whether the shipped rows serve where there is no repository around the file."""
    only_shipped: bool = False
    """Whether they serve everywhere."""

    def rows(self, layout: Layout, benchmark: Benchmark) -> tuple[Path | Known, ...]:
        """Return the rows. Raises NothingChecked where the folder cannot be listed."""
        if self.folder is not None:
            return tuple(sorted(files_in(self.folder)))
        around = layout.submissions
        if around is not None and around.is_dir() and not self.only_shipped:
            return tuple(sorted(files_in(around)))
        if self.shipped and benchmark.sha256 == shipped_benchmark().sha256:
            # Imported here: files of a repository do without.
            from geneb_ci.submission.population import shipped_rows  # noqa: PLC0415

            return shipped_rows()
        return ()


def place_of(folder: Path, find: Finder, given: Iterable[Path], against: Against | None) -> Place:
    """Look up what the files of a folder are held against.

    `given` are the files under check, which are held against one another.
    Raises BadConfiguration when something of it cannot be used.
    """
    layout = find(folder)
    benchmark = benchmark_of(layout)
    policy = Policy(
        official=policy_file(layout, "official.json", "files"),
        registry=policy_file(layout, "registry.json", "models"),
    )
    if layout.submissions == folder:
        outside = (path for path in given if path.parent != folder)
        peers = peers_of([*files_in(folder), *outside])
    else:
        population = against.rows(layout, benchmark) if against is not None else ()
        peers = peers_of(given, map(_located, population))
    return Place(layout, benchmark, policy, peers)


def _located(row: Path | Known) -> Path | Known:
    return located(row) if isinstance(row, Path) else row


@functools.cache
def practice_benchmark() -> Benchmark:
    """Return the synthetic benchmark that a lone file may have been measured on."""
    return shipped_benchmark(PRACTICE_BENCHMARK)
