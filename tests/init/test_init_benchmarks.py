"""Benchmarks of one's own: what cannot be used is refused by `init`, the rest works to the end."""

import hashlib
import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import geneb_ci
from geneb_ci.audit.sampling.design import load_policy, policy_text
from geneb_ci.audit.sampling.plan import read_commitment
from geneb_ci.cli.main import main
from geneb_ci.common.benchmark import load_benchmark, shipped_benchmark
from geneb_ci.common.config import find_layout
from geneb_ci.harness.process import HarnessProcess
from reference_harness import mini
from reference_harness.data import benchmark as harness_benchmark
from reference_harness.data.define import define
from reference_harness.errors import OptionError
from reference_harness.formats.benchmark import Benchmark
from tests import forked
from tests.audit import unboxed
from tests.audit.examples import COMMITTED_AT, ROUND, ROUNDS, task_plan
from tests.audit.place import MODULE
from tests.definitions import (
    ACCEPTED,
    CATEGORIES,
    HOSTILE,
    REFUSED,
    UNSIZED,
    definition,
    shots,
    tasks,
)
from tests.gate import gated
from tests.git import git
from tests.harness.support import write_flat
from tests.init.conftest import FIRST
from tests.paths import ROOT
from tests.small import CARD, small, small_v12

EXTRACTOR = "submissions/extractors/model.py"


@pytest.mark.parametrize("name", REFUSED)
def test_init_refuses_what_nothing_can_use_and_so_does_the_harness(
    tmp_path, monkeypatch, capsys, name
):
    monkeypatch.chdir(tmp_path)
    changes, message = REFUSED[name]
    own = tmp_path / "own.json"
    own.write_text(json.dumps(definition(**changes)), encoding="utf-8")
    assert main([*FIRST, "--benchmark", "own.json"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("geneb-ci: own.json: ")
    assert message in " ".join(err.split())
    assert list(tmp_path.iterdir()) == [own]
    with pytest.raises(OptionError, match=r"^.*own\.json: "):
        harness_benchmark.load(own)


@pytest.fixture
def board(tmp_path, monkeypatch, identity):
    """Return what writes the board of a definition with two rows, committed, and enters it."""
    monkeypatch.setenv("HOME", str(identity))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(identity))

    def written(changes: dict[str, Any]) -> Path:
        own, root = tmp_path / "own.json", Path(tmp_path, "board")
        own.write_text(json.dumps(definition(**changes)), encoding="utf-8")
        assert harness_benchmark.load(own).sha256 == load_benchmark(own).sha256
        assert main([FIRST[0], str(root), *FIRST[1:], "--benchmark", str(own)]) == 0
        benchmark = load_benchmark(root / "schemas/benchmark.json")
        (root / "submissions/cards").mkdir()
        (root / "submissions/extractors").mkdir()
        (root / EXTRACTOR).write_bytes(MODULE)
        known = with_classes(benchmark)
        for document in (small("a", known), of_own_code(small_v12("b", known))):
            path = root / f"submissions/{document['model_id']}.json"
            path.write_text(json.dumps(document), encoding="utf-8")
            (root / f"submissions/cards/{path.stem}.md").write_text(CARD, encoding="utf-8")
        git(root, "add", "--all")
        git(root, "commit", "--quiet", "--message", "Two rows")
        monkeypatch.chdir(root)
        find_layout.cache_clear()
        return root

    return written


def with_classes(benchmark: Benchmark) -> Benchmark:
    """Return a benchmark that knows two classes of each task of which it knows the size alone."""
    halves = [
        replace(task, test_class_counts=[task.n_test // 2, task.n_test - task.n_test // 2])
        if task.n_test is not None and task.test_class_counts is None
        else task
        for task in benchmark.tasks
    ]
    return replace(benchmark, tasks=halves)


def of_own_code(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document of the extractor in the repository, whose digests differ by cell."""
    digest = hashlib.sha256(MODULE).hexdigest()
    document["run"]["extractor"] = {"path": EXTRACTOR, "class_name": "Model", "sha256": digest}
    for regime, cells in document["evidence"].items():
        for task, cell in cells.items():
            for kind in (cell, cell["canonical"]):
                named = f"{regime} {task} {'confusion' in kind and len(kind)}"
                kind["predictions_sha256"] = hashlib.sha256(named.encode()).hexdigest()
    return document


PLANNED = ("audit", "plan", "c.json", "--committed-at", COMMITTED_AT, "--beacon-file", "round.json")
STEPS = (
    ("check",),
    ("build", "--output", "out"),
    ("recommend",),
    ("recommend", "out"),
    ("figures", "out"),
    ("trust",),
    ("diff", "--base", "HEAD"),
    *(
        ("export", "--format", kind, "--output", kind)
        for kind in ("csv", "every-eval-ever", "croissant")
    ),
    ("audit", "commit", "submissions/b.json", "--output", "c.json"),
    (*PLANNED, "--output", "plan.json"),
)


HOSTILE_NAMES = "hostile names"
BY_DAY = ("one task",)
"""Of those accepted: the fewest tasks. The one with hostile names has a test of its own."""


@pytest.mark.parametrize(
    "name", gated((name for name in ACCEPTED if name != HOSTILE_NAMES), *BY_DAY)
)
def test_an_unusual_benchmark_works_from_init_to_the_plan_of_an_audit(board, capsys, name):
    assert_usable(board(ACCEPTED[name]), capsys)


def assert_usable(root: Path, capsys: Any) -> None:
    """Assert that each command works on a board, from the check of its rows to an audit's plan."""
    Path("round.json").write_text(json.dumps({"round": ROUND, "signature": ROUNDS[ROUND]}))
    capsys.readouterr()
    for step in STEPS:
        code = main(list(step))
        assert (step, code) == (step, 0), "".join(capsys.readouterr())
    assert (
        main(["audit", "submissions/b.json", "--practice", "--data", "schemas", "--dry-run"]) == 2
    )
    assert "which is only allowed for GENEB-mini" in " ".join(capsys.readouterr().err.split())
    for row, version in (("a", "1.0"), ("b", "1.2")):
        schema = json.loads((root / f"schemas/submission-{version}.schema.json").read_bytes())
        Draft202012Validator(schema).validate(
            json.loads((root / f"submissions/{row}.json").read_bytes())
        )
    benchmark = load_benchmark(root / "schemas/benchmark.json")
    policy = load_policy(root / "leaderboard/policy/policy.toml")
    drawn = min(13, len(benchmark.tasks))
    assert (policy.drawn, policy.minimum_drawn) == (drawn, drawn)
    assert policy.regimes == benchmark.regimes == read_commitment(Path("c.json")).regimes
    assert len(task_plan(Path("plan.json")).drawn) == drawn
    for regime, category in itertools.product(benchmark.regimes, benchmark.category_order):
        recommendation = geneb_ci.recommend("out", regime=regime, category=category)
        assert recommendation.tasks == list(benchmark.categories[category])
        assert [own.regime for own in recommendation.regimes] == [regime]


@pytest.mark.nightly  # in the gate: tests/harness/test_harness_define.py
def test_a_run_of_the_harness_is_verified_on_such_a_board(tmp_path, monkeypatch, capsys, identity):
    for name in ("mini_tf", "mini_enhancer"):
        write_flat(mini.load(name), tmp_path / "own")
    path, _ = define(tmp_path / "own", "Mine")
    path.write_text(json.dumps(json.loads(path.read_bytes()) | unusual()), encoding="utf-8")
    monkeypatch.setenv("HOME", str(identity))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(identity))
    monkeypatch.setenv("GENEB_HARNESS_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "board"
    assert main([FIRST[0], str(root), *FIRST[1:], "--benchmark", str(path)]) == 0
    words = ["run", "--data", "own", "--benchmark", "own/benchmark.json", "--extractor", "kmer"]
    words += ["--quiet", "--model-id", "mine", "--display", "Mine", "--zero-shot"]
    words += ["--training-data", "none", "--submitted-by", "me", "--output", "record.json"]
    words += ["--submission", str(root / "submissions/mine.json"), "--receipt", "receipt"]
    done = forked.run("reference_harness", *words, cwd=tmp_path, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    monkeypatch.chdir(root)
    monkeypatch.setattr(HarnessProcess, "call", unboxed.called)  # a process of it loads all anew
    find_layout.cache_clear()
    capsys.readouterr()
    for step in (
        ("check", "submissions/mine.json", "--ignore", "card"),
        (
            "receipt",
            "verify",
            "submissions/mine.json",
            "--data",
            "../own",
            "--receipt",
            "../receipt",
        ),
    ):
        assert (step, main(list(step))) == (step, 0), "".join(capsys.readouterr())
    assert "4/4 cells" in capsys.readouterr().out


PLACES = ("--data", "../own", "--receipt", "../receipt")


def unusual() -> dict[str, Any]:
    """Return members of a definition: five examples of a class, drawn by three seeds."""
    definition_made = definition(**shots(5, seeds=[0, 7, 9]))
    return {name: definition_made[name] for name in ("regimes", "protocol")}


def test_hostile_names_are_text_in_pages_and_data_elsewhere_has_no_link(board, capsys):
    """Words that others would run are names like any other."""
    assert_usable(board(ACCEPTED[HOSTILE_NAMES]), capsys)
    pages = [path.read_text("utf-8") for path in Path("out").rglob("*.html")]
    assert len(pages) > len(HOSTILE)
    for raw in (*HOSTILE[:2], "datasets/local", "<b>{x}"):
        assert [page for page in pages if raw in page] == []
    assert main(["export", "--format", "eval-results", "--output", "exported"]) == 2
    assert "not a data set on the Hub" in " ".join(capsys.readouterr().err.split())


NO_FIGURES = "out: the board has no diagnostics.json, which figures and advice"
WITHOUT_SIZES = (
    (("check",), 0, ""),
    (("recommend",), 1, "the benchmark lacks the number of test sequences of task_0"),
    (("build", "--output", "out"), 0, "the benchmark has no n_test for task_0, task_1, task_2"),
    (("recommend", "out"), 2, NO_FIGURES),
    (("figures", "out"), 2, NO_FIGURES),
    (("audit", "commit", "submissions/b.json", "--output", "c.json"), 0, ""),
)
"""Steps with the exit code and what is printed."""


def test_without_sizes_only_what_needs_them_is_refused(board, capsys):
    board(UNSIZED)
    for step, code, message in WITHOUT_SIZES:
        capsys.readouterr()
        assert (step, main(list(step))) == (step, code)
        assert message in " ".join("".join(capsys.readouterr()).split()), step


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (1, "drawn = 1               # tasks of the guaranteed sample: all of them"),
        (12, "drawn = 12              # tasks of the guaranteed sample: all of them"),
        (13, "drawn = 13              # tasks of the guaranteed sample: all of them"),
        (14, "drawn = 13              # tasks of the guaranteed sample: includes one of 2 raised"),
        (
            200,
            "drawn = 13              # tasks of the guaranteed sample: includes one of 40 raised",
        ),
    ],
)
def test_the_policy_says_what_its_sample_includes(tmp_path, number, message):
    own, listed = tmp_path / "own.json", tasks(number)
    order = [
        name for name in CATEGORIES if any(task_row["category"] == name for task_row in listed)
    ]
    own.write_text(json.dumps(definition(tasks=listed, category_order=order)), encoding="utf-8")
    text = policy_text(load_benchmark(own))
    assert message in text
    assert f"\nminimum_drawn = {min(13, number)} " in text
    sequences = sum(task_row["n_test"] for task_row in listed)
    assert f"\nminimum_rows = {min(1500, sequences)} " in text


def test_the_policy_of_the_public_board_is_the_shipped_one():
    path = ROOT / "leaderboard/policy/policy.toml"
    assert policy_text(shipped_benchmark()) == path.read_text(encoding="utf-8")
