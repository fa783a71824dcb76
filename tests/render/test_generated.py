"""Published schemas and RULES.md say what the code does: whoever changes one limit changes both."""

import json
import re

import pytest
from jsonschema import Draft202012Validator

from tests.house.tracked import tracked
from tests.paths import outside_rows
from tools.generate import generated


def test_every_generated_file_is_what_the_code_gives_and_every_schema_is_generated():
    made = generated()
    other = [
        name
        for name, text in made.items()
        if outside_rows(name).read_text(encoding="utf-8") != text
    ]
    assert other == [], "run `make generate`"
    schemas = {
        name for name in map(str, tracked()) if re.fullmatch(r"schemas/.*\.schema\.json", name)
    }
    assert schemas == {name for name in made if name.endswith(".schema.json")}


# In the gate: the schemas of submissions in tests/submission/test_engines_agree.py.
@pytest.mark.nightly
def test_every_published_schema_is_one():
    schemas = [text for name, text in generated().items() if name.endswith(".schema.json")]
    assert schemas
    for text in schemas:
        Draft202012Validator.check_schema(json.loads(text))
