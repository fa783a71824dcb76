"""What the arithmetic answers to several hundred fixed questions, held to a file.

The laws, which say why these answers are right, are in the files beside this one. Answers that no
law fixes are held here as well: the limits of a refusal, which of several tables comes first, what
the digits of a column say. `pytest --update-golden` writes the file anew: read its diff.
"""

import itertools
import json
import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from geneb_ci.statistics import metrics
from geneb_ci.statistics.binary import (
    BinaryTable,
    Classes,
    RhoRange,
    chebyshev_integers,
    correct_count_limits,
    fitting_rho_ranges,
    fitting_table_count,
    metrics_of_table,
    nearest_table,
    rho_limits,
)
from geneb_ci.statistics.mean_triples import Hull, Plane, impossible_metric
from geneb_ci.statistics.metrics import ReportedTriple, Triple, distinct_texts

VECTORS = Path(__file__).with_name("vectors.json")
SIZES = (Classes(1, 1), Classes(2, 9), Classes(40, 40), Classes(37, 190), Classes(405, 1203))
WIDTHS = (Triple(1e-13, 1e-13, 1e-13), Triple(5e-5, 5e-5, 5e-5), Triple(0.004, 5e-4, 0.005))
SINGLES = (0.6940474867820740, 0.8470274209976196, 0.75)
COLUMNS: dict[str, list[float]] = {
    "none": [],
    "whole numbers": [0.0, 1.0],
    "four decimals": [0.7123, 0.5, -0.0001],
    "five values of four decimals": [0.71234, 0.71236, 0.7],
    "seven decimals": [0.7123456, 0.25],
    "nine decimals": [0.712345678, 0.25],
    "ten decimals": [0.7123456789, 0.25],
    "twelve decimals": [0.712345678912, 0.25],
    "all digits": [0.6940474726270046, 0.8470273881095525, 0.75],
    "single precision": list(SINGLES),
    "one of single precision": [SINGLES[0], 0.8470273881095525],
    "a third rounded": [0.6940474726270046, 0.8470273881095525, 0.712345, 0.0],
    "less than a third rounded": [0.69404747262700, 0.84702738810955, 0.31234567890123, 0.5],
    "seven decimals are not rounded": [0.7123456, 0.6940474726270046],
    "one off in the last digit": [0.8122999999999999, 0.30000000000000004],
}


def mean(triples: list[Triple]) -> Triple:
    return Triple(*(math.fsum(column) / len(triples) for column in zip(*triples, strict=True)))


def drawn(sizes: Classes, rng: random.Random) -> BinaryTable:
    small, large = rng.randint(0, sizes.small), rng.randint(0, sizes.large)
    return BinaryTable(small, sizes.small - small, large, sizes.large - large)


def questions(
    name: str, tables: tuple[int, ...] = (1, 2, 5)
) -> Iterator[tuple[Classes, ReportedTriple]]:
    """Yield triples that means of so many tables have, for each task; of some, one is shifted."""
    rng = random.Random(name)
    for sizes in SIZES:
        for number in range(24):
            triple = mean(
                [metrics_of_table(drawn(sizes, rng)) for _ in range(tables[number % len(tables)])]
            )
            shift = rng.choice((0.0008, -0.0008, 0.02, -0.02, 0.15, -0.15, 0.5))
            match number % 6:
                case 0 | 1:
                    triple = triple._replace(mcc=triple.mcc + shift)
                case 2:
                    triple = triple._replace(f1=triple.f1 + shift)
                case 3:
                    triple = Triple(*(value + shift for value in triple))
            yield sizes, ReportedTriple(triple, WIDTHS[number % 5 % 3])


def readings() -> list[Any]:
    results = []
    for sizes, reading in questions("readings", (1,)):
        some = list(itertools.islice(fitting_rho_ranges(sizes, reading), 40))
        counted = [fitting_table_count(sizes, reading, most) for most in (0, 1, 3, 1000)]
        results.append([some, [len(run) for run in some], counted])
    return results


def limits() -> list[Any]:
    limit_lists: list[Any] = []
    for sizes, reading in questions("limits"):
        limit_lists.append(
            [correct_count_limits(sizes.total, reading, repeats) for repeats in (1, 5)]
        )
        limit_lists.append([rho_limits(sizes, right) for right in range(0, sizes.total + 1, 7)])
    return limit_lists


def refusals() -> list[Any]:
    hulls = {sizes: Hull(sizes) for sizes in SIZES}
    return [impossible_metric(hulls[sizes], reading) for sizes, reading in questions("refusals")]


def hulls() -> list[Any]:
    """Return what each hull is spanned by, and the answers to planes at several levels.

    Above a level, any table will do that is above it: what is kept is whether there is one.
    """
    hull_lists: list[Any] = []
    rng = random.Random("planes")
    for sizes in SIZES:
        hull = Hull(sizes)
        hull_lists.append([hull.sampled_triples, hull.lower])
        for _ in range(12):
            plane = Plane(*(rng.uniform(-2, 2) for _ in range(3)))
            top = plane.at(hull.highest_sampled(plane))
            levels = [top + step for step in (-0.5, -1e-6, 1e-6, 0.01, 0.5)]
            above = [hull.table_above(plane, level) for level in levels]
            assert all(
                plane.at(point) > at for point, at in zip(above, levels, strict=True) if point
            )
            hull_lists.append(
                [plane, hull.highest_sampled(plane), [point is not None for point in above]]
            )
    return hull_lists


def nearests() -> list[Any]:
    return [nearest_table(sizes, reading.value) for sizes, reading in questions("nearest")]


def columns() -> dict[str, Any]:
    return {
        name: {
            "decimals": [metrics.decimals(value) for value in values],
            "of the column": [metrics.column_decimals(values, n) for n in (1, 5)],
            "half-widths": [metrics.half_widths(values, n) for n in (1, 5)],
            "each its own": metrics.half_widths(values, mixed=True),
            "is mixed": metrics.is_mixed(values),
        }
        for name, values in COLUMNS.items()
    }


def bounds() -> list[Any]:
    return [
        [
            metrics.one_matrix_bounds(n, right),
            [metrics.mean_bounds(n, right * k, k) for k in (1, 2, 5)],
        ]
        for n in (1, 2, 7, 1000)
        for right in sorted({0, 1, n // 3, n - 1, n})
    ] + [metrics.mean_bounds(7, right, 5) for right in range(36)]


def spreads() -> list[Any]:
    return [
        chebyshev_integers(first, last, steps)
        for first, last in ((0, 0), (0, 5), (-37, 190), (-3, 3))
        for steps in (1, 2, 12, 96)
    ]


TABLES: dict[str, Callable[[], Any]] = {
    "readings": readings,
    "limits": limits,
    "refusals": refusals,
    "hulls": hulls,
    "nearest": nearests,
    "columns": columns,
    "bounds": bounds,
    "spreads": spreads,
}


def plain(value: Any) -> Any:
    """Return a value as JSON has it, with as many digits as any machine agrees on."""
    if isinstance(value, float):
        return float(f"{value:.10g}")
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    return [plain(member) for member in value] if isinstance(value, list | tuple) else value


def test_the_file_has_these_tables(update_golden):
    if update_golden:
        tables = {name: plain(make()) for name, make in TABLES.items()}
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(t)}" for name, t in tables.items())
        VECTORS.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    assert list(json.loads(VECTORS.read_bytes())) == list(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_answers(name):
    expected = json.loads(VECTORS.read_bytes())[name]
    assert len(expected) > 10
    assert plain(TABLES[name]()) == expected


def test_what_a_reading_holds_includes_its_ends():
    """In numbers that doubles hold exactly."""
    reading = ReportedTriple(Triple(0.5, 0.5, 0.5), Triple(0.25, 0.125, 0.0625))
    ends = [Triple(0.5 + s * 0.25, 0.5 + s * 0.125, 0.5 + s * 0.0625) for s in (-1, 1)]
    assert all(reading.agrees_with(end) for end in ends)
    for metric, step in itertools.product(range(3), (-(2**-40), 2**-40)):
        value = list(ends[step > 0])
        value[metric] += step
        assert not reading.agrees_with(Triple(*value))
        assert reading.agrees_with(Triple(*value), slack=2**-40)
        assert not reading.agrees_with(Triple(*value), slack=2**-41)


def test_texts_have_the_decimals_that_tell_two_triples_apart():
    first, other = Triple(0.5, 0.25, 0.125), Triple(0.5, 0.25, 0.1250004)
    assert distinct_texts(first, other) == (
        "MCC 0.5000000, accuracy 0.2500000, F1 0.1250000",
        "MCC 0.5000000, accuracy 0.2500000, F1 0.1250004",
    )
    assert distinct_texts(first, Triple(0.5, 0.25, 0.125 + 1e-15))[1].endswith("0.125000000000001")
    assert (
        distinct_texts(first, first)[0]
        == f"MCC 0.5{'0' * 15}, accuracy 0.25{'0' * 14}, F1 0.125{'0' * 13}"
    )
    assert distinct_texts(first, Triple(0.6, 0.25, 0.125))[0] == str(first)
    assert str(first) == "MCC 0.5000, accuracy 0.2500, F1 0.1250"
    assert len(RhoRange(10, -4, 6)) == 6
