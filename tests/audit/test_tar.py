"""The reader of archives: what tarfile writes, and what a stranger may write instead."""

import contextlib
import gzip
import io
import tarfile
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geneb_ci.audit.rerun.fetching import TAR_BLOCK_BYTES, BrokenArchiveError, tar_members

LIMIT = 1 << 24
NAMES = st.text("abcä/._- \n", min_size=1, max_size=300).filter(
    lambda name: name.strip("/. ") == name.strip() and "//" not in name and name[-1] != "/"
)


def archive(
    files: dict[str, bytes], kind: int = tarfile.PAX_FORMAT, *, packed: bool = False
) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz" if packed else "w", format=kind) as made:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            made.addfile(info, io.BytesIO(content))
    return out.getvalue()


def names_and_contents(raw: bytes, limit: int = LIMIT) -> list[tuple[str, bytes]]:
    return [
        (tar_member.name, b"".join(tar_member.chunks()))
        for tar_member in tar_members(io.BytesIO(raw), limit)
    ]


@settings(deadline=None)
@given(
    st.dictionaries(NAMES, st.binary(max_size=2000), max_size=4),
    st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]),
    st.booleans(),
)
def test_it_reads_what_tarfile_writes(files, kind, packed):
    raw = archive(files, kind, packed=packed)
    expected = [(name.removeprefix("./"), content) for name, content in files.items()]
    assert names_and_contents(raw) == expected
    # What is not read is skipped.
    assert [tar_member.name for tar_member in tar_members(io.BytesIO(raw), LIMIT)] == [
        name for name, _ in expected
    ]


@given(st.binary(max_size=3000), st.integers(0, 3000), st.integers(1, 255))
def test_no_bytes_raise_anything_else(junk, at, change):
    raw = bytearray(archive({"a": junk, "b" * 200: junk}))
    raw[at % len(raw)] ^= change
    for content in (junk, bytes(raw), gzip.compress(bytes(raw))[: max(1, at)]):
        with contextlib.suppress(BrokenArchiveError, EOFError):
            names_and_contents(content)


def header(name: bytes, size: int, kind: bytes = b"0") -> bytes:
    number = b"%011o\0" % size if size < 8**11 else b"\x80" + size.to_bytes(11, "big")
    block = bytearray(name.ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + number)
    block += b"00000000000\0" + b" " * 8 + kind + bytes(100) + b"ustar\00000"
    block += bytes(TAR_BLOCK_BYTES - len(block))
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


HOSTILE = {
    "a member that claims an exabyte": header(b"README", 1 << 60) + b"x" * 4096,
    "a header that claims a gigabyte": header(b"x", 1 << 30, b"x"),
    "a long name that claims one": header(b"x", 1 << 30, b"L"),
    "thousands of headers": header(b"x", 0, b"x") * 3000,
    "a sparse map": header(b"x", 25, b"x")
    + b"25 GNU.sparse.map=1,xxxxx\n".ljust(TAR_BLOCK_BYTES, b"\0"),
    "a record without an end": header(b"x", 9, b"x") + b"99 path=a".ljust(TAR_BLOCK_BYTES, b"\0"),
    "a record without a length": header(b"x", 9, b"x") + b" path=abc".ljust(TAR_BLOCK_BYTES, b"\0"),
    "a size that is no number": header(b"x", 11, b"x")
    + b"11 size=-1\n".ljust(TAR_BLOCK_BYTES, b"\0")
    + header(b"a", 0),
    "junk": b"not a tar archive" * 100,
    "a bomb": gzip.compress(header(b"a", 1 << 26) + bytes(1 << 26), 1),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused_in_little_memory(name):
    tracemalloc.start()
    try:
        with pytest.raises(BrokenArchiveError):
            names_and_contents(HOSTILE[name])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 << 20


def test_a_link_is_no_file():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        link = tarfile.TarInfo("model.bin")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        made.addfile(link)
    assert [
        (tar_member.name, tar_member.is_file)
        for tar_member in tar_members(io.BytesIO(out.getvalue()), LIMIT)
    ] == [("model.bin", False)]
