"""Inputs 1, 7, 8, 11, 19 and 20: bytes that hold no JSON text, or no object."""

import io
import struct
import zipfile
import zlib

from tests.hostile.case import Case, sound, whole
from tests.hostile.text import MARK, Place


def at_top(name: str, value: str, kind: str) -> Case:
    says = whole("not-an-object", f"the document is {kind}")
    return Case(1, f"top-{name}", MARK + value + "\n", says, ())


EMPTY = [
    *(
        Case(
            1,
            f"zeros-{size}",
            bytes(size),
            whole("wrong-encoding", "the file is binary data, not text"),
            (),
        )
        for size in (1, 2, 4, 600)
    ),
    Case(1, "empty", b"", whole("empty-file", "the file is empty"), ()),
    Case(1, "blank", b" \t\r\n\n", whole("empty-file", "the file is empty"), ()),
    at_top("null", "null", "null"),
    at_top("array", "[]", "an array"),
    at_top("text", '"x"', "a string"),
    at_top("number", "1", "a number"),
    at_top("true", "true", "true or false"),
]


def encoded(name: str, encoding: str, bom: bytes, what: str) -> Case:
    data = bom + sound(f"encoding-{name}").encode(encoding)
    return Case(7, f"encoding-{name}", data, whole("wrong-encoding", f"the file is {what}"), ())


_WIDE = "UTF-16 or UTF-32 text"
ENCODINGS = [
    encoded("utf-16-le-marked", "utf-16-le", b"\xff\xfe", _WIDE),
    encoded("utf-16-be-marked", "utf-16-be", b"\xfe\xff", "UTF-16 text"),
    encoded("utf-16-le", "utf-16-le", b"", _WIDE),
    encoded("utf-16-be", "utf-16-be", b"", _WIDE),
    encoded("utf-32-le-marked", "utf-32-le", b"\xff\xfe\x00\x00", _WIDE),
    encoded("utf-32-be-marked", "utf-32-be", b"\x00\x00\xfe\xff", "UTF-32 text"),
    encoded("utf-32-le", "utf-32-le", b"", _WIDE),
    encoded("utf-32-be", "utf-32-be", b"", _WIDE),
    Case(
        8,
        "byte-order-mark",
        b"\xef\xbb\xbf" + sound("byte-order-mark").encode(),
        whole("wrong-encoding", "the file begins with a byte order mark"),
    ),
]


def broken_byte(name: str, data: bytes, byte: str) -> Case:
    name = f"encoding-{name}"
    raw = sound(name).encode().replace(b"A. Contributor", b"A. " + data)
    at = raw.index(b"A. " + data) + 3
    lines = raw[:at].split(b"\n")
    says = whole("wrong-encoding", f"byte 0x{byte} at offset {at} is not UTF-8")
    return Case(11, name, raw, says, (), Place(len(lines), len(lines[-1]) + 1))


BYTES = [
    broken_byte("latin-1", "\xc9lodie".encode("latin-1"), "C9"),
    broken_byte("bare-continuation", b"\x80", "80"),
    broken_byte("overlong-slash", b"\xc0\xaf", "C0"),
    broken_byte("surrogate-as-utf-8", b"\xed\xa0\x80", "ED"),
    broken_byte("beyond-unicode", b"\xf4\x90\x80\x80", "F4"),
    broken_byte("cut-character", b"\xe2\x82", "E2"),
]


def gzipped(data: bytes) -> bytes:
    """Store data as gzip does, uncompressed, so that no version of zlib changes a byte."""
    size = struct.pack("<HH", len(data), len(data) ^ 0xFFFF)
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x01" + size
    return head + data + struct.pack("<II", zlib.crc32(data), len(data))


def zipped(data: bytes) -> bytes:
    """Store data as zip does, uncompressed, at a fixed date."""
    entry = zipfile.ZipInfo("model.json", (2026, 11, 20, 8, 30, 0))
    entry.create_system = 3
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(entry, data)
    return stream.getvalue()


POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    b"size 12345\n"
)
OTHER_FORMATS = [
    Case(
        19,
        "gzip-bytes",
        gzipped(sound("gzip-bytes").encode()),
        whole("wrong-encoding", "the file is gzip data"),
        (),
    ),
    Case(
        19,
        "zip-bytes",
        zipped(sound("zip-bytes").encode()),
        whole("wrong-encoding", "the file is a zip archive"),
        (),
    ),
    Case(
        20,
        "lfs-pointer",
        POINTER,
        whole("lfs-pointer", "the file is a Git LFS pointer"),
        (),
    ),
]


CASES = [*EMPTY, *ENCODINGS, *BYTES, *OTHER_FORMATS]
