"""Parts of boards that are kept: a build that uses them writes what one without any writes."""

import contextlib
import hashlib
import io
import itertools
import json
import os
import random
import resource
import shutil
import signal
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.bench_scale import changed
from benchmarks.many_rows import write_rows
from geneb_ci.api import build
from geneb_ci.board import parts as kept
from geneb_ci.board import uncertainty
from geneb_ci.board.board import board_of, entry_maker, page_of, write_board
from geneb_ci.board.columns import Entry
from geneb_ci.board.page_data import ROW_MATRICES
from geneb_ci.board.parts import KeptRows, Parts, read_row
from geneb_ci.board.site import pages
from geneb_ci.check.reuse import Store
from geneb_ci.common.config import Layout, benchmark_of, find_layout
from geneb_ci.common.files import seal
from geneb_ci.submission.document import read_document
from tests.check.test_reuse import damaged, repository

ROWS = 3
REGIMES = 3


def small(root: Path) -> Path:
    """Write a repository of three rows and return its folder."""
    for path in repository(root)[ROWS:]:
        path.unlink()
    return root


def rows_at(root: Path, parts: Parts | None) -> tuple[list[Entry], Layout]:
    """Return the rows of a repository, whatever checks say of them, and its layout."""
    find_layout.cache_clear()
    layout = find_layout(root)
    made = entry_maker(layout)
    seen = [
        (path, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted((root / "submissions").glob("*.json"))
    ]
    if parts is None:
        return [made(row, ()) for row in map(read_row, seen) if row is not None], layout
    listed = KeptRows(parts, ROW_MATRICES, uncertainty.ROW_ERRORS).read(seen, benchmark_of(layout))
    return [made(row, ()) for row in listed if row is not None], layout


def computed(root: Path, parts: Parts | None = None) -> dict[str, bytes]:
    """Return all files of the board of a repository, as they are made in memory."""
    entries, layout = rows_at(root, parts)
    board = board_of(entries, layout)
    if parts is not None:
        parts.save()
    return board.files | page_of(entries, board, layout)


def built(root: Path, parts: Parts) -> dict[str, bytes]:
    """Return all files of the same board, the page as it lies in a folder after it was written."""
    entries, layout = rows_at(root, parts)
    board, out = board_of(entries, layout), root / "out"
    models = {entry.submission.model_id for entry in entries}
    for former in (*out.glob("models/*"), *out.glob("badges/*")):
        if former.stem not in models:
            former.unlink()
    write_board(entries, board, layout, parts, out)
    written = [path for path in out.rglob("*") if path.is_file()]
    return board.files | {str(one.relative_to(out)): one.read_bytes() for one in written}


def edited(root: Path, drawn: random.Random) -> None:
    """Change one thing that a page or a number may follow from."""
    listed = sorted((root / "submissions").glob("*.json"))
    row = drawn.choice(listed)
    document = json.loads(row.read_bytes())
    benchmark = root / "schemas/benchmark.json"
    match drawn.randrange(7):
        case 0:
            cell = document["results"]["full"][_first(document)]
            cell["MCC"] = round(cell["MCC"] - drawn.random() / 100, 6)
        case 1:
            document["meta"]["display"] = drawn.choice(["<b>a</b>", "b"])
        case 2:
            policy = root / "leaderboard/policy/official.json"
            value = json.loads(policy.read_bytes())
            value["files"][row.stem] = "0" * 64
            policy.write_text(json.dumps(value), encoding="utf-8")
        case 3:
            entry = root / f"leaderboard/policy/models/{row.stem}.toml"
            entry.write_text(
                f'schema_version = "1.0"\nparams = {drawn.choice([1, 2])}\n', encoding="utf-8"
            )
        case 4:
            value = json.loads(benchmark.read_bytes())
            value["tasks"][0]["label"] = drawn.choice("ab")
            benchmark.write_text(json.dumps(value), encoding="utf-8")
        case 5:
            text = '[tool.geneb-ci]\nrepository = "https://github.com/a/b"\n'
            (root / "pyproject.toml").write_text(text, encoding="utf-8")
        case _:
            if len(listed) > 1:
                row.unlink()
            return
    row.write_text(json.dumps(document), encoding="utf-8")


def _first(document: dict[str, Any]) -> str:
    return str(min(document["results"]["full"]))


@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 10**6), harm=st.booleans())
def test_a_warm_build_is_a_cold_one(tmp_path_factory, seed, harm):
    drawn = random.Random(seed)
    root = small(tmp_path_factory.mktemp("repository"))
    store = Store(root / "cache")
    built(root, Parts(store))
    for _ in range(2):
        if harm:
            damaged(root / "cache", drawn)
        edited(root, drawn)
        assert built(root, Parts(store)) == computed(root)


def test_only_what_changed_is_made_again(tmp_path, monkeypatch):
    root, store, made = small(tmp_path), Store(tmp_path / "cache"), []
    for place, name in ((uncertainty, "row_scores"), (pages, "model_page")):
        plain = getattr(place, name)

        def counted(*given_: Any, plain: Any = plain, name: str = name) -> Any:
            made.append(name)
            return plain(*given_)

        monkeypatch.setattr(place, name, counted)
    first = built(root, Parts(store))
    assert (made.count("row_scores"), made.count("model_page")) == (ROWS * REGIMES, ROWS)
    made.clear()
    assert built(root, Parts(store)) == first
    assert made == []
    row = min((root / "submissions").glob("*.json"))
    document = json.loads(row.read_bytes())
    document["meta"]["display"] = "Another"
    row.write_text(json.dumps(document), encoding="utf-8")
    built(root, Parts(store))
    assert (made.count("row_scores"), made.count("model_page")) == (REGIMES, 1)
    made.clear()
    monkeypatch.setattr(kept, "_code", lambda: "other code")
    built(root, Parts(store))
    assert (made.count("row_scores"), made.count("model_page")) == (ROWS * REGIMES, ROWS)


def test_a_page_that_was_changed_in_its_folder_is_written_again(tmp_path):
    root, store = small(tmp_path), Store(tmp_path / "cache")
    first = built(root, Parts(store))
    pages_ = sorted((root / "out/models").iterdir())
    pages_[0].write_bytes(b"another")
    pages_[1].chmod(0o600)
    pages_[2].unlink()
    assert built(root, Parts(store)) == first
    assert pages_[1].stat().st_mode & 0o777 == 0o644
    page = next(iter((root / "out/tasks").iterdir()))
    page.write_bytes(b"")
    assert built(root, Parts(store)) == first


def test_a_full_disk_changes_no_byte(tmp_path):
    root, store = small(tmp_path), Store(tmp_path / "cache")
    expected = computed(root)
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
            code = 0 if computed(root, Parts(store)) == expected else 2
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not any((tmp_path / "cache").iterdir())


def test_the_digest_of_the_code_covers_templates(tmp_path, monkeypatch):
    before = kept._code()
    copied = tmp_path / "board"
    shutil.copytree(Path(kept.__file__).parent, copied)
    monkeypatch.setattr(kept, "__file__", str(copied / "rows.py"))
    assert kept._code() == before
    for name in ("site/templates/model.html", "site/templates/badge.svg", "decisions.py"):
        text = (copied / name).read_bytes()
        (copied / name).write_bytes(text + b"\n")
        assert kept._code() != before
        (copied / name).write_bytes(text)


def forge(store: Store, drawn: random.Random) -> None:
    """Put foreign content under right names, digests and seals, or parts of other rows."""
    assert store.folder is not None
    [name] = [path.name for path in store.folder.iterdir()]
    head, _, rest = (store.load(name) or b"").partition(b"\n")
    sizes = [size for size, _ in json.loads(head).values()]
    ends = list(itertools.accumulate(sizes))
    parts = {
        key: rest[end - size : end]
        for key, size, end in zip(json.loads(head), sizes, ends, strict=True)
    }
    seals = {key: seal(key, part) for key, part in parts.items()}
    keys = sorted(parts)
    if drawn.random() < 0.3:
        contents = list(parts.values())
        drawn.shuffle(contents)
        parts = dict(zip(parts, contents, strict=True))
    else:
        for key in drawn.sample(keys, drawn.randrange(1, len(keys) + 1)):
            parts[key] = foreign(parts[key], drawn)
            seals[key] = seal(key, parts[key])
    listed = {key: [len(part), seals[key]] for key, part in parts.items()}
    store.save(name, json.dumps(listed).encode() + b"\n" + b"".join(parts.values()))


def foreign(part: bytes, drawn: random.Random) -> bytes:
    """Return what no build writes: cut, of another shape or type, or with impossible numbers."""
    archive = io.BytesIO()
    np.savez(archive, a=np.zeros(3))
    cases = [b"", b"{}", b"[" * 10**5, b"9" * 5000, b"[1.5]", b'["x"]', b"[1,2,3]", b"\xff"]
    cases += [archive.getvalue(), part[:-1], part + b"x", part * 2, zlib.compress(part)[:-1]]
    cases += [np.full(len(part) // 8, value).tobytes() for value in (np.nan, -2.0, np.inf)]
    cases += [np.full(len(part) // 4, 1, dtype=np.float32).tobytes()]
    line, _, body = part.partition(b"\n")
    if line.startswith(b"{"):
        head = json.loads(line)
        key = drawn.choice(sorted(head))
        others = [None, -1, 0.5, True, [1], {}, {"full": [1]}, {"full": [-1] * 270}]
        changed_heads = [{k: one for k, one in head.items() if k != key}, [head], {}]
        changed_heads += [head | {key: other} for other in others]
        # A row is ranked in the regimes of its gaps, so that its numbers have one length.
        cases += [json.dumps(one).encode() + b"\n" + body for one in changed_heads]
        at = 8 * drawn.randrange(max(1, len(body) // 8))
        bad = np.float64(drawn.choice([np.nan, np.inf, -2.0])).tobytes()
        cases += [line + b"\n" + body[:at] + bad + body[at + 8 :], line, line + body]
        cases += [line + b"\n" + body[8:], line + b"\n" + body + bytes(24)]
    return drawn.choice(cases)


@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 10**6))
def test_what_a_build_did_not_write_is_no_part(tmp_path_factory, seed):
    drawn = random.Random(seed)
    root = small(tmp_path_factory.mktemp("repository"))
    store = Store(root / "cache")
    expected = built(root, Parts(store))
    for _ in range(3):
        forge(store, drawn)
        assert built(root, Parts(store)) == expected


@pytest.mark.parametrize("case", ["folder", "read-only"])
def test_a_store_that_takes_nothing_changes_no_byte(tmp_path, monkeypatch, case):
    root, store = small(tmp_path), Store(tmp_path / "cache")
    expected = built(root, Parts(store))
    [kept] = (tmp_path / "cache").iterdir()
    if case == "folder":
        kept.unlink()
        (kept / "inner").mkdir(parents=True)
    else:
        kept.write_bytes(kept.read_bytes()[:-1])

        def refused(*_: object, **__: object) -> None:
            raise OSError(30, "Read-only file system")

        monkeypatch.setattr("tempfile.mkstemp", refused)
    assert built(root, Parts(store)) == expected == built(root, Parts(store))


def test_processes_make_what_one_makes(tmp_path, monkeypatch):
    wanted = [(number, str(number).encode) for number in range(300)]
    expected = [make() for _, make in wanted]
    assert Parts(Store(tmp_path)).taken(wanted, bytes) == expected
    # One that is killed: what is left is made by this process.
    own = os.getpid()

    def made_here() -> bytes:
        return b"200" if os.getpid() == own else os._exit(1)

    monkeypatch.setattr(kept, "jobs_for", lambda _: 2)
    killed = [*wanted[:200], (200, made_here), *wanted[201:]]
    assert Parts(Store(tmp_path / "other")).taken(killed, bytes) == expected


def test_what_checks_a_file_makes_its_row(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setattr("geneb_ci.check.reuse.FILES_MIN", 1)
    folder = tmp_path / "rows"
    write_rows(folder, 2)
    read: list[str] = []

    def counted(path: Path) -> Any:
        read.append(path.name)
        return read_document(path)

    monkeypatch.setattr("geneb_ci.board.parts.read_document", counted)
    expected = build(folder, cache=False, jobs=1).files
    assert read == ["model-00000.json", "model-00001.json"]
    read.clear()
    assert dict(build(folder, jobs=1, out=tmp_path / "out").files) == dict(expected)
    assert dict(build(folder, jobs=1).files) == dict(expected)
    assert read == []


def test_boards_follow_the_changes_of_their_rows(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    folder, out = tmp_path / "rows", tmp_path / "out"
    write_rows(folder, 62)
    former = sorted(folder.iterdir())[60:]
    for path in former:
        path.rename(tmp_path / path.name)

    def same() -> None:
        """Build on what is kept, and compare with a build that keeps nothing."""
        cold = tmp_path / "cold"
        shutil.rmtree(cold, ignore_errors=True)
        build(folder, out=out, jobs=2)
        build(folder, out=cold, cache=False, jobs=1)
        gone = {path.stem for path in former} - {path.stem for path in folder.iterdir()}
        written = {str(one.relative_to(out)): one for one in out.rglob("*") if one.is_file()}
        expected = {str(one.relative_to(cold)): one for one in cold.rglob("*") if one.is_file()}
        left = [f"models/{name}.html" for name in gone] + [f"badges/{name}.svg" for name in gone]
        assert set(written) - set(left) == set(expected)
        for name, path in expected.items():
            assert written[name].read_bytes() == path.read_bytes(), name

    build(folder, out=out, jobs=2)
    changed(folder / "model-00045.json")
    same()
    for path in former:
        (tmp_path / path.name).rename(path)
    same()
    former[1].unlink()
    same()
