"""Parts of boards that are kept: a build that uses them writes what one without any writes."""

import contextlib
import functools
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

from geneb_ci.board import rows, uncertainty
from geneb_ci.board.board import board_of, entry_maker, page_of
from geneb_ci.board.rows import NO_PARTS, Parts
from geneb_ci.board.site import pages
from geneb_ci.check import reuse
from geneb_ci.check.reuse import Store
from geneb_ci.common.config import find_layout
from geneb_ci.common.files import seal
from geneb_ci.submission.document import read_document
from geneb_ci.submission.structure import check_structure
from tests.check.test_reuse import damaged, repository

ROWS = 3
REGIMES = 3


def small(root: Path) -> Path:
    """Write a repository of three rows and return its folder."""
    for path in repository(root)[ROWS:]:
        path.unlink()
    return root


def built(root: Path, parts: Parts = NO_PARTS) -> dict[str, bytes]:
    """Return all files of the board of a repository, whatever checks say of its rows."""
    find_layout.cache_clear()
    layout = find_layout(root)
    made, entries = entry_maker(layout), []
    for path in sorted((root / "submissions").glob("*.json")):
        document = read_document(path)
        submission, _ = check_structure(document.value)
        assert submission is not None
        entries.append(made(document, submission, ()))
    board = board_of(entries, layout, parts=parts)
    return board.files | page_of(entries, board, layout, parts)


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
        assert built(root, Parts(store)) == built(root)


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
    monkeypatch.setattr(rows, "_code", lambda: "other code")
    built(root, Parts(store))
    assert (made.count("row_scores"), made.count("model_page")) == (ROWS * REGIMES, ROWS)


def test_a_full_disk_changes_no_byte(tmp_path):
    root, store = small(tmp_path), Store(tmp_path / "cache")
    expected = built(root)
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
            code = 0 if built(root, Parts(store)) == expected else 2
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not any((tmp_path / "cache").iterdir())


def test_the_digest_of_the_code_covers_templates(tmp_path, monkeypatch):
    before = rows._code()
    copied = tmp_path / "board"
    shutil.copytree(Path(rows.__file__).parent, copied)
    monkeypatch.setattr(rows, "__file__", str(copied / "rows.py"))
    assert rows._code() == before
    for name in ("site/templates/model.html", "site/templates/badge.svg", "decisions.py"):
        text = (copied / name).read_bytes()
        (copied / name).write_bytes(text + b"\n")
        assert rows._code() != before
        (copied / name).write_bytes(text)


def test_what_is_kept_is_bounded(tmp_path, monkeypatch):
    store = Store(tmp_path)
    monkeypatch.setattr(rows, "PARTS_BYTES_MAX", 250)
    for number in range(4):
        parts = Parts(store)
        assert parts.taken([(number, functools.partial(bytes, [number] * 100))], bool)
        parts.save()
    kept = Parts(store)._found
    assert [part[0] for part in kept.values()] == [3, 2]


def test_a_file_of_another_shape_is_as_if_it_were_not_there(tmp_path):
    store = Store(tmp_path)
    name = Parts(store)._name
    bodies = [b"", b"{}", b"[1]\nab", b'{"a":"b"}\n', b'{"a":2}\nabc', b'{"a":-1,"b":2}\nc']
    bodies += [b"[" * 10**5, b'{"a":[1,2,3]}\nc', b'{"a":["1","x"]}\nc', b'{"a":[-1,1]}\nc']
    key = hashlib.sha256(b'"known"').hexdigest()
    bodies += [f'{{"{key}":[2,"{own}"]}}\nab'.encode() for own in ("", seal("other", b"ab"))]
    bodies += [f'{{"{key}":[2,1]}}\nab'.encode(), f'{{"{key}":[true,[]]}}\nab'.encode()]
    for body in bodies:
        store.save(name, body)
        assert Parts(store).taken([("known", lambda: b"made")], bool) == [b"made"]
    store.save(name, f'{{"{key}":[2,"{seal(key, b"ab")}"]}}\nab'.encode())
    assert Parts(store).taken([("known", lambda: b"made")], bool) == [b"ab"]


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
    if part.startswith(b"["):
        value = json.loads(part)
        other: list[Any] = [*value]
        other[drawn.randrange(len(value))] = drawn.choice([None, -1, 0.5, True, "x", [1]])
        cases += [json.dumps(one).encode() for one in (other, value[1:], [value], {"a": value})]
    # A compressed text is a page, whatever it says.
    return drawn.choice([one for one in cases if not rows.is_compressed(one)])


@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
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
    assert Parts(Store(tmp_path)).taken(wanted, bool) == expected
    # One that is killed: what is left is made by this process.
    own = os.getpid()

    def made_here() -> bytes:
        return b"200" if os.getpid() == own else os._exit(1)

    monkeypatch.setattr(reuse, "jobs_for", lambda _: 2)
    killed = [*wanted[:200], (200, made_here), *wanted[201:]]
    assert Parts(Store(tmp_path / "other")).taken(killed, bool) == expected
