"""The source of the page: small parts, imported one way, joined into one script and one style."""

import re
from collections import Counter
from pathlib import PurePosixPath

import pytest

from geneb_ci.board.page import FIXED_FILES, assembled_files, page_files, pages_style
from geneb_ci.common.errors import BrokenInstallation
from tests.paths import ROOT

PAGE = ROOT / "leaderboard"
PARTS = {
    path.relative_to(PAGE).as_posix(): path.read_text("utf-8")
    for path in sorted((PAGE / "src").rglob("*.*"))
}
SCRIPTS = {name: text for name, text in PARTS.items() if name.endswith(".js")}
LINES_MAX = 250
WIDTH_MAX = 100
LAYERS = ("pure", "data", "state", "page", "charts", "views")
SETUP = {"src/page/controls.js", "src/page/draw.js"}
"""Above the views: they start them."""


def layer(name: str) -> int:
    return len(LAYERS) if name in SETUP else LAYERS.index(PurePosixPath(name).parts[1])


def imports(name: str) -> list[str]:
    folder = PurePosixPath(name).parent
    return [
        (ROOT / folder / path).resolve().relative_to(ROOT.resolve()).as_posix()
        for path in re.findall(r' from "(.+?)";', SCRIPTS[name])
    ]


def test_every_part_is_short_and_says_what_it_is():
    assert len(SCRIPTS) > 25
    for name, text in PARTS.items():
        assert text.count("\n") <= LINES_MAX, name
        assert text.startswith(("// ", "/* ")), name
    for name, text in SCRIPTS.items():
        # A sentence may be longer, as any formatter leaves it.
        long = [line for line in text.splitlines() if len(line) > WIDTH_MAX and '"' not in line]
        assert [line for line in long if "`" not in line] == [], name


def test_parts_import_one_way():
    for name in SCRIPTS:
        if name == "src/main.js":
            continue
        assert [other for other in imports(name) if layer(other) > layer(name)] == [], name


def test_what_is_pure_touches_neither_page_nor_data():
    for name, text in SCRIPTS.items():
        if name.startswith("src/pure/"):
            assert re.findall(r"\b(document|window|globalThis|location|history)\b", text) == []
            assert [other for other in imports(name) if "/pure/" not in other] == []


def test_charts_have_one_frame():
    for name, text in SCRIPTS.items():
        if name.startswith("src/charts/") and name != "src/charts/frame.js":
            assert "framed({" in text, name
            assert re.findall(r"d3\.(?:axis|select|symbol)|\"svg\"", text) == [], name


def test_only_the_store_keeps_the_state_and_changes_the_address():
    for name, text in SCRIPTS.items():
        if name != "src/state/store.js":
            assert re.findall(r"pushState|replaceState|location\b", text) == [], name


def test_every_import_is_used_and_every_part_is_reached():
    script = page_files()["board.js"].decode()
    assert sorted(re.findall(r"^/\* (src/\S+) \*/$", script, re.MULTILINE)) == sorted(SCRIPTS)
    used = Counter(word for text in SCRIPTS.values() for word in re.findall(r"\w+", text))
    for name, text in SCRIPTS.items():
        body = re.sub(r"^import .*$", "", text, flags=re.MULTILINE)
        for names in re.findall(r"^import \{(.*)\}", text, re.MULTILINE):
            for imported in names.split(","):
                assert re.search(rf"\b{re.escape(imported.strip())}\b", body), (name, imported)
        for exported in re.findall(r"^export \w+ (\w+)", text, re.MULTILINE):
            assert used[exported] > 1, (name, exported)
    style, pages = page_files()["board.css"].decode(), pages_style().decode()
    for name, text in PARTS.items():
        ours = name.endswith(".js") or name in {"src/main.css", "src/pages.css"}
        assert ours or text.strip() in (pages if name.endswith("/pages.css") else style)


def test_what_is_built_says_so_and_is_the_same_every_time():
    files = page_files()
    assert list(files) == sorted((*FIXED_FILES, "board.js", "board.css"))
    for name in ("board.js", "board.css"):
        assert files[name].startswith(b"/* Generated from leaderboard/src by geneb-ci")
    assert re.findall(rb"^(?:import|export)\b", files["board.js"], re.MULTILINE) == []
    assert page_files() == files
    raw = {path: (PAGE / path).read_bytes() for path in (*PARTS, "index.html")}
    again = assembled_files(dict(reversed(raw.items())))
    assert again["board.js"] == files["board.js"]
    assert list(again) == ["board.css", "board.js", "index.html"]


def test_a_page_without_a_source_is_given_as_it_is():
    old = {"board.js": b"old", "index.html": b"<p>"}
    assert assembled_files(old) == old


MAIN = b'import { a } from "./a.js";\na();\n'


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"main.js": MAIN}, "src/a.js is missing"),
        ({"main.js": MAIN, "a.js": b"const a = 1;\n"}, "imports a, which src/a.js does not export"),
        (
            {"main.js": MAIN, "a.js": b'import { b } from "./b.js";\nexport const a = b;\n'}
            | {"b.js": b'import { a } from "./a.js";\nexport const b = a;\n'},
            "is imported in a circle: src/main.js -> src/a.js -> src/b.js -> src/a.js",
        ),
        (
            {"main.js": b'import a from "./a.js";\n'},
            "has an import or export that the bundler does not support: import a",
        ),
        (
            {"main.js": b"export default 1;\n"},
            "has an import or export that the bundler does not support: export default",
        ),
        ({"main.css": b'@import "./a.css";\n'}, "src/a.css is missing"),
    ],
)
def test_a_source_that_does_not_fit_together_is_refused(parts, message):
    with pytest.raises(BrokenInstallation) as caught:
        assembled_files({f"src/{name}": text for name, text in parts.items()})
    assert message in caught.value.message
    assert caught.value.fix


def test_parts_are_joined_each_after_what_it_imports():
    parts = {
        "src/main.js": b'import { two } from "./b.js";\nimport { one } from "./a.js";\ntwo(one);\n',
        "src/a.js": b"export const one = 1;\nconst own = 2;\n",
        "src/b.js": b'import { one } from "./a.js";\nexport function two() {\n  return one;\n}\n',
    }
    script = assembled_files(parts)["board.js"].decode()
    assert re.findall(r"^/\* src/(\S+) \*/$", script, re.MULTILINE) == ["a.js", "b.js", "main.js"]
    assert "const { one } = $a;" in script
    assert "return { two };" in script
