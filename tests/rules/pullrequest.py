"""One failing and one passing change for each rule of the family pullrequest."""

import json
from typing import Any

from tests.rules.fixture import Files

ROW = "submissions/model.json"
CARD = "submissions/cards/model.md"
MODULE = "submissions/extractors/model.py"
Modes = list[str | None]
ADDED: Modes = [None, "100644"]
EDITED: Modes = ["100644", "100644"]
DELETED: Modes = ["100644", None]
WHOLE: dict[str, Modes] = {ROW: ADDED, CARD: ADDED, MODULE: ADDED}


def change(files: dict[str, Modes], **said: Any) -> Files:
    """Give a change of these paths, each with its modes before and after."""
    return {"change.json": json.dumps({"files": files} | said, indent=1).encode() + b"\n"}


def whole(files: dict[str, Modes], **said: Any) -> Files:
    """Give a sound submission with something besides, or instead."""
    return change(WHOLE | files, **said)


SOUND = whole({})

PULLREQUEST: dict[str, tuple[Files, Files]] = {
    "truncated-tree": (whole({}, truncated=True), SOUND),
    "too-many-files": (
        whole({f"submissions/extractors/part/{n:02}.py": ADDED for n in range(48)}),
        whole({f"submissions/extractors/part/{n:02}.py": ADDED for n in range(47)}),
    ),
    "foreign-file": (
        whole({".github/workflows/publish.yml": EDITED, "pyproject.toml": EDITED}),
        whole({ROW: EDITED}, correction="2026-11-20, full regime rerun"),
    ),
    "generated-file": (
        whole({"leaderboard/leaderboard.json": ADDED, "RULES.md": EDITED}),
        whole({"leaderboard/policy/official.json": EDITED}),
    ),
    "several-models": (
        whole({"submissions/other.json": EDITED}),
        whole({"submissions/cards/other.md": EDITED}),
    ),
    "colliding-paths": (
        whole({"submissions/cards/Model.md": ADDED}),
        whole({"submissions/cards/Model.md": DELETED}),
    ),
    "symbolic-link": (whole({ROW: [None, "120000"]}), whole({ROW: ["120000", "100644"]})),
    "git-submodule": (whole({"submissions/extractors/lib": [None, "160000"]}), SOUND),
    "executable-file": (whole({MODULE: [None, "100755"]}), whole({MODULE: ["100755", "100644"]})),
    "deleted-file": (
        change({"submissions/old.json": DELETED, "submissions/new.json": ADDED}),
        SOUND,
    ),
    "edited-without-note": (
        change({ROW: EDITED, CARD: EDITED}),
        change({ROW: EDITED, CARD: EDITED}, correction="2026-11-20, full regime rerun"),
    ),
    "row-without-card": (
        change({ROW: ADDED, MODULE: ADDED}),
        change({ROW: EDITED, MODULE: ADDED}),
    ),
    "row-without-extractor": (
        change({ROW: ADDED, CARD: ADDED}, module="model.py"),
        change({ROW: ADDED, CARD: ADDED}, is_there=True),
    ),
}
