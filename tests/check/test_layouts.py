"""It works without configuration in three places, and says which key of a broken one is wrong."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker, FileResult, files_of
from geneb_ci.common.benchmark import load_benchmark, shipped_benchmark
from geneb_ci.common.config import Layout, LayoutKind, benchmark_of, find_layout, official_files
from geneb_ci.common.errors import BadConfiguration, NothingChecked
from tests.paths import LIVE, ROOT, SUBMISSIONS
from tests.small import BENCHMARK_FILE, CARD, small

SPLICEBERT = SUBMISSIONS / "splicebert-1024nt.json"


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = value if isinstance(value, str) else json.dumps(value)
    path.write_text(text, encoding="utf-8")
    return path


def finding_rows(argument: Path) -> list[tuple[str, str, str]]:
    finding_texts: list[tuple[str, str, str]] = []
    for result in Checker(RULES).run(files_of([argument])):
        assert isinstance(result, FileResult)
        finding_texts.extend((Path(f.file).name, f.rule, f.message) for f in result.findings)
    return finding_texts


NOTE = ("no-run-details", "format 1.0 has no run details: this row can only be audited manually")


def test_a_lone_file_in_an_empty_folder(tmp_path):
    path = Path(shutil.copy(SPLICEBERT, tmp_path / "any-name.json"))
    assert find_layout(tmp_path) == Layout(LayoutKind.ALONE, tmp_path)
    assert benchmark_of(find_layout(tmp_path)) is shipped_benchmark()
    assert finding_rows(path) == [("any-name.json", *NOTE)]
    assert finding_rows(tmp_path) == [("any-name.json", *NOTE)]


def test_this_repository():
    assert find_layout(LIVE) == Layout(
        LayoutKind.GENEB_CI,
        ROOT,
        submissions=LIVE,
        cards=LIVE / "cards",
        benchmark=ROOT / "schemas/benchmark.json",
        policy=ROOT / "leaderboard/policy",
        extractors=find_layout(LIVE).extractors,  # a folder that comes and goes
    )
    assert files_of([ROOT]) == files_of([LIVE]) == sorted(LIVE.glob("*.json"))


def upstream(root: Path) -> dict[str, Any]:
    """Build a checkout of upstream, and give its benchmark as upstream writes it."""
    ours = shipped_benchmark()
    spec = {
        "schema_version": "1.0",
        "name": "GENEB \u2014 Genomic Embedding Benchmark",
        "harness_version": "geneb-0.1.0",
        "regimes": ours.regimes,
        "metrics": ours.metrics,
        "primary_metric": "MCC",
        "protocol": {
            "probe": "logistic_regression",
            "logreg": {"max_iter": 1000, "n_jobs": -1},
            "seeds": ours.protocol.seeds,
            "pooling": "mean",
            "few_shot_k": [1, 10],
            "note": "Frozen embeddings.",
        },
        "dataset": {
            "repo_id": "DeepPavlov/geneb-tasks",
            "source": "huggingface",
            "revision": ours.dataset.revision,
            "layout": "<task_id>.csv",
        },
        "categories": dict.fromkeys(ours.category_order, "a description"),
        "category_order": ours.category_order,
        "tasks": [{"id": t.id, "label": t.label, "category": t.category} for t in ours.tasks],
    }
    write(root / "benchmark/benchmark_spec.json", spec)
    for folder in ("submissions", "model_cards", "harness/extractors"):
        (root / folder).mkdir(parents=True)
    shutil.copy(SPLICEBERT, root / "submissions")
    return spec


def test_an_upstream_checkout(tmp_path):
    upstream(tmp_path)
    layout = find_layout(tmp_path / "submissions")
    assert layout == Layout(
        LayoutKind.UPSTREAM,
        tmp_path,
        submissions=tmp_path / "submissions",
        cards=tmp_path / "model_cards",
        extractors=tmp_path / "harness/extractors",
        benchmark=tmp_path / "benchmark/benchmark_spec.json",
    )
    benchmark, ours = benchmark_of(layout), shipped_benchmark()
    assert benchmark.tasks == ours.tasks, "test sizes are kept"
    assert (benchmark.name, benchmark.harness_version) == (ours.name, "geneb-0.1.0")
    assert benchmark.dataset.repo_id == "DeepPavlov/geneb-tasks"
    assert len(official_files(layout)) == 40
    card = 'there is no model card for "splicebert-1024nt"'
    expected = [(SPLICEBERT.name, *NOTE), (SPLICEBERT.name, "missing-card", card)]
    assert finding_rows(tmp_path) == expected
    shutil.copy(SUBMISSIONS / "cards/splicebert-1024nt.md", tmp_path / "model_cards")
    assert finding_rows(tmp_path) == expected[:1]


def drop(spec: Any, *keys: Any) -> None:
    for key in keys[:-1]:
        spec = spec[key]
    del spec[keys[-1]]


def put(spec: Any, *keys: Any) -> None:
    *parents, last, value = keys
    for key in parents:
        spec = spec[key]
    spec[last] = value


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        (drop, ("regimes",), "the key regimes is missing"),
        (drop, ("tasks", 3, "label"), "the key tasks/3/label is missing"),
        (drop, ("protocol",), "the key protocol/seeds is missing"),
        (
            put,
            ("tasks", 3, "category", 7),
            "tasks/3/category: found 7; Input should be a valid string",
        ),
        (put, ("tasks", 2, "a task"), "the key tasks/2/id is missing"),
        (
            put,
            ("tasks", []),
            "tasks: found []; List should have at least 1 item after validation, not 0",
        ),
        (
            put,
            ("protocol", "seeds", "13"),
            'protocol/seeds: found "13"; Input should be a valid array',
        ),
        (
            put,
            ("dataset", "revision", "main"),
            'dataset/revision: found "main"; expected a commit: 40 digits of 0-9 and a-f',
        ),
    ],
)
def test_a_broken_upstream_benchmark_names_the_key(tmp_path, change, arguments, message):
    spec = upstream(tmp_path)
    change(spec, *arguments)
    path = write(tmp_path / "benchmark/benchmark_spec.json", spec)
    with pytest.raises(BadConfiguration) as caught:
        benchmark_of(find_layout(tmp_path))
    assert caught.value.message.startswith(f"{path}: {message}")


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, "NaN", '"x"'])
def test_an_upstream_benchmark_that_is_none(tmp_path, text):
    upstream(tmp_path)
    path = write(tmp_path / "benchmark/benchmark_spec.json", text)
    with pytest.raises(BadConfiguration) as caught:
        benchmark_of(find_layout(tmp_path))
    assert caught.value.message.startswith(f"{path}: ")
    assert "\n" not in caught.value.message


def repository(root: Path, table: str = "") -> Path:
    """Build a repository for the small benchmark, with one row and its card."""
    (root / "schemas").mkdir()
    shutil.copy(BENCHMARK_FILE, root / "schemas/benchmark.json")
    write(root / "submissions/model.json", small("model"))
    write(root / "submissions/cards/model.md", CARD)
    if table:
        write(root / "pyproject.toml", f"[tool.geneb-ci]\n{table}\n")
    return root


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("name", "", 'name: found ""; String should have at least 1 character'),
        ("primary_metric", "R2", 'primary_metric: found "R2"; expected "MCC": intervals, ranks'),
        ("tasks", [], "tasks: found []; List should have at least 1 item after validation, not 0"),
        ("comment", 1, "comment: found 1; expected no such key: delete it"),
        (
            "category_order",
            ["Promoters"],
            'category_order: found ["Promoters"]; expected the categories of the tasks',
        ),
    ],
)
def test_a_broken_benchmark_names_the_key(tmp_path, key, value, message):
    root = repository(tmp_path)
    path = root / "schemas/benchmark.json"
    write(path, json.loads(path.read_bytes()) | {key: value})
    with pytest.raises(BadConfiguration) as caught:
        finding_rows(root)
    assert caught.value.message.startswith(f"{path}: {message}")


def test_settings_name_folders_and_files(tmp_path):
    root = repository(
        tmp_path,
        'submissions = "rows"\ncards = "./texts"\nbenchmark = "../bench.json"\n'
        'ignore = ["no-run-details"]\nselect = ["card"]',
    )
    shutil.copy(BENCHMARK_FILE, tmp_path.parent / "bench.json")
    write(root / "rows/a.json", small("a"))
    write(root / "texts/a.md", CARD.replace("86M", "1M"))
    layout = find_layout(root / "rows")
    assert layout == Layout(
        LayoutKind.GENEB_CI,
        root,
        submissions=root / "rows",
        cards=root / "texts",
        benchmark=tmp_path.parent / "bench.json",
        select=("card",),
        ignore=("no-run-details",),
    )
    disagrees = "params is 1,000,000 in the card and 86,000,000 in the submission"
    assert finding_rows(root) == [("a.json", *NOTE), ("a.md", "card-disagrees", disagrees)]


def test_settings_may_be_absolute_and_lead_outside(tmp_path):
    rows = tmp_path / "elsewhere"
    write(rows / "a.json", small("a"))
    (tmp_path / "root").mkdir()
    root = repository(tmp_path / "root", f'submissions = "{rows}"\ncards = "../elsewhere/cards"')
    assert [Path(path).resolve() for path in files_of([root])] == [rows / "a.json"]
    assert find_layout(root).cards == rows / "cards"


def test_a_table_alone_makes_a_place_with_the_shipped_benchmark(tmp_path):
    write(tmp_path / "pyproject.toml", '[tool.geneb-ci]\nignore = ["card"]\n')
    layout = find_layout(tmp_path)
    assert layout == Layout(LayoutKind.GENEB_CI, tmp_path, ignore=("card",))
    assert benchmark_of(layout) is shipped_benchmark()


@pytest.mark.parametrize(
    "text",
    ['[tool."geneb-ci"]\nselect = ["card"]\n', '[tool]\ngeneb-ci = {select = ["card"]}\n'],
)
def test_a_table_is_found_in_each_spelling_of_toml(tmp_path, text):
    write(tmp_path / "pyproject.toml", text)
    assert find_layout(tmp_path).select == ("card",)


def test_a_project_without_our_table_is_not_a_place(tmp_path):
    write(tmp_path / "pyproject.toml", '[project]\ndependencies = ["geneb-ci"]\n')
    assert find_layout(tmp_path) == Layout(LayoutKind.ALONE, tmp_path)


SETTINGS = (
    "name one of the settings submissions, cards, extractors, benchmark, policy, audits, "
    "select, ignore, repository, site, space"
)
VALUE = "correct the value, or use no settings at all: geneb-ci check --isolated"


@pytest.mark.parametrize(
    ("table", "message", "fix"),
    [
        (
            "submission = 'x'",
            ": [tool.geneb-ci] has the unknown setting submission",
            SETTINGS,
        ),
        (
            "ignore = 'card'",
            ': [tool.geneb-ci] ignore is "card", expected a list of strings',
            VALUE,
        ),
        ("ignore = [1]", ": [tool.geneb-ci] ignore is [1], expected a list of strings", VALUE),
        ("cards = 1", ": [tool.geneb-ci] cards is 1, expected a path", VALUE),
        (
            "site = 'http://a.example'",
            ': [tool.geneb-ci] site is "http://a.example", expected an https address',
            VALUE,
        ),
        (
            "x = ",
            (
                ": [tool.geneb-ci] cannot be read: the file is not valid TOML: Invalid value "
                "(at line 2, column 5)"
            ),
            "correct the file, or use no settings at all: geneb-ci check --isolated",
        ),
    ],
)
def test_a_bad_setting_is_named(tmp_path, table, message, fix):
    root = repository(tmp_path, table)
    with pytest.raises(BadConfiguration) as caught:
        find_layout(root / "submissions")
    assert caught.value.message == f"{root}/pyproject.toml{message}"
    assert caught.value.fix == fix


def test_a_table_that_is_none_is_named(tmp_path):
    path = write(tmp_path / "pyproject.toml", "[tool]\ngeneb-ci = 3\n")
    with pytest.raises(BadConfiguration) as caught:
        find_layout(tmp_path)
    assert caught.value.message == f"{path}: tool.geneb-ci is 3, expected a table"


def test_a_file_that_a_setting_names_must_be_there(tmp_path):
    root = repository(tmp_path, 'benchmark = "no.json"')
    with pytest.raises(BadConfiguration) as caught:
        finding_rows(root)
    assert caught.value.message == (
        f"{root}/no.json: cannot be read: No such file or directory "
        f"(set by [tool.geneb-ci] benchmark in {root}/pyproject.toml)"
    )


@pytest.mark.parametrize(
    ("official", "message"),
    [
        ("{", "the file is not valid JSON: EOF while parsing an object"),
        ("{}", "the key 'files' is missing"),
        ('{"files": []}', "'files' is [], expected an object"),
        ('{"files": {"a": "ABC"}}', '\'files\': "a" is "ABC", expected the sha256 of a file, 64'),
        ('{"files": {"a": 7}}', "'files': \"a\" is 7, expected the sha256 of a file, 64 hex"),
    ],
)
def test_a_broken_policy_is_named(tmp_path, official, message):
    root = repository(tmp_path)
    path = write(root / "leaderboard/policy/official.json", official)
    with pytest.raises(BadConfiguration) as caught:
        finding_rows(root)
    assert caught.value.message.startswith(f"{path}: {message}")


def test_settings_among_the_submissions_do_not_count(tmp_path):
    """A contributor may write there: his policy, benchmark and ignored rules are not ours."""
    root = repository(tmp_path)
    rows = root / "submissions"
    own = (
        "[tool.geneb-ci]\n"
        'submissions = "."\n'
        'benchmark = "mine.json"\n'
        'policy = "."\n'
        'ignore = ["missing-card"]\n'
    )
    write(rows / "pyproject.toml", own)
    write(rows / "cards/pyproject.toml", own)
    write(rows / "schemas/benchmark.json", BENCHMARK_FILE.read_text(encoding="utf-8"))
    (rows / "submissions").mkdir()
    assert find_layout(rows).root == root
    assert find_layout(rows / "cards").root == root
    assert find_layout(rows / "submissions").root == root
    assert finding_rows(root) == [("model.json", *NOTE)]


def test_a_settings_file_of_a_repository_in_a_repository_counts(tmp_path):
    """A folder that is not among the submissions may be a place of its own."""
    repository(tmp_path)
    inner = tmp_path / "tests/inner"
    inner.mkdir(parents=True)
    repository(inner)
    assert find_layout(inner / "submissions").root == inner


def test_a_linked_row_is_judged_where_it_lies(tmp_path):
    root = repository(tmp_path)
    (root / "submissions/model.json").rename(tmp_path / "elsewhere.json")
    (root / "submissions/model.json").symlink_to(tmp_path / "elsewhere.json")
    assert finding_rows(root) == [("model.json", "irregular-file", "the file is a symbolic link")]


def test_an_extractor_path_of_the_contributors_never_leads_out(tmp_path):
    root = repository(tmp_path)
    (root / "submissions/extractors").mkdir()
    for path in ("../../../etc/passwd.py", "a" * 300 + ".py", "a\0b.py", "/", "extractors/..py"):
        document = small("model") | {"run": {"extractor": {"path": path, "sha256": "0" * 64}}}
        write(root / "submissions/model.json", document)
        assert "extractor-mismatch" not in {rule for _, rule, _ in finding_rows(root)}


def test_a_folder_without_submissions_and_a_root_without_its_folder(tmp_path):
    root = repository(tmp_path)
    shutil.rmtree(root / "submissions")
    (root / "submissions").mkdir()
    for argument, named in ((root, root / "submissions"), (root / "schemas/x", root / "schemas/x")):
        with pytest.raises(NothingChecked) as caught:
            files_of([argument])
        assert caught.value.message.startswith(f"{argument}: ")
        assert named.parent.is_dir()


def test_one_unreadable_benchmark_is_too_large(tmp_path):
    path = write(tmp_path / "large.json", " " * 1_000_001)
    with pytest.raises(BadConfiguration) as caught:
        load_benchmark(path)
    assert caught.value.message == f"{path}: has 1,000,001 bytes; the limit is 1,000,000"
