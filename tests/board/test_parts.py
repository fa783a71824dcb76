"""The files in which parts of boards are kept: bounded, divided, and never taken on trust."""

import functools
import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geneb_ci.board import parts as kept
from geneb_ci.board.parts import Parts
from geneb_ci.check.reuse import Store
from geneb_ci.common.files import seal


def test_what_is_kept_is_bounded(tmp_path, monkeypatch):
    store = Store(tmp_path)
    monkeypatch.setattr(kept, "PARTS_BYTES_MAX", 250)
    for number in range(4):
        parts = Parts(store)
        assert parts.taken([(number, functools.partial(bytes, [number] * 100))], bytes)
        parts.save()
    found = Parts(store)._found
    assert [part[0] for part in found.values()] == [3, 2]


def parts_of(numbers: Iterable[int]) -> list[kept.Wanted]:
    """Return parts of the sizes of digests of pages, of rows, and of the places in large files."""
    sizes = [32, 1000, 200_000]
    return [(n, functools.partial(bytes, [n % 256] * sizes[n % len(sizes)])) for n in numbers]


def test_a_large_board_writes_the_files_of_what_changed_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "DIVIDED_BYTES", 0)
    store = Store(tmp_path)

    def build(numbers: Iterable[int]) -> list[bytes]:
        parts = Parts(store)
        found = parts.taken(parts_of(numbers), bytes)
        parts.save()
        return found

    def files() -> dict[str, int]:
        return {path.name: path.stat().st_ino for path in tmp_path.iterdir()}

    first = build(range(60))
    before = files()
    assert len(before) > 12
    assert build(range(60)) == first
    assert files() == before
    for added, what in ((60, "digests"), (62, "texts"), (61, "")):
        build([*range(60), added])
        after = files()
        [changed] = [name for name, inode in after.items() if before.get(name) != inode]
        assert changed.endswith(what or tuple("0123456789abcdef"))
        before = after
    (tmp_path / changed).write_bytes(b"cut")
    assert build(range(60)) == first
    assert [name for name, inode in files().items() if before[name] != inode] == [changed]


@settings(max_examples=20, deadline=None)
@given(
    runs=st.lists(
        st.tuples(st.sets(st.integers(0, 40)), st.sampled_from([0, 500_000, 10**9])), max_size=6
    )
)
def test_parts_of_boards_that_grow_and_shrink_are_kept(tmp_path_factory, runs):
    """Whatever earlier builds kept, in however many files, a part is read as it was made."""
    store = Store(tmp_path_factory.mktemp("cache"))
    known: set[int] = set()
    for numbers, limit in runs:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kept, "DIVIDED_BYTES", limit)
            parts = Parts(store)
            made: set[int] = set()
            wanted = parts_of(sorted(numbers))

            def noted(number: Any, make: Callable[[], bytes], made: set[int] = made) -> bytes:
                made.add(number)
                return make()

            found = parts.taken(
                [(n, functools.partial(noted, n, make)) for n, make in wanted], bytes
            )
            assert found == [make() for _, make in wanted]
            assert made == numbers - known
            parts.save()
            known |= numbers


def test_a_file_of_another_shape_is_as_if_it_were_not_there(tmp_path):
    store = Store(tmp_path)
    name = f"{Parts(store)._root}-board"
    bodies = [b"", b"{}", b"[1]\nab", b'{"a":"b"}\n', b'{"a":2}\nabc', b'{"a":-1,"b":2}\nc']
    bodies += [b"[" * 10**5, b'{"a":[1,2,3]}\nc', b'{"a":["1","x"]}\nc', b'{"a":[-1,1]}\nc']
    key = hashlib.sha256(b'"known"').hexdigest()
    bodies += [f'{{"{key}":[2,"{own}"]}}\nab'.encode() for own in ("", seal("other", b"ab"))]
    bodies += [f'{{"{key}":[2,1]}}\nab'.encode(), f'{{"{key}":[true,[]]}}\nab'.encode()]
    for body in bodies:
        store.save(name, body)
        assert Parts(store).taken([("known", lambda: b"made")], bytes) == [b"made"]
    store.save(name, f'{{"{key}":[2,"{seal(key, b"ab")}"]}}\nab'.encode())
    assert Parts(store).taken([("known", lambda: b"made")], bytes) == [b"ab"]
