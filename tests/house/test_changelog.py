"""What joined since the last release is in CHANGELOG.md, by name, in backticks.

`released.json` has the names of the last release, or of what the first one begins with; whoever
releases adds to it. Rules are not among them: RULES.md lists them, and is generated.
"""

import json
import re
from pathlib import Path

import pytest

from geneb_ci.board.columns import COLUMNS
from geneb_ci.cli.main import COMMANDS
from geneb_ci.common.types import TrustLevel
from geneb_ci.render.formats import FORMATS
from reference_harness.extractors import BUILTINS
from tests.paths import ROOT

RELEASED = json.loads(Path(__file__).with_name("released.json").read_bytes())
NOW = {
    "formats": list(FORMATS),
    "extractors": list(BUILTINS),
    "levels": list(map(str, TrustLevel)),
    "commands": list(COMMANDS),
    "columns": [column.key for column in COLUMNS],
}


@pytest.mark.parametrize("kind", NOW)
def test_what_is_new_is_in_the_changelog(kind):
    unreleased = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1]
    new = [name for name in NOW[kind] if name not in RELEASED[kind]]
    # Prose may have the word by chance: "csv", say, or "source".
    words = " ".join(re.findall("`([^`]+)`", unreleased)).replace(",", " ").split()
    missing = [name for name in new if name not in words]
    assert missing == [], f"say in CHANGELOG.md, under Unreleased, what these {kind} are: `name`"


@pytest.mark.parametrize("kind", NOW)
def test_what_was_released_is_still_there(kind):
    assert [name for name in RELEASED[kind] if name not in NOW[kind]] == []
