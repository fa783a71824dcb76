"""Published schemas and RULES.md say what the code does: whoever changes one limit changes both."""

import pytest

from tests.paths import outside_rows
from tools.generate import generated

FILES = generated()


@pytest.mark.parametrize("name", FILES)
def test_a_generated_file_is_what_the_code_gives(name):
    assert outside_rows(name).read_text(encoding="utf-8") == FILES[name], (
        f"{name}: run `make generate`"
    )
