"""Results that are kept never change what is said: a warm run is a cold one, byte for byte."""

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geneb_ci.check import reuse as stores
from geneb_ci.check.registry import RULES, chosen
from geneb_ci.check.report import FileResult, Report, outcome_of
from geneb_ci.check.reuse import Reuse, Store
from geneb_ci.check.runner import Checker, Computer
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import BadConfiguration, NothingChecked
from geneb_ci.render.formats import render
from tests.paths import ROOT, SUBMISSIONS

ROWS = tuple(f"{SUBMISSIONS}/{path.name}" for path in sorted(SUBMISSIONS.glob("*.json"))[:10])
RULE_IDS = chosen((), ())


def repository(root: Path) -> list[Path]:
    """Write a small repository of public rows and return its rows."""
    for folder in ("submissions/cards", "submissions/extractors", "schemas", "leaderboard/policy"):
        (root / folder).mkdir(parents=True)
    shutil.copy(ROOT / "schemas/benchmark.json", root / "schemas")
    shutil.copy(ROOT / "leaderboard/policy/official.json", root / "leaderboard/policy")
    (root / "leaderboard/policy/models").mkdir()
    for row in map(Path, ROWS):
        shutil.copy(row, root / "submissions")
        card = SUBMISSIONS / f"cards/{row.stem}.md"
        if card.is_file():
            shutil.copy(card, root / "submissions/cards")
    return sorted((root / "submissions").glob("*.json"))


def shown(results: Any, rules: int) -> str:
    """Return all that a report says, in the format with the most."""
    report = Report(rules=rules)
    fault = ""
    try:
        for result in results:
            if isinstance(result, NothingChecked):
                report.unreadable.append(result)
            else:
                report.take(outcome_of(result) if isinstance(result, FileResult) else result)
    except BadConfiguration as error:
        fault = f"{error.message} {error.fix}"
    frames = sorted((one.sort_key(), frame) for one, frame in report.frames.items())
    skipped = {need: dict(rules) for need, rules in report.skipped.items()}
    return f"{render('json', report)}{frames}{skipped}{report.files}{fault}"


def cold(files: list[Path]) -> str:
    """Return what a plain run says."""
    find_layout.cache_clear()
    return shown(Checker(RULES, find=find_layout).run(files), len(RULES))


def warm(files: list[Path], store: Store, jobs: int = 1) -> str:
    """Return what a run with kept results says."""
    find_layout.cache_clear()
    return shown(Reuse(RULE_IDS, find_layout, None, store, jobs).run(files), len(RULES))


def edited(root: Path, drawn: random.Random) -> None:  # noqa: C901, PLR0912 (a case for each thing)
    """Change one thing that a result may follow from."""
    rows = sorted((root / "submissions").glob("*.json"))
    row = drawn.choice(rows)
    text = row.read_text(encoding="utf-8")
    try:
        document = json.loads(text)
    except ValueError:
        document = {}
    match drawn.randrange(12):
        case 0:
            document.get("results", {}).get("full", {}).popitem()
        case 1:
            cells = document["results"]["full"]
            cells[drawn.choice(sorted(cells))]["MCC"] = drawn.choice([0.5, 2, "x", 0.0])
        case 2:
            document["meta"]["display"] = json.loads(drawn.choice(rows).read_bytes())["meta"][
                "display"
            ]
        case 3:
            document["results"] = json.loads(drawn.choice(rows).read_bytes())["results"]
        case 4:
            document["model_id"] = document.get("model_id", "").swapcase()
        case 5:
            row.with_name(f"{drawn.choice('abc')}.json").write_text(text, encoding="utf-8")
        case 6:
            card = row.parent / f"cards/{row.stem}.md"
            card.write_text(drawn.choice(["", "# x\n", "\n- **Model:** TODO\n"]), encoding="utf-8")
        case 7:
            policy = root / "leaderboard/policy/official.json"
            value = json.loads(policy.read_bytes())
            value["files"][row.stem] = drawn.choice(["0" * 64, "1" * 64])
            policy.write_text(json.dumps(value), encoding="utf-8")
        case 8:
            entry = root / f"leaderboard/policy/models/{row.stem}.toml"
            params = drawn.choice([1, 2])
            entry.write_text(f'schema_version = "1.0"\nparams = {params}\n', encoding="utf-8")
        case 9:
            benchmark = root / "schemas/benchmark.json"
            value = json.loads(benchmark.read_bytes())
            value["tasks"][0]["label"] = drawn.choice("ab")
            benchmark.write_text(json.dumps(value), encoding="utf-8")
        case 10:
            row.write_text(f'{text.rstrip()[:-1]},"a":1,"a":NaN}}', encoding="utf-8")
            return
        case _:
            if len(rows) > 9:
                row.unlink()
            return
    if row.exists() and document:
        row.write_text(json.dumps(document), encoding="utf-8")


def damaged(folder: Path, drawn: random.Random) -> None:
    """Flip, cut, swap or remove files of the cache."""
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    contents = [path.read_bytes() for path in files]
    for path in files:
        raw = bytearray(path.read_bytes())
        match drawn.randrange(6):
            case 0:
                raw[drawn.randrange(len(raw))] ^= 1 << drawn.randrange(8)
                path.write_bytes(raw)
            case 1:
                path.write_bytes(raw[: drawn.randrange(len(raw))])
            case 2:
                path.write_bytes(drawn.choice(contents))
            case 3:
                path.unlink()


@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 10**6), steps=st.integers(1, 4), harm=st.booleans())
def test_a_warm_run_is_a_cold_one(tmp_path_factory, seed, steps, harm):
    drawn = random.Random(seed)
    root = tmp_path_factory.mktemp("repository")
    store = Store(root / "cache")
    repository(root)
    for _ in range(steps):
        files = sorted((root / "submissions").glob("*.json"))
        some = drawn.choice([files, files[:1], files[2:5]])
        assert warm(some, store) == cold(some)
        if harm:
            damaged(root / "cache", drawn)
        edited(root, drawn)
    files = sorted((root / "submissions").glob("*.json"))
    assert warm(files, store) == cold(files)
    assert warm(files, store) == cold(files)


def test_nothing_is_computed_again_without_a_change_and_little_with_one(tmp_path, monkeypatch):
    computed = []
    compute = Computer.compute

    def counted(self: Computer, miss: Any) -> Any:
        computed.append(miss)
        return compute(self, miss)

    monkeypatch.setattr(Computer, "compute", counted)
    files, store = repository(tmp_path), Store(tmp_path / "cache")
    first = warm(files, store)
    assert len(computed) == len(files)
    computed.clear()
    assert warm(files, store) == first
    assert computed == []
    (tmp_path / f"submissions/cards/{files[0].stem}.md").write_text("# other\n", encoding="utf-8")
    assert warm(files, store) == cold(files)
    assert [miss.seen.name for miss in computed] == [files[0]]
    computed.clear()
    document = json.loads(files[1].read_bytes())
    document["results"]["full"].popitem()
    files[1].write_text(json.dumps(document), encoding="utf-8")
    assert warm(files, store) == cold(files)
    # Other rows are compared with it, and nothing else is computed anew.
    assert [miss.seen.name for miss in computed if miss.entry is None] == [files[1]]


def test_processes_say_what_one_says(tmp_path):
    files = repository(tmp_path)
    assert warm(files, Store(None), jobs=2) == cold(files)
    store = Store(tmp_path / "cache")
    assert warm(files, store, jobs=2) == cold(files) == warm(files, store, jobs=2)


def test_a_process_that_is_killed_is_done_without(tmp_path, monkeypatch):
    files, here = repository(tmp_path), os.getpid()
    found = Computer._found

    def killed(self: Computer, miss: Any) -> Any:
        if os.getpid() != here:
            os.kill(os.getpid(), 9)
        return found(self, miss)

    monkeypatch.setattr(Computer, "_found", killed)
    assert warm(files, Store(None), jobs=2) == cold(files)


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path):
    files = repository(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    for folder in (tmp_path / "file", tmp_path / "file/below", Path("/proc/none")):
        assert warm(files, Store(folder)) == cold(files)


def test_a_well_formed_file_of_other_content_is_no_result(tmp_path):
    files, store = repository(tmp_path), Store(tmp_path / "cache")
    first = warm(files, store)
    [name] = [path.name for path in (tmp_path / "cache").iterdir() if "-" not in path.name]
    body = json.loads(store.load(name) or b"")
    key = min(body["results"])
    parts: list[Any] = [[], [1, 2, 3], [[], [], []], [[[[1]], []], [[], []], []]]
    for wrong in (*parts, [[[], []], [[], []], [1]]):
        value = {**body, "results": {**body["results"], key: wrong}}
        store.save(name, json.dumps(value).encode())
        assert warm(files, store) == first
    others: list[Any] = [[], {}, {**body, "root": "x"}, {**body, "facts": {"x": [1]}}]
    for other in others:
        store.save(name, json.dumps(other).encode())
        assert warm(files, store) == first
    store.save(f"{name}-scores", b'{"shapes": [["a"]], "rows": [["x", 0]]}\n123')
    assert warm(files, store) == first


def test_a_file_is_read_back_only_under_its_name_and_whole(tmp_path):
    store = Store(tmp_path / "a/b")
    assert store.load("x") is None
    store.save("x", b"content")
    assert store.load("x") == b"content"
    (tmp_path / "a/b/x").rename(tmp_path / "a/b/y")
    assert store.load("y") is None
    store.save("x", b"")
    assert store.load("x") == b""
    (tmp_path / "a/b/z").symlink_to("x")
    assert store.load("z") is None


def test_the_cache_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "FILES_MAX", 3)
    store = Store(tmp_path)
    for number in range(6):
        store.save(str(number), b"x")
        os.utime(tmp_path / str(number), (number, number))
    store.save("last", b"x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["4", "5", "last"]
    monkeypatch.setattr(stores, "FILE_BYTES_MAX", 10)
    store.save("large", b"x" * 11)
    assert store.load("large") is None


@pytest.mark.parametrize("rules", [("coverage",), ("plausibility", "near-copy")])
def test_other_rules_have_results_of_their_own(tmp_path, rules):
    files, store = repository(tmp_path), Store(tmp_path / "cache")
    warm(files, store)
    some = chosen(rules, ())
    find_layout.cache_clear()
    kept = shown(Reuse(some, find_layout, None, store).run(files), len(some))
    fresh = shown(Reuse(some, find_layout, None, Store(None)).run(files), len(some))
    assert kept == fresh
