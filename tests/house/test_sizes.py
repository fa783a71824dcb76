"""No file is too long to read in one sitting."""

import statistics

from tests.house.tracked import python_files
from tests.paths import ROOT

LINES_MAX = 400
MEDIAN_MAX = 210
"""Half the files are shorter: fewer files are longer ones (test_names.MODULES_MAX)."""


def lines(*folders: str) -> dict[str, int]:
    return {
        str(path): (ROOT / path).read_text(encoding="utf-8").count("\n")
        for path in python_files(*folders)
    }


def test_no_file_has_more_than_400_lines():
    assert {name: count for name, count in lines().items() if count > LINES_MAX} == {}


def test_the_median_file_of_the_package_is_short(record_property):
    median = statistics.median(lines("geneb_ci", "reference_harness").values())
    record_property("median_lines", median)
    assert median < MEDIAN_MAX
