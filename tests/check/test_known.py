"""Shipped files are known by their digests; a full check of them finds the same."""

import dataclasses
import json
import subprocess
import sys

import pytest

from geneb_ci.common import shipped
from geneb_ci.common.benchmark import load_benchmark, parse_benchmark, shipped_benchmark
from geneb_ci.common.config import Layout, LayoutKind
from geneb_ci.common.errors import BadConfiguration
from geneb_ci.models.entry import parse_entry
from geneb_ci.models.registry import ModelRegistry
from reference_harness.formats.benchmark import parse
from tests.paths import PUBLIC, ROOT

NAMES = ("benchmark.json", "benchmark-mini.json")
POLICY = ROOT / "leaderboard/policy"


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_benchmark_is_what_the_typed_model_gives(name):
    raw = (ROOT / "schemas" / name).read_bytes()
    benchmark = shipped_benchmark(name)
    assert benchmark.sha256 in shipped.known_files().benchmarks
    assert benchmark == parse(raw)
    assert parse(json.dumps(benchmark.document()).encode()).tasks == benchmark.tasks
    assert list(json.loads(raw).keys() - benchmark.document()) == []


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('"schema_version"', '"schema_versio"', "schema_versio"),
        ('"primary_metric": "MCC"', '"primary_metric": "AUC"', "primary_metric"),
        ('"Splice Sites"', '"macro"', "the name of a mean"),
    ],
)
def test_a_definition_of_other_bytes_is_validated(tmp_path, old, new, key):
    text = (ROOT / "schemas/benchmark.json").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "benchmark.json"
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(BadConfiguration, match=key):
        load_benchmark(path)


def test_a_definition_of_other_spacing_is_the_same_but_for_its_digest():
    raw = (ROOT / "schemas/benchmark.json").read_bytes()
    other = parse_benchmark(raw + b"\n", "x")
    assert other.sha256 not in shipped.known_files().benchmarks
    assert dataclasses.replace(other, sha256=shipped_benchmark().sha256) == shipped_benchmark()


def test_facts_of_each_entry_are_those_of_the_file():
    layout = Layout(LayoutKind.GENEB_CI, ROOT, policy=POLICY)
    registry = ModelRegistry(layout)
    assert len(shipped.known_files().models) == len(list(registry)) > 0
    for model_id in registry:
        raw = registry.path(model_id).read_bytes()
        assert registry[model_id] == parse_entry(raw, model_id).entry.attributes


def test_an_entry_of_other_bytes_is_parsed(tmp_path):
    (tmp_path / "models").mkdir()
    raw = (POLICY / "models/space.toml").read_text(encoding="utf-8")
    path = tmp_path / "models/space.toml"
    registry = ModelRegistry(Layout(LayoutKind.GENEB_CI, tmp_path, policy=tmp_path))
    path.write_text(f"{raw}\nother = 1\n", encoding="utf-8")
    with pytest.raises(BadConfiguration, match="other"):
        registry["space"]


UNUSED = ("pydantic", "pydantic_core", "rich.console", "ssl", "email")


def test_one_sound_file_waits_for_nothing_it_does_not_need():
    code = (
        "import sys; from geneb_ci.cli.main import main;"
        "code = main(['check', '--no-cache', 'submissions/space.json']);"
        "print(sorted(set(sys.argv[1:]) & set(sys.modules)), code)"
    )
    modules = [*UNUSED, "geneb_ci.check.rules.pullrequest", "geneb_ci.check.change"]
    done = subprocess.run(
        [sys.executable, "-c", code, *modules],
        cwd=PUBLIC,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1:] == ["[] 0"], done.stderr


def test_rules_that_are_left_out_are_not_imported():
    code = (
        "import sys; from geneb_ci.cli.main import main;"
        "main(['check', '--no-cache', 'submissions/space.json', '--select', 'coverage']);"
        "print(json.dumps(sorted(name.split('.')[3] for name in sys.modules"
        " if name.startswith('geneb_ci.check.rules.'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import json; {code}"],
        cwd=PUBLIC,
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(json.loads(done.stdout.splitlines()[-1])) == {"coverage", "structure"}
