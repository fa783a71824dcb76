"""Stratification: how many tasks each of the larger categories has in a sample."""

import heapq
from collections.abc import Sequence
from fractions import Fraction

from geneb_ci.benchmark import Benchmark
from geneb_ci.errors import UsageProblem

# Categories of fewer tasks share what is left. Of GENEB's 13 categories 8 have 5 tasks or more, 91
# of the 100 tasks.
LARGER = 5


def strata_of(benchmark: Benchmark, tasks: Sequence[str]) -> list[list[str]]:
    """Give the tasks of each of the larger categories, both in board order."""
    wanted = set(tasks)
    parts = ([task for task in ids if task in wanted] for ids in benchmark.categories.values())
    return [part for part in parts if len(part) >= LARGER]


def allocation(sizes: Sequence[int], guaranteed: int, drawn: int) -> list[int]:
    """Share out `drawn` places: one to each of the first `guaranteed` parts, then in proportion.

    `sizes` counts the tasks of each part. The rest goes by highest averages (Webster, 1832): to the
    part with the largest size / (2 places + 1), the first of equals. One place more never
    takes one away, so that a larger sample only adds tasks.
    Raises UsageProblem when there are fewer places than guarantees, or more than tasks.
    """
    if not guaranteed <= drawn <= sum(sizes):
        raise UsageProblem(
            f"{drawn} tasks cannot be drawn from {sum(sizes)} with one of each of {guaranteed} "
            "larger categories",
            f"draw at least {guaranteed} and at most {sum(sizes)}",
        )
    places = [int(number < guaranteed) for number in range(len(sizes))]
    queue = [
        (-Fraction(n, 2 * a + 1), i) for i, (n, a) in enumerate(zip(sizes, places, strict=True))
    ]
    heapq.heapify(queue)
    for _ in range(drawn - guaranteed):
        _, part = heapq.heappop(queue)
        while places[part] == sizes[part]:
            _, part = heapq.heappop(queue)
        places[part] += 1
        heapq.heappush(queue, (-Fraction(sizes[part], 2 * places[part] + 1), part))
    return places
