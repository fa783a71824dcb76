"""Published schemas and RULES.md say what the code does: whoever changes one limit changes both."""

from tests.paths import outside_rows
from tools.generate import generated


def test_every_generated_file_is_what_the_code_gives():
    other = [
        name
        for name, text in generated().items()
        if outside_rows(name).read_text(encoding="utf-8") != text
    ]
    assert other == [], "run `make generate`"
