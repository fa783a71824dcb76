"""Results that are kept never change what is said: a warm run is a cold one, byte for byte."""

import io
import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.many_rows import write_rows
from geneb_ci.check import reuse as stores
from geneb_ci.check.registry import RULES, chosen
from geneb_ci.check.report import FileResult, Report, outcome_of
from geneb_ci.check.reuse import Reuse, Store
from geneb_ci.check.runner import Checker, Computer
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import BadConfiguration, NothingChecked
from geneb_ci.common.files import seal
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


def test_rows_that_processes_parse_are_compared_like_others(tmp_path):
    write_rows(tmp_path / "rows", 40)
    files = sorted((tmp_path / "rows").iterdir())
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


OTHERS: tuple[Any, ...] = (True, -1, 0.5, 11.5, "x", [], {}, [[]], [1, 2, 3], float("nan"))
"""Values that take the place of kept ones of another type."""


def places(value: Any, at: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Yield the path of every value inside a value of lists."""
    yield at
    for number, one in enumerate(value if isinstance(value, list) else ()):
        yield from places(one, (*at, number))


def forged(value: Any, at: tuple[int, ...], drawn: random.Random) -> Any:
    """Return a value with another type at one place, or with one more or less value there."""
    if not at:
        longer = isinstance(value, list) and len(value) > 1 and drawn.random() < 0.3
        if longer and any(isinstance(one, str | bool) for one in value):
            return [*value, drawn.choice(OTHERS)] if drawn.random() < 0.5 else value[:-1]
        numbers = isinstance(value, int | float) and not isinstance(value, bool)
        left_out = {int, float} if numbers else {type(value)}
        return drawn.choice([one for one in OTHERS if type(one) not in left_out])
    place, *below = at
    return [
        forged(one, tuple(below), drawn) if number == place else one
        for number, one in enumerate(value)
    ]


def forge(store: Store, drawn: random.Random) -> None:
    """Put foreign content under right names, digests and seals, or what is of another row."""
    assert store.folder is not None
    names = sorted(path.name for path in store.folder.iterdir())
    [name] = [one for one in names if "-" not in one]
    lines = [line.split(b" ", 3) for line in (store.load(name) or b"").split(b"\n")]
    case = drawn.randrange(7)
    if case < 3:
        for line in drawn.sample(lines, drawn.randrange(1, len(lines))):
            value = json.loads(line[3])
            other = forged(value, drawn.choice(list(places(value))), drawn)
            line[3] = json.dumps(other).encode()
            line[2] = seal(line[1].decode(), line[3]).encode()
    elif case == 3:  # what belongs to one row under the key of another
        for kind in (b"facts", b"result"):
            own = [line for line in lines if line[0] == kind]
            for line, other in zip(
                own, drawn.sample([line[2:] for line in own], len(own)), strict=True
            ):
                line[2:] = other
    elif case == 4:
        line = drawn.choice(lines)
        line[3] = drawn.choice([b"", b"[" * 10**5, b"\xff", b"9" * 5000, b"null"])
        line[2] = seal(line[1].decode(), line[3]).encode()
    else:
        archive = io.BytesIO()
        np.savez(archive, a=np.zeros(3))
        foreign = [archive.getvalue(), b"", b"{}", b"\n", b"[" * 10**5, b'{"shapes": 1}\n']
        foreign += [b'{"shapes": [["a"]], "rows": [["x", 0]]}\n123', os.urandom(50)]
        store.save(drawn.choice(names), drawn.choice(foreign))
        return
    store.save(name, b"\n".join(b" ".join(line) for line in lines))
    if case == 3 and (raw := store.load(f"{name}-scores")):
        head, _, content = raw.partition(b"\n")
        value = json.loads(head)
        drawn.shuffle(value["rows"])
        store.save(f"{name}-scores", json.dumps(value).encode() + b"\n" + content)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 10**6))
def test_what_a_check_did_not_write_is_no_result(tmp_path_factory, seed):
    drawn = random.Random(seed)
    files = repository(tmp_path_factory.mktemp("repository"))[:4]
    documents = [json.loads(path.read_bytes()) for path in files]
    for number, (path, document) in enumerate(zip(files, documents, strict=True)):
        # One is nearly another, each has a finding of its own, and what is exchanged would be seen.
        document["results"] = json.loads(json.dumps(documents[number % 3]["results"]))
        for task in sorted(document["results"]["full"])[3 * number : 3 * number + 1 + number]:
            del document["results"]["full"][task]
        path.write_text(json.dumps(document), encoding="utf-8")
    store = Store(files[0].parents[1] / "cache")
    expected = cold(files)
    for _ in range(2):
        assert warm(files, store) == expected
        forge(store, drawn)
    assert warm(files, store) == expected


def test_a_folder_in_the_place_of_a_file_keeps_nothing(tmp_path):
    files, store = repository(tmp_path)[:3], Store(tmp_path / "cache")
    expected = warm(files, store)
    for path in list((tmp_path / "cache").iterdir()):
        path.unlink()
        (path / "inner").mkdir(parents=True)
    assert warm(files, store) == warm(files, store) == expected


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
