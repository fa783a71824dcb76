"""The table that a row's noise is drawn from, where rounding or an edit leaves none."""

import pytest

from geneb_ci.board.noise import recovered_table
from geneb_ci.statistics.binary import BinaryTable, Classes
from geneb_ci.statistics.printed import Reading, Triple


@pytest.mark.parametrize(
    ("classes", "triple", "expected"),
    [
        (Classes(4, 16), Triple(0.05, 0.8, 4 / 9), BinaryTable(0, 4, 16, 0)),
        (Classes(4, 16), Triple(0.05, 0.2, 1 / 6), BinaryTable(4, 0, 0, 16)),
        (Classes(4, 16), Triple(0.3, 0.76, 0.6), BinaryTable(1, 3, 14, 2)),
    ],
)
def test_a_triple_that_no_table_has_gets_a_whole_table_near_it(classes, triple, expected):
    found = recovered_table(classes, Reading(triple, Triple(1e-13, 1e-13, 1e-13)))
    assert found == expected
