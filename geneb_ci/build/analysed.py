"""The two files that need pandas and scipy, which only the extra `build` installs."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from geneb_ci.benchmark import Benchmark
from geneb_ci.build.rows import Entry
from geneb_ci.config import Layout, policy_file
from geneb_ci.errors import UsageProblem

if TYPE_CHECKING:
    from geneb_ci.build.recommend_shape import Advice, Need

EXTRA = frozenset({"numpy", "pandas", "scipy"})


@contextlib.contextmanager
def extra_at_hand(remedy: str = "") -> Iterator[None]:
    """Stand around imports of what only the extra `build` brings.

    Raises UsageProblem, whose fix ends with the remedy, where it is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in EXTRA:
            raise
        raise UsageProblem(
            f"{error.name} is not installed, and intervals need it",
            f'pip install "geneb-ci[build]"{remedy}',
        ) from error


def unknown_sizes(benchmark: Benchmark) -> list[str]:
    """Name the tasks of which the test split has no known size: with one, no interval is known."""
    return [task.id for task in benchmark.tasks if task.n_test is None]


def analysed(entries: Iterable[Entry], benchmark: Benchmark, layout: Layout) -> dict[str, Any]:
    """Give diagnostics.json and recommendations.json as values.

    Raises UsageProblem when the extra `build` is not installed.
    """
    with extra_at_hand("; only `build --no-diagnostics` does without"):
        from geneb_ci.build.diagnostics.whole import diagnostics  # noqa: PLC0415 (0.7 s)
        from geneb_ci.build.recommend import recommendations  # noqa: PLC0415
        from geneb_ci.build.uncertainty import intervals  # noqa: PLC0415
    rows = list(entries)
    found = intervals(rows, benchmark)
    attributes = policy_file(layout, "registry.json", "models")
    return {
        "diagnostics.json": diagnostics(rows, benchmark, attributes, found),
        "recommendations.json": recommendations(rows, benchmark, found),
    }


def advised(need: "Need", entries: Iterable[Entry], benchmark: Benchmark) -> "Advice":
    """Give advice for one need.

    Raises UsageProblem when the benchmark lacks what is named, or the extra is not installed.
    """
    with extra_at_hand(", which brings scipy"):
        from geneb_ci.build.recommend import advise  # noqa: PLC0415
        from geneb_ci.build.uncertainty import intervals  # noqa: PLC0415
    rows = list(entries)
    return advise(need, rows, benchmark, intervals(rows, benchmark, regimes=[need.regime]))
