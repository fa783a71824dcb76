"""What the page is made of: data as they are, small files, and nothing that runs a text."""

import gzip
import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.board.page import FIXED_FILES, SECURITY_POLICY, page_files
from geneb_ci.board.page_data import millionths, page_scripts
from geneb_ci.board.rows import board_file_bytes
from geneb_ci.common.benchmark import shipped_benchmark
from tests.board.board import entries
from tests.page.boards import advice, name_of, public_scripts, script, value_in, values
from tests.paths import ROOT
from tools.vendor_d3 import MODULES, note

PAGE = ROOT / "leaderboard"
BUDGET = 1_500_000  # bytes, compressed, page and data of 41 models


@pytest.fixture(scope="module")
def scripts():
    return public_scripts()


@given(st.floats(-1, 1))
def test_a_score_in_millionths_shows_the_same_three_decimals(score):
    shown = f"{millionths(score) / 1e6:.3f}"
    assert float(shown) == float(f"{score:.3f}")
    assert abs(millionths(score) / 1e6 - score) <= 1.5e-6
    assert millionths(score) % 1000 != 500


def test_every_score_of_the_board_is_in_the_scripts(scripts):
    base, ids = (
        value_in(scripts[name_of("data", scripts)]),
        [e.submission.model_id for e in entries()],
    )
    assert sorted(model["model"] for model in base["models"]) == sorted(ids)
    index_by_model = {model["model"]: index for index, model in enumerate(base["models"])}
    benchmark = shipped_benchmark()
    for number, regime in enumerate(benchmark.regimes):
        tasks = value_in(scripts[name_of(f"tasks-{number}", scripts)])["scores"]
        means = value_in(scripts[name_of(f"scores-{number}", scripts)])["scores"]
        for metric in benchmark.metrics:
            for row in values()["leaderboard.json"]["data"][regime]:
                exact = [row[f"macro_{metric}"], row[f"micro_{metric}"]]
                exact += row[f"cat_{metric}"].values()
                assert means[metric][index_by_model[row["model"]]] == [
                    millionths(score) for score in exact
                ]
            for row in values()["leaderboard_tasks.json"]["data"][regime]:
                exact = list(row[f"task_{metric}"].values())
                is_exact = metric == benchmark.primary_metric
                assert tasks[metric][index_by_model[row["model"]]] == (
                    exact if is_exact else list(map(millionths, exact))
                )


def test_matrices_give_the_scores_they_were_recovered_from(scripts):
    part, benchmark = value_in(scripts[name_of("matrices", scripts)]), shipped_benchmark()
    assert len(part["tasks"]) == 91
    rows = {row["model"]: row for row in values()["leaderboard_tasks.json"]["data"]["full"]}
    models = value_in(scripts[name_of("data", scripts)])["models"]
    looked = 0
    for model, result in zip(models, part["regimes"]["full"], strict=True):
        for order, index in enumerate(part["tasks"]):
            task = benchmark.tasks[index]
            count, small, large = result[3 * order : 3 * order + 3]
            assert count >= 1
            accuracy = (small + large) / sum(task.test_class_counts)
            assert accuracy == pytest.approx(rows[model["model"]]["task_Acc"][task.id], abs=1e-4)
            looked += 1
    assert looked == 41 * 91


@pytest.mark.parametrize(
    "text", ["</script><script>", "\u2028\u2029", "\ud800", '");alert(1)//', "__proto__", "\\"]
)
def test_a_script_is_ascii_and_gives_its_value_back(text):
    made = script("base", {text: [text]})
    assert made.isascii()
    assert value_in(made) == {text: [text]}
    assert b"\n" not in made.strip()


def test_page_and_data_of_41_models_are_small_when_compressed(scripts, record_property):
    files = page_files() | scripts
    files |= {name: board_file_bytes(name, value) for name, value in values().items()}
    size = sum(len(gzip.compress(content, 9)) for content in files.values())
    record_property("compressed_bytes", size)
    assert size < BUDGET


def test_without_diagnostics_there_are_neither_intervals_nor_advice():
    bare = {name: values()[name] for name in ("leaderboard.json", "leaderboard_tasks.json")}
    made = page_scripts(bare, entries(), shipped_benchmark())
    base = value_in(made[name_of("data", made)])
    assert (base["overall"], base["first"], base["facts"]) == (None, None, None)
    assert value_in(made[name_of("scores-0", made)])["standings"] is None
    assert list(value_in(made[name_of("tasks-0", made)])) == ["scores"]


def test_the_same_board_is_the_same_bytes(scripts):
    backwards = page_scripts(values(), reversed(entries()), shipped_benchmark(), None, advice())
    assert backwards == scripts


def test_the_page_has_no_way_to_run_a_text():
    source = "".join(page_files()[name].decode() for name in ("index.html", "board.js"))
    ways = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function"
    ways += r"|\.html\(|setHTML|createContextualFragment|DOMParser|srcdoc|javascript:|\bfetch\("
    assert re.findall(ways, source) == []
    assert re.findall(r"\son\w+=|<style|\sstyle=", (PAGE / "index.html").read_text("utf-8")) == []
    assert source.startswith("<!doctype html>")


def test_the_policy_of_the_server_is_that_of_the_page():
    head = (PAGE / "index.html").read_text("utf-8")
    assert f'<meta http-equiv="Content-Security-Policy" content="{SECURITY_POLICY}">' in head


def test_what_is_loaded_lies_beside_the_page():
    head = (PAGE / "index.html").read_text("utf-8")
    loaded = re.findall(r'(?:src|href)="((?!#|data:)[^"]+)"', head)
    assert loaded == ["board.css", "board-data.js", "board.js"]
    assert re.findall(rb"url\(|@import|https?://", page_files()["board.css"]) == []


def test_every_file_of_the_page_is_built_and_shipped():
    there = {path.relative_to(PAGE).as_posix() for path in PAGE.rglob("*") if path.is_file()}
    own = {name for name in there if not name.startswith(("src/", "policy/", "audits/"))}
    assert own == {*FIXED_FILES, "README.md", "social.png"}
    shipped = (ROOT / "pyproject.toml").read_text("utf-8")
    for top in {name.partition("/")[0] for name in FIXED_FILES} | {"src", "social.png"}:
        assert f'"leaderboard/{top}" = "geneb_ci/_shipped/page/{top}"' in shipped


def test_the_library_is_published_modules_and_nothing_else():
    library = (PAGE / "vendor/d3.min.js").read_bytes()
    before, *parts = re.split(rb"^(?=// https://d3js\.org/d3-)", library, flags=re.MULTILINE)
    assert before == b""
    heads = [re.match(rb"// https://d3js\.org/(\S+)/ v(\S+)", part) for part in parts]
    assert [
        (*(text.decode() for text in head.groups()), hashlib.sha256(part).hexdigest())
        for head, part in zip(heads, parts, strict=True)
        if head
    ] == [tuple(module) for module in MODULES]
    assert (PAGE / "vendor/README.md").read_text("utf-8") == note(library)


def test_every_module_is_under_its_licence():
    licence = (PAGE / "vendor/d3.LICENSE.txt").read_text("utf-8")
    named = re.findall(r"^(d3-[\w, -]+):$", licence, re.MULTILINE)
    assert sorted(", ".join(named).split(", ")) == sorted(module.name for module in MODULES)
    assert licence.count("Permission to use, copy, modify") == len(named)


def test_the_page_uses_nothing_that_the_modules_lack():
    used = set(re.findall(r"\bd3\.(\w+)", page_files()["board.js"].decode()))
    library = (PAGE / "vendor/d3.min.js").read_text("utf-8")
    assert {name for name in used if not re.search(rf"\.{name}=", library)} == set()
    assert len(used) > 5
